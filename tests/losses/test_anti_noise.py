"""SDGMNet's mining: against a slow loop, its threshold in the course of a training, and its way out."""

import math

import pytest
import torch
from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.losses import Angle, AntiNoise, Described, Moment

LATE, EARLY = Moment(125, 1000), Moment(124, 1000)


def crowded(n: int = 24, seed: int = 0) -> tuple[Tensor, Tensor]:
    """In four dimensions many other pairs lie under 0.6 rad."""
    generator = torch.Generator().manual_seed(seed)
    anchors = torch.randn(n, 4, generator=generator, dtype=torch.float64)
    return anchors, anchors + 0.2 * torch.randn(n, 4, generator=generator, dtype=torch.float64)


def angle(x: Tensor, y: Tensor) -> float:
    return math.acos(min(1.0, float(x @ y)))


def expected(batch: Described, limit: float) -> list[float]:
    """The angle of each pair's negative, one comparison at a time."""
    a, p = batch.anchors, batch.positives
    found = []
    for i in range(batch.n):
        nearest = [
            min(angle(a[i], p[j]), angle(a[j], p[i]), angle(a[i], a[j]), angle(p[i], p[j]))
            for j in range(batch.n)
            if j != i
        ]
        found.append(min([x for x in nearest if x > limit] or nearest))
    return found


@pytest.mark.parametrize(("moment", "limit"), [(LATE, 0.6), (EARLY, math.acos(1 - 1e-5)), (None, 0.6)])
@pytest.mark.parametrize("seed", range(3))
def test_it_equals_a_loop(moment: Moment | None, limit: float, seed: int) -> None:
    batch = Described.of_pairs(*crowded(seed=seed), AntiNoise(), moment=moment)
    assert batch.negative_distances(Angle()).tolist() == pytest.approx(expected(batch, limit), rel=1e-9)


def test_the_threshold_is_for_each_other_pair_not_for_the_row() -> None:
    """A pair with a near copy loses that copy, keeps its place in the batch, and its next negative is above."""
    anchors, positives = (torch.cat([x, x[:2] + 1e-4]) for x in crowded(8))
    late = Described.of_pairs(anchors, positives, AntiNoise(), moment=LATE)
    assert late.negative_distances(Angle()).shape == (10,)
    assert (late.negative_distances(Angle()) >= 0.6).all()
    assert late.negatives is not None and late.negatives.second[0] % 10 != 8


def test_copies_are_passed_over_from_the_start() -> None:
    anchors, positives = (torch.cat([x, x[:1]]) for x in crowded(8))
    early = Described.of_pairs(anchors, positives, AntiNoise(), moment=Moment(0, 1000))
    assert early.negatives is not None and early.negatives.second[0] % 9 != 8


def test_where_everything_is_too_near_the_hardest_is_taken() -> None:
    generator = torch.Generator().manual_seed(0)
    anchors = 1 + 0.01 * torch.randn(8, 4, generator=generator, dtype=torch.float64)
    batch = Described.of_pairs(anchors, anchors.flip(1), AntiNoise())
    assert batch.negative_distances(Angle()).tolist() == pytest.approx(expected(batch, 0.0), rel=1e-6)
    assert batch.negative_distances(Angle()).max() < 0.6


def test_pairs_of_one_point_are_never_negatives_and_one_point_alone_is_a_sentence() -> None:
    anchors, positives = crowded(8)
    point_id = torch.arange(8) // 2
    batch = Described.of_pairs(anchors, positives, AntiNoise(threshold=0.0), point_id=point_id)
    assert batch.negatives is not None
    assert (point_id[batch.negatives.first % 8] != point_id[batch.negatives.second % 8]).all()
    with pytest.raises(KeypatchError, match="no valid negative"):
        Described.of_pairs(anchors, positives, AntiNoise(), point_id=torch.zeros(8, dtype=torch.int64))
