"""Whatever `keypatch describe` is given: a sentence and exit code 2, no traceback, and nothing outside the output."""

import struct
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from keypatch.cli.main import run
from keypatch.features import read_names

Plant = Callable[[Path, Path], list[object]]  # (folder, a good photo) -> words of the command


def copied(photo: Path, path: Path, keep: float = 1.0) -> Path:
    content = photo.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    return path


def one_bit(path: Path, side: int) -> Path:
    Image.new("1", (side, side)).save(path)
    return path


def huge(path: Path) -> Path:
    """A bitmap of 20,000 x 20,000 grey pixels, none of which is there."""
    head = struct.pack("<2sIHHI", b"BM", 54 + 1024, 0, 0, 54 + 1024)
    path.write_bytes(head + struct.pack("<IiiHHIIiiII", 40, 20_000, 20_000, 1, 8, 0, 0, 0, 0, 256, 0) + bytes(1024))
    return path


def listed(folder: Path, photo: Path, name: str) -> list[object]:
    copied(photo, folder / "good.jpg")
    (folder / "list.txt").write_text(f"good.jpg\n{name}\n")
    return [folder / "list.txt"]


def with_keypoints(folder: Path, photo: Path, **arrays: object) -> list[object]:
    with h5py.File(folder / "k.h5", "w") as file:
        for key, array in arrays.items():
            file[f"good.jpg/{key}"] = array
    return [copied(photo, folder / "good.jpg"), "--keypoints-from", folder / "k.h5"]


BROKEN: dict[str, tuple[Plant, str]] = {
    "truncated JPEG": (lambda f, p: [copied(p, f / "x.jpg", 0.5)], "x.jpg is not a readable image"),
    "zero bytes": (lambda f, p: [copied(p, f / "x.jpg", 0.0)], "x.jpg is empty"),
    "HDF5 named .png": (
        lambda f, p: [h5py.File(f / "x.png", "w").close() or f / "x.png"],
        "x.png is not an image that",
    ),
    "a few bytes": (lambda f, p: [copied(p, f / "x.jpg", 0.01)], "x.jpg is not a readable image"),
    "20,000 x 20,000": (lambda f, p: [huge(f / "x.bmp")], "--pixel-limit"),
    "text named .png": (lambda f, p: [(f / "x.png").write_text("hello") and f / "x.png"], "x.png is not an image"),
    "a folder named .png": (lambda f, p: [(f / "x.png").mkdir() or f], "No photos found"),
    ".. in a list": (
        lambda f, p: listed(f, p, "../x.jpg"),
        "list.txt, line 2: the name '../x.jpg' is not a plain path",
    ),
    "absolute in a list": (
        lambda f, p: listed(f, p, "/etc/hosts"),
        "line 2: /etc/hosts is not inside",
    ),
    "missing in a list": (lambda f, p: listed(f, p, "none.jpg"), "none.jpg cannot be read: no such file"),
    "wrong shape in h5": (
        lambda f, p: with_keypoints(f, p, keypoints=np.zeros((3, 2)), scales=np.ones(2)),
        "k.h5: good.jpg: The keypoints' sigma must have shape (3,)",
    ),
    "no numbers in h5": (
        lambda f, p: with_keypoints(f, p, keypoints=np.array([b"x"])),
        "/good.jpg/keypoints is not an array of numbers",
    ),
    "a file as folder": (lambda f, p: [p, "--out", copied(p, f / "file") / "f.h5"], "f.h5 cannot be written"),
    "read-only folder": (lambda f, p: [p, "--out", "/proc/f.h5"], "/proc/f.h5 cannot be written"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_it_is_told_in_a_sentence(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    plant, message = BROKEN[case]
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "f.h5"
    words = plant(tmp_path / "in", photos / "b.jpg")
    words = [*words, *([] if "--out" in words else ["--out", out]), "--descriptor", "sift"]
    assert run(["describe", *map(str, words)]) == 2
    told = capsys.readouterr().err
    assert message in told and "Traceback" not in told and "not your fault" not in told
    if out.exists():
        assert read_names(out) in ([], ["good.jpg"])
        assert [path.name for path in out.parent.iterdir()] == ["f.h5"]


@pytest.mark.parametrize("detector", ["dog", "orb", "grid"])
@pytest.mark.parametrize("side", [1, 2, 5])
def test_tiny_photos_are_described(tmp_path: Path, detector: str, side: int) -> None:
    one_bit(tmp_path / "x.png", side)
    words = ["describe", tmp_path / "x.png", "--out", tmp_path / "f.h5", "--descriptor", "sift", "--detector", detector]
    assert run([*map(str, words), "--show", str(tmp_path / "s.png")]) == 0
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["x.png/descriptors"].shape[0] == 128


@pytest.mark.parametrize("descriptor", ["sift", "hynet-notredame"])
@pytest.mark.parametrize("count", [0, 1])
def test_no_keypoint_and_one_are_described(photos: Path, tmp_path: Path, descriptor: str, count: int) -> None:
    (tmp_path / "k.csv").write_text("x,y,sigma\n" + "50,60,2\n" * count)
    words = ["describe", photos / "a.png", "--out", tmp_path / "f.h5", "--keypoints-from", tmp_path / "k.csv"]
    assert run([*map(str, words), "--descriptor", descriptor, "--show", str(tmp_path / "s.png")]) == 0
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["a.png/descriptors"].shape == (128, count)
        assert file["a.png/keypoints"].shape == (count, 2)
