"""A file that was cut off is told without decoding it, and a whole one is never taken for one."""

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile
from skimage import data

from keypatch.errors import DataError
from keypatch.features.photos import check_photo, read_photo

COLOUR = Image.fromarray(data.astronaut()[:120, :160])
DEEP = Image.fromarray(data.camera()[:120, :160].astype(np.uint16) * 257)


def saved(image: Image.Image, kind: str, **how: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def with_preview(jpeg: bytes) -> bytes:
    """With EXIF data that hold nothing but a whole JPEG, as cameras keep a small copy there."""
    exif = b"Exif\0\0" + struct.pack(">2sHIHI", b"MM", 42, 8, 0, 0) + saved(COLOUR.resize((16, 12)), "JPEG")
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(exif)) + exif + jpeg[2:]


def with_tag(tiff: bytes, tag: int, number: int | None = None, kind: int | None = None) -> bytes:
    """A TIFF as Pillow writes it with one tag of its first folder under another number, or of another type."""
    (start,) = struct.unpack("<I", tiff[4:8])
    (count,) = struct.unpack("<H", tiff[start : start + 2])
    places = [start + 2 + 12 * k for k in range(count)]
    (place,) = [place for place in places if struct.unpack("<H", tiff[place : place + 2])[0] == tag]
    was = struct.unpack("<HH", tiff[place : place + 4])
    return tiff[:place] + struct.pack("<HH", number or was[0], kind or was[1]) + tiff[place + 4 :]


OFFSETS, LENGTHS, PRIVATE = 273, 279, 65000
TEXT, BYTES = 2, 7
PLAIN = saved(COLOUR, "JPEG")
RAW, LZW = saved(COLOUR, "TIFF"), saved(COLOUR, "TIFF", compression="tiff_lzw")
WHOLE = {
    "plain.jpg": PLAIN,
    "progressive.jpg": saved(COLOUR, "JPEG", progressive=True),
    "preview.jpg": with_preview(PLAIN),
    "filled.jpg": PLAIN[:2] + b"\xff\xff" + PLAIN[2:],  # bytes that may stand before a marker
    "two.jpg": saved(COLOUR, "MPO", save_all=True, append_images=[DEEP.convert("L")]),
    "plain.png": saved(COLOUR, "PNG"),
    "deep.png": saved(DEEP, "PNG"),
    "plain.tif": RAW,
    "squeezed.tif": LZW,
    "deep.tif": saved(DEEP, "TIFF", compression="tiff_adobe_deflate"),
    "plain.webp": saved(COLOUR, "WEBP"),
}


def is_refused(path: Path, read) -> bool:
    try:
        read(path)
    except DataError as error:
        assert "cut off or damaged" in str(error) and path.name in str(error)
        return True
    return False


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("behind", [b"", bytes(9), b"a film of a second \xff\xda and more"])
def test_whole_files_pass_also_with_something_behind_their_end(tmp_path: Path, name: str, behind: bytes) -> None:
    (tmp_path / name).write_bytes(WHOLE[name] + behind)
    assert not is_refused(tmp_path / name, check_photo)
    assert not is_refused(tmp_path / name, read_photo)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL.TiffImagePlugin")
@pytest.mark.parametrize("name", [name for name in WHOLE if name != "two.jpg"])
@pytest.mark.parametrize("left", [0.3, 0.5, 0.9, 0.99])
def test_what_cannot_be_decoded_for_its_missing_end_is_refused_before(tmp_path: Path, name: str, left: float) -> None:
    whole = WHOLE[name]
    (tmp_path / name).write_bytes(whole[: int(left * len(whole))])
    assert is_refused(tmp_path / name, read_photo)
    assert is_refused(tmp_path / name, check_photo)


def test_a_jpeg_that_lacks_only_its_last_byte_is_refused_as_when_decoded(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(PLAIN[:-1])
    assert is_refused(tmp_path / "a.jpg", read_photo) and is_refused(tmp_path / "a.jpg", check_photo)


@pytest.mark.parametrize("kind", [TEXT, BYTES, None])
def test_a_tiff_whose_lengths_are_missing_or_no_numbers_is_whole_if_not_compressed(
    tmp_path: Path, kind: int | None
) -> None:
    number = PRIVATE if kind is None else None
    (tmp_path / "raw.tif").write_bytes(with_tag(RAW, LENGTHS, number, kind))
    assert not is_refused(tmp_path / "raw.tif", read_photo) and not is_refused(tmp_path / "raw.tif", check_photo)
    (tmp_path / "lzw.tif").write_bytes(with_tag(LZW, LENGTHS, number, kind))
    assert is_refused(tmp_path / "lzw.tif", check_photo)


@pytest.mark.parametrize("kind", [TEXT, BYTES])
@pytest.mark.parametrize("content", [RAW, LZW])
def test_offsets_that_are_no_numbers_are_a_sentence(tmp_path: Path, content: bytes, kind: int) -> None:
    (tmp_path / "a.tif").write_bytes(with_tag(content, OFFSETS, kind=kind))
    assert is_refused(tmp_path / "a.tif", read_photo) and is_refused(tmp_path / "a.tif", check_photo)


def test_nothing_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    for name in WHOLE:
        (tmp_path / name).write_bytes(WHOLE[name])
        check_photo(tmp_path / name)
