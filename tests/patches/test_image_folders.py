"""Images in class folders: which folder is a class, what becomes of an image, and every wrong image is named."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.errors import DataError
from keypatch.patches import image_folders, join_sets, open_patches
from keypatch.patches.image_folders import find_classes, read_image_folders, read_square
from keypatch.patches.patch_set import reduce_patches

DRAWINGS = {"Greek/alpha": 3, "Greek/beta": 2, "Latin/a": 4}


@pytest.fixture
def alphabets(tmp_path: Path) -> Path:
    """Random 8x8 drawings, alphabet/character/drawing.png."""
    rng = np.random.default_rng(0)
    for name, count in DRAWINGS.items():
        (tmp_path / "drawings" / name).mkdir(parents=True)
        for k in range(count):
            pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "drawings" / name / f"{k}.png")
    return tmp_path / "drawings"


def test_a_class_is_a_folder_that_holds_images(alphabets: Path) -> None:
    for _ in range(2):  # from the images, then from the cache
        found = open_patches(alphabets)
        assert (found.name, found.side) == ("drawings", 64)
        assert found.card["class_names"] == list(DRAWINGS)
        assert found.point_id.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert isinstance(found.patches, np.memmap) and len(list(alphabets.glob("*.npy"))) == 1


def test_an_image_of_the_right_side_is_kept_as_it_is(alphabets: Path) -> None:
    found = read_image_folders(str(alphabets), side=8)
    expected = [np.asarray(Image.open(path)) for path in sorted(alphabets.rglob("*.png"))]
    assert np.array_equal(found.patches, expected)


def test_what_is_hidden_or_no_image_is_passed_over(alphabets: Path) -> None:
    (alphabets / ".git" / "images").mkdir(parents=True)
    shutil.copy(alphabets / "Latin" / "a" / "0.png", alphabets / ".git" / "images")
    (alphabets / "Latin" / "a" / "._0.png").write_bytes(b"of a Mac")
    (alphabets / "README.txt").write_text("hello")
    assert {name: len(images) for name, images in find_classes(alphabets).items()} == DRAWINGS


def test_linked_classes_are_followed(alphabets: Path, tmp_path: Path) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "Greek").symlink_to(alphabets / "Greek", target_is_directory=True)
    assert open_patches(tmp_path / "half").card["class_names"] == ["Greek/alpha", "Greek/beta"]


WHITE, BLACK = 255, 0


def _grey(path: Path) -> Any:
    Image.new("L", (20, 10), 100).save(path)


def _colour(path: Path) -> Any:
    Image.new("RGB", (9, 30), (100, 100, 100)).save(path)


def _one_bit(path: Path) -> Any:
    Image.new("1", (8, 8), 1).save(path)


def _transparent(path: Path) -> Any:
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(path)


def _palette(path: Path) -> Any:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 100, 100, 100])
    image.save(path)


@pytest.mark.parametrize(
    ("write", "grey"), [(_grey, 100), (_colour, 100), (_one_bit, WHITE), (_transparent, WHITE), (_palette, 100)]
)
def test_every_kind_of_image_becomes_a_grey_square(alphabets: Path, write: Callable[[Path], Any], grey: int) -> None:
    write(alphabets / "Greek" / "alpha" / "0.png")
    assert np.all(read_image_folders(alphabets).patches[0] == grey)


@pytest.mark.parametrize("suffix", ["JPG", "bmp", "gif", "tif", "webp", "pgm"])
def test_other_formats_are_read(alphabets: Path, suffix: str) -> None:
    Image.new("L", (30, 30), 90).save(alphabets / "Greek" / "alpha" / f"9.{suffix}")
    assert np.all(np.abs(read_image_folders(alphabets).patches[3].astype(int) - 90) <= 2)


def test_an_image_is_squeezed_whole_into_the_square(alphabets: Path) -> None:
    pixels = np.zeros((40, 160), np.uint8)
    pixels[:, 80:] = 255
    Image.fromarray(pixels).save(alphabets / "Greek" / "alpha" / "0.png")
    found = read_image_folders(alphabets, side=16).patches[0]
    assert np.all(found[:, :7] == 0) and np.all(found[:, 9:] == 255)


def test_a_photograph_is_turned_upright(alphabets: Path) -> None:
    pixels = np.zeros((16, 16), np.uint8)
    pixels[:8] = 255  # the upper half; stored so that it must be turned by 180 degrees
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(pixels).save(alphabets / "Greek" / "alpha" / "0.png", exif=exif)
    found = read_image_folders(alphabets, side=16).patches[0]
    assert np.all(found[:8] == 0) and np.all(found[8:] == 255)


WRONG_IMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda p: p.write_bytes(b""), r"alpha/1\.png is empty"),
    "a text": (lambda p: p.write_text("no"), r"alpha/1\.png is not an image"),
    "cut off": (lambda p: p.write_bytes(p.read_bytes()[:90]), r"alpha/1\.png is not a readable image"),
    "PostScript": (
        lambda p: p.write_text("%!PS-Adobe-3.0 EPSF-3.0\n"),
        r"alpha/1\.png is not an image",
    ),
}


@pytest.mark.parametrize("kind", WRONG_IMAGES)
def test_a_wrong_image_is_named(alphabets: Path, kind: str) -> None:
    spoil, message = WRONG_IMAGES[kind]
    spoil(alphabets / "Greek" / "alpha" / "1.png")
    with pytest.raises(DataError, match=message):
        open_patches(alphabets)
    assert not list(alphabets.glob("*.npy")) and not list(alphabets.glob(".*"))


def test_a_class_with_one_image_is_left_out_of_training(alphabets: Path) -> None:
    (alphabets / "Greek" / "beta" / "1.png").unlink()
    found = open_patches(alphabets)
    assert len(found) == 8 and found.classes().count == 2 and found.classes().skipped == 1


def test_too_few_classes_are_told(alphabets: Path) -> None:
    shutil.rmtree(alphabets / "Latin")
    (alphabets / "Greek" / "beta" / "1.png").unlink()
    with pytest.raises(DataError, match="1 of 2 image folders have two or more images"):
        open_patches(alphabets)
    shutil.rmtree(alphabets / "Greek" / "beta")
    with pytest.raises(DataError, match="1 of 1 image folders"):
        open_patches(alphabets)


@pytest.mark.parametrize("place", ["stray.png", "Greek/stray.png"])
def test_an_image_beside_class_folders_is_named(alphabets: Path, place: str) -> None:
    Image.new("L", (8, 8)).save(alphabets / place)
    with pytest.raises(DataError, match=rf"{place} lies beside the image folder Greek/alpha"):
        open_patches(alphabets)


def test_the_work_grows_with_the_number_of_classes_and_not_with_its_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "not-empty").touch()

    def calls(count: int) -> int:
        made = list[str]()
        folders = [(tmp_path / "deep" / str(k), [tmp_path / "deep" / str(k) / "0.png"]) for k in range(count)]
        monkeypatch.setattr(image_folders, "_walk", lambda folder: iter(folders))
        sys.setprofile(lambda frame, event, _: made.append(event))
        try:
            found = find_classes(tmp_path)
        finally:
            sys.setprofile(None)
        assert len(found) == count
        return len(made)

    assert calls(200) < 2.5 * calls(100)


def test_too_many_pixels_are_told(alphabets: Path) -> None:
    (alphabets / "Greek" / "alpha" / "1.pgm").write_bytes(b"P5 20000 20000 255\n")
    with pytest.raises(DataError, match=r"alpha/1\.pgm has 20000 x 20000 pixels.*Make it smaller"):
        read_square(alphabets / "Greek" / "alpha" / "1.pgm", 8)
    (alphabets / "Greek" / "alpha" / "1.pgm").write_bytes(b"P5 12000 10000 255\n")  # more than `describe` takes unasked
    with pytest.raises(DataError, match=r"alpha/1\.pgm is not a readable image"):
        read_square(alphabets / "Greek" / "alpha" / "1.pgm", 8)


def test_sixteen_bits_become_eight(alphabets: Path) -> None:
    Image.fromarray(np.full((8, 8), 40000, np.uint16)).save(alphabets / "Greek" / "alpha" / "0.png")
    assert np.all(read_image_folders(alphabets).patches[0] == round(40000 / 257))


def test_folders_without_class_folders_are_told(tmp_path: Path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "photo.png")
    with pytest.raises(DataError, match="nor a folder of images per class"):
        open_patches(tmp_path)
    with pytest.raises(DataError, match=r"1 of 1 image folders|0 of 1 image folders"):
        read_image_folders(tmp_path)


def test_a_split_belongs_to_hpatches(alphabets: Path) -> None:
    with pytest.raises(DataError, match=r'has no splits\. Leave out "--split a"'):
        open_patches(alphabets, split="a")


def test_class_folders_of_bmp_images_are_no_sheets(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for k in range(2):
            Image.new("L", (8, 8)).save(tmp_path / "pets" / name / f"{k}.bmp")
    assert open_patches(tmp_path / "pets").card["class_names"] == ["cat", "dog"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are no text")
def test_a_name_that_is_no_text_does_not_stop_a_set(tmp_path: Path) -> None:
    for kind in "ab":
        (tmp_path / kind).mkdir()
        for name in (b"1.png", b"2\xff.png"):
            Image.new("L", (8, 8), ord(kind)).save(tmp_path / kind / os.fsdecode(name))
    assert len(read_image_folders(tmp_path)) == 4


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Two classes of images that differ in their colours alone: each is (r, g, b) or (b, g, r)."""
    rng = np.random.default_rng(0)
    for name, order in (("one", [0, 1, 2]), ("other", [2, 1, 0])):
        (tmp_path / "colours" / name).mkdir(parents=True)
        for k in range(2):
            pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)[..., order]
            Image.fromarray(pixels).save(tmp_path / "colours" / name / f"{k}.png")
    return tmp_path / "colours"


def test_images_are_read_in_colour_where_asked_for(colours: Path) -> None:
    found = open_patches(colours, side=8, channels=3)
    assert (found.patches.shape, found.side, found.channels) == ((4, 3, 8, 8), 8, 3)
    expected = [np.asarray(Image.open(path)).transpose(2, 0, 1) for path in sorted(colours.rglob("*.png"))]
    assert np.array_equal(found.patches, expected)
    grey = open_patches(colours, side=8)
    assert grey.channels == 1 and grey.take(np.array([[0, 1]])).shape == (1, 2, 8, 8)
    assert found.take(np.array([[0, 1]])).shape == (1, 2, 3, 8, 8)
    assert len(list(colours.glob("keypatch-*.npy"))) == 2  # a cache of each


def test_grey_and_transparent_images_have_colours_too(alphabets: Path) -> None:
    first = alphabets / "Greek" / "alpha" / "0.png"
    Image.fromarray(np.array([[[10, 20, 30, 0]]], np.uint8)).save(first)
    found = read_image_folders(alphabets, side=8, channels=3)
    assert np.all(found.patches[0] == 255)
    assert np.array_equal(found.patches[1, 0], found.patches[1, 2])
    Image.fromarray(np.full((8, 8), 40000, np.uint16)).save(first)
    assert np.all(read_square(first, 8, 3) == round(40000 / 257))


def test_sets_in_colour_are_joined_but_not_with_grey_ones(colours: Path, alphabets: Path) -> None:
    large, small = (open_patches(place, side=side, channels=3) for place, side in ((colours, 16), (alphabets, 8)))
    joined = join_sets([large, small])
    taken = joined.take(np.array([[0, 4]]))
    assert taken.shape == (1, 2, 3, 8, 8) and np.array_equal(taken[0, 1], small.patches[0])
    assert np.array_equal(taken[0, 0, 2], reduce_patches(large.patches[:1, 2], 8)[0])
    with pytest.raises(DataError, match="drawings is grey and colours is in colour"):
        join_sets([large, open_patches(alphabets)])
