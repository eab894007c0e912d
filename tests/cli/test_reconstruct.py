"""`keypatch reconstruct` from the pixels of rendered photos: two textured walls that meet in a corner."""

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
from PIL import Image
from skimage import color, data

pycolmap = pytest.importorskip("pycolmap")

SIZE, FOCAL = (480, 360), 420.0
K = np.array([[FOCAL, 0, (SIZE[0] - 1) / 2], [0, FOCAL, (SIZE[1] - 1) / 2], [0, 0, 1]])


def pose(angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (world to camera) and centre of a camera that looks into the corner from this side."""
    centre = np.array([3.2 * np.sin(angle), 0.25 * np.sin(5 * angle), -3.2 * np.cos(angle)])
    forward = -centre / np.linalg.norm(centre)
    right = np.cross([0, 1, 0], forward)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward]), centre


def render(rotation: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The walls x = z and x = -z (z from -1 to 0), each with a photograph on it, twice as fine and then reduced."""
    walls = [(data.astronaut()[:, :400], 1.0), (data.coffee()[:, 100:500], -1.0)]
    fine, finer = np.full((2 * SIZE[1], 2 * SIZE[0], 3), 90, np.uint8), np.diag([2.0, 2.0, 1.0])
    for texture, side in walls:
        height, width = texture.shape[:2]
        # texture pixel (u, v) lies at x = side * u / width, y = 2 v / height - 1, z = -u / width
        place = np.array([[side / width, 0, 0], [0, 2 / height, -1], [-1 / width, 0, 0]])
        homography = finer @ K @ rotation @ (place - np.outer(centre, [0, 0, 1]))
        cv2.warpPerspective(texture, homography, fine.shape[1::-1], fine, cv2.INTER_LINEAR, cv2.BORDER_TRANSPARENT)
    return cv2.resize(fine, SIZE, interpolation=cv2.INTER_AREA)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five photos, and their cameras as Strecha would write them."""
    folder = tmp_path_factory.mktemp("corner")
    (folder / "photos").mkdir()
    (folder / "cameras").mkdir()
    for number, angle in enumerate(np.radians([-24, -12, 0, 12, 24])):
        rotation, centre = pose(angle)
        Image.fromarray(render(rotation, centre)).save(folder / "photos" / f"{number}.png")
        rows = [*K, np.zeros(3), *rotation.T, centre, SIZE]
        text = "\n".join(" ".join(str(float(value)) for value in row) for row in rows)
        (folder / "cameras" / f"{number}.png.camera").write_text(text)
    return folder / "photos"


@pytest.fixture(scope="module")
def described(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their features by OpenCV and plain h5py, in hloc's layout."""
    out = tmp_path_factory.mktemp("described") / "features.h5"
    sift = cv2.SIFT.create(800, enable_precise_upscale=True)
    with h5py.File(out, "w") as file:
        for path in sorted(photos.iterdir()):
            grey = np.rint(255 * color.rgb2gray(np.asarray(Image.open(path)))).astype(np.uint8)
            found, descriptors = sift.detectAndCompute(grey, None)
            file[f"{path.name}/keypoints"] = np.array([point.pt for point in found], np.float32)
            file[f"{path.name}/descriptors"] = np.sqrt(descriptors / descriptors.sum(1, keepdims=True)).T
    return out


def test_photos_become_a_model_and_a_table(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    out, cameras = tmp_path / "out", photos.parent / "cameras"
    words = ["--descriptor", "rootsift", "--keypoints", 800, "--cameras", cameras, "--out", out]
    said = keypatch("reconstruct", photos, *words)
    assert said.code == 0, said.err
    report = json.loads((out / "reconstruction.json").read_text())
    numbers, errors = report["statistics"], report["pose_errors"]["summary"]
    table = {line[:20].strip(): line[20:].strip() for line in said.out.splitlines()}
    assert table["photos registered"] == "5 of 5"
    assert table["points"] == f"{numbers['points']:,}" and numbers["points"] > 100
    assert table["mean track length"] == f"{numbers['track_length']:.2f}"
    assert table["reprojection error"] == f"{numbers['reprojection_error']:.3f} px"
    assert table["rotation error"].startswith(f"{errors['rotation_median_degrees']:.3f}° median")
    # rendered at 480 x 360 and found by SIFT: places are good to some tenths of a pixel
    assert numbers["reprojection_error"] < 0.8
    assert errors["rotation_max_degrees"] < 0.5 and errors["position_max_percent"] < 2
    for stage in ("describing 5 photos with rootsift", "matching", "verifying", "mapping", "colouring"):
        assert stage in said.err.splitlines()
    assert all(str(out / name) in said.out for name in ("models", "model.png", "model.html", "reconstruction.json"))
    assert pycolmap.Reconstruction(str(out / "models" / "0")).num_reg_images() == 5
    assert sorted(path.name for path in out.glob("*.h5")) == ["features.h5", "matches.h5"]


def test_a_second_run_takes_features_and_matches_and_refuses_others(
    keypatch: Callable, photos: Path, tmp_path: Path
) -> None:
    words = ["--keypoints", 400, "--out", tmp_path / "out", "--focal", FOCAL, "--share-camera"]
    assert keypatch("reconstruct", photos, "--descriptor", "rootsift", *words).code == 0
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    said = keypatch("reconstruct", photos, "--descriptor", "rootsift", *words, "--seed", 1)
    features = tmp_path / "out" / "features.h5"
    assert said.code == 0 and f"all 5 photos are already described in {features}" in said.err
    assert "describing" not in said.err
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert before["models"] != after["models"]
    report = json.loads((tmp_path / "out" / "reconstruction.json").read_text())
    assert report["settings"]["seed"] == 1 and report["statistics"]["registered"] == 5
    refused = keypatch("reconstruct", photos, "--descriptor", "sift", *words)
    assert refused.code == 2 and f"delete {features}" in refused.err and "already" not in refused.err
    refused = keypatch("reconstruct", photos, "--descriptor", "rootsift", *words, "--ratio", 0.8)
    assert refused.code == 2 and f"delete {tmp_path / 'out' / 'matches.h5'}" in refused.err
    with h5py.File(features, "r+") as file:
        del file["4.png"]
    said = keypatch("reconstruct", photos, "--descriptor", "rootsift", *words)
    assert "describing 1 photo with rootsift" in said.err.splitlines()


def test_features_of_others_are_matched_and_reconstructed(
    keypatch: Callable, photos: Path, described: Path, tmp_path: Path
) -> None:
    words = ["--features", described, "--pairs", "sequence:2", "--focal", FOCAL, "--out", tmp_path / "out"]
    said = keypatch("reconstruct", photos, *words, "--share-camera", "--camera-model", "SIMPLE_PINHOLE")
    assert said.code == 0, said.err
    report = json.loads((tmp_path / "out" / "reconstruction.json").read_text())
    assert report["statistics"]["registered"] == 5 and report["pairs"]["matched"] == 7
    assert report["pose_errors"] is None
    model = pycolmap.Reconstruction(str(tmp_path / "out" / "models" / "0"))
    assert [camera.model_name for camera in model.cameras.values()] == ["SIMPLE_PINHOLE"]
    assert not (tmp_path / "out" / "features.h5").exists()


def test_two_photos_are_told_what_they_are(keypatch: Callable, photos: Path, described: Path, tmp_path: Path) -> None:
    words = ["--features", described, "--focal", FOCAL, "--out", tmp_path / "out"]
    said = keypatch("reconstruct", photos / "1.png", photos / "3.png", *words)
    assert said.code == 0, said.err
    assert "A model needs at least three photos" in said.out
    (line,) = (line for line in said.out.splitlines() if line.strip().startswith("rotation"))
    assert float(line.split()[1].rstrip("°")) == pytest.approx(24, abs=1.5)  # from -12 to 12 degrees
    assert str(tmp_path / "out" / "database.db") in said.out


def test_a_crash_of_colmap_is_a_sentence_and_code_two(
    keypatch: Callable, photos: Path, described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from keypatch.colmap import process as mapping

    monkeypatch.setattr(mapping, "CHILD", (sys.executable, "-c", "import os; os.abort()"))
    said = keypatch("reconstruct", photos, "--features", described, "--out", tmp_path / "out")
    assert said.code == 2
    assert "COLMAP stopped with signal 6 (SIGABRT)" in said.err and "Traceback" not in said.err
    database = tmp_path / "out" / "unfinished" / "database.db"
    assert str(database) in said.err and database.exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--descriptor", "rotsift"], ["rotsift", 'Did you mean "rootsift"']),
        (["--camera-model", "WIDE"], ["WIDE", "SIMPLE_RADIAL"]),
        (["--cameras", "nowhere"], ["nowhere"]),
        (["--features", "nowhere.h5"], ["--keypoints", "--features"]),
        (["--matches", "nowhere.h5", "--ratio", 0.8], ["--ratio", "--matches"]),
        (["--descriptor", "rootsift", "--pixel-limit", 1000], ["--pixel-limit", "raise the limit"]),
        (["--descriptor", "rootsift", "--ratio", 2], ["ratio", "2"]),
        (["--descriptor", "rootsift", "--pairs", "sequence:x"], ["sequence"]),
        (["--threads", 0], ["threads"]),
        (["--rule", "loudest", "--descriptor", "rootsift"], ["loudest"]),
    ],
)
def test_a_wrong_argument_is_named_with_its_remedy(
    keypatch: Callable, photos: Path, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    said = keypatch("reconstruct", photos, "--out", tmp_path / "out", "--keypoints", 50, *words)
    assert said.code == 2, said.out
    assert all(part in said.err for part in parts), said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("content", [b"", b"text", b"\x89PNG\r\n\x1a\n"])
def test_a_broken_photo_is_named_before_anything_is_made(
    keypatch: Callable, photos: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "broken.png").write_bytes(content)
    said = keypatch("reconstruct", photos, tmp_path / "broken.png", "--out", tmp_path / "out")
    assert said.code == 2 and "broken.png" in said.err
    assert not (tmp_path / "out").exists()


def test_names_that_lead_elsewhere_are_refused(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("../secret.png\n")
    said = keypatch("reconstruct", tmp_path / "list.txt", "--out", tmp_path / "out")
    assert said.code == 2 and "../secret.png" in said.err


def test_without_the_extra_it_says_what_to_install(
    keypatch: Callable, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keypatch.colmap import package as loading_colmap

    monkeypatch.setattr(loading_colmap, "find_spec", lambda name: None)
    said = keypatch("reconstruct", photos, "--out", tmp_path / "out")
    assert said.code == 2 and "keypatch[colmap]" in said.err
    assert not (tmp_path / "out").exists()


def test_help_shows_two_examples(keypatch: Callable) -> None:
    said = keypatch("reconstruct", "--help")
    assert said.code == 0 and said.out.count("keypatch reconstruct photos") == 2
