"""The picture of patches: what is in it lies where it should."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.features import Features
from keypatch.features.showing import show_patches
from keypatch.geometry import Keypoints

STEP = 100  # from one patch of the picture to the next
HEIGHT = 604


def shown(tmp_path: Path, image: np.ndarray, *rows: tuple[float, ...]) -> np.ndarray:
    keypoints = Keypoints(*np.float32(rows).reshape(-1, 4).T)
    descriptors = np.zeros((len(rows), 8), np.float32)
    show_patches(image, Features(keypoints, descriptors, (0, 0), "x", {"patch_sigmas": 12.0}), tmp_path / "s.png")
    with Image.open(tmp_path / "s.png") as picture:
        assert picture.format == "PNG"
        return np.asarray(picture.convert("RGB")).astype(int)


def test_patches_stand_beside_the_photo_small_ones_first_turned_and_scaled(tmp_path: Path) -> None:
    photo = np.zeros((302, 302), np.uint8)
    photo[:, 151:] = 200  # dark to bright along x
    picture = shown(tmp_path, photo, (150.5, 100, 5, np.pi / 2), (150.5, 200, 4, 0))
    assert picture.shape == (HEIGHT, HEIGHT + 804, 3)
    first = picture[4:100, HEIGHT + 4 : HEIGHT + 100, 0]
    second = picture[4:100, HEIGHT + STEP + 4 : HEIGHT + STEP + 100, 0]
    assert first[:, 10:40].max() < 10 and first[:, 56:86].min() > 190  # the smaller one, not turned
    assert second[10:40].min() > 190 and second[56:86].max() < 10  # its x axis points down: bright is up


def test_squares_lie_around_their_keypoints(tmp_path: Path) -> None:
    picture = shown(tmp_path, np.zeros((302, 302), np.uint8), (150.5, 100, 5, 0))  # side 60: twice that in the picture
    rows, columns = np.nonzero(picture[:, :HEIGHT].max(axis=2) > 100)
    assert abs(rows.min() - 2 * 70.5) < 3 and abs(rows.max() - 2 * 130.5) < 3
    assert abs(columns.min() - 2 * 121) < 3 and abs(columns.max() - 2 * 181) < 3
    inside = picture[int(2 * 100.5), 2 * 125 : 2 * 177].max(axis=1) > 100
    assert not inside[:40].any() and inside[56:].all()  # the line goes to the right


@pytest.mark.parametrize("rows", [(), ((5.0, 5.0, 2.0, 0.0),)])
def test_no_keypoint_and_one(tmp_path: Path, rows: tuple[tuple[float, ...], ...]) -> None:
    assert shown(tmp_path, np.full((1, 1), 9, np.uint8), *rows).shape[0] == HEIGHT


def test_many_keypoints_are_a_choice_of_48(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(*rng.uniform(0, 300, 2), rng.uniform(1, 9), 0.0) for _ in range(500)]
    picture = shown(tmp_path, np.full((302, 302), 100, np.uint8), *rows)
    assert (picture[50, HEIGHT + 50 :: STEP] == 100).all(axis=1).sum() == 8
    assert (picture[50::STEP, HEIGHT + 50] == 100).all(axis=1).sum() == 6
