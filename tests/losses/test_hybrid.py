"""HyNet's Z and where it stands, and the two losses it was compared with (eq. 9)."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from keypatch.errors import RecipeError
from keypatch.losses import Described, Hardest, HybridTriplet, InnerProduct, Triplet, TwoMeasureTriplet, total_loss
from keypatch.losses.hybrid import largest_slope

ALL = Hardest(blocks=("anchors", "positives", "rows", "columns"))


@pytest.fixture(scope="module")
def batch(reference: Path) -> Described:
    with np.load(reference / "triplets.npz") as arrays:
        anchors, positives = (torch.tensor(arrays[f"in/base/raw_{side}"]) for side in "ap")
    return Described.of_pairs(anchors, positives, ALL)


@pytest.mark.parametrize(("alpha", "z"), [(0.0, 1.0), (1.0, 1.7602), (2.0, 2.7358), (3.0, 3.7268)])
def test_z_is_the_largest_slope(alpha: float, z: float) -> None:
    theta = np.linspace(0, math.pi, 200_001)
    slope = alpha * np.sin(theta) + np.cos(theta / 2)
    assert largest_slope(alpha) == pytest.approx(slope.max(), rel=1e-9)
    assert largest_slope(alpha) == pytest.approx(z, abs=5e-5)


def test_z_outside_is_a_matter_of_scale_and_inside_of_the_margin(batch: Described) -> None:
    z = largest_slope(2.0)
    none = HybridTriplet(margin=0.9)(batch)
    torch.testing.assert_close(HybridTriplet(margin=0.9, z="outside")(batch), none / z)
    torch.testing.assert_close(HybridTriplet(margin=0.9 / z, z="inside")(batch), none / z)
    # The published margin inside is 3.28 on the distances as they are.
    effective = replace(HybridTriplet(), margin=1.2 * z)
    assert effective.margin == pytest.approx(3.283, abs=1e-3)
    torch.testing.assert_close(HybridTriplet(z="inside")(batch), effective(batch) / z)


def test_l_a_equals_a_loop(batch: Described) -> None:
    d_n = batch.negative_distances()
    for i, value in enumerate(TwoMeasureTriplet(margin=0.8)(batch).tolist()):
        s = float(batch.anchors[i] @ batch.positives[i])
        assert value == pytest.approx(max(0.0, 0.8 + (1 - s) - float(d_n[i])), abs=1e-12)


def test_l_a_pulls_positives_together_and_pushes_negatives_apart() -> None:
    anchors = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], requires_grad=True)
    positives = torch.tensor([[1.0, 0.5, 0.0], [0.5, 0.0, 1.0]])
    batch = Described.of_pairs(anchors, positives)
    (gradient,) = torch.autograd.grad(TwoMeasureTriplet()(batch).sum(), anchors)
    after = Described.of_pairs(anchors.detach() - 0.01 * gradient, positives)
    assert (after.positive_distances() < batch.positive_distances()).all()
    assert (after.negative_distances() > batch.negative_distances()).all()


def test_l_b_is_two_triplet_terms(batch: Described) -> None:
    s_p, s_n = batch.positive_distances(InnerProduct()), batch.negative_distances(InnerProduct())
    d_p, d_n = batch.positive_distances(), batch.negative_distances()
    expected = 2.0 * (0.9 + s_p - s_n).relu().mean() + (1.2 + d_p - d_n).relu().mean()
    terms = (Triplet(margin=0.9, measure=InnerProduct(), weight=2.0), Triplet(margin=1.2))
    torch.testing.assert_close(total_loss(terms, batch).value, expected)


def test_an_unknown_place_of_z_is_a_sentence() -> None:
    with pytest.raises(RecipeError, match="inside"):
        HybridTriplet(z="above")  # type: ignore[arg-type]
