"""The picture of patches: what is in it lies where it should."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from keypatch.features import Features
from keypatch.features.patch_picture import _caption, _choice, show_patches
from keypatch.geometry import Keypoints

HEIGHT = 720  # of the photo, if it is not wider than 1600 then
ACROSS, DOWN = 104, 120  # from one patch of the picture to the next
LEFT = 12  # of the first patch, from the photo


def described(*rows: tuple[float, ...], **settings: str) -> Features:
    keypoints = Keypoints(*np.float32(rows).reshape(-1, 4).T)
    descriptors = np.zeros((len(rows), 8), np.float32)
    return Features(keypoints, descriptors, (0, 0), "sift", {"patch_sigmas": 12.0, **settings})


def shown(tmp_path: Path, image: np.ndarray, *rows: tuple[float, ...]) -> np.ndarray:
    show_patches(image, described(*rows), tmp_path / "s.png")
    with Image.open(tmp_path / "s.png") as picture:
        assert picture.format == "PNG"
        return np.asarray(picture.convert("RGB")).astype(int)


def patch_at(picture: np.ndarray, column: int, row: int = 0) -> np.ndarray:
    """Beside a square photo."""
    left, top = HEIGHT + LEFT + ACROSS * column, 4 + DOWN * row
    return picture[top : top + 96, left : left + 96]


def test_patches_stand_beside_the_photo_small_ones_first_turned_and_scaled(tmp_path: Path) -> None:
    photo = np.zeros((360, 360), np.uint8)
    photo[:, 180:] = 200  # dark to bright along x
    picture = shown(tmp_path, photo, (179.5, 100, 5, np.pi / 2), (179.5, 200, 4, 0))
    first, second = (patch_at(picture, column)[..., 0] for column in (0, 1))
    assert first[:, 10:40].max() < 10 and first[:, 56:86].min() > 190  # the smaller one, not turned
    assert second[10:40].min() > 190 and second[56:86].max() < 10  # its x axis points down: bright is up


def test_squares_lie_around_their_keypoints(tmp_path: Path) -> None:
    picture = shown(tmp_path, np.zeros((360, 360), np.uint8), (179.5, 100, 5, 0))  # side 60: twice that in the picture
    rows, columns = np.nonzero(picture[:HEIGHT, :HEIGHT].max(axis=2) > 100)
    assert abs(rows.min() - 2 * 70.5) < 3 and abs(rows.max() - 2 * 130.5) < 3
    assert abs(columns.min() - 2 * 150) < 3 and abs(columns.max() - 2 * 210) < 3
    inside = picture[int(2 * 100.5), 2 * 154 : 2 * 206].max(axis=1) > 100
    assert not inside[:40].any() and inside[56:].all()  # the line goes to the right


def test_a_square_its_number_and_its_patch_have_one_colour(tmp_path: Path) -> None:
    picture = shown(tmp_path, np.zeros((360, 360), np.uint8), (90, 90, 3, 0), (270, 270, 4, 0))
    frames = [picture[3, HEIGHT + LEFT + ACROSS * column + 40] for column in (0, 1)]
    assert (frames[0] != frames[1]).any()
    for frame, centre, sigma in zip(frames, (181, 541), (3, 4), strict=True):
        corner = centre - 2 * 6 * sigma
        assert (picture[corner + 30, corner] == frame).all()
        near = picture[corner + 4 : corner + 20, corner + 3 : corner + 20].reshape(-1, 3)  # the number, but no line
        strokes = near[near.max(axis=1) > 100]
        assert len(strokes) > 5
        assert np.abs(255 * strokes / strokes.max(axis=1, keepdims=True) - frame).max() < 6  # fading at the edges


def test_what_stands_below_a_patch_is_its_number_sigma_and_angle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[str]()
    draw = ImageDraw.ImageDraw.text

    def noted(self: ImageDraw.ImageDraw, xy: tuple[float, float], text: str, *rest: object, **how: object) -> None:
        written.append(text)
        draw(self, xy, text, *rest, **how)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted)
    shown(tmp_path, np.zeros((360, 360), np.uint8), (90, 90, 3.25, np.pi / 6), (200, 90, 2, -np.pi / 6))
    assert written[:4] == ["1", "2", "1:  2.0 px, 330°", "2:  3.2 px, 30°"]  # in the photo, below the patches


def test_the_caption_says_of_what_photo_how_many_and_how_wide(tmp_path: Path) -> None:
    keypoints = [(9.0, 9.0, 2.0, 0.0)] * 50
    some = _caption("a/b.jpg", (30, 20), described(*keypoints, detector="dog"), 48, 12.0)
    assert some.startswith("a/b.jpg, 20 x 30 pixels: 48 of 50 keypoints of dog, described by sift, from the smallest")
    assert "12 sigmas wide" in some
    read = _caption("", (30, 20), described(*keypoints[:1], detector="file"), 1, 12.0)
    assert read.startswith("A photo, 20 x 30 pixels: 1 keypoint from a file, described by sift")
    assert _caption("a.jpg", (30, 20), described(), 0, 12.0) == "a.jpg, 20 x 30 pixels: no keypoints."
    empty, one = (shown(tmp_path, np.full((360, 360), 9, np.uint8), *keypoints[:count]) for count in (0, 1))
    assert (empty[HEIGHT:] < 100).any() and len(one) > len(empty) > HEIGHT  # more lines below the photo


def test_sigmas_of_all_sizes_are_shown_though_most_are_small() -> None:
    sigmas = np.concatenate([np.geomspace(1, 2, 2000), np.geomspace(2, 32, 400)])
    keypoints = described(*((500.0, 500.0, sigma, 0.0) for sigma in sigmas)).keypoints
    chosen = keypoints.sigma[_choice(keypoints, 12.0, (1000, 1000), 48)]
    assert len(chosen) == 48 and chosen[0] == 1 and chosen[-1] == 32
    factors = chosen[1:] / chosen[:-1]
    assert factors.min() > 1.03 and factors.max() < 1.13  # 32 ** (1 / 47) is 1.08


def test_equal_sigmas_are_chosen_once_each() -> None:
    keypoints = described(*((float(x), 50.0, 2.0, 0.0) for x in range(100))).keypoints
    chosen = _choice(keypoints, 12.0, (100, 100), 48)
    assert len(chosen) == len(set(chosen.tolist())) == 48


def test_squares_mostly_outside_are_shown_only_if_there_are_few_others() -> None:
    """A square is 24 wide: half of it is outside where its centre is at the border."""
    places = [(100.0, 100.0)] * 5 + [(-4.0, 100.0), (100.0, 203.0), (4.0, 99.0)]
    keypoints = described(*((*place, 2.0, 0.0) for place in places)).keypoints
    assert _choice(keypoints, 12.0, (200, 200), 6).tolist() == [0, 1, 2, 3, 4, 7]
    assert len(_choice(keypoints, 12.0, (200, 200), 7)) == 7 and len(_choice(keypoints, 12.0, (200, 200), 48)) == 8


@pytest.mark.parametrize("rows", [(), ((5.0, 5.0, 2.0, 0.0),)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (3000, 1)])
def test_no_keypoint_and_one_in_photos_of_any_shape(
    tmp_path: Path, rows: tuple[tuple[float, ...], ...], shape: tuple[int, int]
) -> None:
    height, width, _ = shown(tmp_path, np.full(shape, 9, np.uint8), *rows).shape
    assert height < 900 and width < 1800


def test_many_keypoints_are_a_choice_of_48(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(*rng.uniform(0, 300, 2), rng.uniform(1, 9), 0.0) for _ in range(500)]
    picture = shown(tmp_path, np.full((360, 360), 100, np.uint8), *rows)
    assert all((patch_at(picture, column, row) == 100).all() for column in range(8) for row in range(6))
    assert picture.shape[1] < HEIGHT + LEFT + 8 * ACROSS
