"""Groups of parameters: which ones the last layer's rate is for."""

import contextlib
import dataclasses

import pytest
import torch

from keypatch.errors import RecipeError
from keypatch.networks import EmbeddingNet, HyNet, L2Net, NetworkSpec
from keypatch.training import SGD, Adam, AdamW
from keypatch.training.optimizers import OPTIMIZERS, Optimizer, parameter_groups

LAST = [
    (EmbeddingNet(dim=8, width=2), {"layers.linear.weight", "layers.linear.bias"}),  # behind it nothing has weights
    (L2Net(dim=8, width=2), {"layers.conv7.weight"}),
    (HyNet(dim=8, width=2), {"layers.conv7.weight"}),
]


@pytest.mark.parametrize(("spec", "last"), LAST, ids=lambda value: type(value).__name__)
def test_exactly_the_last_layer_has_a_rate_of_its_own(spec: NetworkSpec, last: set[str]) -> None:
    network = spec.build()
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    others, tenfold = parameter_groups(network, 10.0)
    assert (others["scale"], tenfold["scale"]) == (1.0, 10.0)
    assert {names[id(parameter)] for parameter in tenfold["params"]} == last
    assert {names[id(parameter)] for parameter in others["params"]} == set(names.values()) - last
    (all_of_them,) = parameter_groups(network)
    assert all_of_them["scale"] == 1.0 and len(all_of_them["params"]) == len(names)


@pytest.mark.parametrize("optimizer", [SGD(), Adam(), AdamW()], ids=lambda value: type(value).__name__)
def test_an_optimizer_keeps_the_groups_and_its_own_fields(optimizer: Optimizer) -> None:
    built = optimizer.build(parameter_groups(EmbeddingNet(dim=8, width=2).build(), 10.0))
    assert type(built) is getattr(torch.optim, type(optimizer).__name__)
    assert [group["scale"] for group in built.param_groups] == [1.0, 10.0]
    for group in built.param_groups:
        assert group["lr"] == optimizer.lr and group["weight_decay"] == optimizer.weight_decay


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_number_that_torch_would_refuse_is_refused_as_a_setting(name: str) -> None:
    parameters = parameter_groups(torch.nn.Linear(2, 2))
    for field in dataclasses.fields(OPTIMIZERS[name]):
        for value in (-1.0, 0.0, 0.5, 1.0, 2.0, 1e300):
            with contextlib.suppress(RecipeError):
                OPTIMIZERS[name](**{field.name: value}).build(parameters)
    with pytest.raises(RecipeError, match=r"lr is -1\.0; it must be 0 or more"):
        OPTIMIZERS[name](lr=-1.0)
