"""`keypatch doctor`."""

import re
from collections.abc import Callable
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
from PIL import Image
from skimage import data


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photo") / "camera.bmp"
    Image.fromarray(data.camera()[90:346, 120:376]).save(path)
    return path


@pytest.fixture(scope="module")
def features(photo: Path) -> Callable[..., Path]:
    """OpenCV's keypoints of the photo by plain h5py, moved and with angles times a factor."""

    def write(name: str, moved: float = 0.0, sign: int = 1) -> Path:
        found = cv2.SIFT.create(enable_precise_upscale=True).detect(np.asarray(Image.open(photo)), None)
        path = photo.with_name(name)
        with h5py.File(path, "w") as file:
            file["camera.bmp/keypoints"] = np.array([each.pt for each in found]) + moved
            file["camera.bmp/scales"] = [each.size / 2 for each in found]
            file["camera.bmp/oris"] = [sign * each.angle for each in found]
        return path

    return write


def test_a_right_file_is_fine(keypatch: Callable, photo: Path, features: Callable) -> None:
    shown = keypatch("doctor", photo, "--features", features("right.h5"))
    assert shown.code == 0
    assert "Verdict: fine" in shown.out.splitlines()


def test_faults_come_with_what_to_do_and_exit_code_2(keypatch: Callable, photo: Path, features: Callable) -> None:
    shown = keypatch("doctor", photo, "--features", features("wrong.h5", moved=0.5, sign=-1))
    assert shown.code == 2
    assert "Verdict: centres are off by 0.5 px; orientation sign is wrong" in shown.out.splitlines()
    assert "Subtract 0.5 from x and y" in shown.out
    assert "negate them" in shown.out


@pytest.mark.usefixtures("shown_progress")
def test_without_a_file_the_table_of_changes_is_shown(keypatch: Callable, photo: Path) -> None:
    shown = keypatch("doctor", photo, "--descriptor", "rootsift", "--keypoints", 100)
    assert shown.code == 0
    turns = [line for line in shown.out.splitlines() if line.startswith("turned by")]
    assert len(turns) == 23
    assert "shifted by 0.25, 0.25" in shown.out and "0.5 times as large" in shown.out
    shares = {line.split()[2]: line.split()[-1] for line in turns}
    half = shares.pop("180")
    median = sorted(shares.values(), key=float)[len(shares) // 2 - 1 : len(shares) // 2 + 1]
    told = re.search(r"correct matches are (.*)% of the keypoints in place .*, (.*)% at the half turn", shown.out)
    assert told and told[2] == half and float(median[0]) - 0.1 <= float(told[1]) <= float(median[1]) + 0.1
    assert "30 of 30 views" in shown.err


def test_where_nothing_can_be_told_the_exit_code_is_2(keypatch: Callable, photo: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "random.h5", "w") as file:
        file["camera.bmp/keypoints"] = rng.uniform(10, 240, (300, 2))
        file["camera.bmp/scales"] = np.full(300, 2.0)
        file["camera.bmp/oris"] = rng.uniform(0, 360, 300)
    shown = keypatch("doctor", photo, "--features", tmp_path / "random.h5")
    assert shown.code == 2
    assert "Verdict: cannot tell: perhaps the keypoints of another photo, or corners" in shown.out.splitlines()


def test_zero_keypoints_are_all(keypatch: Callable, tmp_path: Path) -> None:
    Image.fromarray(data.camera()[100:140, 100:140]).save(tmp_path / "small.bmp")
    words = ["--descriptor", "sift", "--detector", "grid", "--set", "detector.step=8", "--keypoints", "none"]
    shown = keypatch("doctor", tmp_path / "small.bmp", *words)
    assert next(line for line in shown.out.splitlines() if line.startswith("turned by 15 ")).split()[3] == "25"


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--features", "none.h5"], ["none.h5"]),
        (["--database", "none.db"], ["none.db"]),
        (["--features", "a.h5", "--database", "b.db"], ["one of feature file"]),
        (["--detector", "dogg"], ["dogg", "dog, colmap"]),
        (["--descriptor", "rotsift"], ["rotsift", "rootsift"]),
        (["--features", "a.h5", "--descriptor", "rootsift"], ["--descriptor has no effect with a file"]),
        (["--features", "a.h5", "--detector", "orb"], ["--detector has no effect"]),
        (["--features", "a.h5", "--set", "detector.contrast_threshold=1"], ["--set has no effect"]),
        (["--features", "a.h5", "--keypoints", "none"], ["--keypoints has no effect"]),
        (["--database", "a.db", "--device", "cpu"], ["--device has no effect"]),
        (["--database", "a.db", "--precision", "float32"], ["--precision has no effect"]),
        (["--name", "x.jpg"], ["--name", "--features or --database"]),
        (["--pixel-limit", "65535"], ["256 x 256", "--pixel-limit"]),
    ],
)
def test_a_wrong_argument_is_named(keypatch: Callable, photo: Path, words: list[str], parts: list[str]) -> None:
    shown = keypatch("doctor", photo, *words)
    assert shown.code == 2
    assert all(part in shown.err for part in parts)
    assert "Traceback" not in shown.err


def test_a_wrong_name_lists_those_in_the_file(keypatch: Callable, photo: Path, features: Callable) -> None:
    shown = keypatch("doctor", photo, "--features", features("right.h5"), "--name", "other.jpg")
    assert shown.code == 2
    assert "other.jpg" in shown.err and "camera.bmp" in shown.err


def test_a_missing_photo_is_named(keypatch: Callable, tmp_path: Path) -> None:
    shown = keypatch("doctor", tmp_path / "none.jpg")
    assert shown.code == 2
    assert "none.jpg" in shown.err
