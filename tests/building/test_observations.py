"""What is kept of what a method found: points and duplicates planted by hand."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.building.observations import (
    Found,
    Observations,
    coinciding_points,
    once_per_photo,
    rival_points,
    settle,
    unknown_views,
)
from keypatch.building.options import Building
from keypatch.building.splitting import BORDER, split_points
from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints
from keypatch.images import Photo


def rows(*table: tuple[float, ...]) -> Observations:
    """Rows of (point, image, x, y, sigma, angle[, error])."""
    columns = np.array([(*row, 0.0)[:7] for row in table]).T
    point, image, x, y, sigma, angle, error = columns
    place = np.stack([x, y, np.zeros(len(x))], axis=1)
    keypoints = Keypoints(x, y, sigma, angle)
    numbers = point.astype(np.int64), image.astype(np.int64)
    return Observations(keypoints, *numbers, error, place, scene=np.zeros(len(x), np.int64), **unknown_views(len(x)))


def found(observed: Observations, size: int = 400) -> Found:
    photos = [Photo(f"{number}.png", Path(f"{number}.png")) for number in range(int(observed.image_id.max()) + 1)]
    return Found(photos, np.full((len(photos), 2), size), observed, lambda _: np.zeros((size, size), np.uint8), {}, {})


def kept(observed: Observations, **options: float) -> list[tuple[int, int]]:
    """(point, image) after settling, by the x of the first photo: which planted point it was."""
    made = settle(found(observed), Building(**options))
    return list(zip(made.rows.point_id.tolist(), made.rows.image_id.tolist(), strict=True))


def test_a_second_orientation_does_not_become_a_rival_class() -> None:
    one = [(7, image, 100 + image, 100, 3, 0.2) for image in range(3)]
    turned = [(9, image, 100 + image, 100, 3, 1.9) for image in range(2)]
    made = settle(found(rows(*one, *turned)), Building())
    assert made.rows.points == 1 and np.allclose(made.rows.keypoints.angle, 0.2)  # the one that more photos see
    assert made.counts["points at the place of another (second orientations, duplicates)"] == 1


def test_a_planted_duplicate_near_by_is_left_out_and_one_farther_away_stays() -> None:
    def point(number: int, x: float) -> list[tuple[float, ...]]:
        return [(number, image, x, 200, 3, 0) for image in range(2)]

    assert kept(rows(*point(1, 200), *point(2, 205))) == [(0, 0), (0, 1)]  # 5 pixels: less than 2 sigmas
    assert len(kept(rows(*point(1, 200), *point(2, 207)))) == 4
    assert len(kept(rows(*point(1, 200), *point(2, 205)), separation=1.0)) == 4


def test_points_that_meet_in_one_photo_of_many_are_one() -> None:
    one = [(1, image, 100 + 30 * image, 200, 2, 0) for image in range(4)]
    other = [(2, 3, 190, 200, 2, 0), (2, 4, 120, 120, 2, 0)]
    assert {image for _, image in kept(rows(*one, *other))} == {0, 1, 2, 3}


def test_another_scale_at_the_same_place_is_another_patch() -> None:
    table = [(point, image, 200, 200, sigma, 0) for point, sigma in ((1, 3.0), (2, 6.0)) for image in range(2)]
    assert len(kept(rows(*table))) == 4


def test_a_chain_of_duplicates_keeps_no_two_that_coincide() -> None:
    table = [(point, image, 200 + 4 * point, 200, 3, 0) for point in range(7) for image in range(2)]
    observed = rows(*table)
    left = settle(found(observed), Building()).rows
    assert len(coinciding_points(left, 2.0)) == 0 and left.points == 4  # every second one
    assert rival_points(observed, 2.0).tolist() == [1, 3, 5]


def test_of_a_point_twice_in_a_photo_the_exacter_stays() -> None:
    observed = rows((1, 0, 100, 100, 3, 0, 0.9), (1, 0, 130, 100, 3, 0, 0.2), (1, 1, 100, 100, 3, 0, 0.5))
    assert once_per_photo(observed).tolist() == [False, True, True]


def test_a_patch_over_the_edge_is_left_out_and_with_it_a_point_that_is_alone() -> None:
    table = [(1, 0, 200, 200, 3, 0), (1, 1, 30, 200, 3, 0), (2, 0, 300, 300, 3, 0), (2, 1, 300, 300, 3, 0)]
    made = settle(found(rows(*table)), Building())
    assert made.rows.points == 1 and made.rows.keypoints.x.tolist() == [300, 300]
    assert made.counts["patches beyond the photo's edge"] == 1
    assert made.counts["observations alone of their point"] == 1


def test_coinciding_points_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    n = 150
    observed = rows(
        *zip(
            rng.integers(0, 60, n),
            rng.integers(0, 3, n),
            *rng.uniform(0, 60, (2, n)),
            rng.uniform(1, 4, n),
            [0] * n,
            strict=True,
        )
    )
    xy, sigma = observed.keypoints.xy, observed.keypoints.sigma.astype(float)
    expected = set()
    for i in range(n):
        for j in range(n):
            same_photo = observed.image_id[i] == observed.image_id[j]
            near = np.linalg.norm(xy[i] - xy[j]) <= 2 * min(sigma[i], sigma[j])
            alike = max(sigma[i], sigma[j]) <= 1.5 * min(sigma[i], sigma[j])
            if same_photo and near and alike and observed.point_id[i] < observed.point_id[j]:
                expected.add((int(observed.point_id[i]), int(observed.point_id[j])))
    assert {tuple(pair) for pair in coinciding_points(observed, 2.0).tolist()} == expected and expected


def strip(scene: int = 0, count: int = 40, first: int = 0, image: int = 0) -> list[tuple[float, ...]]:
    return [(first + p, image + view, 50 + 60 * p, 200, 2, 0) for p in range(count) for view in range(2)]


def test_a_region_is_held_out_and_no_patch_reaches_across() -> None:
    observed = rows(*strip())
    part = split_points(observed, 0.25, 24.0, np.random.default_rng(0))
    test, train = observed.take(part == 1), observed.take(part == 0)
    assert test.points == 10 and train.points == 30
    assert test.keypoints.x.min() > train.keypoints.x.max()
    dense = rows(*((p, view, 50 + 10 * p, 200, 2, 0) for p in range(40) for view in range(2)))
    part = split_points(dense, 0.25, 24.0, np.random.default_rng(0))
    test, train = dense.take(part == 1), dense.take(part == 0)
    assert test.keypoints.x.min() - train.keypoints.x.max() > 24 and (part == BORDER).sum() == 4


def test_whole_scenes_are_held_out_where_there_are_several() -> None:
    from dataclasses import replace

    observed = rows(*strip(), *strip(first=100, image=2), *strip(first=200, image=4))
    observed = replace(observed, scene=observed.image_id // 2)
    part = split_points(observed, 0.3, 24.0, np.random.default_rng(0))
    assert (part != BORDER).all()
    by_scene = [set(part[observed.scene == scene].tolist()) for scene in range(3)]
    assert sorted(map(len, by_scene)) == [1, 1, 1] and sum(each == {1} for each in by_scene) == 1


def test_too_little_to_split_is_a_sentence() -> None:
    with pytest.raises(KeypatchError, match=r"Holding out 0.01 of the points leaves .* --held-out"):
        split_points(rows(*strip(count=6)), 0.01, 24.0, np.random.default_rng(0))
