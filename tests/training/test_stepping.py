"""A step gives the gradients of the plain loop, in chunks and on any device."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from keypatch.losses import Described
from keypatch.networks import PatchNetwork
from keypatch.training import Recipe
from keypatch.training.feeding import Batch
from keypatch.training.stepping import Step


def gradients(recipe: Recipe, chunk: int | None, x: Tensor) -> list[Tensor]:
    torch.manual_seed(0)
    network = recipe.network.build().double().train()
    Step(network, recipe, network.trunk, torch.float32, chunk)(Batch.of_pairs(x), {})
    return [p.grad.clone() for p in network.parameters() if p.grad is not None]


def plain(recipe: Recipe, x: Tensor) -> list[Tensor]:
    """The obvious loop: one graph, the terms added by hand."""
    torch.manual_seed(0)
    network = recipe.network.build().double().train()
    n = len(x) // 2
    raw = torch.cat([network(x[:n]), network(x[n:])]) if recipe.branches == "apart" else network(x)
    batch = Described.of_pairs(raw[:n], raw[n:], recipe.mining)
    sum(term.weight * term(batch).mean() for term in recipe.loss).backward()
    return [p.grad.clone() for p in network.parameters() if p.grad is not None]


@pytest.mark.parametrize("branches", ["together", "apart"])
@pytest.mark.parametrize(("name", "chunk"), [("hardnet", None), ("hynet", None), ("hynet", 5), ("hynet", 32)])
def test_the_step_has_the_gradients_of_the_plain_loop(
    name: str, chunk: int | None, branches: str, request: pytest.FixtureRequest
) -> None:
    recipe: Recipe = request.getfixturevalue(name)
    recipe = replace(recipe, branches=branches, network=replace(recipe.network, dropout=0.0))
    x = torch.randn((24, 1, 32, 32), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ours, wanted = gradients(recipe, chunk, x), plain(recipe, x)
    assert len(ours) == len(wanted) > 5
    for a, b in zip(ours, wanted, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)  # float64; gradients add up in another order


class NoHiddenTensor(TorchDispatchMode):
    """Fails on a tensor that is not where its companions are: on a GPU it would be an error, or a slow copy."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor) and leaf.ndim > 0]
        kinds = {tensor.device.type for tensor in tensors}
        assert len(kinds) <= 1, f"{func} mixes tensors of {kinds}"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["hardnet", "hynet"])
def test_a_step_runs_where_its_inputs_are(name: str, request: pytest.FixtureRequest, monkeypatch: Any) -> None:
    """On torch's meta device, which has shapes but no values, so the figures of the step cannot be read there."""
    recipe: Recipe = request.getfixturevalue(name)
    monkeypatch.setattr(Tensor, "tolist", lambda self: [0.0] * len(self))
    network: PatchNetwork = recipe.network.build().to("meta").train()
    x = torch.empty((48, 1, 32, 32), device="meta")
    with NoHiddenTensor():
        Step(network, recipe, network.trunk, torch.float32, 16 if network.per_patch else None)(Batch.of_pairs(x), {})
    assert all(p.grad is not None and p.grad.device.type == "meta" for p in network.parameters())


def test_the_step_reports_what_it_saw(hynet: Recipe) -> None:
    torch.manual_seed(0)
    network = hynet.network.build().train()
    outcome, _ = Step(network, hynet, network.trunk, torch.float32, 32)(Batch.of_pairs(torch.rand(48, 1, 32, 32)), {})
    assert outcome.loss == pytest.approx(sum(outcome.terms.values()), rel=1e-5)
    assert set(outcome.terms) == {"HybridTriplet", "NormDifference"}
    assert 0 < outcome.negative < 2 and 0 < outcome.positive < 2
