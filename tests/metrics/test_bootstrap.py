"""Intervals cover the truth as often as they say, and scores of drawn lists are those of the lists written out."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from keypatch.errors import KeypatchError
from keypatch.metrics import (
    FPR_RULES,
    REPLICATES,
    RankedPairs,
    average_precision,
    bootstrap,
    bootstrap_mean,
    draw_counts,
    fpr95,
    interval,
    roc_auc,
)

REPETITIONS = 2000
# Two standard deviations, sqrt(0.95 * 0.05 / 400) = 0.011, of the shortest simulation. Intervals of 80 % or 99 % would
# give 0.80 +- 0.02 or 0.99 +- 0.005, both outside.
BAND = (0.927, 0.973)


Draw = Callable[[np.random.Generator], tuple[NDArray[np.float64], int]]


def coverage(truth: float, draw: Draw, repetitions: int = REPETITIONS) -> float:
    """The share of the intervals of new data that hold the truth; `draw` gives replicates and number of units."""
    rng = np.random.default_rng(0)
    intervals = [interval(*draw(rng)) for _ in range(repetitions)]
    return float(np.mean([low <= truth <= high for low, high in intervals]))


@pytest.mark.parametrize("n", [8, 50])
def test_the_interval_of_a_mean_covers_it_at_the_stated_rate(n: int) -> None:
    rate = coverage(3.0, lambda rng: (bootstrap_mean(rng.normal(3, 2, n)), n))
    assert BAND[0] <= rate <= BAND[1]


def test_the_interval_of_a_proportion_covers_it_at_the_stated_rate() -> None:
    rate = coverage(0.7, lambda rng: (bootstrap_mean(rng.random(60) < 0.7), 60))
    assert BAND[0] <= rate <= BAND[1]


def test_the_interval_of_fpr95_covers_it_at_the_stated_rate() -> None:
    matches, non_matches, apart = 200, 200, 2.5

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.float64], int]:
        distances = np.concatenate([rng.normal(0, 1, matches), rng.normal(apart, 1, non_matches)])
        ranked = RankedPairs.of(distances, np.arange(len(distances)) < matches)
        return bootstrap(lambda counts: ranked.accepted(counts).fpr95(), len(ranked), replicates=300), len(ranked)

    rate = coverage(float(ndtr(ndtri(0.95) - apart)), draw, repetitions=400)
    assert BAND[0] <= rate <= BAND[1]


def test_plain_percentiles_would_cover_too_seldom_for_few_units() -> None:
    """Why the interval is widened: with 8 units the plain one misses the truth twice as often as it says."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(REPETITIONS):
        low, high = np.quantile(bootstrap_mean(rng.normal(3, 2, 8)), [0.025, 0.975])
        held.append(low <= 3 <= high)
    assert np.mean(held) < BAND[0]


def test_another_level_is_another_share() -> None:
    values = np.random.default_rng(0).normal(size=100_000)
    low, high = interval(values, count=10**6, level=0.8)
    assert (low, high) == pytest.approx((ndtri(0.1), ndtri(0.9)), abs=0.02)
    assert high - low < np.subtract(*interval(values, 10**6)[::-1]) < np.subtract(*interval(values, 5)[::-1])


def test_one_unit_or_no_defined_replicate_gives_no_interval() -> None:
    assert np.isnan(interval(np.ones(10), 1)).all()
    assert np.isnan(interval(np.full(10, np.nan), 50)).all()
    assert interval([np.nan, 1.0, 1.0], 50) == (1, 1)


def test_draws_depend_on_the_number_of_units_and_the_seed_alone() -> None:
    draws = np.stack(list(draw_counts(30)))
    assert draws.shape == (REPLICATES, 30) and (draws.sum(axis=1) == 30).all()
    assert draws.mean(axis=0) == pytest.approx(1, abs=0.15)  # 4.7 standard deviations of sqrt(1 / 1000)
    np.testing.assert_array_equal(list(draw_counts(30, 10)), draws[:10])
    assert not np.array_equal(list(draw_counts(30, 10, seed=1)), draws[:10])


@pytest.mark.parametrize("count", [7, 1_500])  # of the larger one, a block holds fewer draws than are asked for
def test_the_mean_is_taken_on_the_same_draws(count: int) -> None:
    values = np.random.default_rng(0).normal(size=count)
    slow = bootstrap(lambda counts: float(np.repeat(values, counts).mean()), count)
    np.testing.assert_allclose(bootstrap_mean(values), slow, atol=1e-12)


def test_a_statistic_may_give_several_numbers() -> None:
    both = bootstrap(lambda counts: (float(counts[0]), float(counts.max())), 5, 20)
    assert both.shape == (20, 2)
    np.testing.assert_array_equal(both[:, 0], [counts[0] for counts in draw_counts(5, 20)])


@pytest.mark.parametrize("step", [0.0, 0.5])  # half of the distances are tied in the second case
def test_scores_of_a_drawn_list_are_those_of_the_list_written_out(step: float) -> None:
    rng = np.random.default_rng(1)
    is_match = rng.random(120) < 0.4
    distances = np.where(is_match, rng.normal(0, 1, 120), rng.normal(1.5, 1, 120))
    distances = np.round(distances / step) * step if step else distances
    ranked = RankedPairs.of(distances, is_match)
    for counts in draw_counts(120, 50):
        drawn, kinds, accepted = np.repeat(distances, counts), np.repeat(is_match, counts), ranked.accepted(counts)
        for rule in FPR_RULES:
            assert accepted.fpr95(rule) == pytest.approx(fpr95(drawn, kinds, rule), abs=1e-12)
        assert accepted.average_precision() == pytest.approx(average_precision(drawn, kinds), abs=1e-12)
        assert accepted.roc_auc() == pytest.approx(roc_auc(drawn, kinds), abs=1e-12)


def test_a_draw_without_both_kinds_of_pairs_has_no_score() -> None:
    accepted = RankedPairs.of([1.0, 2.0, 3.0], [True, False, False]).accepted(np.array([0, 2, 1]))
    assert np.isnan([accepted.fpr95(), accepted.average_precision(), accepted.roc_auc()]).all()


def test_nothing_and_nan_cannot_be_drawn_from() -> None:
    with pytest.raises(KeypatchError, match="at least one unit to draw from"):
        bootstrap_mean([])
    with pytest.raises(KeypatchError, match="without nan"):
        bootstrap_mean([1.0, np.nan])
