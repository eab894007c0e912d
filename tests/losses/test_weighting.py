"""AdaSample's losses and weights: the oracle's values, and what weights must not do."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import (
    Angle,
    Described,
    Euclidean,
    Hardest,
    InverseDistance,
    Measure,
    NormDifference,
    Squared,
    SquaredAngle,
    Triplet,
    total_loss,
)

CLAMPED = math.acos(1 - 1e-7)  # the oracle clamps cosines for angles
MEASURES: dict[str, tuple[Measure, Measure]] = {  # d and d^2
    "ang": (Angle(), SquaredAngle(floor=CLAMPED)),
    "euc": (Euclidean(eps=0.0), Squared()),
}
BLOCKS = {
    "ap": ("rows", "columns"),
    "aa_pp": ("anchors", "positives"),
    "all": ("anchors", "positives", "rows", "columns"),
}


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Mapping[str, Any]:
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in file if key.startswith(("ada_", "A_raw", "P_raw"))}


def described(arrays: Mapping[str, Any], blocks: tuple[str, ...], weights: Tensor | None = None) -> Described:
    anchors, positives = (torch.tensor(arrays[f"{side}_raw"][0]).requires_grad_() for side in "AP")
    return Described.of_pairs(anchors, positives, Hardest(blocks, duplicate_threshold=0.0), weights=weights)


@pytest.mark.parametrize("negatives", BLOCKS)
@pytest.mark.parametrize("distance", MEASURES)
def test_oracle(distance: str, negatives: str, arrays: Mapping[str, Any]) -> None:
    measure, squared = MEASURES[distance]
    batch, key = described(arrays, BLOCKS[negatives]), f"ada_{distance}"
    positive = batch.positive_distances(squared).detach().sqrt()
    np.testing.assert_allclose(positive, arrays[f"{key}_dpos"], rtol=0, atol=1e-9)
    negative = batch.negative_distances(squared).detach().sqrt()
    np.testing.assert_allclose(negative, arrays[f"{key}_{negatives}_dneg"], rtol=0, atol=1e-9)
    weights = InverseDistance(floor=0.01, measure=measure)(batch)
    terms = (Triplet(margin=1.0, measure=squared),)
    values = [total_loss(terms, described(arrays, BLOCKS[negatives], w)).value.item() for w in (None, weights)]
    np.testing.assert_allclose(values, arrays[f"{key}_{negatives}_loss"], rtol=0, atol=1e-9)


def on_circle(angles: list[float]) -> Described:
    """Pairs that many radians apart."""
    theta = torch.tensor(angles, dtype=torch.float64)
    anchors = torch.stack([torch.ones_like(theta), torch.zeros_like(theta)], 1).requires_grad_()
    return Described.of_pairs(anchors, torch.stack([theta.cos(), theta.sin()], 1), None)


def test_the_worked_example(arrays: Mapping[str, Any]) -> None:
    batch = on_circle(arrays["ada_d"].tolist())
    np.testing.assert_allclose(InverseDistance(normalization="none")(batch), arrays["ada_w_raw"], rtol=1e-9)
    np.testing.assert_allclose(InverseDistance()(batch), arrays["ada_w_mean1"], rtol=1e-9)
    np.testing.assert_allclose(InverseDistance()(batch), [2.3726, 1.0545, 0.6779, 0.4995, 0.3954], atol=5e-5)


def test_the_floor_bounds_the_weight_of_identical_patches() -> None:
    batch = on_circle([0.0, 1e-5, 0.05, 0.1, 0.8])
    assert InverseDistance(normalization="none")(batch).tolist() == pytest.approx([10, 10, 10, 10, 1.25])
    assert InverseDistance(floor=0.5, normalization="none")(batch).max() == 2


def test_weights_are_constants_with_mean_one(arrays: Mapping[str, Any]) -> None:
    weights = InverseDistance()(described(arrays, BLOCKS["ap"]))
    assert not weights.requires_grad and weights.mean().item() == pytest.approx(1)
    batch = described(arrays, BLOCKS["ap"], weights)
    term = Triplet(measure=SquaredAngle())
    through_total = torch.autograd.grad(total_loss((term,), batch).value, batch.raw, retain_graph=True)[0]
    by_hand = torch.stack([w * value for w, value in zip(weights.tolist(), term(batch), strict=True)]).mean()
    torch.testing.assert_close(through_total, torch.autograd.grad(by_hand, batch.raw)[0])


def test_weights_pass_by_what_is_not_about_a_pair(arrays: Mapping[str, Any]) -> None:
    weights = InverseDistance()(described(arrays, BLOCKS["ap"]))
    plain, weighted = (
        total_loss((Triplet(), NormDifference()), described(arrays, BLOCKS["ap"], w)).parts for w in (None, weights)
    )
    assert plain["NormDifference"] == weighted["NormDifference"] and plain["Triplet"] != weighted["Triplet"]


def test_margin_1_on_plain_angles_is_another_loss(arrays: Mapping[str, Any]) -> None:
    batch = described(arrays, BLOCKS["ap"])
    plain = Triplet(measure=Angle())(batch).mean().item()
    assert abs(plain - arrays["ada_ang_ap_loss"][0]) > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("floor", [0.0, CLAMPED])
def test_the_squared_angle_has_finite_gradients_and_the_norm_of_the_paper(dtype: torch.dtype, floor: float) -> None:
    """Eq. 22: the gradient of theta^2 along the sphere has the norm 2 theta, here of descriptors of length 3."""
    theta = torch.tensor([0.0, 1e-3, 0.2, 0.8, 1.5, 3.0], dtype=dtype)
    anchors = torch.stack([torch.ones_like(theta), torch.zeros_like(theta)], 1)
    positives = (3 * torch.stack([theta.cos(), theta.sin()], 1)).requires_grad_()
    batch = Described.of_pairs(anchors, positives, None)
    values = batch.positive_distances(SquaredAngle(floor=floor))
    torch.testing.assert_close(values, theta.square(), rtol=1e-5, atol=2 * CLAMPED**2)
    (gradient,) = torch.autograd.grad(values.sum(), positives)
    torch.testing.assert_close(gradient.norm(dim=1), 2 * theta / 3, rtol=1e-4, atol=1e-5)


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"floor": 0.0}, {"normalization": "max"}):
        with pytest.raises(RecipeError, match="floor must be positive"):
            InverseDistance(**wrong)  # type: ignore[arg-type]
