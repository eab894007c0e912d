"""The reference-image precision against loops, hand-worked cases, and what it makes of ties."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from keypatch.errors import KeypatchError
from keypatch.metrics import ranking
from keypatch.metrics.ranking import reference_image_precisions


def precisions_by_loops(
    descriptors: NDArray[np.float32], point_id: NDArray[np.int64], image_id: NDArray[np.int64]
) -> list[float]:
    rows, precisions = descriptors.astype(float), []
    for image in sorted(set(image_id.tolist())):
        members = [i for i in range(len(rows)) if image_id[i] == image]
        right, certain = [], []
        for anchor in members:
            strangers = [i for i in members if point_id[i] != point_id[anchor]]
            if not strangers:
                continue
            nearest = min(float(np.linalg.norm(rows[anchor] - rows[i])) for i in strangers)
            for positive in members:
                if positive != anchor and point_id[positive] == point_id[anchor]:
                    distance = float(np.linalg.norm(rows[anchor] - rows[positive]))
                    right.append(distance < nearest)
                    certain.append(1 - min(distance, nearest) / max(distance, nearest))
        if right:
            precisions.append(float(average_precision_score(right, certain)))
    return precisions


def random_patches(seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """90 points of 1 to 4 patches, spread over 5 images, in no order."""
    rng = np.random.default_rng(seed)
    point_id = np.repeat(np.arange(90) * 7 + 3, rng.integers(1, 5, 90))
    image_id = np.array([4, -1, 30, 8, 9])[point_id % 5]
    image_id[::11] = 8  # some patches of a point are in another image than the others
    centres = rng.normal(size=(700, 6))
    rows = (centres[point_id] + rng.normal(0, 0.4, (len(point_id), 6))).astype(np.float32)
    order = rng.permutation(len(rows))
    return rows[order], point_id[order], image_id[order]


@pytest.mark.parametrize("block", [1, 200, ranking.BLOCK])
def test_it_is_what_loops_over_all_pairs_find(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "BLOCK", block)
    found = reference_image_precisions(*random_patches(0))
    expected = precisions_by_loops(*random_patches(0))
    assert len(expected) == 5 and 0.5 < np.mean(expected) < 0.95
    assert found == pytest.approx(expected, abs=1e-12)


def line(*places: float) -> NDArray[np.float32]:
    return np.array(places, np.float32)[:, None]


def test_a_case_worked_by_hand() -> None:
    # a: 0 and 1, b: 3 and 3.5, c: 9 and 2. To the positive and to the hardest negative of its anchor:
    # a0: 1, 2 right 1/2;  a1: 1, 1 tie: wrong, ratio 1;  b3: 0.5, 1 right 1/2;  b3.5: 0.5, 1.5 right 1/3;
    # c9: 7, 5.5 wrong 0.79;  c2: 7, 1 wrong 1/7.
    # By ratio: wrong 1/7, right 1/3, (right, right) 1/2, wrong, wrong: precision 1/2 once, then 3/4 twice.
    rows, points = line(0, 1, 3, 3.5, 9, 2), np.array([0, 0, 1, 1, 2, 2])
    found = reference_image_precisions(rows, points, np.zeros(6, np.int64))
    assert found == pytest.approx([(1 / 2 + 2 * 3 / 4) / 3])


def test_negatives_of_other_images_do_not_count() -> None:
    rows, points = line(0, 1, 5, 6, 0.01, 0.99), np.array([0, 0, 1, 1, 2, 3])
    alone = reference_image_precisions(rows, points, np.array([1, 1, 1, 1, 2, 2]))
    together = reference_image_precisions(rows, points, np.ones(6, np.int64))
    assert alone.tolist() == [1.0]  # and image 2 has no two patches of one point
    assert together[0] < 1


def test_images_that_ask_nothing_are_left_out() -> None:
    rows = line(0, 1, 5, 6, 7)
    one_point = reference_image_precisions(rows[:2], np.array([4, 4]), np.zeros(2, np.int64))
    no_pair = reference_image_precisions(rows, np.arange(5), np.zeros(5, np.int64))
    cut_from = reference_image_precisions(rows[:4], np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2]))
    nothing = reference_image_precisions(rows[:0], np.empty(0, np.int64), np.empty(0, np.int64))
    assert [len(each) for each in (one_point, no_pair, cut_from, nothing)] == [0, 0, 0, 0]


def test_all_right_is_1_and_none_is_0() -> None:
    points = np.array([0, 0, 1, 1])
    assert reference_image_precisions(line(0, 1, 5, 6), points, np.zeros(4, np.int64)).tolist() == [1.0]
    assert reference_image_precisions(line(0, 5, 1, 6), points, np.zeros(4, np.int64)).tolist() == [0.0]


def test_constant_descriptors_score_0() -> None:
    constant = np.full((40, 128), 1 / np.sqrt(128), np.float32)
    found = reference_image_precisions(constant, np.arange(40) // 2, np.arange(40) // 20)
    assert found.tolist() == [0.0, 0.0]


def test_a_positive_and_a_negative_at_no_distance_are_the_least_certain() -> None:
    # 0, 0 of one point beside a 0 of another: wrong, but of the ratio 1, so behind the right pairs 100, 101
    found = reference_image_precisions(line(0, 0, 0, 100, 101), np.array([0, 0, 1, 2, 2]), np.zeros(5, np.int64))
    assert found.tolist() == [1.0]


def test_near_identical_rows_are_told_apart() -> None:
    # squared distances of 1e-10 vanish in 2 - 2s of float32, not in the differences
    base = np.random.default_rng(0).normal(size=64).astype(np.float32)
    rows = np.stack([base, base + 1e-5, base + 5e-5, base + 6e-5])
    assert reference_image_precisions(rows, np.array([0, 0, 1, 1]), np.zeros(4, np.int64)).tolist() == [1.0]


@pytest.mark.parametrize("noise", [1e-4, 1e-6])
def test_nearly_equal_rows_score_as_the_loops_find(noise: float) -> None:
    rng = np.random.default_rng(0)
    points, images = np.arange(300) % 100, np.arange(300) % 100 % 2
    rows = rng.normal(size=64) + noise * (rng.normal(size=(100, 64))[points] + rng.normal(0, 1.6, (300, 64)))
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    found, expected = reference_image_precisions(unit, points, images), precisions_by_loops(unit, points, images)
    assert 0.2 < np.mean(expected) < 0.99
    assert found == pytest.approx(expected, abs=1e-9)  # of thousands of pairs none changes its place
    labels = rng.permutation(points)
    collapsed = reference_image_precisions(unit, labels, np.zeros(300, np.int64))
    assert collapsed == pytest.approx(precisions_by_loops(unit, labels, np.zeros(300, np.int64)), abs=1e-9)
    assert collapsed < 0.1


def test_the_order_of_the_patches_does_not_matter() -> None:
    rows, points, images = random_patches(1)
    order = np.random.default_rng(2).permutation(len(rows))
    first = reference_image_precisions(rows, points, images)
    assert reference_image_precisions(rows[order], points[order], images[order]) == pytest.approx(first, abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "points", "images", "words"),
    [
        (np.ones(3), np.arange(3), np.arange(3), "a point and an image"),
        (np.ones((3, 2)), np.arange(2), np.arange(3), "2 points, 3 images"),
        (np.full((3, 2), np.nan), np.arange(3), np.arange(3), "nan or inf"),
    ],
)
def test_wrong_arrays_are_named(
    rows: NDArray[np.float32], points: NDArray[np.int64], images: NDArray[np.int64], words: str
) -> None:
    with pytest.raises(KeypatchError, match=words):
        reference_image_precisions(rows, points, images)
