"""What holds for every network in the table, and the figures that tell them apart."""

import dataclasses
from dataclasses import replace
from typing import Any, get_type_hints

import pytest
import torch

from keypatch.errors import RecipeError
from keypatch.networks import (
    NETWORKS,
    SOSNET_INPUT,
    CentralSurround,
    EmbeddingNet,
    HardNet8,
    HyNet,
    L2Net,
    Preprocessing,
    SmallNet,
    SpreadOutNet,
    TFeat,
    prepare,
    spec_from_dict,
    spec_to_dict,
    unit_length,
)

SMALL: dict[str, Any] = {
    "L2Net": L2Net(dim=24, width=8),
    "HyNet": HyNet(dim=24, width=8),
    "HardNet8": HardNet8(dim=24, features=48, width=8, gain=0.0),
    "TFeat": TFeat(dim=24, width=8),
    "SpreadOutNet": SpreadOutNet(dim=24, width=8),
    "CentralSurround": CentralSurround(dim=24, width=8),
    "EmbeddingNet": EmbeddingNet(dim=24, width=8),
    "SmallNet": SmallNet(dim=24, width=8),
}
VARIANTS: dict[str, Any] = {
    **SMALL,
    "HyNet batch": HyNet(dim=24, width=8, normalization="batch"),
    "HyNet instance": HyNet(dim=24, width=8, normalization="instance"),
}
PARAMETERS = {
    L2Net(): 1_334_560,
    HyNet(): 1_336_355,
    HardNet8(): 8_969_504,
    TFeat(): 599_808,
    SpreadOutNet(): 543_040,
    CentralSurround(): 2 * 1_334_560,
    HyNet(normalization="batch"): 1_334_560,
    HyNet(normalization="instance"): 1_334_560,
}


def patches(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_every_network_is_in_the_list_above() -> None:
    assert SMALL.keys() == NETWORKS.keys()


@pytest.mark.parametrize("spec", PARAMETERS, ids=lambda spec: type(spec).__name__)
def test_the_number_of_parameters_is_the_published_one(spec: Any) -> None:
    with torch.device("meta"):
        network = spec.build()
    assert sum(parameter.numel() for parameter in network.parameters()) == PARAMETERS[spec]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_descriptors_of_none_one_and_several_patches(name: str, count: int) -> None:
    network = VARIANTS[name].build().eval()
    raw = network(prepare(patches(count), network.preprocessing))
    assert raw.shape == (count, 24) and network.dim == 24 and torch.isfinite(raw).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_head_of_trunk_is_the_whole(name: str) -> None:
    network = VARIANTS[name].build().eval()
    x = prepare(patches(3), network.preprocessing)
    assert torch.equal(network.head(network.trunk(x)), network(x))


@pytest.mark.parametrize("name", VARIANTS)
def test_per_patch_says_whether_training_may_run_the_trunk_in_chunks(name: str) -> None:
    spec = VARIANTS[name]
    network = (replace(spec, dropout=0.0) if hasattr(spec, "dropout") else spec).build()
    x = prepare(patches(8), network.preprocessing)
    chunked = torch.cat([network.trunk(x[:3]), network.trunk(x[3:])])
    same = torch.allclose(network.trunk(x), chunked, atol=1e-5)
    assert same == network.per_patch


@pytest.mark.parametrize("name", VARIANTS)
def test_every_parameter_gets_a_finite_gradient(name: str) -> None:
    network = replace(VARIANTS[name], dim=48).build() if name == "HardNet8" else VARIANTS[name].build()
    network(prepare(patches(6), network.preprocessing)).square().sum().backward()
    for parameter in network.parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_head_is_float32_under_autocast(name: str) -> None:
    network = VARIANTS[name].build()
    x = prepare(patches(4), network.preprocessing)
    with torch.autocast("cpu", torch.bfloat16):
        z = network.trunk(x)
        raw = network.head(z)
    assert z.dtype == torch.bfloat16 and raw.dtype == torch.float32


@pytest.mark.parametrize("name", VARIANTS)
def test_no_tensor_is_made_on_the_cpu_behind_the_back_of_another_device(name: str) -> None:
    with torch.device("meta"):
        network = VARIANTS[name].build()
    x = prepare(patches(4).to("meta"), network.preprocessing)
    raw = unit_length(network(x))
    raw.sum().backward()
    assert raw.device.type == "meta" and raw.shape == (4, 24)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_spec_goes_to_a_dictionary_and_back(name: str) -> None:
    spec = replace(VARIANTS[name], preprocessing=replace(VARIANTS[name].preprocessing, patch_sigmas=12.0))
    values = spec_to_dict(spec)
    assert values["type"] == name.split()[0] and values["preprocessing"]["patch_sigmas"] == 12.0
    assert spec_from_dict(values) == spec
    assert eval(repr(spec), {**NETWORKS, "Preprocessing": Preprocessing}) == spec


def test_the_same_seed_gives_the_same_weights() -> None:
    networks = []
    for _ in range(2):
        torch.manual_seed(5)
        networks.append(L2Net(width=8, dim=16).build())
    first, second = (torch.cat([p.flatten() for p in network.parameters()]) for network in networks)
    assert torch.equal(first, second)


def test_hardnet_starts_orthogonal_with_rows_of_length_0_6() -> None:
    network = L2Net(width=8, dim=16).build()
    matrix = network.layers.conv7.weight.detach().flatten(1)
    torch.testing.assert_close(matrix @ matrix.T, 0.36 * torch.eye(16), atol=1e-5, rtol=0)


def test_hynet_ignores_brightness_as_a_factor_and_not_as_an_offset() -> None:
    torch.manual_seed(0)
    network = HyNet(width=8, dim=16).build().eval()
    x = prepare(patches(2), network.preprocessing)
    torch.testing.assert_close(network(2 * x), network(x), atol=1e-4, rtol=1e-3)
    assert (network(x + 40) - network(x)).abs().max() > 1e-2


def test_a_smaller_patch_makes_a_smaller_last_layer() -> None:
    network = L2Net(width=8, dim=16, preprocessing=Preprocessing(size=18, normalization="patch")).build().eval()
    assert network.layers.conv7.kernel_size == (5, 5)
    assert network(prepare(patches(2), network.preprocessing)).shape == (2, 16)


@pytest.mark.parametrize("spec", [TFeat, SpreadOutNet, EmbeddingNet])
def test_patches_too_small_for_the_network_are_refused(spec: Any) -> None:
    with pytest.raises(RecipeError, match="patches of at least"):
        spec(preprocessing=Preprocessing(size=15)).build()


def test_the_batch_variant_of_hynet_is_the_l2_net_of_its_code() -> None:
    ours = HyNet(dim=16, width=8, dropout=0.0, normalization="batch").build()
    theirs = L2Net(dim=16, width=8, dropout=0.0, gain=0.0, preprocessing=SOSNET_INPUT).build()
    theirs.load_state_dict(ours.state_dict())
    seen = patches(6)
    expected = theirs(prepare(seen, theirs.preprocessing))
    torch.testing.assert_close(ours(prepare(seen, ours.preprocessing)), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("normalization", ["batch", "instance"])
def test_the_variants_of_hynet_ignore_brightness_as_factor_and_offset(normalization: Any) -> None:
    torch.manual_seed(0)
    network = HyNet(width=8, dim=16, normalization=normalization).build().eval()
    x = prepare(patches(2), network.preprocessing)
    torch.testing.assert_close(network(2 * x + 40), network(x), atol=1e-4, rtol=1e-3)


def test_the_instance_variant_normalizes_every_map_of_a_patch_by_itself() -> None:
    network = HyNet(width=8, dim=16, normalization="instance").build()
    maps = network.layers[:3](prepare(patches(4), network.preprocessing))  # norm0, conv1, norm1
    torch.testing.assert_close(maps.mean((2, 3)), torch.zeros(4, 8), atol=1e-5, rtol=0)
    torch.testing.assert_close(maps.var((2, 3), unbiased=False), torch.ones(4, 8), atol=1e-3, rtol=0)


def test_an_unknown_normalization_is_refused() -> None:
    with pytest.raises(RecipeError, match="normalization must be one of frn, batch, instance, not 'layer'"):
        HyNet(normalization="layer")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"type": "HyNett"}, "Choose one of L2Net"),
        ({"type": "HyNet", "widht": 3}, 'no field "widht". Its fields: dim, width'),
        ({"type": "HyNet", "preprocessing": {"seize": 3}}, 'Preprocessing has no field "seize"'),
    ],
)
def test_wrong_specs_are_told_in_a_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        spec_from_dict(values)


def test_unit_length_of_a_zero_row_stays_finite() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    y = unit_length(x)
    y.sum().backward()
    torch.testing.assert_close(y[0], torch.tensor([0.6, 0.8]))
    assert torch.equal(y[1], torch.zeros(2)) and x.grad is not None and torch.isfinite(x.grad).all()


def test_the_last_layer_of_the_embedding_is_linear_and_its_length_is_a_choice() -> None:
    network = EmbeddingNet(dim=16, width=8, blocks=2, unit_length=False).build()
    assert not network.unit_length
    assert network.layers[-1] is network.layers.linear
    assert network.layers.linear.in_features == 16 * 16 * 16  # two halvings of 64, twice the channels
    assert EmbeddingNet().build().unit_length


ODD = (-1, 0, 1.5, 10**6, 2**63, 1e300)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_number_out_of_its_limits_is_refused_before_it_is_built(name: str) -> None:
    """Of every field that is a number: what a setting accepts can be built, on a device that computes nothing."""
    hints = get_type_hints(NETWORKS[name])
    refused = set[str]()
    for field in dataclasses.fields(NETWORKS[name]):
        for value in ODD if hints[field.name] in (int, float) else ():
            try:
                spec = spec_from_dict({"type": name, field.name: value})
                with torch.device("meta"):
                    spec.build()
            except RecipeError:
                refused.add(field.name)
    assert {"dim", "width"} <= refused
