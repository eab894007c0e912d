"""HardNet8: one more layer, 512 numbers, and a projection to fewer by principal components."""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from keypatch.networks.l2net import HARDNET_INPUT, initialize_orthogonal, map_side, trunk_shape
from keypatch.networks.patch_network import MOST, PatchNetwork, unit_length
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option


@dataclass(frozen=True)
class HardNet8(CheckedFields):
    """HardNet with a seventh 3x3 convolution of 8 * width channels (Pultar et al. 2020).

    It is trained with `dim` equal to `features`; the published descriptor keeps `dim=128` principal components of the
    unit features, found after training.
    """

    dim: int = option(512, least=1, most=MOST)
    features: int = option(512, "Outputs of the last convolution; projected where `dim` differs.", least=1, most=MOST)
    width: int = option(32, least=1, most=MOST)
    dropout: float = option(0.3, least=0, most=1)
    gain: float = 0.6
    preprocessing: Preprocessing = HARDNET_INPUT

    def build(self) -> PatchNetwork:
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        shape = (*trunk_shape(self.width), (4 * self.width, 8 * self.width, 1))
        for k, (inside, outside, stride) in enumerate(shape, start=1):
            layers[f"conv{k}"] = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
            layers[f"norm{k}"] = nn.BatchNorm2d(outside, affine=False)
            layers[f"relu{k}"] = nn.ReLU(inplace=True)
        layers["dropout"] = nn.Dropout(self.dropout)
        layers["conv8"] = nn.Conv2d(8 * self.width, self.features, map_side(self.preprocessing), bias=False)
        last: OrderedDict[str, nn.Module] = OrderedDict(norm=nn.BatchNorm1d(self.features, affine=False))
        if self.dim != self.features:
            last["projection"] = Projection(self.features, self.dim)
        network = PatchNetwork(
            nn.Sequential(layers),
            nn.Sequential(last),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=False,
        )
        initialize_orthogonal(network, self.gain)
        return network


class Projection(nn.Module):
    """(unit(x) - mean) @ components: principal components without whitening; the first features until filled."""

    mean: Tensor
    components: Tensor

    def __init__(self, features: int, kept: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("components", torch.eye(features, kept))

    def forward(self, x: Tensor) -> Tensor:
        return (unit_length(x) - self.mean) @ self.components
