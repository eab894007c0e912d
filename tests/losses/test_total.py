"""Weights, reduction, names of the parts, and states handed on."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import Described, HybridTriplet, NormDifference, State, Triplet, total_loss


def batch_of(n: int = 12, weights: Tensor | None = None) -> Described:
    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(n, 8, generator=generator)
    return Described.of_pairs(anchors, anchors + torch.randn(n, 8, generator=generator), weights=weights)


@dataclass(frozen=True)
class Counting:
    """A stateful term: its value is the number of batches it has seen."""

    weight: float = 1.0

    def start(self) -> State:
        return {"seen": torch.zeros(())}

    def __call__(self, batch: Described, state: State) -> tuple[Tensor, State]:
        seen = state["seen"] + 1
        return seen.expand(batch.n), {"seen": seen}


@dataclass(frozen=True)
class Statistic:
    """A batch statistic: one value for the whole batch."""

    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        return batch.anchors.mean(0).square().sum()


def test_the_value_is_the_weighted_sum_of_the_terms() -> None:
    batch = batch_of()
    total = total_loss((HybridTriplet(weight=2.0), NormDifference(weight=0.1)), batch)
    expected = 2.0 * HybridTriplet()(batch).mean() + 0.1 * NormDifference()(batch).mean()
    torch.testing.assert_close(total.value, expected)
    assert set(total.parts) == {"HybridTriplet", "NormDifference"}
    torch.testing.assert_close(sum(total.parts.values()), total.value)


def test_weights_multiply_pairs_before_the_reduction() -> None:
    weights = torch.linspace(0, 2, 12)
    batch = batch_of(weights=weights)
    torch.testing.assert_close(total_loss((Triplet(),), batch).value, (weights * Triplet()(batch)).mean())
    torch.testing.assert_close(total_loss((Triplet(),), batch, "sum").value, (weights * Triplet()(batch)).sum())


def test_a_statistic_is_not_weighted_and_keeps_its_share_in_a_sum() -> None:
    batch = batch_of(weights=torch.full((12,), 3.0))
    value = Statistic()(batch)
    torch.testing.assert_close(total_loss((Statistic(),), batch).value, value)
    torch.testing.assert_close(total_loss((Statistic(),), batch, "sum").value, 12 * value)


def test_states_are_handed_on_and_start_when_absent() -> None:
    batch = batch_of()
    first = total_loss((Triplet(), Counting()), batch)
    second = total_loss((Triplet(), Counting()), batch, states=first.states)
    assert list(first.states) == ["Counting"]
    assert second.parts["Counting"].item() == 2
    assert total_loss((Counting(),), batch, states=second.states).states["Counting"]["seen"].item() == 3


def test_two_terms_of_a_type_have_their_own_parts_and_states() -> None:
    total = total_loss((Triplet(), Counting(), Triplet(margin=2.0), Counting()), batch_of())
    assert list(total.parts) == ["Triplet", "Counting", "Triplet-2", "Counting-2"]
    assert list(total.states) == ["Counting", "Counting-2"]


def test_no_terms_is_a_sentence() -> None:
    with pytest.raises(RecipeError, match="no terms"):
        total_loss((), batch_of())
