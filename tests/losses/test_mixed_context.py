"""The mixed-context loss against figures, at its two ends and between."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.errors import RecipeError
from keypatch.losses import Described, Euclidean, Hardest, Measure, MixedContext, Raw, ScaleAware

Arrays = Mapping[str, Any]
GAMMAS = ("0", "0.5", "1")
NEAR, FAR = torch.rand(2, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Arrays:
    with np.load(reference / "modulation.npz") as file:
        return dict(file)


def slopes(term: MixedContext, d_p: Tensor, d_n: Tensor) -> tuple[Tensor, Tensor]:
    d_p, d_n = d_p.clone().requires_grad_(), d_n.clone().requires_grad_()
    first, second = torch.autograd.grad(term.of_distances(d_p, d_n).sum(), (d_p, d_n))
    return first, second


@pytest.mark.parametrize("gamma", GAMMAS)
def test_values_and_slopes_of_the_file(gamma: str, arrays: Arrays) -> None:
    term = MixedContext(gamma=float(gamma), theta_glo=1.15, delta=5.0)
    d_p, d_n = torch.tensor(arrays["sa_dp"]), torch.tensor(arrays["sa_dn"])
    np.testing.assert_allclose(term.of_distances(d_p, d_n), arrays[f"sa_mix_g{gamma}"], rtol=1e-9, atol=1e-12)
    for mine, key in zip(slopes(term, d_p, d_n), ("ddp", "ddn"), strict=True):
        np.testing.assert_allclose(mine, arrays[f"sa_mix_g{gamma}_{key}"], rtol=1e-9, atol=1e-12)


def batch_value(gamma: str, measure: Measure, arrays: Arrays) -> float:
    anchors, positives = (normalize(torch.tensor(arrays[key][0])) for key in ("A_raw", "P_raw"))
    batch = Described.of_pairs(anchors, positives, Hardest(blocks=("rows",)))
    return MixedContext(gamma=float(gamma), theta_glo=1.15, delta=5.0, measure=measure)(batch).mean().item()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_batch_of_the_file(gamma: str, arrays: Arrays) -> None:
    exact = batch_value(gamma, Euclidean(eps=1e-12), arrays)
    assert exact == pytest.approx(float(arrays[f"mixedcontext_own_g{gamma}"]), abs=1e-9)
    third_party = float(arrays[f"mixedcontext_thirdparty_g{gamma}"])
    assert exact == pytest.approx(third_party, abs=1e-6)
    # It adds 1e-6 to every component of a difference.
    assert batch_value(gamma, Raw(eps=1e-6), arrays) == pytest.approx(third_party, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.4])
@pytest.mark.parametrize("delta", [1.0, 5.0])
def test_gamma_1_is_the_log_loss(alpha: float, delta: float) -> None:
    mixed = MixedContext(gamma=1.0, delta=delta, alpha=alpha)
    log = ScaleAware("log", alpha=alpha, delta=delta)
    torch.testing.assert_close(mixed.of_distances(NEAR, FAR), log.of_distances(NEAR, FAR), rtol=1e-12, atol=1e-12)


def test_gamma_0_is_separable_and_gamma_1_is_not() -> None:
    for gamma, separable in ((0.0, True), (0.5, False), (1.0, False)):
        near = NEAR.clone().requires_grad_()
        far = FAR.clone().requires_grad_()
        value = MixedContext(gamma=gamma).of_distances(near, far).sum()
        (by_near,) = torch.autograd.grad(value, near, create_graph=True)
        (mixed,) = torch.autograd.grad(by_near.sum(), far, allow_unused=True)
        assert (mixed is None or not mixed.any()) == separable


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.7, 1.0])
def test_slopes_with_and_without_the_gradient_of_the_threshold(gamma: float) -> None:
    theta = gamma * (NEAR + FAR) / 2 + (1 - gamma) * 1.1
    u, v = (-10 * (theta - NEAR)).sigmoid(), (-10 * (FAR - theta)).sigmoid()
    by_near, by_far = slopes(MixedContext(gamma=gamma), NEAR, FAR)
    torch.testing.assert_close(by_near, (1 - gamma / 2) * u + gamma / 2 * v)
    torch.testing.assert_close(by_far, -(gamma / 2 * u + (1 - gamma / 2) * v))
    torch.testing.assert_close(by_near + by_far, (1 - gamma) * (u - v))
    detached = slopes(MixedContext(gamma=gamma, detach_theta=True), NEAR, FAR)
    torch.testing.assert_close(detached, (u, -v))
    assert torch.allclose(by_near, u) == (gamma in (0.0, 1.0))


def test_only_the_threshold_of_the_triplet_is_antisymmetric_and_blind_to_a_shift() -> None:
    for gamma, symmetric in ((0.0, False), (0.5, False), (1.0, True)):
        term = MixedContext(gamma=gamma)
        by_near, by_far = slopes(term, NEAR, FAR)
        assert torch.allclose(by_near, -by_far) == symmetric
        shifted = term.of_distances(NEAR + 0.5, FAR + 0.5)
        assert torch.allclose(shifted, term.of_distances(NEAR, FAR)) == symmetric


def test_nothing_overflows() -> None:
    near, far = NEAR.float().requires_grad_(), FAR.float().requires_grad_()
    value = MixedContext(delta=1e4).of_distances(near, far)
    gradients = torch.autograd.grad(value.sum(), (near, far))
    assert value.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients)


def test_wrong_fields_are_a_sentence() -> None:
    for fields in ({"gamma": 1.5}, {"gamma": -0.1}, {"delta": 0.0}):
        with pytest.raises(RecipeError, match="MixedContext"):
            MixedContext(**fields)  # type: ignore[arg-type]
