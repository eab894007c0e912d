"""A step gives the gradients of the plain loop, in chunks and on any device; candidates leave no trace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from keypatch.losses import (
    AntiNoise,
    Described,
    GradientModulation,
    IntermediateSoftmax,
    InverseDistance,
    Lifted,
    Moment,
    NormDifference,
    SpreadOut,
    State,
    StatefulTerm,
    ThirdPatch,
    Triplet,
)
from keypatch.networks import PatchNetwork
from keypatch.sampling import Draw, RandomTriplets, SeveralPerPoint
from keypatch.training import Recipe
from keypatch.training.batches import Batch
from keypatch.training.step import Step

MOMENT = Moment(8, 10)  # behind every warm-up
KINDS = ("layer", "third patches", "several per point", "weighted", "stateful")


def recipe_of(kind: str, base: Recipe) -> Recipe:
    if kind == "layer":
        return replace(base, mining=None, loss=(IntermediateSoftmax(scaled=True, weight=0.5), SpreadOut()))
    if kind == "third patches":
        loss = (Triplet(), SpreadOut(pairs="third", weight=2.0))
        return replace(base, sampler=RandomTriplets(12), mining=ThirdPatch(swap=True), loss=loss)
    if kind == "several per point":
        return replace(base, sampler=SeveralPerPoint(12), mining=None, loss=(Lifted(), Lifted(descriptors="raw")))
    if kind == "weighted":
        return replace(base, weighting=InverseDistance())
    assert kind == "stateful"
    return replace(base, mining=AntiNoise(), loss=(GradientModulation(), SpreadOut()), weighting=InverseDistance())


def batch_of(recipe: Recipe, seed: int = 1) -> Batch:
    """12 rows, of 12 points or of 6, with as many views as the sampler would draw."""
    views = 3 if isinstance(recipe.sampler, RandomTriplets) else 2
    classes = np.arange(12) // 2 if isinstance(recipe.sampler, SeveralPerPoint) else np.arange(12)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((12 * views, 1, 32, 32), dtype=torch.float64, generator=generator)
    return Batch(x, Draw(np.arange(12 * views).reshape(views, 12).T, classes))


def network_of(recipe: Recipe) -> PatchNetwork:
    torch.manual_seed(0)
    return recipe.network.build().double().train()


def gradients_of(network: PatchNetwork) -> list[Tensor]:
    gradients = [p.grad.clone() for p in network.parameters() if p.grad is not None]
    network.zero_grad()
    return gradients


def plain(
    network: PatchNetwork, recipe: Recipe, batch: Batch, states: Mapping[str, State]
) -> tuple[float, dict[str, State]]:
    """The obvious loop: one graph, the terms added by hand; gradients are left in the network."""
    seen: list[Tensor] = []
    hook = network.layers.norm1.register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))
    views = batch.x.chunk(len(batch.x) // batch.pairs)
    raw = [network(view) for view in views] if recipe.branches == "apart" else network(batch.x).chunk(len(views))
    hook.remove()
    ids = torch.from_numpy(batch.draw.classes)
    described = Described.of_pairs(
        raw[0],
        raw[1],
        recipe.mining,
        point_id=ids,
        raw_negatives=raw[2] if len(raw) == 3 else None,
        moment=MOMENT,
        maps={"norm1": torch.cat(seen).flatten(1)},
    )
    weights = torch.ones(batch.pairs, dtype=torch.float64)
    if recipe.weighting is not None:
        angles = torch.nn.functional.cosine_similarity(raw[0], raw[1]).acos().detach()
        weights = 1 / angles / (1 / angles).mean()  # none is below InverseDistance's floor
        described = replace(described, weights=weights)
    total, after = torch.zeros((), dtype=torch.float64), {}
    for term in recipe.loss:
        if isinstance(term, StatefulTerm):
            name = type(term).__name__
            values, after[name] = term(described, states.get(name, {}))
        else:
            values = term(described)
        if values.ndim and not isinstance(term, NormDifference):  # which weights pass by
            values = values * weights
        total = total + term.weight * values.mean()
    total.backward()
    return total.item(), after


def assert_equal_steps(recipe: Recipe, chunk: int | None) -> None:
    """Two steps each, on the same weights; the second goes on with the states of the first."""
    recipe = replace(recipe, network=replace(recipe.network, dropout=0.0))  # type: ignore[call-arg]
    network, other = network_of(recipe), network_of(recipe)
    step = Step(network, recipe, network.trunk, torch.float32, chunk)
    states: Mapping[str, State] = {}
    other_states: Mapping[str, State] = {}
    for seed in (1, 2):
        batch = batch_of(recipe, seed)
        outcome, described = step(batch, states, MOMENT)
        loss, other_states = plain(other, recipe, batch, other_states)
        states = outcome.states
        assert outcome.loss == pytest.approx(loss, rel=1e-12)
        ours, wanted = gradients_of(network), gradients_of(other)
        assert len(ours) == len(wanted) > 5
        for a, b in zip(ours, wanted, strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-12)  # float64; gradients add up in another order
            assert b.abs().max() > 1e-6
        assert states.keys() == other_states.keys()
        for name, state in states.items():
            assert all(torch.allclose(state[entry], value, rtol=1e-12) for entry, value in other_states[name].items())
        assert not described.raw.requires_grad and not described.unit.requires_grad and not described.maps


@pytest.mark.parametrize("branches", ["together", "apart"])
@pytest.mark.parametrize(("name", "chunk"), [("hardnet", None), ("hynet", None), ("hynet", 5), ("hynet", 32)])
def test_the_step_has_the_gradients_of_the_plain_loop(
    name: str, chunk: int | None, branches: str, request: pytest.FixtureRequest
) -> None:
    assert_equal_steps(replace(request.getfixturevalue(name), branches=branches), chunk)


@pytest.mark.parametrize("branches", ["together", "apart"])
@pytest.mark.parametrize(
    ("kind", "name", "chunk"),
    [*((kind, "hardnet", None) for kind in KINDS), *((kind, "hynet", 5) for kind in KINDS if kind != "layer")],
)
def test_so_has_a_step_with_layers_third_patches_points_weights_or_states(
    kind: str, name: str, chunk: int | None, branches: str, request: pytest.FixtureRequest
) -> None:
    assert_equal_steps(replace(recipe_of(kind, request.getfixturevalue(name)), branches=branches), chunk)


class NoHiddenTensor(TorchDispatchMode):
    """Fails on a tensor that is not where its companions are: on a GPU it would be an error, or a slow copy."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor) and leaf.ndim > 0]
        kinds = {tensor.device.type for tensor in tensors}
        assert len(kinds) <= 1, f"{func} mixes tensors of {kinds}"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(None, "hardnet"), (None, "hynet"), *((kind, "hardnet") for kind in KINDS), ("stateful", "hynet")],
)
def test_a_step_runs_where_its_inputs_are(
    kind: str | None, name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On torch's meta device, which has shapes but no values, so the figures of the step cannot be read there."""
    recipe: Recipe = request.getfixturevalue(name)
    recipe = recipe if kind is None else recipe_of(kind, recipe)
    monkeypatch.setattr(Tensor, "tolist", lambda self: [0.0] * len(self))
    network: PatchNetwork = recipe.network.build().to("meta").train()
    batch = batch_of(recipe)
    batch = Batch(batch.x.float().to("meta"), batch.draw)
    step = Step(network, recipe, network.trunk, torch.float32, 16 if network.per_patch else None)
    with NoHiddenTensor():
        first, _ = step(batch, {}, MOMENT)
        second, _ = step(batch, first.states, MOMENT)
        assert step.candidates(batch.x).device.type == "meta"
    assert all(p.grad is not None and p.grad.device.type == "meta" for p in network.parameters())
    assert all(tensor.device.type == "meta" for state in second.states.values() for tensor in state.values())


def test_the_step_reports_what_it_saw(hynet: Recipe) -> None:
    torch.manual_seed(0)
    network = hynet.network.build().train()
    outcome, _ = Step(network, hynet, network.trunk, torch.float32, 32)(Batch.of_pairs(torch.rand(48, 1, 32, 32)), {})
    assert outcome.loss == pytest.approx(sum(outcome.terms.values()), rel=1e-5)
    assert set(outcome.terms) == {"HybridTriplet", "NormDifference"}
    assert 0 < outcome.negative < 2 and 0 < outcome.positive < 2


@pytest.mark.parametrize(("name", "chunk"), [("hardnet", None), ("hynet", 7)])
def test_candidates_are_described_as_in_use_and_leave_no_trace(
    name: str, chunk: int | None, request: pytest.FixtureRequest
) -> None:
    """Both networks have dropout and batch normalization, so in training mode the descriptors would be others."""
    recipe: Recipe = request.getfixturevalue(name)
    torch.manual_seed(0)
    network = recipe.network.build().train()
    with torch.no_grad():
        network(torch.randn(64, 1, 32, 32))  # running statistics that are not the initial ones
    step = Step(network, recipe, network.trunk, torch.float32, chunk)
    x = torch.randn(300, 1, 32, 32)  # more than a chunk
    before = {entry: tensor.clone() for entry, tensor in network.state_dict().items()}
    assert any("running_mean" in entry for entry in before)
    random = torch.get_rng_state()
    candidates = step.candidates(x)
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(before[entry], tensor) for entry, tensor in network.state_dict().items())
    assert all(module.training for module in network.modules())
    assert not candidates.requires_grad and all(p.grad is None for p in network.parameters())
    assert torch.allclose(candidates.norm(dim=1), torch.ones(300), rtol=0, atol=1e-6)
    with torch.no_grad():
        raw = network.eval()(x)
    wanted = raw / raw.norm(dim=1, keepdim=True)
    assert torch.allclose(candidates, wanted, rtol=0, atol=1e-5)  # float32, in chunks of other sizes
    assert step.candidates(x[:1]).shape == (1, 16) and not network.training  # in use, the mode stays too
