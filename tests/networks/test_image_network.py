"""Any module of torch as an embedding network: its input, its weights from a file, and modules that do not fit."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from keypatch.describers.export import to_onnx
from keypatch.describers.network import NetworkDescriber
from keypatch.errors import DataError, KeypatchError, RecipeError
from keypatch.networks import EmbeddingNet, HyNet, PatchNetwork, Preprocessing, image_network
from keypatch.networks.published import start_module

INPUT = Preprocessing(size=28, channels=3, crop_from=32, normalization="fixed", mean=(0.4, 0.5, 0.6), std=0.2)


class Backbone(nn.Module):
    """As those of torchvision: maps, their mean, a classifier that is switched off, a buffer that no file holds."""

    def __init__(self, classes: int = 0) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5, stride=2, bias=False)
        self.bn1 = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, classes) if classes else nn.Identity()
        self.register_buffer("scale", torch.tensor(3.0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(self.bn1(self.conv1(x)).relu().mean((2, 3)) * self.scale)
        return y


@dataclass(frozen=True)
class Own:
    dim: int = 8
    features: int = 6
    preprocessing: Preprocessing = INPUT

    def build(self) -> PatchNetwork:
        return image_network(Backbone(), self.features, dim=self.dim, preprocessing=self.preprocessing)


def images(n: int = 4, side: int = 40) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(0).integers(0, 256, (n, 3, side, side), np.uint8)


def test_the_describer_gives_what_the_module_and_the_linear_layer_give() -> None:
    network = Own().build().eval()
    describer = NetworkDescriber(network, "own", "cpu", "float32")
    assert (describer.channels, describer.patch_size, describer.dim) == (3, 32, 8)
    side_by_hand = images(side=32)
    x = (torch.from_numpy(side_by_hand[:, :, 2:30, 2:30]) / 255.0 - torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)) / 0.2
    trunk = network.layers[0]
    raw = trunk.linear(trunk.module(x))
    expected = nn.functional.normalize(raw).detach().numpy()
    np.testing.assert_allclose(describer.describe(side_by_hand), expected, atol=1e-5)
    assert describer.describe(images(0)).shape == (0, 8)
    with pytest.raises(KeypatchError, match=r"\(n, side, side\) or \(n, 3, side, side\), found \(4, 2, 32, 32\)"):
        describer.describe(side_by_hand[:, :2])


def test_maps_are_averaged_as_by_pool5() -> None:
    maps = nn.Conv2d(3, 6, 5)
    network = image_network(maps, 6, dim=4, preprocessing=INPUT, dropout=0.0)
    x = torch.randn(2, 3, 28, 28)
    torch.testing.assert_close(network(x), network.layers[0].linear(maps(x).mean((2, 3))))


def test_a_module_starts_from_a_file_and_the_linear_layer_from_the_seed(tmp_path: Path) -> None:
    trained = Backbone(classes=10)
    save_file(trained.state_dict(), tmp_path / "trained.safetensors")
    torch.save(trained.state_dict(), tmp_path / "trained.pth")
    for name in ("trained.safetensors", "trained.pth"):
        started = start_module(Own(), tmp_path / name, seed=3)
        assert started is not None
        weights, unused = started
        assert sorted(unused) == ["fc.bias", "fc.weight"]
        assert torch.equal(weights["layers.image.module.conv1.weight"], trained.conv1.weight)
    again, other = (start_module(Own(), tmp_path / "trained.pth", seed) for seed in (3, 4))
    assert again is not None and other is not None
    name = "layers.image.linear.weight"
    assert torch.equal(weights[name], again[0][name]) and not torch.equal(weights[name], other[0][name])


def test_a_file_of_another_network_is_refused_by_the_names_in_it(tmp_path: Path) -> None:
    tensors = dict(Backbone().state_dict())
    save_file({name: t for name, t in tensors.items() if name != "bn1.weight"}, tmp_path / "lacks.safetensors")
    with pytest.raises(DataError, match=r"lacks the tensor bn1.weight for Own"):
        start_module(Own(), tmp_path / "lacks.safetensors", 0)
    save_file(tensors | {"conv1.weight": torch.zeros(6, 3, 3, 3)}, tmp_path / "shape.safetensors")
    with pytest.raises(DataError, match=r"tensor conv1.weight has shape \(6, 3, 3, 3\)"):
        start_module(Own(), tmp_path / "shape.safetensors", 0)
    torch.save(Backbone(), tmp_path / "code.pt")  # the module itself, which would have to be unpickled
    with pytest.raises(DataError, match="Only tensors are loaded"):
        start_module(Own(), tmp_path / "code.pt", 0)
    assert start_module(HyNet(width=4, dim=8), tmp_path / "shape.safetensors", 0) is None  # no module inside


def test_a_module_that_gives_something_else_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"Backbone returned a tensor \(2, 6\), but image_network expects 7"):
        Own(features=7).build()(torch.zeros(2, 3, 28, 28))


def test_grey_networks_refuse_three_channels_and_the_small_one_takes_them() -> None:
    with pytest.raises(RecipeError, match="takes grey patches"):
        HyNet(width=4, preprocessing=INPUT).build()
    network = EmbeddingNet(dim=5, width=4, blocks=2, preprocessing=INPUT).build().eval()
    folded = NetworkDescriber(network, "small", "cpu", "float32").describe(images(side=32))
    x = (
        torch.from_numpy(images(side=32)[:, :, 2:30, 2:30]) / 255.0 - torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    ) / 0.2
    np.testing.assert_allclose(folded, nn.functional.normalize(network(x)).detach().numpy(), atol=1e-5)


def test_networks_of_whole_images_are_not_exported_as_descriptors_of_grey_patches() -> None:
    with pytest.raises(KeypatchError, match="describes whole images"):
        to_onnx(Own().build())
