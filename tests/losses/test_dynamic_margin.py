"""The dynamic soft margin: the authors' own numbers (tests/reference/triplets.npz), its histogram and its state."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses import Described, DynamicMargin, Euclidean, Hardest, HardestBits, Moment, State, Triplet

Arrays = Mapping[str, Any]
TOLERANCES = [(torch.float64, 1e-12, 1e-12), (torch.float32, 2e-6, 1e-5)]  # of the histogram; of values and gradients


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Arrays:
    with np.load(reference / "triplets.npz") as file:
        return dict(file)


def step(
    term: DynamicMargin, anchors: Any, positives: Any, dtype: torch.dtype, state: State
) -> tuple[float, Tensor, Tensor, State]:
    """The loss, its gradients by the raw inputs, and the next state."""
    a, p = (torch.tensor(x, dtype=dtype, requires_grad=True) for x in (anchors, positives))
    if term.binary:
        batch = Described.of_pairs((2 * a).tanh(), (2 * p).tanh(), HardestBits())
    else:
        batch = Described.of_pairs(a, p, Hardest())
    values, state = term(batch, state)
    ga, gp = torch.autograd.grad(values.mean(), (a, p))
    return values.mean().item(), ga, gp, state


def assert_gradient(found: Tensor, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(("dtype", "of_histogram", "tolerance"), TOLERANCES)
def test_six_batches(arrays: Arrays, dtype: torch.dtype, of_histogram: float, tolerance: float) -> None:
    state: State = DynamicMargin().start()
    for k in range(6):
        batch = (arrays["in/cdf/raw_a"][k], arrays["in/cdf/raw_p"][k])
        value, ga, gp, state = step(DynamicMargin(), *batch, dtype, state)
        assert value == pytest.approx(arrays["cdf/loss"][k], rel=tolerance)
        np.testing.assert_allclose(state["histogram"].numpy(), arrays["cdf/histogram"][k], rtol=0, atol=of_histogram)
        assert state["histogram"].dtype == dtype
        if k in (0, 5):
            assert_gradient(ga, arrays[f"cdf/ga_{k}"], tolerance)
            assert_gradient(gp, arrays[f"cdf/gp_{k}"], tolerance)


@pytest.mark.parametrize(("dtype", "of_histogram", "tolerance"), TOLERANCES)
def test_binary_batches(arrays: Arrays, dtype: torch.dtype, of_histogram: float, tolerance: float) -> None:
    state: State = {}
    for k in range(3):
        batch = (arrays["in/cdf/raw_a"][k], arrays["in/cdf/raw_p"][k])
        value, ga, gp, state = step(DynamicMargin(binary=True), *batch, dtype, state)
        assert value == pytest.approx(arrays["cdf/binary_loss"][k], rel=tolerance)
    np.testing.assert_allclose(
        state["histogram"].numpy(), arrays["cdf/binary_histogram_final"], rtol=0, atol=of_histogram
    )
    assert_gradient(ga, arrays["cdf/binary_ga_2"], tolerance)
    assert_gradient(gp, arrays["cdf/binary_gp_2"], tolerance)


@pytest.mark.parametrize(("dtype", "of_histogram", "tolerance"), TOLERANCES)
def test_identical_pairs(arrays: Arrays, dtype: torch.dtype, of_histogram: float, tolerance: float) -> None:
    batch = (arrays["in/ident/raw_a"], arrays["in/ident/raw_p"])
    value, ga, gp, _ = step(DynamicMargin(), *batch, dtype, {})
    assert value == pytest.approx(arrays["ident/cdf_first/loss"], rel=tolerance)
    assert_gradient(ga, arrays["ident/cdf_first/ga"], tolerance)
    assert_gradient(gp, arrays["ident/cdf_first/gp"], tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_hardnet_with_that_codes_distance(arrays: Arrays, dtype: torch.dtype, tolerance: float) -> None:
    a, p = (torch.tensor(arrays[f"in/base/raw_{side}"], dtype=dtype, requires_grad=True) for side in "ap")
    value = Triplet(measure=Euclidean(eps=2e-6))(Described.of_pairs(a, p, Hardest())).mean()
    assert value.item() == pytest.approx(arrays["base/cdf_repo_hardnet_m1/loss"], rel=tolerance)
    for side, gradient in zip("ap", torch.autograd.grad(value, (a, p)), strict=True):
        assert_gradient(gradient, arrays[f"base/cdf_repo_hardnet_m1/g{side}"], tolerance)


def noisy(n: int = 32, seed: int = 0) -> Described:
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(n, 16, generator=generator, dtype=torch.float64)
    return Described.of_pairs(a, a + torch.randn(n, 16, generator=generator, dtype=torch.float64))


def test_the_histogram_equals_a_loop_and_weighs_by_the_share_of_easier_triplets() -> None:
    batch, bins = noisy(), 9  # half a unit wide
    values, state = DynamicMargin(bins=bins)(batch, {})
    x = (batch.positive_distances(Euclidean(2e-6)) - batch.negative_distances(Euclidean(2e-6))).tolist()
    counts = [0.0] * bins
    for gap in x:
        place = (gap + 2) / 0.5
        counts[int(place)] += 1 - place % 1
        counts[int(place) + 1] += place % 1
    shares = [count / (32 + 1e-6) for count in counts]
    assert state["histogram"].tolist() == pytest.approx(shares, rel=1e-12)
    weights = [sum(counts[: int((gap + 2) / 0.5) + 1]) / 32 for gap in x]
    assert values.tolist() == pytest.approx([w * gap for w, gap in zip(weights, x, strict=True)], rel=1e-9)


def test_the_ends_of_the_histogram_hold() -> None:
    """Equal positives and opposite negatives: x = -2, and by rounding a little less."""
    less = 0
    for seed in range(40):
        v = torch.randn(1, 32, generator=torch.Generator().manual_seed(seed))
        batch = Described.of_pairs(torch.cat([v, -v]), torch.cat([v, -v]))
        less += int((batch.negative_distances(Euclidean(eps=0.0)) > 2).any())
        values, state = DynamicMargin(eps=0.0)(batch, {})
        assert values.tolist() == pytest.approx([-2.0, -2.0], rel=1e-4)  # a little falls into the next bin
        assert state["histogram"][0].item() == pytest.approx(1.0, rel=1e-4)
    assert less > 0


def test_a_distance_that_is_not_finite_shows_in_the_value_and_not_in_the_histogram() -> None:
    raw = noisy().raw_anchors.clone()
    raw[3, 2] = torch.nan
    values, state = DynamicMargin()(Described.of_pairs(raw, noisy().raw_positives), {})
    assert values[3].isnan() and state["histogram"].isfinite().all()


def test_a_saved_histogram_continues_identically_and_is_not_wiped() -> None:
    term = DynamicMargin()
    _, state = term(noisy(seed=0), {})
    saved = {name: tensor.clone() for name, tensor in state.items()}
    values, after = term(noisy(seed=1), state)
    again, resumed = term(noisy(seed=1), saved)
    assert torch.equal(values, again) and torch.equal(after["histogram"], resumed["histogram"])
    fresh = term(noisy(seed=1), {})[1]["histogram"]
    expected = 0.99 * state["histogram"] + 0.01 * fresh
    torch.testing.assert_close(after["histogram"], expected)


@pytest.mark.parametrize(("steps", "rate"), [(100_000, 0.01), (20_000, 0.05), (500, 0.1)])
def test_a_short_training_forgets_faster(steps: int, rate: float) -> None:
    first, second = (replace(noisy(seed=seed), moment=Moment(seed, steps)) for seed in range(2))
    _, state = DynamicMargin()(first, {})
    expected = DynamicMargin(rate=rate)(second, state)[1]["histogram"]
    torch.testing.assert_close(DynamicMargin()(second, state)[1]["histogram"], expected)


def test_the_histogram_rests_without_gradients() -> None:
    term = DynamicMargin()
    with torch.no_grad():
        values, state = term(noisy(), {})
    assert state == {} and values.isfinite().all()
    _, state = term(noisy(seed=0), {})
    with torch.no_grad():
        values, after = term(noisy(seed=1), state)
    assert after is state
    assert not torch.equal(values, term(noisy(seed=1), {})[0])  # the old histogram was used


def test_bits_that_are_nearly_all_equal_are_no_negative() -> None:
    raw = torch.ones(4, 8)
    raw[1, :1] = raw[2, :2] = raw[3, :5] = -1
    batch = Described.of_pairs(raw, raw, HardestBits())
    assert batch.negatives is not None
    assert (batch.negatives.second % 4).tolist() == [2, 3, 0, 2]  # 0 and 1, 1 and 2 differ in one bit
    with pytest.raises(KeypatchError, match="no valid negative"):
        Described.of_pairs(raw, raw, HardestBits(duplicate_bits=9))


def test_too_few_bins_are_a_sentence() -> None:
    with pytest.raises(RecipeError, match="bins=1"):
        DynamicMargin(bins=1)
