"""Measures against plain loops, at their ends, and as properties."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.losses import MEASURES, Angle, Euclidean, Hybrid, InnerProduct, Measure, Raw, Squared, SquaredAngle
from keypatch.losses.measures import distance_matrix, similarities

UNIT_MEASURES = [name for name in MEASURES if name != "Raw"]


def unit_rows(n: int, d: int = 16, seed: int = 0) -> Tensor:
    x = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return normalize(x)


def loop(measure: Measure, x: Tensor, y: Tensor) -> list[float]:
    """Each measure from the cosine, one pair at a time."""
    values = []
    for a, b in zip(x.numpy(), y.numpy(), strict=True):
        s = float(np.dot(a, b))
        formulas: dict[type, Any] = {
            Euclidean: lambda s=s: math.sqrt(2 - 2 * s + 1e-6),
            Squared: lambda s=s: 2 - 2 * s,
            Angle: lambda s=s: math.acos(s),
            SquaredAngle: lambda s=s: math.acos(s) ** 2,
            Hybrid: lambda s=s: 2.0 * (1 - s) + math.sqrt(2 - 2 * s + 1e-6),
            InnerProduct: lambda s=s: 1 - s,
            Raw: lambda a=a, b=b: float(np.linalg.norm(a - b + 1e-6)),
        }
        values.append(formulas[type(measure)]())
    return values


@pytest.mark.parametrize("name", MEASURES)
def test_values_equal_a_plain_loop(name: str) -> None:
    measure, x, y = MEASURES[name](), unit_rows(20, seed=1), unit_rows(20, seed=2)
    np.testing.assert_allclose(measure(x, y).numpy(), loop(measure, x, y), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["identical", "opposite"])
def test_gradients_are_finite_at_both_ends(name: str, sign: float, dtype: torch.dtype) -> None:
    x = unit_rows(8).to(dtype).requires_grad_()
    y = (sign * x.detach()).clone().requires_grad_()
    gradients = torch.autograd.grad(MEASURES[name]()(x, y).sum(), (x, y))
    # No measure is steeper than Hybrid, whose slope is alpha |x - y| + 1: here at most 5.
    assert all(bool(g.isfinite().all()) and float(g.norm(dim=1).max()) < 5.01 for g in gradients)


def test_plain_raw_distance_is_finite_for_identical_outputs() -> None:
    x = unit_rows(4).requires_grad_()
    (gradient,) = torch.autograd.grad(Raw(eps=0.0)(x, x.detach().clone()).sum(), x)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", UNIT_MEASURES)
def test_gradients_equal_differences(name: str) -> None:
    x, y = unit_rows(4, 5, seed=1).requires_grad_(), unit_rows(4, 5, seed=2).requires_grad_()
    assert torch.autograd.gradcheck(MEASURES[name](), (x, y))


@given(theta=st.floats(0.0, math.pi))
def test_angle_between_two_vectors_is_the_angle(theta: float) -> None:
    x = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    y = torch.tensor([[math.cos(theta), math.sin(theta)]], dtype=torch.float64)
    assert Angle()(x, y).item() == pytest.approx(theta, abs=2e-6)


@given(first=st.floats(0.01, 3.1), second=st.floats(0.01, 3.1))
def test_measures_of_unit_vectors_order_pairs_alike(first: float, second: float) -> None:
    near, far = sorted((first, second))
    if far - near < 1e-3:
        return
    x = torch.tensor([[1.0, 0.0]] * 2, dtype=torch.float64)
    y = torch.tensor([[math.cos(t), math.sin(t)] for t in (near, far)], dtype=torch.float64)
    for name in UNIT_MEASURES:
        values = MEASURES[name]()(x, y)
        assert values[0] < values[1], name


@pytest.mark.parametrize("name", UNIT_MEASURES)
def test_measures_of_unit_vectors_are_symmetric(name: str) -> None:
    x, y = unit_rows(9, seed=1), unit_rows(9, seed=2)
    torch.testing.assert_close(MEASURES[name]()(x, y), MEASURES[name]()(y, x))


def test_small_angles_survive_float32() -> None:
    theta = 1e-4  # acos of a float32 cosine gives 0 or 3.5e-4 here
    x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[math.cos(theta), math.sin(theta)]])
    assert Angle()(x, y).item() == pytest.approx(theta, rel=1e-3)


def test_distance_matrix_holds_the_row_wise_distances() -> None:
    x, y = unit_rows(6, seed=1), unit_rows(7, seed=2)
    expected = torch.stack([Euclidean()(x[i].expand_as(y), y) for i in range(6)])
    torch.testing.assert_close(distance_matrix(x, y), expected)


def test_similarities_stay_in_float32_under_autocast() -> None:
    x, y = unit_rows(6, seed=1).float(), unit_rows(7, seed=2).float()
    expected = x @ y.T
    with torch.autocast("cpu", torch.bfloat16):
        assert (x @ y.T).dtype == torch.bfloat16
        assert torch.equal(similarities(x, y), expected)
