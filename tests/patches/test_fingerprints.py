"""A copy of a photo has its fingerprint, the photo beside it does not."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.errors import DataError
from keypatch.images import find_photos
from keypatch.patches.embedded import TEST_PHOTOS, TRAIN_PHOTOS, photo_path
from keypatch.patches.fingerprints import BITS, SAME, Fingerprint, fingerprint, perceptual_hash, same_images

PHOTOS = [photo_path(photo) for photo in (*TRAIN_PHOTOS, *TEST_PHOTOS)]


def half(image: Image.Image) -> Image.Image:
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


COPIES: dict[str, Callable[[Image.Image, Path], None]] = {
    "half.jpg": lambda image, path: half(image).save(path, quality=75),
    "poor.jpg": lambda image, path: half(image).save(path, quality=50),
    "half.png": lambda image, path: half(image).save(path),
    "grey.jpg": lambda image, path: half(image.convert("L")).save(path, quality=75),
    "bright.png": lambda image, path: image.point(lambda value: 0.8 * value).save(path),
}


@pytest.fixture(scope="module")
def known() -> list[Fingerprint]:
    return [fingerprint(path) for path in PHOTOS]


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_the_same_image_as_its_photo_and_as_no_other(
    name: str, known: list[Fingerprint], tmp_path: Path
) -> None:
    copies = []
    for number, path in enumerate(PHOTOS):
        with Image.open(path) as image:
            COPIES[name](image.convert("RGB"), tmp_path / f"{number}-{name}")
        copies.append(fingerprint(tmp_path / f"{number}-{name}"))
    assert not {each.sha256 for each in copies} & {each.sha256 for each in known}
    assert same_images(copies, known).tolist() == [[number, number] for number in range(len(PHOTOS))]


def test_a_photo_turned_by_its_exif_tag_is_the_same_as_one_whose_pixels_are_turned(tmp_path: Path) -> None:
    with Image.open(PHOTOS[0]) as image:
        upright = image.convert("RGB")
    upright.save(tmp_path / "upright.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees clockwise
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "tagged.jpg", exif=exif, quality=90)
    prints = [fingerprint(tmp_path / name) for name in ("upright.png", "tagged.jpg")]
    assert same_images(prints[:1], prints[1:]).tolist() == [[0, 0]]


def test_a_scene_moved_by_a_step_is_another_image() -> None:
    """Shifted by 4 % of its width with new pixels at the edge, the photo has another fingerprint."""
    grey = np.asarray(Image.open(PHOTOS[0]).convert("L"))
    step = grey.shape[1] // 25
    left, right = np.ascontiguousarray(grey[:, step:]), np.ascontiguousarray(grey[:, :-step])
    first, second = Fingerprint("0" * 64, perceptual_hash(left)), Fingerprint("1" * 64, perceptual_hash(right))
    assert len(same_images([first], [second])) == 0


def test_many_against_many_find_what_a_loop_finds() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (40, BITS + 1), np.uint8)
    bits[:, -1] = 0
    flipped = bits[rng.permutation(40)].copy()
    for row, count in enumerate(rng.integers(SAME - 3, SAME + 4, 40)):
        flipped[row, rng.choice(BITS, count, replace=False)] ^= 1
    first, second = ([Fingerprint(f"{n:064x}", _hex(row)) for n, row in enumerate(rows)] for rows in (bits, flipped))
    second[3] = Fingerprint(first[7].sha256, second[3].perceptual)  # the same file, whatever its picture
    slow = [
        [i, j]
        for i in range(40)
        for j in range(40)
        if first[i].sha256 == second[j].sha256 or int(np.sum(bits[i] != flipped[j])) <= SAME
    ]
    assert same_images(first, second[:3]).tolist() != []
    assert same_images(first, second).tolist() == sorted(slow)
    assert same_images(first, []).shape == same_images([], second).shape == (0, 2)


def test_a_blank_image_has_a_fingerprint_of_zeros() -> None:
    assert set(perceptual_hash(np.full((50, 80), 200, np.uint8))) == {"0"}


def test_a_fingerprint_comes_back_from_json(known: list[Fingerprint]) -> None:
    assert Fingerprint.from_json(known[0].to_json()) == known[0]


@pytest.mark.parametrize("value", [{"sha256": "0" * 64}, {"sha256": "0" * 64, "perceptual": "zz"}, {"sha256": 5}])
def test_what_is_no_fingerprint_is_refused(value: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        Fingerprint.from_json(value)


def test_a_file_that_is_no_photo_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"no photo")
    with pytest.raises(DataError, match=r"a\.jpg"):
        fingerprint(tmp_path / "a.jpg")


def test_neighbouring_photos_of_a_scene_are_different_images(shared: Path) -> None:
    """The scene of the nearest neighbours of all."""
    photos = find_photos([shared / "data" / "photos" / "lund_door" / "images"])
    prints = [fingerprint(photo.path) for photo in photos]
    assert same_images(prints, prints).tolist() == [[number, number] for number in range(len(prints))]


def _hex(bits: NDArray[np.uint8]) -> str:
    return np.packbits(bits[:BITS]).tobytes().hex()
