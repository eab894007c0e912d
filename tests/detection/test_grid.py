"""The grid: its places, and what a budget leaves of it."""

import numpy as np
import pytest

from keypatch.detection import RULES, Grid, spend


def test_places_are_a_centred_lattice():
    found = Grid(step=10, sigma=3)(np.zeros((25, 38), np.uint8))
    places = sorted(zip(found.y.tolist(), found.x.tolist(), strict=True))
    assert places == [(y, x) for y in (2.0, 12.0, 22.0) for x in (3.5, 13.5, 23.5, 33.5)]
    assert set(found.sigma) == {3}
    assert set(found.angle) == {0}


def test_a_step_of_one_is_every_pixel():
    found = Grid(step=1)(np.zeros((3, 4), np.uint8))
    assert {*zip(found.x, found.y, strict=True)} == {(x, y) for x in range(4) for y in range(3)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [4, 16, 50, 100])
def test_a_budget_covers_the_whole_photo(rule, count):
    """However few are kept, each quarter of the photograph holds about a quarter of them."""
    kept = spend(Grid(step=8)(np.zeros((256, 256), np.uint8)), count, rule)
    quarters = np.bincount(2 * (kept.y > 128).astype(int) + (kept.x > 128), minlength=4)
    assert quarters.min() >= 0.2 * count
