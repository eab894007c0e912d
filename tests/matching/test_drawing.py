"""Pictures of matches: sizes, colours, and how many lines."""

import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.geometry import Keypoints
from keypatch.matching.drawing import _RIGHT, _WRONG, _legend, _shown, draw_matches
from keypatch.matching.matches import Matches


def keypoints(xy: NDArray[np.float64]) -> Keypoints:
    return Keypoints(xy[:, 0], xy[:, 1], np.ones(len(xy)), np.zeros(len(xy)))  # type: ignore[arg-type]


def scene(count: int, sizes: tuple[tuple[int, int], tuple[int, int]]) -> tuple[tuple, tuple, Matches]:  # type: ignore[type-arg]
    """Dark photos of the sizes (height, width), keypoints all over them, and matches in order."""
    rng = np.random.default_rng(0)
    photos = tuple(np.full(size, 40, np.uint8) for size in sizes)
    points = tuple(keypoints(rng.uniform(0, 1, (count, 2)) * [width - 1, height - 1]) for height, width in sizes)
    return photos, points, Matches(np.column_stack([np.arange(count)] * 2), np.ones(count))  # type: ignore[arg-type]


def coloured(picture: NDArray[np.uint8], colour: tuple[int, int, int]) -> int:
    return int((np.abs(picture.astype(int) - colour).max(axis=2) < 8).sum())


@pytest.mark.parametrize(
    "sizes", [((300, 400), (300, 400)), ((400, 300), (300, 400)), ((100, 900), (900, 100)), ((1, 1), (30, 20))]
)
def test_photos_of_any_size_stand_at_one_height(sizes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    picture = draw_matches(*scene(30, sizes))
    aspect = sum(width / height for height, width in sizes)
    assert picture.width - 12 == pytest.approx(aspect * picture.height, abs=1.5)
    assert picture.height <= max(size[0] for size in sizes)


def test_large_photos_become_a_picture_that_fits_a_screen() -> None:
    picture = draw_matches(*scene(10, ((4000, 6000), (6000, 4000))), caption="one\ntwo")
    assert picture.width <= 3012 and picture.height <= 1100


def test_right_is_green_and_wrong_is_red() -> None:
    photos, points, matches = scene(6, ((300, 400), (300, 400)))
    for right, green, red in ((np.ones(6, bool), True, False), (np.zeros(6, bool), False, True)):
        pixels = np.asarray(draw_matches(photos, points, matches, right=right))
        assert (coloured(pixels, _RIGHT) > 20) == green
        assert (coloured(pixels, _WRONG) > 20) == red


def test_a_line_ends_at_its_keypoints() -> None:
    photos = (np.full((101, 101), 40, np.uint8),) * 2
    points = keypoints(np.array([[20.0, 30.0]])), keypoints(np.array([[70.0, 80.0]]))
    pixels = np.asarray(draw_matches(photos, points, Matches([[0, 0]], [1.0]), right=np.array([True])))  # type: ignore[arg-type]
    for x, y in ((20, 30), (101 + 12 + 70, 80)):
        assert pixels[y, x].tolist() == list(_RIGHT)
    assert pixels[30, 10].tolist() == pixels[5, 5].tolist()


def test_few_lines_are_spread_over_the_photo() -> None:
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal(100, 5, (1000, 2)), [[500.0, 10], [10, 500], [500, 500]]])
    shown = _shown(places, None, 20)
    assert len(shown) == len(set(shown)) == 20
    assert {1000, 1001, 1002} <= set(shown.tolist())


@pytest.mark.parametrize(("right", "wrong"), [(900, 100), (100, 900), (1000, 0), (0, 1000), (3, 2), (5, 400)])
def test_right_and_wrong_are_drawn_in_their_proportion(right: int, wrong: int) -> None:
    places = np.random.default_rng(0).uniform(0, 500, (right + wrong, 2))
    truth = np.arange(right + wrong) < right
    shown = _shown(places, truth, 100)
    assert len(shown) == len(set(shown.tolist())) == min(100, right + wrong)
    assert truth[shown].mean() == pytest.approx(right / (right + wrong), abs=0.01)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("judged", [False, True])
def test_none_and_one(count: int, judged: bool) -> None:
    photos, points, matches = scene(count, ((50, 60), (70, 40)))
    right = np.ones(count, bool) if judged else None
    picture = draw_matches(photos, points, matches, "caption", right)
    assert picture.height > 70


def test_the_caption_goes_on_with_how_many_are_drawn_and_what_colours_mean() -> None:
    photos, points, matches = scene(30, ((300, 400), (300, 400)))
    none = Matches(np.empty((0, 2), np.int64), np.empty(0))  # type: ignore[arg-type]
    plain, legend = (draw_matches(photos, points, chosen, "caption") for chosen in (none, matches))
    assert legend.height > plain.height > 300
    assert _legend(200, 1402, True) == "200 of 1,402 are drawn: green is right, red is wrong"
    assert _legend(3, 3, False) == "3 of 3 are drawn: a line's colour tells where in the first photo it begins"


def test_the_photo_shines_through_many_lines_more_than_through_few() -> None:
    photos = (np.full((100, 100), 40, np.uint8),) * 2
    at_the_gap = []
    for count in (10, 200):
        points = (keypoints(np.column_stack([np.full(count, 50.0), np.full(count, 30.0)])),) * 2
        matches = Matches(np.column_stack([np.arange(count)] * 2), np.ones(count))  # type: ignore[arg-type]
        at_the_gap.append(int(np.asarray(draw_matches(photos, points, matches, right=np.ones(count, bool)))[30, 80, 1]))
    background, line = 44, _RIGHT[1]
    assert background + 0.2 * (line - background) < at_the_gap[1] < at_the_gap[0] - 30 < line - 30
