"""Reconstructions of a set in the ETH layout: a scene of known geometry, its files by struct, sqlite3 and Pillow."""

import json
import re
import shutil
import sqlite3
import struct
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks.eth import model as sfm_model
from keypatch.benchmarks.eth.sfm import Sfm, SfmMatching, evaluate_sfm
from keypatch.benchmarks.stages import BenchmarkExtraction
from keypatch.colmap import process as mapping
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features import extract
from keypatch.geometry import Keypoints

pycolmap = pytest.importorskip("pycolmap")

SIZE, VIEWS, POINTS, DIM = (640, 480), 5, 160, 16
K = np.array([[700.0, 0, 319.5], [0, 700, 239.5], [0, 0, 1]])  # centre of the top-left pixel = (0, 0)
EXACT = Sfm(half_pixel_off=False, refine_cameras=False)
TABLES = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY, model INTEGER, width INTEGER, height INTEGER, params BLOB,
    prior_focal_length INTEGER);
CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT, camera_id INTEGER);
"""


@dataclass(frozen=True)
class Eth:
    data: Path  # images, keypoints, database.db, cameras
    described: Path  # descriptors
    names: list[str]
    keypoints: dict[str, np.ndarray]
    order: dict[str, np.ndarray]  # keypoint k of a photo is point order[k]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Eth:
    """Five views of 160 points, every point in every view under another number and with one descriptor of its own."""
    folder, rng = tmp_path_factory.mktemp("eth"), np.random.default_rng(1)
    data, described = folder / "Box", folder / "points16"
    for path in (data / "images", data / "keypoints", data / "cameras", described / "descriptors"):
        path.mkdir(parents=True)
    points = rng.uniform((-2, -1.5, -1), (2, 1.5, 1), (POINTS, 3))
    vectors = rng.normal(size=(POINTS, DIM))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    names, keypoints, order = [f"{number:04}.png" for number in range(VIEWS)], {}, {}
    for number, name in enumerate(names):
        angle = np.radians(-36 + 18 * number)
        centre = np.array([7 * np.sin(angle), 0.4 * np.cos(3 * angle), -7 * np.cos(angle)])
        turn = looking(-centre)
        order[name] = rng.permutation(POINTS)
        seen = (points[order[name]] - centre) @ turn.T
        keypoints[name] = ((seen @ K.T)[:, :2] / seen[:, 2:]).astype(np.float32)
        Image.fromarray(rng.integers(0, 255, SIZE[::-1], np.uint8)).save(data / "images" / name)
        rows = np.hstack([keypoints[name], np.full((POINTS, 1), 2.0), np.zeros((POINTS, 1))])
        put(data / "keypoints" / f"{name}.bin", rows)
        put(described / "descriptors" / f"{name}.bin", vectors[order[name]])
        lines = [*K, np.zeros(3), *turn.T, centre, SIZE]
        text = "\n".join(" ".join(repr(float(value)) for value in line) for line in lines)
        (data / "cameras" / f"{name}.camera").write_text(text + "\n")
    write_database(data / "database.db", names)
    return Eth(data, described, names, keypoints, order)


def looking(direction: np.ndarray) -> np.ndarray:
    forward = direction / np.linalg.norm(direction)
    right = np.cross([0, 1, 0], forward)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def put(path: Path, rows: np.ndarray) -> None:
    path.write_bytes(struct.pack("<ii", *rows.shape) + rows.astype("<f4").tobytes())


def write_database(path: Path, names: list[str]) -> None:
    """As COLMAP of 2017, its images numbered against the order of their names: the trap of unswapped columns."""
    params = np.array([700.0, 700, 320, 240], "<f8").tobytes()  # COLMAP counts from the corner
    with closing(sqlite3.connect(path)) as database:
        database.executescript(TABLES)
        database.execute("INSERT INTO cameras VALUES (1, 1, ?, ?, ?, 1)", (*SIZE, params))
        rows = [(len(names) - number, name) for number, name in enumerate(names)]
        database.executemany("INSERT INTO images VALUES (?, ?, 1)", rows)
        database.commit()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def eth(made: Eth, tmp_path: Path, cache: Path) -> Eth:
    """A copy to be spoilt."""
    shutil.copytree(made.data, tmp_path / "Box")
    shutil.copytree(made.described, tmp_path / "points16")
    return replace(made, data=tmp_path / "Box", described=tmp_path / "points16")


@pytest.fixture(scope="module")
def exact(made: Eth, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("exact") / "out"
    return evaluate_sfm(made.described, made.data, replace(EXACT, folder=str(folder))), folder


def test_exact_places_give_the_whole_model(exact) -> None:
    """Without noise a half pixel in the wrong place, or columns of matches that are not swapped, would show."""
    result, _ = exact
    scores = result.scores
    assert scores["registered"] == 1 and scores["count.images"] == scores["count.registered"] == VIEWS
    assert scores["count.points"] == POINTS and scores["count.observations"] == VIEWS * POINTS
    assert scores["track_length"] == VIEWS and scores["observations_per_image"] == POINTS
    assert scores["count.inlier_pairs"] == 10 and scores["count.inlier_matches"] == 10 * POINTS
    assert scores["error.reprojection"] < 2e-3  # float32 places
    assert scores["error.rotation.largest"] < 1e-3 and scores["error.position.largest"] < 1e-3
    assert scores["error.rotation"] <= scores["error.rotation.largest"]


def test_the_settings_say_what_was_done(exact) -> None:
    result, _ = exact
    assert result.benchmark == "sfm" and result.descriptor == "points16"
    expected = {"data": "Box", "ratio": 0.8, "minimum_matches": 15, "half_pixel_off": False, "refine_cameras": False}
    expected |= {"images": VIEWS, "pairs": 10, "keypoints_per_image": POINTS, "known_cameras": VIEWS}
    expected |= {"colmap": pycolmap.COLMAP_version, "detector": "given", "keypoints": POINTS}
    assert expected.items() <= dict(result.settings).items()
    if not pycolmap.has_cuda:
        assert result.settings["dense"] == "needs CUDA" and "count.dense_points" not in result.scores
    assert set(result.provenance.hashes) == {"data", "features"}


def test_every_headline_score_has_an_interval_over_photos(exact) -> None:
    result, _ = exact
    for name in ("registered", "count.points", "track_length", "observations_per_image", "error.reprojection"):
        low, high = result.interval(name)
        assert low - 1e-9 <= result.scores[name] <= high + 1e-9
        assert (result.replicates[name].units, result.replicates[name].count) == ("photos", VIEWS)
    assert result.interval("error.rotation") is not None


def test_the_folder_holds_the_benchmarks_own_files(exact, made: Eth) -> None:
    _, folder = exact
    first, second = made.names[:2]
    content = (folder / "matches" / f"{first}---{second}.bin").read_bytes()
    rows, columns = struct.unpack_from("<ii", content)
    pairs = np.frombuffer(content, "<u4", offset=8).reshape(rows, columns)
    assert (rows, columns) == (POINTS, 2)
    assert np.array_equal(made.order[first][pairs[:, 0]], made.order[second][pairs[:, 1]])
    assert len(list((folder / "matches").iterdir())) == 10
    for source, kind in ((made.data, "keypoints"), (made.described, "descriptors")):
        written = {path.name: path.read_bytes() for path in (folder / kind).iterdir()}
        assert written == {path.name: path.read_bytes() for path in (source / kind).iterdir()}
    assert pycolmap.Reconstruction(str(folder / "models" / "0")).num_points3D() == POINTS
    assert not (folder / "unfinished").exists()


def test_half_a_pixel_off_is_the_default_of_given_keypoints_and_is_seen_in_the_poses(eth: Eth) -> None:
    """With cameras held fixed, keypoints half a pixel off turn every camera by about 0.5 / 700 of a radian."""
    result = evaluate_sfm(eth.described, eth.data, Sfm(refine_cameras=False))
    assert result.settings["half_pixel_off"] is True
    assert 0.02 < result.scores["error.rotation"] < 0.2
    assert result.scores["registered"] == 1


def test_photos_alone_are_a_set_and_a_feature_file_is_a_descriptor(eth: Eth, made: Eth, tmp_path: Path) -> None:
    """Without database and true cameras: guessed cameras, no pose errors, and places at their own half pixel."""
    with h5py.File(tmp_path / "points.h5", "w") as file:
        for name in made.names:
            content = (made.described / "descriptors" / f"{name}.bin").read_bytes()
            group = file.create_group(name)
            group["keypoints"] = made.keypoints[name]
            group["descriptors"] = np.frombuffer(content, "<f4", offset=8).reshape(POINTS, DIM).T
            group["image_size"] = np.array(SIZE)
    result = evaluate_sfm(tmp_path / "points.h5", eth.data / "images")
    assert result.descriptor == "points" and result.settings["data"] == "images"
    assert result.settings["half_pixel_off"] is False and result.settings["known_cameras"] == 0
    assert re.fullmatch(
        r"colmap .*, max error \S+ px, ratio 0\.8, keypoints [\d,]+, .*known cameras 0", result.conditions()
    )
    assert result.scores["registered"] == 1 and "error.rotation" not in result.scores


def test_a_second_evaluation_matches_and_maps_nothing(made: Eth, exact, monkeypatch: pytest.MonkeyPatch) -> None:
    first, folder = exact
    monkeypatch.setattr("keypatch.benchmarks.eth.model.find_matches", None)
    monkeypatch.setattr(sfm_model, "run_colmap", None)
    again = evaluate_sfm(made.described, made.data, replace(EXACT, folder=str(folder)))
    assert dict(again.scores) == dict(first.scores)
    assert all(np.array_equal(first.replicates[n].values, again.replicates[n].values) for n in first.replicates)


def test_another_ratio_matches_again_and_another_seed_maps_again(eth: Eth, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate_sfm(eth.described, eth.data, EXACT)
    monkeypatch.setattr(sfm_model, "run_colmap", stopped)
    assert dict(evaluate_sfm(eth.described, eth.data, EXACT).scores) == dict(first.scores)
    with pytest.raises(Interrupted):
        evaluate_sfm(eth.described, eth.data, replace(EXACT, seed=1))
    monkeypatch.setattr("keypatch.benchmarks.eth.model.find_matches", stopped)
    with pytest.raises(Interrupted, match="run the same command to resume"):
        evaluate_sfm(eth.described, eth.data, replace(EXACT, matching=replace(EXACT.matching, ratio=None)))


def stopped(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def match_only(source: object, eth: Eth, settings: Sfm = EXACT) -> None:
    """As far as the last pair, without COLMAP."""

    def stop(done: int, total: int, unit: str) -> None:
        if (done, total) == (10, 10):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        evaluate_sfm(source, eth.data, settings, stop)


def read(path: Path, columns: int, kind: str = "<f4") -> np.ndarray:
    return np.frombuffer(path.read_bytes(), kind, offset=8).reshape(-1, columns)


def test_a_cache_that_cannot_be_written_costs_a_warning_and_nothing_is_said_to_be_kept(eth: Eth, cache: Path) -> None:
    cache.write_text("no folder")
    with pytest.warns(UserWarning, match="Matches and models cannot be cached .* Set KEYPATCH_CACHE"):
        assert evaluate_sfm(eth.described, eth.data, EXACT).scores["count.points"] == POINTS
    with pytest.warns(UserWarning), pytest.raises(Interrupted, match="nothing was written"):
        evaluate_sfm(eth.described, eth.data, EXACT, stopped)


def test_ctrl_c_loses_no_match(eth: Eth, cache: Path) -> None:
    def stop(done: int, total: int, unit: str) -> None:
        if (done, total) == (4, 10):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="kept"):
        evaluate_sfm(eth.described, eth.data, EXACT, stop)
    files = sorted(cache.glob("sfm/*/matches/*.bin"))
    times = [path.stat().st_mtime_ns for path in files]
    assert len(files) == 4
    assert evaluate_sfm(eth.described, eth.data, EXACT).scores["count.points"] == POINTS
    assert [path.stat().st_mtime_ns for path in files] == times


def test_a_full_disk_is_a_sentence_and_loses_no_match(eth: Eth, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(done: int, total: int, unit: str) -> None:
        if (done, total) == (10, 10):
            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))  # no file may grow beyond, as on a full disk

    try:
        with pytest.raises(KeypatchError, match=r"database\.db cannot be written .* Is the disk full"):
            evaluate_sfm(eth.described, eth.data, EXACT, fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(list(cache.glob("sfm/*/matches/*.bin"))) == 10
    monkeypatch.setattr("keypatch.benchmarks.eth.model.find_matches", None)
    assert evaluate_sfm(eth.described, eth.data, EXACT).scores["count.points"] == POINTS


def test_a_crash_of_colmap_is_a_sentence_and_the_next_run_resumes(eth: Eth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "CHILD", (sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(KeypatchError, match="signal 6"):
        evaluate_sfm(eth.described, eth.data, EXACT)
    monkeypatch.undo()
    monkeypatch.setenv("KEYPATCH_CACHE", str(eth.data.parent / "cache"))
    monkeypatch.setattr("keypatch.benchmarks.eth.model.find_matches", None)
    assert evaluate_sfm(eth.described, eth.data, EXACT).scores["count.points"] == POINTS


def test_a_crash_names_a_database_only_where_it_is_kept(eth: Eth, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "CHILD", (sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(KeypatchError) as error:
        evaluate_sfm(eth.described, eth.data, EXACT)
    (kept,) = cache.glob("sfm/*/unfinished/database.db")
    assert f"kept at {kept}" in str(error.value)
    shutil.rmtree(cache)
    cache.write_text("no folder")
    with pytest.warns(UserWarning), pytest.raises(KeypatchError, match="the database was not kept") as error:
        evaluate_sfm(eth.described, eth.data, EXACT)
    assert "database.db" not in str(error.value) and "not made again" not in str(error.value)


def test_without_a_model_counts_are_zero_and_means_are_not_defined(eth: Eth) -> None:
    rng = np.random.default_rng(5)
    for name in eth.names:
        put(eth.described / "descriptors" / f"{name}.bin", rng.normal(size=(POINTS, DIM)))
    result = evaluate_sfm(eth.described, eth.data, EXACT)
    assert result.scores["registered"] == result.scores["count.points"] == result.scores["count.inlier_pairs"] == 0
    assert np.isnan(result.scores["track_length"]) and np.isnan(result.scores["error.reprojection"])
    assert result.interval("registered") == (0, 0) and result.interval("track_length") is None
    assert "error.rotation" not in result.scores


def test_a_photo_without_matches_is_not_registered_and_counts(eth: Eth) -> None:
    lost = eth.names[-1]
    put(eth.described / "descriptors" / f"{lost}.bin", np.random.default_rng(5).normal(size=(POINTS, DIM)))
    result = evaluate_sfm(eth.described, eth.data, EXACT)
    assert result.scores["registered"] == 0.8 and result.scores["track_length"] == 4
    low, high = result.interval("registered")
    assert low < 0.8 < high


def test_pairs_of_a_list_are_matched_in_its_direction_and_no_others(eth: Eth, cache: Path) -> None:
    a, b, c = eth.names[:3]
    (eth.data / "image-pairs.txt").write_text(f"{b} {a}\n{b} {c}\n")
    result = evaluate_sfm(eth.described, eth.data, EXACT)
    assert {path.name for path in cache.glob("sfm/*/matches/*")} == {f"{b}---{a}.bin", f"{b}---{c}.bin"}
    assert result.scores["count.registered"] == 3 and result.scores["count.points"] == POINTS


def test_the_ratio_is_tested_from_the_first_photo_only(eth: Eth, cache: Path) -> None:
    """Two keypoints of a photo, 0 and 1, are at 0.1 and 0.11 of one of the others: a doubt that these alone see."""
    for name in (eth.names[0], eth.names[-1]):
        path = eth.described / "descriptors" / f"{name}.bin"
        rows = read(path, DIM).copy()
        rows[1] = rows[0] + np.array([0.11, *[0] * (DIM - 1)])
        rows[0, 0] += 0.1
        put(path, rows)
    match_only(eth.described, eth)
    (folder,) = cache.glob("sfm/*/matches")
    first, middle, last = eth.names[0], eth.names[2], eth.names[-1]
    assert 0 in read(folder / f"{first}---{middle}.bin", 2, "<u4")[:, 0]
    assert 0 not in read(folder / f"{middle}---{last}.bin", 2, "<u4")[:, 1]


def test_pairs_with_few_matches_have_an_empty_file(eth: Eth, cache: Path) -> None:
    match_only(eth.described, eth, replace(EXACT, minimum_matches=POINTS + 1))
    files = list(cache.glob("sfm/*/matches/*.bin"))
    assert len(files) == 10 and {path.read_bytes() for path in files} == {struct.pack("<ii", 0, 2)}


class Corner:
    """A describer of eight pixels around the keypoint, each 0 to 1."""

    name, dim, patch_size, patch_sigmas, unit_length = "corner", 8, 8, 4.0, False

    def describe(self, patches: np.ndarray) -> np.ndarray:
        return patches[:, 4, :].astype(np.float32) / 255


def test_a_describer_is_run_at_the_given_keypoints_in_their_order(eth: Eth, tmp_path: Path) -> None:
    match_only(Corner(), eth, replace(EXACT, folder=str(tmp_path / "out")))
    for name in eth.names:
        places = [read(folder / "keypoints" / f"{name}.bin", 4) for folder in (tmp_path / "out", eth.data)]
        assert np.array_equal(*places)
        image = np.asarray(Image.open(eth.data / "images" / name))
        expected = extract(image, Corner(), keypoints=Keypoints(*places[1].T)).descriptors
        assert np.array_equal(read(tmp_path / "out" / "descriptors" / f"{name}.bin", 8), expected)


@pytest.fixture
def with_cuda(exact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sfm:
    """A folder with a model, where dense points are still to be computed."""
    shutil.copytree(exact[1], tmp_path / "copy")
    monkeypatch.setattr(sfm_model, "has_cuda", lambda: True)
    return replace(EXACT, folder=str(tmp_path / "copy"))


def test_with_cuda_dense_points_are_counted_once(made: Eth, with_cuda: Sfm, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"pairs": [], "models": [], "two_view": None, "notes": []}
    words = json.dumps({"outcome": {**nothing, "dense_points": 4321}})
    code = f"print({words!r})"
    monkeypatch.setattr(mapping, "CHILD", (sys.executable, "-c", code))
    assert evaluate_sfm(made.described, made.data, with_cuda).scores["count.dense_points"] == 4321
    monkeypatch.setattr(mapping, "CHILD", ("no such program",))
    result = evaluate_sfm(made.described, made.data, with_cuda)
    assert result.scores["count.dense_points"] == 4321 and result.settings["dense"] == "photometric"


def test_dense_points_without_cuda_fail_in_the_stereo_and_not_before(made: Eth, with_cuda: Sfm) -> None:
    """The undistortion runs for real: the names and options that pycolmap is called with are there."""
    if pycolmap.has_cuda:
        pytest.skip("here is CUDA")
    with pytest.raises(KeypatchError, match=r"while computing dense points: .*CUDA"):
        evaluate_sfm(made.described, made.data, with_cuda)
    images = Path(str(with_cuda.folder)) / "dense" / "images"
    assert {path.name for path in images.iterdir()} == set(made.names)


def test_a_folder_of_something_else_stays_as_it_is(eth: Eth, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("words")
    with pytest.raises(KeypatchError, match="holds files that are not keypatch matches"):
        evaluate_sfm(eth.described, eth.data, replace(EXACT, folder=str(tmp_path / "thesis")))
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]


def test_a_folder_of_other_matches_is_refused_by_what_differs(eth: Eth, tmp_path: Path) -> None:
    settings = replace(EXACT, folder=str(tmp_path / "out"))
    match_only(eth.described, eth, settings)
    with pytest.raises(KeypatchError, match=r"another evaluation \(ratio differ\)"):
        evaluate_sfm(eth.described, eth.data, replace(settings, matching=replace(settings.matching, ratio=None)))


def spoil_database(eth: Eth) -> None:
    with closing(sqlite3.connect(eth.data / "database.db")) as database:
        database.execute("INSERT INTO images VALUES (99, 'lost.png', 1)")
        database.commit()


def empty_database(eth: Eth) -> None:
    (eth.data / "database.db").unlink()
    write_database(eth.data / "database.db", [])


FAULTS = {
    "no folder": (lambda eth: shutil.rmtree(eth.data), "There is no folder"),
    "two photos": (
        lambda eth: [shutil.rmtree(eth.data / "cameras"), few_photos(eth)],
        "2 photos; a model needs at least 3",
    ),
    "a photo of the database is missing": (spoil_database, "that are not in"),
    "a database without images": (lambda eth: empty_database(eth), "database.db lists no images"),
    "a camera without its photo": (
        lambda eth: shutil.copy(eth.data / "cameras" / "0000.png.camera", eth.data / "cameras" / "0099.png.camera"),
        "0099.png",
    ),
    "missing keypoints": (lambda eth: (eth.data / "keypoints" / "0002.png.bin").unlink(), "0002.png.bin"),
    "cut keypoints": (lambda eth: cut(eth.data / "keypoints" / "0002.png.bin"), "0002.png.bin"),
    "missing descriptors": (lambda eth: (eth.described / "descriptors" / "0002.png.bin").unlink(), "there is no"),
    "cut descriptors": (lambda eth: cut(eth.described / "descriptors" / "0002.png.bin"), "0002.png.bin"),
    "too few descriptors": (
        lambda eth: put(eth.described / "descriptors" / "0002.png.bin", np.ones((POINTS - 1, DIM))),
        "159 descriptors, but the image has 160 keypoints",
    ),
    "nan descriptors": (
        lambda eth: put(eth.described / "descriptors" / "0002.png.bin", np.full((POINTS, DIM), np.nan)),
        "0002.png.bin: descriptor 0 is not finite",
    ),
    "another dimension": (
        lambda eth: put(eth.described / "descriptors" / "0002.png.bin", np.ones((POINTS, DIM + 1))),
        "16-dimensional descriptors",
    ),
    "a list of pairs of other photos": (
        lambda eth: (eth.data / "image-pairs.txt").write_text("0000.png 0099.png\n"),
        '"0099.png" is not among the photos',
    ),
    "a camera of another size": (
        lambda eth: Image.new("L", (100, 80)).save(eth.data / "images" / "0002.png"),
        "0002.png has 100 x 80 pixels",
    ),
}


def few_photos(eth: Eth) -> None:
    (eth.data / "database.db").unlink()
    for name in eth.names[2:]:
        (eth.data / "images" / name).unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_input_is_one_sentence_before_any_matching(eth: Eth, cache: Path, fault: str) -> None:
    spoil, words = FAULTS[fault]
    spoil(eth)
    with pytest.raises(DataError) as error:
        evaluate_sfm(eth.described, eth.data, EXACT)
    assert words in str(error.value) and "\n" not in str(error.value), error.value
    assert not list(cache.glob("sfm/*/matches/*"))


def test_given_keypoints_outside_the_photo_and_idle_choices_are_refused(eth: Eth) -> None:
    with pytest.raises(KeypatchError, match=r"Leave out extraction\.keypoints"):
        evaluate_sfm(Corner(), eth.data, Sfm(BenchmarkExtraction(keypoints=500)))
    with pytest.raises(KeypatchError, match=r"Leave out extraction\.upright"):
        evaluate_sfm(eth.described, eth.data, Sfm(BenchmarkExtraction(upright=True)))
    put(eth.data / "keypoints" / "0001.png.bin", np.array([[700.0, 20, 1, 0]]))
    with pytest.raises(DataError, match=r"keypoint 0 at \(700, 20\) lies outside the photo of 640 x 480"):
        evaluate_sfm(Corner(), eth.data)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"matching": SfmMatching(threshold=2.0)}, r"COLMAP verifies .* matching\.threshold"),
        ({"minimum_matches": -1}, "minimum_matches"),
        ({"threads": 0}, "threads"),
        ({"seed": -1}, "seed is -1; it must be 0 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(KeypatchError, match=words):
        Sfm(**wrong)
