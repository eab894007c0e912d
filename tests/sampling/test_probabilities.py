"""AdaSample's probabilities against the worked example, its limits, and the paper's theorems."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from keypatch.sampling.probabilities import hardest_probabilities, pick, power_probabilities

Floats = NDArray[np.float64]
EXAMPLE = np.array([[0.20, 0.45, 0.70, 0.95, 1.20]])


def powers(distances: Floats, exponent: float) -> Floats:
    """p of rows in which all candidates are allowed."""
    return power_probabilities(distances, exponent, np.ones(distances.shape, bool))


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Mapping[str, Any]:
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in file if key.startswith("ada_")}


def test_the_worked_example(arrays: Mapping[str, Any]) -> None:
    keys = [key for key in arrays if key.startswith("ada_p_")]
    assert len(keys) == 14
    for key in keys:
        lam, average = (float(part.lstrip("lamL")) for part in key.removeprefix("ada_p_").split("_"))
        p = powers(arrays["ada_d"][None], lam / average)[0]
        np.testing.assert_allclose(p, arrays[key], rtol=1e-9, atol=1e-12)
    printed = [2.8e-7, 2.44e-4, 9.706e-3, 0.12366, 0.86639]
    np.testing.assert_allclose(powers(EXAMPLE, 10 / 1.2)[0], printed, rtol=0.02)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 25.0, 100.0, 1e4, 1e9])
def test_no_exponent_overflows(exponent: float) -> None:
    distances = np.array([[0.2, 0.0, 3.1, 3.0], [1e-3, 2e-3, 1e-5, 0.0], [1e-9, 0.0, 0.0, 0.0]])
    p = powers(distances, exponent)
    assert np.isfinite(p).all() and (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-12)
    assert p[0].argmax() == (2 if exponent else 0)


def test_powers_equal_the_plain_formula_where_it_can_be_computed() -> None:
    d = np.random.default_rng(0).uniform(0.1, 1.5, (20, 6))
    np.testing.assert_allclose(powers(d, 25.0), d**25 / (d**25).sum(1, keepdims=True), rtol=1e-12)


def test_exponent_0_and_equal_or_zero_distances_are_uniform() -> None:
    assert (powers(EXAMPLE, 0.0) == 0.2).all()
    for value in (0.0, 0.7):
        distances = np.full((1, 4), value)
        assert (powers(distances, 30.0) == 0.25).all()
        assert (hardest_probabilities(distances, np.ones((1, 4), bool)) == 0.25).all()


def test_the_largest_distance_takes_all_and_equals_share() -> None:
    distances = np.array([[0.3, 0.9, 0.9, 5.0, 0.9], [0.3, 0.2, 0.1, 0.0, 0.0]])
    allowed = np.array([[True, True, True, False, False], [True, True, True, True, True]])
    assert hardest_probabilities(distances, allowed).tolist() == [[0, 0.5, 0.5, 0, 0], [1, 0, 0, 0, 0]]
    assert power_probabilities(distances, 100.0, allowed)[0] == pytest.approx([0, 0.5, 0.5, 0, 0])


def test_what_is_not_allowed_is_never_picked() -> None:
    rng = np.random.default_rng(0)
    allowed = rng.random((5000, 6)) < 0.4
    allowed[np.arange(5000), rng.integers(0, 6, 5000)] = True
    distances = np.where(allowed, rng.random((5000, 6)), 9.0)  # the largest are forbidden
    for p in (power_probabilities(distances, 20.0, allowed), hardest_probabilities(distances, allowed)):
        assert allowed[np.arange(5000), pick(p, rng)].all()


@pytest.mark.parametrize("exponent", [0.0, 1 / 1.2, 5 / 1.2, 10 / 1.2])
def test_frequencies_follow_the_probabilities(exponent: float) -> None:
    p = powers(EXAMPLE, exponent)
    counts = np.bincount(pick(np.repeat(p, 100_000, 0), np.random.default_rng(1)), minlength=5)
    expected = 100_000 * p[0]
    often = expected >= 5  # where the chi-square approximation holds; the others together are one bin
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    kept = wanted > 0
    assert stats.chisquare(observed[kept], wanted[kept]).pvalue > 0.001
    assert (np.abs(counts - expected) <= 4 * np.sqrt(expected) + 1).all()


def test_a_lower_loss_makes_the_choice_surer() -> None:
    entropies = [stats.entropy(powers(EXAMPLE, 10 / average)[0]) for average in (3.0, 1.2, 0.8, 0.37, 0.1)]
    assert all(later < earlier for earlier, later in pairwise(entropies))


# The theorems, for K examples whose loss is d^2 and whose gradient has the norm 2 d, as section 4.2 assumes.


class Toy:
    alpha = 3.2

    def __init__(self, seed: int, k: int = 7, dims: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.rng, self.k = rng, k
        self.d = rng.uniform(0.2, 1.3, k)
        self.loss = self.d**2
        directions = rng.standard_normal((k, dims))
        self.gradients = 2 * self.d[:, None] * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        self.wanted = self.alpha / k * self.loss ** (self.alpha - 1)  # p w of eq. 9

    def variance(self, p: Floats, w: Floats) -> float:
        """tr Var of w g under p, by enumeration."""
        estimates = w[:, None] * self.gradients
        mean = p @ estimates
        return float(p @ ((estimates - mean) ** 2).sum(1))


@pytest.mark.parametrize("seed", range(5))
def test_weighted_gradients_are_an_unbiased_estimate_of_those_of_the_mean_of_the_power(seed: int) -> None:
    toy = Toy(seed)
    p = powers(toy.d[None], 2 * toy.alpha - 1)[0]
    w = (1 / toy.d) * (toy.wanted * toy.d / p)[0]  # proportional to 1/d; one constant makes eq. 9 hold for all
    np.testing.assert_allclose(p * w, toy.wanted, rtol=1e-12)
    wanted = toy.alpha / toy.k * (toy.loss ** (toy.alpha - 1)) @ toy.gradients
    np.testing.assert_allclose((p * w) @ toy.gradients, wanted, rtol=0, atol=1e-12)  # eq. 10


@pytest.mark.parametrize("seed", range(5))
def test_theorem_1_holds_for_any_weights(seed: int) -> None:
    toy = Toy(seed)
    now, best = toy.rng.standard_normal((2, 4))
    p, w, rate = toy.rng.dirichlet(np.ones(toy.k)), toy.rng.uniform(0.1, 3, toy.k), 0.3
    steps = rate * w[:, None] * toy.gradients
    progress = p @ (((now - best) ** 2).sum() - ((now - steps - best) ** 2).sum(1))  # eq. 6
    mean = p @ (w[:, None] * toy.gradients)
    right = 2 * rate * (now - best) @ mean - rate**2 * mean @ mean - rate**2 * toy.variance(p, w)
    assert progress == pytest.approx(right, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_2_no_other_probabilities_vary_less(seed: int) -> None:
    toy = Toy(seed)
    best = powers(toy.d[None], 2 * toy.alpha - 1)[0]
    lowest = toy.variance(best, toy.wanted / best)
    norms = np.linalg.norm(toy.gradients, axis=1)
    mean = toy.wanted @ toy.gradients
    assert lowest == pytest.approx((toy.wanted @ norms) ** 2 - mean @ mean, rel=1e-10)
    others = np.concatenate([toy.rng.dirichlet(np.ones(toy.k), 300), toy.rng.dirichlet(50 * best + 1e-3, 300) + 1e-9])
    others /= others.sum(1, keepdims=True)
    assert all(toy.variance(p, toy.wanted / p) >= lowest for p in others)
