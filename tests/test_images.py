"""Photographs: the right pixels of every kind of file, the right names, a sentence for every fault."""

import os
import re
import struct
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import EpsImagePlugin, Image, ImageFile, features
from skimage import data

from keypatch.errors import DataError
from keypatch.images import (
    FORMATS,
    Photo,
    as_grey,
    check_photo,
    find_photos,
    read_colours,
    read_header,
    read_photo,
    turned_sentence,
)

GREY = data.camera()[:40, :60]
COLOUR = data.astronaut()[:40, :60]


def test_grey_pixels_come_as_they_are_stored(tmp_path: Path) -> None:
    Image.fromarray(GREY).save(tmp_path / "a.png")
    image = read_photo(tmp_path / "a.png")
    assert image.dtype == np.uint8
    np.testing.assert_array_equal(image, GREY)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "LA", "YCbCr"])
def test_colours_become_the_grey_that_opencv_makes_of_them(tmp_path: Path, mode: str) -> None:
    Image.fromarray(COLOUR).convert(mode).save(tmp_path / "a.tif")
    shown = np.asarray(Image.open(tmp_path / "a.tif").convert("RGB"))
    expected = cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY)
    assert np.abs(read_photo(tmp_path / "a.tif").astype(int) - expected).max() <= 2


def test_a_jpeg_is_decoded_straight_to_its_brightness(tmp_path: Path) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "a.jpg", quality=95)
    expected = cv2.imread(str(tmp_path / "a.jpg"), cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION)
    assert expected is not None
    assert np.abs(read_photo(tmp_path / "a.jpg").astype(int) - expected).max() <= 1


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_become_the_nearest_of_eight(tmp_path: Path, suffix: str) -> None:
    deep = np.array([[0, 128, 129, 257], [32768, 40000, 65406, 65535]], np.uint16)
    Image.fromarray(deep).save(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(read_photo(tmp_path / f"a{suffix}"), np.rint(deep / 257))


def test_sixteen_bits_of_colour_are_read(tmp_path: Path, png: Callable[..., bytes]) -> None:
    pixels = b"".join(b"\0" + struct.pack(">15H", *[40000] * 15) for _ in range(4))  # 0: no filter in this row
    (tmp_path / "a.png").write_bytes(png(5, 4, depth=16, pixels=pixels))
    assert np.abs(read_photo(tmp_path / "a.png").astype(int) - 40000 / 257).max() < 1


def test_a_transparent_palette_warns_of_nothing(tmp_path: Path) -> None:
    Image.fromarray(COLOUR).convert("P").save(tmp_path / "a.png", transparency=b"\x00" * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_photo(tmp_path / "a.png").shape == (40, 60)


TURNED = {
    1: GREY,
    2: GREY[:, ::-1],
    3: GREY[::-1, ::-1],
    4: GREY[::-1],
    5: GREY.T,
    6: np.rot90(GREY, -1),
    7: GREY[::-1, ::-1].T,
    8: np.rot90(GREY),
}


@pytest.mark.parametrize(("tag", "turned"), TURNED.items())
def test_the_exif_tag_turns_only_when_asked(tmp_path: Path, tag: int, turned: np.ndarray) -> None:
    exif = Image.Exif()
    exif[0x0112] = tag
    Image.fromarray(GREY).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_photo(tmp_path / "a.png"), GREY)
    np.testing.assert_array_equal(read_photo(tmp_path / "a.png", turn_by_exif=True), turned)
    assert read_header(tmp_path / "a.png") == ((60, 40), tag, 0.0)


def test_a_meaningless_orientation_counts_as_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 77
    Image.fromarray(GREY).save(tmp_path / "a.png", exif=exif)
    assert read_header(tmp_path / "a.png").orientation == 1


@pytest.mark.parametrize(("tag", "turned"), TURNED.items())
@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
def test_a_tiff_which_pillow_turns_by_itself_comes_as_stored_too(
    tmp_path: Path, compression: str | None, tag: int, turned: np.ndarray
) -> None:
    Image.fromarray(GREY).save(tmp_path / "a.tif", tiffinfo={0x0112: tag}, compression=compression)
    assert read_header(tmp_path / "a.tif") == ((60, 40), tag, 0.0)
    np.testing.assert_array_equal(read_photo(tmp_path / "a.tif"), GREY)
    np.testing.assert_array_equal(read_photo(tmp_path / "a.tif", turn_by_exif=True), turned)


def exif_chunk(orientation: int) -> bytes:
    """The EXIF chunk of a PNG, with its length and checksum."""
    tags = struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    return struct.pack(">I", len(tags)) + b"eXIf" + tags + struct.pack(">I", zlib.crc32(b"eXIf" + tags))


@pytest.mark.parametrize("tagged", [True, False])
def test_the_head_of_a_huge_png_is_read_without_its_pixels(
    tmp_path: Path, png: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch, tagged: bool
) -> None:
    rows = bytes(200 * (1 + 3 * 20_000))
    squeezing = zlib.compressobj(9, wbits=-15)
    block = squeezing.compress(rows) + squeezing.flush(zlib.Z_FULL_FLUSH)
    checksum = (100 * len(rows) % 65521 << 16) + 1  # Adler's, of zeros
    pixels = b"\x78\xda" + 100 * block + b"\x03\0" + struct.pack(">I", checksum)
    content = png(20_000, 20_000, squeezed=pixels)
    head_end = content.index(b"IDAT") - 4
    (tmp_path / "huge.png").write_bytes(content[:head_end] + exif_chunk(6) * tagged + content[head_end:])
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    assert read_header(tmp_path / "huge.png") == ((20_000, 20_000), 6 if tagged else 1, 0.0)


def test_a_tag_behind_the_pixels_turns_too(tmp_path: Path) -> None:
    Image.fromarray(GREY).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    end = content.index(b"IEND") - 4
    (tmp_path / "a.png").write_bytes(content[:end] + exif_chunk(6) + content[end:])
    assert read_header(tmp_path / "a.png").orientation == 1  # not looked for
    np.testing.assert_array_equal(read_photo(tmp_path / "a.png"), GREY)
    np.testing.assert_array_equal(read_photo(tmp_path / "a.png", turn_by_exif=True), TURNED[6])


DAMAGED_EXIF = {
    "cut off": b"Exif\0\0MM\0*\0\0\0\x08\0\x05",
    "no TIFF": b"Exif\0\0?????????????????",
    "a byte": b"Exif\0\0M",
    "a text for the tag": b"Exif\0\0" + struct.pack(">2sHIHHHI4sI", b"MM", 42, 8, 1, 0x0112, 2, 2, b"6\0\0\0", 0),
    "values beyond": b"Exif\0\0" + struct.pack(">2sHIHHHIII", b"MM", 42, 8, 1, 0x0112, 4, 9, 5000, 0),
    "a fraction by zero": b"Exif\0\0" + struct.pack(">2sHIHHHIIIII", b"MM", 42, 8, 1, 0x0112, 5, 1, 26, 0, 6, 0),
    "the head at the end": b"Exif\0\0" + struct.pack(">2sHI", b"II", 42, 9),
}


@pytest.mark.filterwarnings("ignore::UserWarning:PIL.TiffImagePlugin")
@pytest.mark.parametrize("exif", DAMAGED_EXIF.values(), ids=DAMAGED_EXIF)
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_damaged_exif_data_count_as_none(tmp_path: Path, name: str, exif: bytes) -> None:
    Image.fromarray(GREY).save(tmp_path / name, exif=exif)
    assert read_header(tmp_path / name) == ((60, 40), 1, 0.0)
    assert read_photo(tmp_path / name, turn_by_exif=True).shape == (40, 60)


def test_a_photo_above_the_limit_is_refused_by_its_head_with_the_option(
    tmp_path: Path, png: Callable[..., bytes]
) -> None:
    (tmp_path / "huge.png").write_bytes(png(20_000, 20_000))
    message = r"huge\.png has 20000 x 20000 pixels, 400 million, above the limit of 100 million.*--pixel-limit"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Pillow's own limit stays silent
        with pytest.raises(DataError, match=message):
            read_photo(tmp_path / "huge.png")
    limit = Image.MAX_IMAGE_PIXELS
    Image.fromarray(GREY).save(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"above the limit of 0\.001 million"):
        read_photo(tmp_path / "a.png", pixel_limit=1000)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_numbers_that_are_no_grey_values_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 0.5, np.float32)).save(tmp_path / "f.tif")
    with pytest.raises(DataError, match="floating-point"):
        read_photo(tmp_path / "f.tif")
    Image.fromarray(np.full((4, 4), 70_000, np.int32)).save(tmp_path / "i.tif")
    with pytest.raises(DataError, match="more than 16 bits"):
        read_photo(tmp_path / "i.tif")


def test_folders_give_their_photos_by_path_below_them(photos: Path) -> None:
    assert [photo.name for photo in find_photos([photos])] == ["a.png", "b.jpg", "sub/c.png", "sub/d e.png"]
    assert all(photo.path == photos / photo.name for photo in find_photos([photos]))


def test_images_are_called_by_their_file_or_by_their_path_below_the_root(photos: Path) -> None:
    assert find_photos([photos / "sub" / "c.png"]) == [Photo("c.png", photos / "sub" / "c.png")]
    assert find_photos([photos / "sub" / "c.png"], photos)[0].name == "sub/c.png"
    with pytest.raises(DataError, match="is not inside"):
        find_photos([photos / "a.png"], photos / "sub")


def test_the_root_may_be_the_folder_above(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos / "sub")
    assert find_photos(["c.png"], "..") == [Photo("sub/c.png", Path("c.png"))]
    assert find_photos(["../a.png"], "..")[0].name == "a.png"
    with pytest.raises(DataError, match="is not inside"):
        find_photos(["../a.png"], ".")


def test_lists_name_photos_below_their_folder_or_the_root(photos: Path, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("# a comment\n\n./sub/d e.png\na.png\n", encoding="utf-8")
    assert [photo[:2] for photo in find_photos([listed], photos)] == [
        ("sub/d e.png", photos / "sub" / "d e.png"),
        ("a.png", photos / "a.png"),
    ]
    assert find_photos([listed])[1].path == tmp_path / "a.png"
    listed.write_text(f"{photos / 'sub' / 'd e.png'}\n", encoding="utf-8")  # as `find "$PWD"` prints it
    assert find_photos([listed], photos)[0][:2] == ("sub/d e.png", photos / "sub" / "d e.png")


@pytest.mark.parametrize(
    "line", ["../a.png", "/etc/passwd", "/tmp/../a.png", "sub/../../a.png", r"..\a.png", r"C:\a.png", "C:/a.png"]
)
def test_a_list_never_leads_out_of_its_root(tmp_path: Path, line: str) -> None:
    (tmp_path / "list.txt").write_text(f"a.png\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"list\.txt, line 2: .* (is not a plain path below a folder|is not inside)"):
        find_photos([tmp_path / "list.txt"])


def test_a_link_never_leads_a_list_out_of_its_root(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(photos)
    (tmp_path / "list.txt").write_text("out/a.png\n")
    with pytest.raises(DataError, match=r"line 1: 'out/a\.png' points outside"):
        find_photos([tmp_path / "list.txt"])


def test_names_that_clash_are_told(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes((photos / "a.png").read_bytes())
    with pytest.raises(DataError, match=r"would both be named a\.png"):
        find_photos([photos, tmp_path])
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "sub").write_bytes((photos / "a.png").read_bytes())
    with pytest.raises(DataError, match=r"more/sub has the same name as the folder of sub/c\.png"):
        find_photos([photos, tmp_path / "more" / "sub"])


def test_nothing_to_describe_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No photos found"):
        find_photos([tmp_path])
    with pytest.raises(DataError, match=re.escape(f"There is no image, folder or list {tmp_path / 'x'}")):
        find_photos([tmp_path / "x"])
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8 text"):
        find_photos([tmp_path / "list.txt"])


def test_a_name_that_the_system_refuses_is_not_called_damage(tmp_path: Path) -> None:
    for read in (check_photo, read_photo):
        with pytest.raises(DataError, match=r"jpg cannot be read: file name too long\.$"):
            read(tmp_path / f"{'a' * 400}.jpg")


@pytest.mark.parametrize(("film", "told"), [(1e308, 0), (float("nan"), 0), (-5, 0), (65536, 0), (65535, 65535), (1, 1)])
def test_a_focal_length_that_exif_has_no_room_for_counts_as_none(tmp_path: Path, film: float, told: float) -> None:
    folder = struct.pack("<HHHIII", 1, 0x8769, 4, 1, 26, 0) + struct.pack("<HHHIII", 1, 0xA405, 12, 1, 44, 0)
    exif = b"Exif\0\0II*\0" + struct.pack("<I", 8) + folder + struct.pack("<d", film)
    Image.fromarray(GREY).save(tmp_path / "a.jpg", exif=exif)
    assert read_header(tmp_path / "a.jpg").film_focal == told


def test_what_pillow_thinks_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(image: Image.Image) -> None:
        raise Image.DecompressionBombError("a bomb")

    Image.new("L", (9, 9)).save(tmp_path / "x.tif")
    monkeypatch.setattr("PIL.TiffImagePlugin.TiffImageFile.load", refuse)
    with pytest.raises(DataError, match=r"x\.tif is not a readable image \(a bomb\)"):
        read_photo(tmp_path / "x.tif")


def test_what_kind_of_file_a_photo_is(tmp_path: Path, png: Callable[..., bytes]) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "a.jpg")
    Image.fromarray(GREY).save(tmp_path / "b.png")
    Image.fromarray(GREY.astype(np.uint16)).save(tmp_path / "c.tif", compression="tiff_lzw")
    (tmp_path / "d.png").write_bytes(png(5, 4, depth=16))
    Image.fromarray(COLOUR).convert("P").save(tmp_path / "e.png")
    told = {path.name: check_photo(path)[1:] for path in sorted(tmp_path.iterdir())}
    assert told == {
        "a.jpg": ("JPEG", True, 8),
        "b.png": ("PNG", False, 8),
        "c.tif": ("TIFF", False, 16),
        "d.png": ("PNG", True, 16),
        "e.png": ("PNG", True, 8),
    }
    assert check_photo(tmp_path / "a.jpg").header == read_header(tmp_path / "a.jpg")


def test_what_would_be_refused_later_is_refused_by_its_head(tmp_path: Path, png: Callable[..., bytes]) -> None:
    (tmp_path / "huge.png").write_bytes(png(20_000, 20_000))
    Image.fromarray(np.full((4, 4), 0.5, np.float32)).save(tmp_path / "f.tif")
    (tmp_path / "text.png").write_text("text")
    for name, message in {"huge.png": "--pixel-limit", "f.tif": "floating-point", "text.png": "not an image"}.items():
        for read in (check_photo, read_photo):
            with pytest.raises(DataError, match=message):
                read(tmp_path / name)


def test_photos_that_a_tag_turns_are_named_with_it(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no photo")
    assert turned_sentence({"a": 1, "text.jpg": tmp_path / "text.jpg"}) == turned_sentence({}) == ""
    told = turned_sentence({"a": 6, "b": 1, "c": 6, "d": 8})
    assert told.startswith("Rotated by an EXIF tag: 3 of 4 photos, a (6), c (6), d (8). ")
    assert turned_sentence(dict.fromkeys(map(str, range(12)), 3)).count("(3)") == 10


def test_only_one_thread_at_a_time_changes_pillows_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "a.png")
    inside, most, was_open, limit = 0, 0, Image.open, Image.MAX_IMAGE_PIXELS

    def slow_open(*given: object, **how: object) -> Image.Image:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.01)
        inside -= 1
        return was_open(*given, **how)

    monkeypatch.setattr(Image, "open", slow_open)
    readers = (read_photo, read_colours, read_header, check_photo)
    threads = [threading.Thread(target=read, args=[tmp_path / "a.png"]) for read in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1 and limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_an_avif_that_is_called_a_jpeg_is_read(tmp_path: Path) -> None:
    Image.new("L", (32, 16), 90).save(tmp_path / "a.jpg", "AVIF")
    assert np.all(np.abs(read_photo(tmp_path / "a.jpg").astype(int) - 90) <= 2)


SAVED = {
    "AVIF": ".avif",
    "BMP": ".bmp",
    "GIF": ".gif",
    "HEIF": ".heic",
    "JPEG": ".jpg",
    "JPEG2000": ".jp2",
    "PNG": ".png",
}
SAVED |= {"PPM": ".ppm", "TIFF": ".tif", "WEBP": ".webp"}


@pytest.mark.parametrize("kind", FORMATS)
def test_what_a_photo_is_read_from_a_folder_is_searched_for(tmp_path: Path, kind: str) -> None:
    if kind == "HEIF":
        pytest.importorskip("pillow_heif", reason="needs the extra heif").register_heif_opener()
    path = tmp_path / f"a{SAVED[kind].upper()}"
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {kind}")
    Image.fromarray(COLOUR).save(path, kind)
    assert [photo.path for photo in find_photos([tmp_path])] == [path]
    assert read_photo(path).shape == COLOUR.shape[:2] and check_photo(path).format == kind


HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"  # the first box, as telephones write it


def test_without_its_extra_a_heic_is_refused_with_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.delitem(Image.OPEN, "HEIF", raising=False)
    for name in ("a.heic", "a.jpg"):
        (tmp_path / name).write_bytes(HEIC + bytes(100))
        sentence = (
            rf"{name} is in the format HEIF, which cannot be read yet: pip install 'keypatch\[heif\]', or convert it"
        )
        for read in (read_photo, read_header, check_photo, read_colours):
            with pytest.raises(DataError, match=sentence):
                read(tmp_path / name)


def test_a_heic_that_is_cut_off_is_told_so(tmp_path: Path) -> None:
    pytest.importorskip("pillow_heif", reason="needs the extra heif")
    (tmp_path / "a.heic").write_bytes(HEIC)
    with pytest.raises(DataError, match=r"a\.heic is cut off or damaged"):
        read_photo(tmp_path / "a.heic")


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are no text")
def test_a_name_that_is_no_text_is_left_out_of_a_folder_and_shown_escaped(tmp_path: Path) -> None:
    for name in (b"a.png", b"b\xff.png", b"c.png"):
        Image.fromarray(GREY).save(tmp_path / os.fsdecode(name))
    with pytest.warns(UserWarning, match=r"the name 'b\\udcff\.png' is not .* The photo is left out"):
        found = find_photos([tmp_path])
    assert [photo.name for photo in found] == ["a.png", "c.png"]
    with pytest.raises(DataError, match="Rename it"):
        find_photos([tmp_path / os.fsdecode(b"b\xff.png")])


@pytest.mark.parametrize("read", [read_photo, read_colours, read_header, check_photo])
def test_postscript_named_as_a_photo_never_starts_ghostscript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
) -> None:
    """Pillow's plugin would run the `gs` of the PATH on it."""
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # not looked for yet
    box = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    (tmp_path / "x.jpg").write_text(box)
    with pytest.raises(DataError, match=r"x\.jpg is not an image that can be read"):
        read(tmp_path / "x.jpg")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "CMYK"])
def test_images_in_memory_give_the_grey_of_their_file(tmp_path: Path, mode: str) -> None:
    image = Image.fromarray(COLOUR).convert(mode)
    image.save(tmp_path / "a.tif")
    np.testing.assert_array_equal(as_grey(image), read_photo(tmp_path / "a.tif"))


def test_arrays_of_every_type_give_the_same_grey() -> None:
    np.testing.assert_array_equal(as_grey(GREY), GREY)
    np.testing.assert_array_equal(as_grey(GREY.astype(np.uint16) * 257), GREY)
    np.testing.assert_array_equal(as_grey(GREY.astype(np.float32) / 255), GREY)
    np.testing.assert_array_equal(as_grey(Image.fromarray(GREY.astype(np.float32) / 255)), GREY)
    expected = as_grey(Image.fromarray(COLOUR))
    for pixels in (COLOUR, COLOUR.astype(np.uint16) * 257, COLOUR / 255, COLOUR[:, ::-1][:, ::-1]):
        np.testing.assert_array_equal(as_grey(pixels), expected)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros(9, np.uint8), r"not \(9,\)"),
        (np.zeros((9, 9, 2), np.uint8), r"not \(9, 9, 2\)"),
        (np.zeros((0, 9), np.uint8), r"not \(0, 9\)"),
        (np.zeros((9, 9), np.int64), "not int64"),
        (np.full((9, 9), 128.0), "from 0 .* to 1"),
        (np.full((9, 9), np.nan), "from 0 .* to 1"),
    ],
)
def test_arrays_that_are_no_images_are_told(pixels: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_grey(pixels)


PICTURE = Image.fromarray(data.astronaut()[:120, :160])
DEEP = Image.fromarray(data.camera()[:120, :160].astype(np.uint16) * 257)


def saved(image: Image.Image, kind: str, **how: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def with_preview(jpeg: bytes) -> bytes:
    """With EXIF data that hold nothing but a whole JPEG, as cameras keep a small copy there."""
    exif = b"Exif\0\0" + struct.pack(">2sHIHI", b"MM", 42, 8, 0, 0) + saved(PICTURE.resize((16, 12)), "JPEG")
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
PLAIN = saved(PICTURE, "JPEG")
RAW, LZW = saved(PICTURE, "TIFF"), saved(PICTURE, "TIFF", compression="tiff_lzw")
WHOLE = {
    "plain.jpg": PLAIN,
    "progressive.jpg": saved(PICTURE, "JPEG", progressive=True),
    "preview.jpg": with_preview(PLAIN),
    "filled.jpg": PLAIN[:2] + b"\xff\xff" + PLAIN[2:],  # bytes that may stand before a marker
    "two.jpg": saved(PICTURE, "MPO", save_all=True, append_images=[DEEP.convert("L")]),
    "plain.png": saved(PICTURE, "PNG"),
    "deep.png": saved(DEEP, "PNG"),
    "plain.tif": RAW,
    "squeezed.tif": LZW,
    "deep.tif": saved(DEEP, "TIFF", compression="tiff_adobe_deflate"),
    "plain.webp": saved(PICTURE, "WEBP"),
}


def is_refused(path: Path, read) -> bool:
    try:
        read(path)
    except DataError as error:
        assert "cut off" in str(error) and path.name in str(error)
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
def test_a_file_whose_end_is_missing_is_refused(tmp_path: Path, name: str, left: float) -> None:
    whole = WHOLE[name]
    (tmp_path / name).write_bytes(whole[: int(left * len(whole))])
    assert is_refused(tmp_path / name, read_photo)
    assert is_refused(tmp_path / name, check_photo)


def test_a_jpeg_that_lacks_only_its_last_byte_is_refused_as_when_decoded(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(PLAIN[:-1])
    assert is_refused(tmp_path / "a.jpg", read_photo) and is_refused(tmp_path / "a.jpg", check_photo)


@pytest.mark.parametrize("kind", [TEXT, BYTES, None])
@pytest.mark.parametrize("content", [RAW, LZW])
def test_a_tiff_whose_lengths_are_missing_or_no_numbers_is_checked_as_it_is_read(
    tmp_path: Path, content: bytes, kind: int | None
) -> None:
    (tmp_path / "a.tif").write_bytes(with_tag(content, LENGTHS, PRIVATE if kind is None else None, kind))
    assert is_refused(tmp_path / "a.tif", read_photo) == is_refused(tmp_path / "a.tif", check_photo)


@pytest.mark.parametrize("kind", [TEXT, BYTES])
@pytest.mark.parametrize("content", [RAW, LZW])
def test_offsets_that_are_no_numbers_are_a_sentence(tmp_path: Path, content: bytes, kind: int) -> None:
    (tmp_path / "a.tif").write_bytes(with_tag(content, OFFSETS, kind=kind))
    assert is_refused(tmp_path / "a.tif", read_photo) and is_refused(tmp_path / "a.tif", check_photo)
