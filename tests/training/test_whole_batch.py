"""Normalization and dropout of a batch that is cut: into parts described one after the other, into ranks."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from keypatch.errors import RecipeError
from keypatch.losses import IntermediateSoftmax, Moment, SpreadOut
from keypatch.networks import CentralSurround, EmbeddingNet, HardNet8, HyNet, L2Net, NetworkSpec, SpreadOutNet, TFeat
from keypatch.training import Recipe
from keypatch.training.batches import Batch
from keypatch.training.ranks import ALONE, Ranks
from keypatch.training.step import Step
from keypatch.training.whole_batch import RowDropout, WholeBatchNorm, see_whole_batch

NETWORKS: dict[str, NetworkSpec] = {
    "l2net": L2Net(16, 4, dropout=0.3),
    "hynet": HyNet(16, 4, dropout=0.3),
    "hynet batch": HyNet(16, 4, dropout=0.3, normalization="batch"),
    "hardnet8": HardNet8(16, 16, 4),
    "two towers": CentralSurround(16, 4),
    "spread out": SpreadOutNet(16, 4),
    "embedding": EmbeddingNet(16, 4, blocks=2, dropout=0.2),
    "tfeat": TFeat(16, 4),
}


def gradients(
    recipe: Recipe, cached: int | None, plain: bool = False
) -> tuple[list[float], list[Tensor], list[Tensor]]:
    """Losses of two steps, gradients of the second, and the buffers after it, in float64."""
    torch.manual_seed(0)
    network = recipe.network.build().double().train()
    if not plain:
        see_whole_batch(network, network.layers, ALONE, in_parts=cached is not None)
    step = Step(network, recipe, network.trunk, torch.float32, None, cached=cached)
    size, losses = recipe.network.preprocessing.size, []
    for number in (0, 1):
        network.zero_grad()
        x = torch.randn((24, 1, size, size), dtype=torch.float64, generator=torch.Generator().manual_seed(number))
        losses.append(step(Batch.of_pairs(x), {}, Moment(number, 10))[0].loss)
    return losses, [p.grad for p in network.parameters() if p.grad is not None], list(network.buffers())


def assert_close(first: list[Tensor], second: list[Tensor]) -> None:
    assert len(first) == len(second) > 0
    for x, y in zip(first, second, strict=True):
        # a bias before a batch normalization has no gradient but for rounding
        assert (x - y).double().norm() <= 1e-10 * y.double().norm() + 1e-12


@pytest.mark.parametrize("branches", ["together", "apart"])
@pytest.mark.parametrize("name", NETWORKS)
def test_cached_gradients_are_those_of_the_plain_step(name: str, branches: Any, hardnet: Recipe) -> None:
    """With dropout, whose zeros must be the same in both passes; 5 patches at a time, the last part shorter."""
    recipe = replace(hardnet, network=NETWORKS[name], branches=branches)
    wanted, found = gradients(recipe, None), gradients(recipe, 5)
    assert found[0] == pytest.approx(wanted[0], rel=1e-12)
    assert_close(found[1], wanted[1])
    if wanted[2]:
        assert_close(found[2], wanted[2])  # running statistics


def test_so_are_they_where_a_term_looks_at_a_layer(hardnet: Recipe) -> None:
    recipe = replace(hardnet, mining=None, loss=(IntermediateSoftmax(scaled=True, weight=0.5), SpreadOut()))
    assert_close(gradients(recipe, 5)[1], gradients(recipe, None)[1])


def test_caching_keeps_the_graph_of_one_part_only(hardnet: Recipe) -> None:
    recipe = replace(hardnet, network=L2Net(16, 4, dropout=0.0))

    def largest(cached: int | None) -> int:
        """Patches of the largest map that is kept for a gradient."""
        kept: list[int] = []

        def save(x: Tensor) -> Tensor:
            kept.extend([len(x)] if x.ndim == 4 and x.shape[-1] >= 16 else [])  # filters are smaller
            return x

        with torch.autograd.graph.saved_tensors_hooks(save, lambda x: x):
            gradients(recipe, cached)
        return max(kept)

    assert largest(None) == 24
    assert largest(5) == 5


def test_without_dropout_the_step_is_that_of_torchs_layers(hardnet: Recipe) -> None:
    recipe = replace(hardnet, network=L2Net(16, 4, dropout=0.0))
    wanted, found = gradients(recipe, None, plain=True), gradients(recipe, 5)
    assert_close(found[1], wanted[1])
    assert_close(found[2], wanted[2])


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 5, 4)])
@pytest.mark.parametrize("affine", [True, False])
def test_normalization_has_torchs_values_gradients_and_running_statistics(shape: tuple[int, ...], affine: bool) -> None:
    torch.manual_seed(0)
    plain: Any = (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(3, affine=affine).double()
    if affine:
        nn.init.normal_(plain.weight)
        nn.init.normal_(plain.bias)
    ours = WholeBatchNorm(plain, ALONE)
    ours.running_mean, ours.running_var = plain.running_mean.clone(), plain.running_var.clone()
    x = (torch.randn(shape, dtype=torch.float64) + 5).requires_grad_()
    weights = torch.randn(shape, dtype=torch.float64)
    found = []
    for norm in (plain, ours):
        y = norm(x)
        inputs = [x, *norm.parameters()]
        found.append([y, *torch.autograd.grad((y * weights).sum(), inputs), norm.running_mean, norm.running_var])
    for wanted, value in zip(*found, strict=True):
        assert torch.allclose(value, wanted, rtol=1e-10, atol=1e-12)
    assert torch.allclose(ours.eval()(x), plain.eval()(x), rtol=1e-10)
    assert torch.autograd.gradcheck(WholeBatchNorm(plain.train(), ALONE), (x,))


def test_dropout_is_a_function_of_the_rows_alone() -> None:
    layer, x = RowDropout(0.3, 1), torch.ones(100, 4, 8, 8)
    keys = torch.randint(0, 2**32, (100,), generator=torch.Generator().manual_seed(0))
    layer.keys = keys
    whole = layer(x)
    order = torch.randperm(100)
    parts = []
    for rows in torch.split(order, 7):
        layer.keys = keys[rows]
        parts.append(layer(x[rows]))
    assert torch.equal(torch.cat(parts), whole[order])
    layer.keys = keys[:2]
    assert torch.equal(layer(x[:2].to(torch.bfloat16)) > 0, whole[:2] > 0)
    assert not torch.equal(RowDropout(0.3, 2)(x), whole)


def test_dropout_drops_its_share_of_every_row_and_place() -> None:
    layer, x = RowDropout(0.3, 1), torch.ones(2000, 500)
    layer.keys = torch.randint(0, 2**32, (2000,), generator=torch.Generator().manual_seed(0))
    kept = (layer(x) > 0).double()
    assert torch.equal(layer(x)[kept > 0].unique(), torch.tensor([1 / 0.7]))
    sigma = (0.3 * 0.7) ** 0.5
    assert abs(kept.mean() - 0.7) < 4 * sigma / 1000  # of a million numbers
    assert (kept.mean(0) - 0.7).abs().max() < 5 * sigma / 2000**0.5
    assert (kept.mean(1) - 0.7).abs().max() < 5 * sigma / 500**0.5
    centred = kept - 0.7
    assert abs((centred[1:] * centred[:-1]).mean()) < 4 * sigma**2 / 1000  # neighbours know nothing of each other
    assert abs((centred[:, 1:] * centred[:, :-1]).mean()) < 4 * sigma**2 / 1000


def test_at_the_ends_dropout_keeps_all_or_nothing() -> None:
    x = torch.ones(3, 4)
    for p, wanted in ((0.0, x), (1.0, 0 * x)):
        layer = RowDropout(p, 1)
        layer.keys = torch.arange(3)
        assert torch.equal(layer(x), wanted)
        assert torch.equal(layer.eval()(x), x)


def test_a_layer_that_cannot_be_held_to_the_rows_is_refused() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout2d(0.1))
    see_whole_batch(network, network)  # one process, no parts: as it is
    with pytest.raises(RecipeError, match="The layer Dropout2d draws random numbers for the rows it sees"):
        see_whole_batch(network, network, Ranks(0, 2))
