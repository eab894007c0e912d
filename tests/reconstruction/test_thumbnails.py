"""Small copies of photos: how large, how many bytes, and what is left out."""

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.errors import DataError
from keypatch.images import read_colours
from keypatch.reconstruction import page
from keypatch.reconstruction.page import make_thumbnails


def noise(path: Path, size: tuple[int, int] = (400, 300), mode: str = "RGB") -> Path:
    """Of all photos the one that takes the most bytes."""
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return path


def sizes(made: dict[str, bytes]) -> list[tuple[int, int]]:
    return [Image.open(BytesIO(encoded)).size for encoded in made.values()]


def test_a_few_photos_are_as_large_as_can_be(tmp_path: Path) -> None:
    photos = {"wide": noise(tmp_path / "a.png"), "tall": noise(tmp_path / "b.png", (300, 400))}
    photos["small"] = noise(tmp_path / "c.png", (30, 20))
    assert sizes(make_thumbnails(photos)) == [(320, 240), (240, 320), (30, 20)]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK"])
def test_photos_of_any_colours_become_rgb(tmp_path: Path, mode: str) -> None:
    made = make_thumbnails({"a": noise(tmp_path / "a.tif", mode=mode)})
    assert Image.open(BytesIO(made["a"])).mode == "RGB"


def test_the_more_photos_the_smaller_and_never_too_much_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = noise(tmp_path / "a.png")
    whole = len(make_thumbnails({"a": path})["a"])
    monkeypatch.setattr(page, "MOST_BYTES", 4 * whole)
    found = {}
    for count in (1, 4, 5, 30, 100, 2000):
        made = make_thumbnails(dict.fromkeys(map(str, range(count)), path))
        assert sum(map(len, made.values())) <= 4 * whole
        found[count] = set(sizes(made))
    assert found == {1: {(320, 240)}, 4: {(320, 240)}, 5: {(160, 120)}, 30: {(96, 72)}, 100: {(64, 48)}, 2000: set()}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    good, cut, text = noise(tmp_path / "good.jpg"), tmp_path / "cut.jpg", tmp_path / "text.jpg"
    cut.write_bytes(good.read_bytes()[:3000])
    text.write_text("no photo")
    photos = {"cut": cut, "good": good, "text": text, "missing": tmp_path / "missing.jpg", "folder": tmp_path}
    assert list(make_thumbnails(photos)) == ["good"]


def test_a_tiff_whose_tags_are_damaged_is_left_out(tmp_path: Path) -> None:
    good = noise(tmp_path / "good.tif")
    content = bytearray(good.read_bytes())
    (first,) = struct.unpack_from("<I", content, 4)
    (count,) = struct.unpack_from("<H", content, first)
    for entry in range(first + 2, first + 2 + 12 * count, 12):
        if struct.unpack_from("<H", content, entry) == (273,):  # where the pixels begin: now a text
            struct.pack_into("<HI", content, entry + 2, 2, 4)
    bad = tmp_path / "bad.tif"
    bad.write_bytes(content)
    assert list(make_thumbnails({"bad": bad, "good": good})) == ["good"]
    with pytest.raises(DataError, match=r"bad\.tif is not a readable image"):
        read_colours(bad)


@pytest.mark.parametrize("error", [MemoryError(), Image.DecompressionBombError("too many pixels")], ids=repr)
def test_a_photo_that_does_not_fit_into_memory_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def convert(*_: object) -> None:
        raise error

    path = noise(tmp_path / "a.png")
    monkeypatch.setattr(Image.Image, "convert", convert)
    assert make_thumbnails({"a": path}) == {}


@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
@pytest.mark.parametrize("tag", range(1, 9))
def test_pixels_are_as_stored_whatever_the_orientation(tmp_path: Path, tag: int, compression: str | None) -> None:
    pixels, tags = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8), Image.Exif()
    tags[0x0112] = tag
    Image.fromarray(pixels).save(tmp_path / "a.tif", exif=tags, compression=compression)
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=tags)
    for name in ("a.tif", "a.png"):
        np.testing.assert_array_equal(np.asarray(read_colours(tmp_path / name)), pixels)
        assert sizes(make_thumbnails({"a": tmp_path / name})) == [(90, 60)]


def test_nothing_is_decoded_where_no_thumbnail_can_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[Path]()

    def count(path: Path, side: int) -> Image.Image:
        read.append(path)
        return read_colours(path, side)

    monkeypatch.setattr(page, "read_colours", count)
    path = noise(tmp_path / "a.png")
    assert make_thumbnails(dict.fromkeys(map(str, range(5000)), path)) == {} and read == []
    assert list(make_thumbnails({"a": path})) == ["a"] and read == [path]


def test_no_photos_are_no_thumbnails() -> None:
    assert make_thumbnails({}) == {}
