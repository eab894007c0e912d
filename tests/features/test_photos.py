"""Photographs: the right pixels of every kind of file, the right names, a sentence for every fault."""

import re
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFile
from skimage import data

from keypatch.errors import DataError
from keypatch.features.photos import Photo, check_photo, find_photos, odd_orientations, read_header, read_photo

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
    with pytest.raises(DataError, match="fractions"):
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
    with pytest.raises(DataError, match="does not lie in"):
        find_photos([photos / "a.png"], photos / "sub")


def test_the_root_may_be_the_folder_above(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos / "sub")
    assert find_photos(["c.png"], "..") == [Photo("sub/c.png", Path("c.png"))]
    assert find_photos(["../a.png"], "..")[0].name == "a.png"
    with pytest.raises(DataError, match="does not lie in"):
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
    with pytest.raises(DataError, match=r"list\.txt, line 2: .* (is not a plain path below a folder|does not lie in)"):
        find_photos([tmp_path / "list.txt"])


def test_a_link_never_leads_a_list_out_of_its_root(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(photos)
    (tmp_path / "list.txt").write_text("out/a.png\n")
    with pytest.raises(DataError, match=r"line 1: 'out/a\.png' leads out of"):
        find_photos([tmp_path / "list.txt"])


def test_names_that_clash_are_told(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes((photos / "a.png").read_bytes())
    with pytest.raises(DataError, match=r"would both be called a\.png"):
        find_photos([photos, tmp_path])
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "sub").write_bytes((photos / "a.png").read_bytes())
    with pytest.raises(DataError, match=r"more/sub is called like the folder of sub/c\.png"):
        find_photos([photos, tmp_path / "more" / "sub"])


def test_nothing_to_describe_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no photo"):
        find_photos([tmp_path])
    with pytest.raises(DataError, match=re.escape(f"There is no image, folder or list {tmp_path / 'x'}")):
        find_photos([tmp_path / "x"])
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a text in UTF-8"):
        find_photos([tmp_path / "list.txt"])


def test_a_name_that_the_system_refuses_is_not_called_damage(tmp_path: Path) -> None:
    for read in (check_photo, read_photo):
        with pytest.raises(DataError, match=r"jpg cannot be opened: file name too long\.$"):
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
    with pytest.raises(DataError, match=r"x\.tif is too large to be decoded \(a bomb\)\. Make it smaller"):
        read_photo(tmp_path / "x.tif")


def test_what_is_told_of_a_file_without_decoding_it(
    tmp_path: Path, png: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "a.jpg")
    Image.fromarray(GREY).save(tmp_path / "b.png")
    Image.fromarray(GREY.astype(np.uint16)).save(tmp_path / "c.tif", compression="tiff_lzw")
    (tmp_path / "d.png").write_bytes(png(5, 4, depth=16))
    Image.fromarray(COLOUR).convert("P").save(tmp_path / "e.png")
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
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
    for name, message in {"huge.png": "--pixel-limit", "f.tif": "fractions", "text.png": "not a photo"}.items():
        for read in (check_photo, read_photo):
            with pytest.raises(DataError, match=message):
                read(tmp_path / name)


def test_orientations_unlike_the_rest_are_named_with_their_tag() -> None:
    assert odd_orientations({"a": 6, "b": 1, "c": 6, "d": 8}) == (6, ["b (1)", "d (8)"])
    assert odd_orientations({"a": 3}) == (3, [])
