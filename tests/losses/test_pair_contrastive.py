"""GOR's contrastive loss, and the random triplets it is compared with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keypatch.errors import KeypatchError
from keypatch.losses import Contrastive, Described, Euclidean, Hardest, PairContrastive, ThirdPatch, Triplet

PLAIN = Euclidean(eps=0.0)


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, Any]:
    keys = ("A_raw", "P_raw", "triplet_plain", "triplet_swap", "contrastive_pos_only")
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in keys}


def described(arrays: dict[str, Any], swap: bool) -> Described:
    """Batch 2 with the positive of the pair before as third patch."""
    anchors, positives = (torch.tensor(arrays[key][2]) for key in ("A_raw", "P_raw"))
    return Described.of_pairs(anchors, positives, ThirdPatch(swap), raw_negatives=positives.roll(1, 0))


@pytest.mark.parametrize(("key", "swap"), [("triplet_plain", False), ("triplet_swap", True)])
def test_random_triplets(arrays: dict[str, Any], key: str, swap: bool) -> None:
    values = Triplet(margin=0.5, measure=PLAIN)(described(arrays, swap))
    assert values.mean().item() == pytest.approx(float(arrays[key]), rel=1e-9)


def test_the_matching_part_alone(arrays: dict[str, Any]) -> None:
    values = PairContrastive(measure=PLAIN)(described(arrays, swap=False))
    assert values.mean().item() == pytest.approx(float(arrays["contrastive_pos_only"]), rel=1e-9)


@pytest.mark.parametrize("margin", [0.5, 1.0, 2.0])
def test_the_swap_never_lowers_the_loss(arrays: dict[str, Any], margin: float) -> None:
    plain, swapped = (Triplet(margin)(described(arrays, swap)) for swap in (False, True))
    assert (swapped >= plain).all() and (swapped > plain).any()


def test_both_parts_are_equation_1(arrays: dict[str, Any]) -> None:
    batch = described(arrays, swap=False)
    values = PairContrastive(eps_positive=0.3, eps_negative=1.4)(batch).tolist()
    third = batch.unit[2 * batch.n :]
    for a, p, n, value in zip(batch.anchors, batch.positives, third, values, strict=True):
        near, far = ((a - x).norm().item() for x in (p, n))
        assert value == pytest.approx(max(0.0, near - 0.3) + max(0.0, 1.4 - far), abs=1e-5)  # 1e-6 inside the root


def test_hardnets_form_is_the_one_without_a_margin_for_matching_pairs(arrays: dict[str, Any]) -> None:
    anchors, positives = (torch.tensor(arrays[key][0]) for key in ("A_raw", "P_raw"))
    batch = Described.of_pairs(anchors, positives, Hardest())
    torch.testing.assert_close(PairContrastive(0.0, 1.0)(batch), Contrastive(margin=1.0)(batch))


def test_only_the_non_matching_part_needs_negatives() -> None:
    batch = Described.of_pairs(torch.eye(3), -torch.eye(3), None)
    assert PairContrastive()(batch).tolist() == pytest.approx([2 - 0.7] * 3)
    with pytest.raises(KeypatchError, match="none was mined"):
        PairContrastive(eps_negative=1.4)(batch)


def test_matching_pairs_within_the_margin_are_left_alone() -> None:
    x = torch.eye(3, requires_grad=True)
    values = PairContrastive()(Described.of_pairs(x, x + 0.1, None))
    assert values.tolist() == [0.0] * 3
    assert torch.autograd.grad(values.sum(), x)[0].abs().max() == 0
