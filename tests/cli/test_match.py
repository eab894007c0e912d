"""`keypatch match`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from skimage import data

from keypatch.features import Extraction
from keypatch.matching.image_matches import match
from keypatch.matching.match_files import read_matches
from keypatch.matching.matching import Matching
from keypatch.matching.pairs import match_pairs

FEW = ("--keypoints", "300", "--descriptor", "rootsift")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a.png and b.png, a real stereo pair in small; K.txt; and files that are no photos."""
    folder = tmp_path_factory.mktemp("photos")
    left, right, _ = data.stereo_motorcycle()
    for name, photo in (("a.png", left), ("b.png", right)):
        Image.fromarray(photo[100:400, 200:600]).save(folder / name)
    Image.fromarray(left[:300, :300]).save(folder / "cut.jpg")
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:5000])
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.png").write_text("no photo")
    Image.new("L", (1, 1)).save(folder / "dot.png")
    Image.new("1", (20_000, 20_000)).save(folder / "huge.png")
    (folder / "K.txt").write_text("995 0 111\n0 995 154\n0 0 1\n")
    (folder / "H.txt").write_text("1 0 -30\n0 1 0\n0 0 1\n")
    return folder


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Three photos of the same 60 points, as hloc writes them."""
    rng = np.random.default_rng(0)
    places, rows = rng.uniform(0, 400, (60, 2)), np.linalg.qr(rng.normal(size=(64, 64)))[0][:60]
    with h5py.File(tmp_path / "features.h5", "w") as file:
        for k, name in enumerate(["a.jpg", "b.jpg", "sub/c.jpg"]):
            file[f"{name}/keypoints"] = (places + 10 * k).astype(np.float16)
            file[f"{name}/descriptors"] = rows.T.astype(np.float16)
    return tmp_path / "features.h5"


def test_two_photos_are_matched_and_counted(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "m.json", tmp_path / "m.png"
    shown = keypatch("match", folder / "a.png", folder / "b.png", *FEW, "--out", out, "--draw", picture)
    assert shown.code == 0
    counts = json.loads(out.read_text())["counts"]
    assert counts["verified"] > 60
    lines = shown.out.splitlines()
    assert lines[0].startswith("a.png: 300 keypoints, b.png: 300 keypoints")
    assert lines[1].startswith(f"{counts['matches']} matches")
    assert lines[2].startswith(f"{counts['verified']} agree")
    assert lines[3:] == [f"Written: {out}", f"Written: {picture}"]
    assert shown.err.splitlines() == ["describing 2 photos with rootsift"]


def test_one_file_given_twice_is_remarked(keypatch: Callable, folder: Path) -> None:
    dot = folder / "dot.png"
    shown = keypatch("match", dot, folder / ".." / folder.name / "dot.png", *FEW)
    assert shown.code == 0 and shown.err.splitlines().count("both photos are the same file") == 1


def test_nothing_but_two_photos_is_needed_and_the_network_stays_unused(folder: Path, tmp_path: Path) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise AssertionError('the network was used')\n"
        "socket.socket.connect = refuse\n"
        "from keypatch.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    call = [sys.executable, "-c", code, "match", str(folder / "a.png"), str(folder / "b.png")]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hynet-notredame" in done.stdout and "agree with one fundamental matrix" in done.stdout
    assert not list(tmp_path.iterdir())


def test_options_do_what_the_function_does(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    a, b, out = folder / "a.png", folder / "b.png", tmp_path / "m.json"
    neighbours = ["--mode", "one-way", "--ratio", "0.8"]
    geometry = ["--model", "E", "--intrinsics", folder / "K.txt", "--threshold", "2"]
    words = [*neighbours, *geometry, "--estimator", "poselib", "--seed", "3"]
    assert keypatch("match", a, b, *FEW, *words, "--rule", "strongest", "--out", out).code == 0
    camera = [[995, 0, 111], [0, 995, 154], [0, 0, 1]]
    matching = Matching(mode="one-way", ratio=0.8, model="E", estimator="poselib", threshold=2, seed=3)
    extraction = Extraction(keypoints=300, rule="strongest")
    result = match(a, b, matching, describer="rootsift", extraction=extraction, intrinsics=[camera])
    written = json.loads(out.read_text())
    assert written["counts"] == result.counts()
    assert written["settings"] == {
        "mode": "one-way", "ratio": 0.8, "apart": 0, "ratio_sides": "both", "turn": 60, "filter": "adalam",
        "model": "E", "estimator": "poselib", "threshold": 2, "seed": 3, "tries": 1,
    }  # fmt: skip


def test_a_homography_tells_right_from_wrong(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    words = ["--homography", folder / "H.txt", "--within", "20", "--model", "none", "--draw", tmp_path / "m.jpg"]
    shown = keypatch("match", folder / "a.png", folder / "b.png", *FEW, *words)
    assert shown.code == 0
    assert "right (" in shown.out and "within 20 px" in shown.out and "agree" not in shown.out
    with Image.open(tmp_path / "m.jpg") as picture:
        assert picture.format == "JPEG" and picture.width == 812


def test_many_pairs_go_to_a_match_file_that_is_completed_later(
    keypatch: Callable, features: Path, tmp_path: Path
) -> None:
    out = tmp_path / "matches.h5"
    shown = keypatch("match", "--features", features, "--pairs", "sequence:1", "--out", out)
    assert shown.code == 0 and f"{out}, 2 pairs" in shown.out
    shown = keypatch("match", "--features", features, "--pairs", "exhaustive", "--out", out)
    assert shown.code == 0 and f"{out}, 3 pairs" in shown.out
    assert "180 matches in total, 180 verified" in shown.out
    assert read_matches(out, "sub/c.jpg", "a.jpg").indices.tolist() == [[k, k] for k in range(60)]


def test_a_folder_is_described_and_matched_in_one_go(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    few = ("--keypoints", "60", "--descriptor", "rootsift")
    out = tmp_path / "new" / "m.h5"
    shown = keypatch("match", photos, *few, "--ratio", "0.95", "--out", out)
    assert shown.code == 0 and f"Written: {out}, 6 pairs" in shown.out
    assert sorted(path.name for path in out.parent.iterdir()) == ["features.h5", "m.h5"]
    assert keypatch("describe", photos, *few, "--out", tmp_path / "f.h5").code == 0
    words = ("--pairs", "exhaustive", "--ratio", "0.95", "--out", tmp_path / "m.h5")
    again = keypatch("match", "--features", tmp_path / "f.h5", *words)
    assert again.out.splitlines()[0] == shown.out.splitlines()[0]
    with h5py.File(out) as one, h5py.File(tmp_path / "m.h5") as two:
        assert one["b.jpg/sub-c.png/matches0"][()].tolist() == two["b.jpg/sub-c.png/matches0"][()].tolist()
        assert one.attrs["settings"] == two.attrs["settings"]


def test_a_folder_whose_features_are_there_is_only_matched(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    few = ("--keypoints", "20", "--descriptor", "sift", "--features", tmp_path / "f.h5")
    listed = [photos / "a.png", photos / "b.jpg", photos / "sub" / "c.png", "--root", photos]
    assert keypatch("match", *listed, *few, "--pairs", "sequence:1", "--out", tmp_path / "m.h5").code == 0
    shown = keypatch("match", *listed, *few, "--out", tmp_path / "m.h5")
    assert shown.code == 0 and "3 pairs" in shown.out and "describing" not in shown.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h5", "m.h5"]


def test_many_pairs_count_places_once(keypatch: Callable, features: Path, tmp_path: Path) -> None:
    rows = np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0].astype(np.float32)
    with h5py.File(features, "w") as file:
        for name in ("a.jpg", "b.jpg"):
            places = np.random.default_rng(0).uniform(0, 400, (54, 2)).astype(np.float32)
            file[f"{name}/keypoints"] = np.concatenate([places, places[:10]])  # ten have a second orientation
            file[f"{name}/descriptors"] = rows
    words = ("--pairs", "exhaustive", "--model", "none", "--out", tmp_path / "m.h5")
    shown = keypatch("match", "--features", features, *words)
    assert "64 matches in total, 54 counting orientations of the same place once" in shown.out
    with h5py.File(tmp_path / "m.h5") as file:
        assert (file["a.jpg/b.jpg/matches0"][()] == np.arange(64)).all()
        assert file["a.jpg/b.jpg"].attrs["places"] == 54


def test_a_photo_that_its_exif_tag_turns_is_told(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    with Image.open(folder / "b.png") as photo:
        photo.save(tmp_path / "b.png", exif=exif)
    shown = keypatch("match", folder / "a.png", tmp_path / "b.png", *FEW)
    assert shown.code == 0 and shown.err.count("Rotated by an EXIF tag: 1 of 2 photos") == 1
    shown = keypatch("match", folder / "a.png", tmp_path / "b.png", *FEW, "--turn-by-exif")
    assert shown.code == 0 and "EXIF" not in shown.err


def test_two_processes_do_not_write_one_file(keypatch: Callable, features: Path, tmp_path: Path) -> None:
    from keypatch.files import lock

    (tmp_path / ".m.h5.parts").mkdir()
    with lock(tmp_path / ".m.h5.parts" / "lock", "m.h5"):
        shown = keypatch("match", "--features", features, "--pairs", "exhaustive", "--out", tmp_path / "m.h5")
    assert shown.code == 2 and "another process" in shown.err
    match_pairs(features, "exhaustive", tmp_path / "m.h5")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("a.png", ["two photos", "given: 1."]),
        ("a.png b.png a.png", ["many photos", "--out matches.h5"]),
        (". --draw m.png", ["--draw", "many photos"]),
        (". --out m.csv", ["m.csv", "Choose a name that ends in .h5"]),
        (". --out m.h5 --features m.h5", ["m.h5 cannot hold both features and matches"]),
        (". --out m.h5 --pairs sequence:0", ["sequence:0"]),
        (". --out m.h5 --model E", ["intrinsics"]),
        (". --out m.h5 --model E --intrinsics K.txt --intrinsics K.txt", ["Give it once"]),
        ("a.png b.png --workers 2", ["--workers", "two photos"]),
        ("", ["two photos", "--features"]),
        ("a.png b.png --pairs exhaustive", ["--pairs", "two photos"]),
        ("a.png gone.png", ["gone.png", "no such file"]),
        ("a.png text.png", ["text.png", "not an image"]),
        ("a.png .", ["many photos", "--out matches.h5"]),
        ("a.png empty.jpg", ["empty.jpg", "empty"]),
        ("a.png cut.jpg", ["cut.jpg", "cut off"]),
        ("a.png huge.png", ["huge.png", "20000 x 20000", "--pixel-limit"]),
        ("a.png b.png --model P", ["'P'", "F, E, H"]),
        ("a.png b.png --pose --model H", ["--pose needs the model E"]),
        ("a.png b.png --filter lamp", ["adalam"]),
        ("a.png b.png --picture photo --draw m.png", ["lines, epipolar, overlay"]),
        ("a.png b.png --draw m.png --picture overlay", ["model H"]),
        ("a.png b.png --model E --intrinsics gone.txt", ["gone.txt"]),
        ("a.png b.png --model E --intrinsics text.png", ["text.png", "nine numbers"]),
        ("a.png b.png --mode both", ["'both'", "mutual, one-way"]),
        ("a.png b.png --ratio 1.2", ["ratio is 1.2"]),
        ("a.png b.png --threshold -1", ["threshold is -1"]),
        ("a.png b.png --estimator ransac", ["'ransac'", "poselib, magsac"]),
        ("a.png b.png --neighbours annoy", ["'annoy'", "tiles, faiss"]),
        ("a.png b.png --homography text.png", ["text.png"]),
        ("a.png b.png --homography H.txt --within 0", ["above 0"]),
        ("a.png b.png --draw m.gif", ["m.gif", ".png"]),
        ("a.png b.png --out m.h5", ["m.h5", ".csv or .json"]),
        ("a.png b.png --out a.png/m.csv", ["a.png/m.csv cannot be written"]),
        ("a.png b.png --descriptor hynt", ["hynt"]),
        ("a.png b.png --detector dgo", ["dgo"]),
        ("a.png b.png --rule best", ["best", "strongest"]),
        ("--features gone.h5 --pairs exhaustive --out m.h5", ["gone.h5"]),
        ("--features text.png --pairs exhaustive --out m.h5", ["text.png"]),
        ("--features gone.h5 --out m.h5", ["--pairs"]),
        ("--features gone.h5 --pairs exhaustive", ["--out"]),
        ("--features gone.h5 a.png b.png", ["--features", "two photos"]),
        ("--features gone.h5 --draw m.png", ["--draw", "--features"]),
        ("--features gone.h5 --descriptor sift", ["--descriptor", "--features"]),
        ("--features gone.h5 --keypoints 2048", ["--keypoints", "--features"]),
        ("--features gone.h5 --turn-by-exif", ["--turn-by-exif", "--features"]),
        ("--features gone.h5 --lines 3", ["--lines", "--features"]),
        ("--features gone.h5 --set detector.orientations=one", ["--set", "--features"]),
        ("a.png b.png --model H --intrinsics K.txt", ["essential matrix"]),
        ("a.png b.png --ratio-sides second", ["'second'", "both, first"]),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(
    keypatch: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, parts: list[str]
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(os.listdir(folder))
    shown = keypatch("match", *words.split(), *(() if {"--descriptor", "--features"} & {*words.split()} else FEW))
    assert shown.code == 2
    assert all(part in shown.err for part in parts)
    said = [line for line in shown.err.strip().splitlines() if not line.startswith("describing 2 photos")]
    assert "Traceback" not in shown.err and len(said) == 1
    assert sorted(os.listdir(folder)) == before


def test_a_photo_of_one_pixel_has_no_matches(keypatch: Callable, folder: Path) -> None:
    shown = keypatch("match", folder / "a.png", folder / "dot.png", *FEW)
    assert shown.code == 0 and "dot.png: 0 keypoints" in shown.out and "0 matches" in shown.out


@pytest.mark.parametrize("line", ["a.jpg ../../b.jpg", "a.jpg /b.jpg", "a.jpg C:\\b.jpg"])
def test_names_that_lead_elsewhere_are_no_photos(keypatch: Callable, features: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "pairs.txt").write_text(line)
    shown = keypatch("match", "--features", features, "--pairs", tmp_path / "pairs.txt", "--out", tmp_path / "m.h5")
    assert shown.code == 2 and "pairs.txt, line 1" in shown.err
    assert not (tmp_path / "m.h5").exists()


@pytest.mark.parametrize(("key", "shape"), [("keypoints", (5, 1)), ("keypoints", (5,)), ("descriptors", (8, 7))])
def test_an_h5_with_wrong_shapes_is_named(keypatch: Callable, tmp_path: Path, key: str, shape: tuple[int, ...]) -> None:
    arrays = {"keypoints": np.ones((5, 2)), "descriptors": np.ones((8, 5)), key: np.ones(shape)}
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for photo in ("a.jpg", "b.jpg"):
            for name, array in arrays.items():
                file[f"{photo}/{name}"] = array
    shown = keypatch("match", "--features", tmp_path / "f.h5", "--pairs", "exhaustive", "--out", tmp_path / "m.h5")
    assert shown.code == 2 and "f.h5: a.jpg" in shown.err


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever runs this may write everywhere")
def test_a_read_only_folder_is_named(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    shown = keypatch("match", folder / "a.png", folder / "b.png", *FEW, "--out", tmp_path / "m.csv")
    tmp_path.chmod(0o700)
    assert shown.code == 2 and "m.csv cannot be written" in shown.err


def test_help_is_fast_to_load_and_ends_with_examples(keypatch: Callable) -> None:
    shown = keypatch("match", "--help")
    assert shown.code == 0 and "keypatch match a.jpg b.jpg --draw matches.png" in shown.out
