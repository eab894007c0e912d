"""`keypatch describe` as people call it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from skimage import data


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number, photo in enumerate((data.camera(), data.astronaut(), data.brick())):
        Image.fromarray(photo[100:300, 100:300]).save(folder / f"{number}.png")
    return folder


@pytest.mark.usefixtures("shown_progress")
def test_photos_become_a_file_and_a_picture(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    out, show = tmp_path / "features.h5", tmp_path / "patches.png"
    said = keypatch("describe", photos, "--out", out, "--descriptor", "rootsift", "--show", show, "--workers", 2)
    assert said.code == 0, said.err
    assert said.out == f"Written: {out}, 3 photos\nWritten: {show}\n"
    assert "3 of 3 photos" in said.err and "photos/s" in said.err
    with h5py.File(out) as file:
        assert sorted(file) == ["0.png", "1.png", "2.png"]
        assert 100 < file["0.png/keypoints"].shape[0] <= 2048
    assert show.stat().st_size > 10_000
    (tmp_path / "more.png").write_bytes((photos / "1.png").read_bytes())
    said = keypatch("describe", photos / "0.png", tmp_path / "more.png", "--out", out, "--descriptor", "rootsift")
    assert said.out == f"Written: {out}, 4 photos; skipped 1 photo already in it\n"
    said = keypatch("describe", photos, "--out", out, "--descriptor", "rootsift")
    assert said.out == f"{out} already has all 3 photos\n"
    assert said.err == ""  # nothing was described


def test_every_option_reaches_the_file(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.h5"
    words = "--descriptor sift --detector grid --set detector.step=25 --set detector.sigma=4"
    words += " --keypoints 9 --rule largest --max-size 100"
    more = [
        "--upright",
        "--half",
        "--patch-sigmas",
        24,
        "--turn-by-exif",
        "--pixel-limit",
        40_000,
        "--root",
        photos.parent,
    ]
    said = keypatch("describe", photos / "1.png", "--out", out, *words.split(), *more)
    assert said.code == 0, said.err
    with h5py.File(out) as file:
        group = file[f"{photos.name}/1.png"]
        assert group["keypoints"].shape == (9, 2)
        assert group["descriptors"].dtype == np.float16
        np.testing.assert_allclose(group["scales"], 8)  # found in the photo of half the size
        assert file.attrs["patch_sigmas"] == 24
        assert '"detector.step": 25.0' in file.attrs["settings"] and '"rule": "largest"' in file.attrs["settings"]
        assert '"turn_by_exif": true' in file.attrs["settings"]
    assert keypatch("describe", photos / "0.png", "--out", tmp_path / "g.h5", "--pixel-limit", 39_999).code == 2


def test_zero_keypoints_are_all(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    words = ["--descriptor", "sift", "--detector", "grid", "--set", "detector.step=3"]
    assert keypatch("describe", photos / "0.png", "--out", tmp_path / "f.h5", *words, "--keypoints", "none").code == 0
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["0.png/keypoints"].shape == (67 * 67, 2)


def test_a_broken_photo_is_told_at_the_end_with_exit_code_2(keypatch: Callable, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_text("text")
    said = keypatch("describe", photos, tmp_path / "broken.jpg", "--out", tmp_path / "f.h5", "--descriptor", "sift")
    assert said.code == 2
    assert "1 of 4 photos could not be described" in said.err and "broken.jpg is not an image" in said.err
    with h5py.File(tmp_path / "f.h5") as file:
        assert sorted(file) == ["0.png", "1.png", "2.png"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_exits_with_130_and_the_same_command_resumes(photos: Path, tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number}.png").write_bytes((photos / "0.png").read_bytes())
    out = tmp_path / "f.h5"
    words = ["describe", str(tmp_path), "--out", str(out), "--descriptor", "sift", "--keypoints", "20"]
    # a shell that starts the tests in the background has SIGINT ignored, and so would its children
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{hearing}; import keypatch.cli.main as m; m.sys.exit(m.run({words!r}))"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not any(tmp_path.glob(".f.h5.parts/*.h5")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "run the same command to resume" in errors and "Traceback" not in errors
    with h5py.File(out) as file:
        assert 0 < len(file) < 60
    again = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 0, again.stderr
    with h5py.File(out) as file:
        assert len(file) == 60


@pytest.mark.parametrize("name", ["l.txt", "photo.JPG", "table.csv"])
def test_no_feature_file_gets_the_name_of_something_else(
    keypatch: Callable, photos: Path, tmp_path: Path, name: str
) -> None:
    said = keypatch("describe", photos, "--out", tmp_path / name, "--descriptor", "rootsift")
    assert (
        said.code == 2 and f"{name} would be an HDF5 file" in said.err and "Choose a name that ends in .h5" in said.err
    )
    assert not (tmp_path / name).exists()


def test_a_file_of_another_kind_is_refused_before_the_descriptor_is_loaded(
    keypatch: Callable, photos: Path, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a.jpg/b.jpg/matches0"] = [0]
        file.attrs.update({"format": "keypatch-matches", "format_number": 1, "settings": "{}"})
    said = keypatch("describe", photos, "--out", tmp_path / "m.h5", "--descriptor", "no such descriptor")
    assert said.code == 2
    assert said.err == (
        f"keypatch: {tmp_path / 'm.h5'} exists and is not a feature file written by keypatch. Choose another output.\n"
    )
