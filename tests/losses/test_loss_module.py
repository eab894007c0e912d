"""The losses in a training loop of one's own: the same numbers, and states that live as buffers."""

import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from keypatch.losses import (
    AntiNoise,
    Described,
    DynamicMargin,
    GradientModulation,
    Hardest,
    HybridTriplet,
    LossModule,
    Moment,
    NormDifference,
    ThirdPatch,
    Triplet,
    total_loss,
)


def pairs(seed: int = 0, n: int = 32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(n, 16, generator=generator)
    return a, a + torch.randn(n, 16, generator=generator)


def modulated() -> LossModule:
    return LossModule(GradientModulation(rate=0.5), DynamicMargin(), NormDifference(), mining=AntiNoise())


def test_the_value_is_that_of_the_terms() -> None:
    terms = (HybridTriplet(), NormDifference(weight=0.1))
    mining = Hardest(blocks=("anchors", "positives", "rows", "columns"))
    point_id, weights = torch.arange(32) // 2, torch.linspace(0, 2, 32)
    batch = Described.of_pairs(*pairs(), mining, point_id=point_id, weights=weights)
    module = LossModule(*terms, mining=mining, reduction="sum")
    assert module(*pairs(), point_id, weights=weights) == total_loss(terms, batch, "sum").value
    assert list(module.state_dict()) == []


def test_third_patches_and_the_moment_reach_the_batch() -> None:
    third = pairs(seed=5)[0]
    batch = Described.of_pairs(*pairs(), ThirdPatch(), raw_negatives=third)
    module = LossModule(Triplet(), mining=ThirdPatch())
    assert module(*pairs(), raw_negatives=third) == Triplet()(batch).mean()
    module = LossModule(GradientModulation(), mining=AntiNoise())
    module(*pairs(), moment=Moment(0, 100))
    assert module.state_dict()["GradientModulation/power_positive"] == 32  # warming up: weights of one


def test_statistics_move_as_in_a_training() -> None:
    module, states = modulated(), {}
    for seed in range(4):
        batch = Described.of_pairs(*pairs(seed), AntiNoise())
        total = total_loss(tuple(module.terms.values()), batch, states=states)
        states = total.states
        assert module(*pairs(seed)) == total.value
    for term, state in states.items():
        assert all(torch.equal(module.state_dict()[f"{term}/{entry}"], tensor) for entry, tensor in state.items())


@pytest.mark.parametrize("inside", [False, True])
def test_a_saved_module_continues_identically(inside: bool) -> None:
    def made() -> tuple[LossModule, nn.Module]:
        loss = modulated()
        return loss, nn.ModuleDict({"loss": loss, "network": nn.Linear(2, 2)}) if inside else loss

    loss, outer = made()
    for seed in range(3):
        loss(*pairs(seed))
    file = io.BytesIO()
    torch.save(outer.state_dict(), file)
    file.seek(0)
    restored, outer_restored = made()
    outer_restored.load_state_dict(torch.load(file, weights_only=True))
    for seed in range(3, 6):
        assert restored(*pairs(seed)) == loss(*pairs(seed))
    assert all(torch.equal(restored.state_dict()[name], tensor) for name, tensor in loss.state_dict().items())


def test_a_state_from_before_the_first_batch_is_restored_too() -> None:
    loss, fresh = modulated(), modulated().state_dict()
    first = loss(*pairs())
    loss(*pairs(1))
    loss.load_state_dict(fresh)
    assert loss(*pairs()) == first


def test_entries_of_other_losses_are_refused() -> None:
    other = LossModule(DynamicMargin())
    other(*pairs())
    with pytest.raises(RuntimeError, match="Unexpected key"):
        LossModule(GradientModulation()).load_state_dict(other.state_dict())


@pytest.mark.parametrize("rest", [lambda module: module.eval(), lambda module: torch.no_grad()])
def test_statistics_rest_in_evaluation_and_without_gradients(rest: Any) -> None:
    loss = modulated()
    loss(*pairs(0))
    before = {name: tensor.clone() for name, tensor in loss.state_dict().items()}
    context = rest(loss)
    if isinstance(context, nn.Module):
        value = loss(*pairs(1))
    else:
        with context:
            value = loss(*pairs(1))
    assert value.isfinite()
    assert all(torch.equal(loss.state_dict()[name], tensor) for name, tensor in before.items())
    loss.train()
    loss(*pairs(1))
    assert not torch.equal(loss.state_dict()["DynamicMargin/histogram"], before["DynamicMargin/histogram"])


def test_it_trains_a_network_and_follows_its_precision() -> None:
    torch.manual_seed(0)
    network, loss = nn.Linear(16, 8), modulated()
    for dtype in (torch.float32, torch.float64):
        network.to(dtype)
        value = loss(*(network(x.to(dtype)) for x in pairs()))
        value.backward()
        assert network.weight.grad is not None and network.weight.grad.abs().max() > 0
        assert loss.state_dict()["DynamicMargin/histogram"].dtype == dtype
        network.zero_grad()


def test_it_says_what_it_is() -> None:
    text = repr(LossModule(Triplet(margin=0.7)))
    assert "margin=0.7" in text and "mining=Hardest" in text and "reduction=mean" in text
