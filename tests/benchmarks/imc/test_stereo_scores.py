"""Means over scenes, and over sizes of bags: their intervals cover the truth as often as they say, or are not there."""

from collections.abc import Sequence

import numpy as np
import pytest

from keypatch.benchmarks.imc.bags import Bag, BagOutcome
from keypatch.benchmarks.imc.scores import SceneOutcome
from keypatch.benchmarks.imc.scores import bag_replicates as of_bags
from keypatch.benchmarks.imc.scores import stereo_replicates as of_scenes
from keypatch.benchmarks.result import Replicates
from keypatch.metrics import average_accuracies

REPETITIONS = 1000
BAND = (0.93, 0.98)  # three standard deviations of 0.007 below; above, as groups of one size are known better than one
WORST = 14  # degrees: errors are uniform from 0, so that mAA at 10 degrees is neither 0 nor 1


def scenes(errors: Sequence[np.ndarray]) -> Replicates:
    outcomes = [SceneOutcome(np.ones(2), np.ones(len(each)), np.ones((len(each), 1)), each[:, None]) for each in errors]
    return of_scenes(outcomes, 10)


def sizes_of_bags(errors: Sequence[np.ndarray]) -> Replicates:
    """A scene with bags of 3, 4 and so on photos, whose errors are all the same."""
    found = [
        (Bag(f"{size}bag_{number}", size, ()), BagOutcome((error,), size, 1, 2.0))
        for size, group in enumerate(errors, start=3)
        for number, error in enumerate(group)
    ]
    return of_bags({"scene": found})["maa10"]


@pytest.mark.parametrize(("draw", "groups"), [(scenes, (5, 30)), (scenes, (7, 40, 40)), (sizes_of_bags, (8, 8))])
def test_the_interval_of_a_mean_over_groups_covers_it_at_the_stated_rate(draw, groups: tuple[int, ...]) -> None:
    """With the number of all units and the same draws in all groups, 89, 91 and 92 % of them did."""
    rng = np.random.default_rng(0)
    truth = average_accuracies(rng.uniform(0, WORST, 10**6), 10).mean()
    held = []
    for _ in range(REPETITIONS):
        low, high = draw([rng.uniform(0, WORST, count) for count in groups]).interval()
        held.append(low <= truth <= high)
    assert BAND[0] <= np.mean(held) <= BAND[1]


@pytest.mark.parametrize("draw", [scenes, sizes_of_bags])
def test_a_group_of_one_leaves_no_interval(draw) -> None:
    """Nobody knows how much another unit of it would differ."""
    rng = np.random.default_rng(0)
    assert draw([rng.uniform(0, WORST, count) for count in (30, 1)]).interval() is None
    assert draw([rng.uniform(0, WORST, 30)]).interval() is not None


@pytest.mark.parametrize("draw", [scenes, sizes_of_bags])
def test_groups_of_one_size_have_draws_of_their_own(draw) -> None:
    """What is good in one and bad in the other would cancel out in every draw."""
    good = np.linspace(0, WORST, 20)
    drawn = draw([good, good[::-1]])
    assert np.std(drawn.values) > 0.03
    assert np.array_equal(drawn.values, draw([good, good[::-1]]).values), "the same for every descriptor"


@pytest.mark.parametrize(("draw", "units"), [(scenes, "photo pairs"), (sizes_of_bags, "bags")])
def test_the_units_say_of_which_group_they_are(draw, units: str) -> None:
    group = {"photo pairs": "scene", "bags": "group"}[units]
    several, one = draw([np.ones(9), np.ones(4)]), draw([np.ones(9)])
    assert (several.units, several.count) == (f"{units} in the smallest {group}", 4)
    assert (one.units, one.count) == (units, 9)
