"""The scale-aware losses against figures computed from the formulas, their limits and their symmetries."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import Described, Hardest, Raw, ScaleAware

Arrays = Mapping[str, Any]
CASES = {
    "sub_a1": ScaleAware("hinge", "sub", alpha=1.0),
    "sub2_a1": ScaleAware("hinge", "sub2", alpha=1.0),
    "div_e1e-2": ScaleAware("hinge", "div", alpha=1.0, eps=1e-2),
    "log": ScaleAware(),
    "sse": ScaleAware("sse"),
    **{
        f"g{loss}_d{delta}_a{alpha}": ScaleAware(loss, alpha=float(alpha), delta=float(delta))
        for loss in ("log", "sse")
        for delta in ("1", "5", "20")
        for alpha in ("0", "0.5")
    },
}
GRID = torch.linspace(-2, 2, 41, dtype=torch.float64)


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Arrays:
    with np.load(reference / "modulation.npz") as file:
        return dict(file)


def slopes(term: ScaleAware, d_p: Tensor, d_n: Tensor) -> tuple[Tensor, Tensor]:
    d_p, d_n = d_p.clone().requires_grad_(), d_n.clone().requires_grad_()
    first, second = torch.autograd.grad(term.of_distances(d_p, d_n).sum(), (d_p, d_n))
    return first, second


def slope(term: ScaleAware, rho: Tensor) -> Tensor:
    rho = rho.clone().requires_grad_()
    return torch.autograd.grad(term.of_performance(rho).sum(), rho)[0]


def test_every_entry_of_the_file_is_checked(arrays: Arrays) -> None:
    entries = {key[3:-4] for key in arrays if key.startswith("sa_") and key.endswith("_ddp")}
    assert {entry for entry in entries if not entry.startswith("mix_")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes_of_the_file(name: str, arrays: Arrays) -> None:
    d_p, d_n = torch.tensor(arrays["sa_dp"]), torch.tensor(arrays["sa_dn"])
    np.testing.assert_allclose(CASES[name].of_distances(d_p, d_n), arrays[f"sa_{name}"], rtol=1e-9, atol=1e-12)
    for mine, key in zip(slopes(CASES[name], d_p, d_n), ("ddp", "ddn"), strict=True):
        np.testing.assert_allclose(mine, arrays[f"sa_{name}_{key}"], rtol=1e-9, atol=1e-12)


def test_the_derivative_of_sse_is_not_the_printed_one(arrays: Arrays) -> None:
    rho = torch.tensor(arrays["sa_rho"])
    derivative = slope(ScaleAware("sse", alpha=0.5, delta=5.0), rho)
    np.testing.assert_allclose(derivative, arrays["sa_gsse_drho_d5_a05"], rtol=1e-9, atol=1e-12)
    s = (-5 * (rho - 0.5)).sigmoid()
    torch.testing.assert_close(derivative, -2 * s.square() * (1 - s))
    printed = -2 * s.square() / (5 * (rho - 0.5)).exp().square()  # equation 77
    assert float(printed.min()) < -1e10 and float(derivative.min()) >= -8 / 27


def test_sse_pulls_most_just_below_the_margin() -> None:
    rho = torch.linspace(-1, 1, 20001, dtype=torch.float64)
    derivative = slope(ScaleAware("sse", alpha=0.5, delta=5.0), rho)
    assert float(derivative.min()) == pytest.approx(-8 / 27, abs=1e-7)
    assert float(rho[derivative.argmin()]) == pytest.approx(0.5 - math.log(2) / 5, abs=1e-4)


@pytest.mark.parametrize("delta", [1.0, 5.0, 20.0])
def test_the_derivative_of_log_is_equation_76(delta: float) -> None:
    expected = -1 / ((delta * (GRID - 0.3)).exp() + 1)
    torch.testing.assert_close(slope(ScaleAware("log", alpha=0.3, delta=delta), GRID), expected)


def test_log_becomes_the_hinge_at_a_large_scale() -> None:
    hinge = ScaleAware("hinge", alpha=0.5).of_performance(GRID)
    for delta in (10.0, 100.0, 1e4):
        difference = ScaleAware("log", alpha=0.5, delta=delta).of_performance(GRID) - hinge
        assert float(difference.max()) == pytest.approx(math.log(2) / delta, rel=1e-9)  # at the kink
        assert float(difference.min()) > -1e-15


def test_log_becomes_half_of_minus_rho_at_a_small_scale() -> None:
    term = ScaleAware("log", alpha=0.5, delta=1e-4)
    torch.testing.assert_close(term.of_performance(GRID) - math.log(2) / 1e-4, -(GRID - 0.5) / 2, atol=1e-4, rtol=0)
    torch.testing.assert_close(slope(term, GRID), torch.full_like(GRID, -0.5), atol=1e-4, rtol=0)


def test_sse_lets_hard_triplets_go_at_a_large_scale() -> None:
    derivative = slope(ScaleAware("sse", alpha=0.5, delta=100.0), torch.tensor([-1.0, 0.49, 2.0], dtype=torch.float64))
    assert derivative[0].abs() < 1e-12 and derivative[1] < -0.1 and derivative[2].abs() < 1e-12


def test_the_plain_log_loss_hardly_tells_triplets_apart() -> None:
    derivative = slope(ScaleAware(), torch.tensor([-2.0, 2.0], dtype=torch.float64))  # all that unit descriptors reach
    assert derivative.tolist() == pytest.approx([-0.8808, -0.1192], abs=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "log", "sse"])
def test_nothing_overflows(loss: Any) -> None:
    term = ScaleAware(loss, delta=1e4)
    for dtype in (torch.float32, torch.float64):
        rho = GRID.to(dtype)
        assert term.of_performance(rho).isfinite().all() and slope(term, rho).isfinite().all()


@given(d_p=st.floats(0.05, 2), d_n=st.floats(0.05, 2), loss=st.sampled_from(["hinge", "log", "sse"]))
def test_losses_of_the_difference_are_antisymmetric_and_blind_to_a_shift(d_p: float, d_n: float, loss: Any) -> None:
    near, far = (torch.tensor([d], dtype=torch.float64) for d in (d_p, d_n))
    term = ScaleAware(loss, alpha=0.5, delta=5.0)
    by_near, by_far = slopes(term, near, far)
    torch.testing.assert_close(by_near, -by_far)
    torch.testing.assert_close(term.of_distances(near + 3, far + 3), term.of_distances(near, far))


@pytest.mark.parametrize("rho", ["sub2", "div"])
def test_other_losses_are_not_antisymmetric(rho: Any) -> None:
    by_near, by_far = slopes(ScaleAware("hinge", rho, alpha=2.0), *torch.tensor([[0.8], [1.1]], dtype=torch.float64))
    assert float((by_near + by_far).abs()) > 0.1
    expected = {"sub2": (2 * 0.8, -2 * 1.1), "div": (1.1 / 0.81**2, -1 / 0.81)}[rho]
    assert (float(by_near), float(by_far)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rho", ["sub", "sub2", "div"])
def test_the_term_is_its_function_of_the_two_distances(rho: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(12, 8, generator=generator)
    batch = Described.of_pairs(anchors, anchors + torch.randn(12, 8, generator=generator), Hardest(blocks=("rows",)))
    term = ScaleAware("log", rho)
    expected = term.of_distances(batch.positive_distances(), batch.negative_distances())
    torch.testing.assert_close(term(batch), expected)
    raw = ScaleAware("log", rho, measure=Raw())
    torch.testing.assert_close(
        raw(batch), raw.of_distances(batch.positive_distances(Raw()), batch.negative_distances(Raw()))
    )
    assert not torch.allclose(raw(batch), expected)


def test_wrong_fields_are_a_sentence() -> None:
    for fields in ({"loss": "sub"}, {"rho": "ratio"}, {"delta": 0.0}, {"eps": 0.0}):
        with pytest.raises(RecipeError, match="ScaleAware"):
            ScaleAware(**fields)
