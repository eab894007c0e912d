"""A small network: an eighth of the multiplications of HyNet's, and no layer that quantizes badly."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from keypatch.networks.l2net import HARDNET_INPUT, initialize_orthogonal
from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option


@dataclass(frozen=True)
class SmallNet(CheckedFields):
    """Four 3x3 convolutions, three of them with stride 2, and one over the whole map; batch normalization and ReLU.

    At run time the normalization is part of the convolutions, so nothing remains but convolutions and ReLU. It has no
    affine part: the channels of a map have the same spread, and one scale of 8 bits suits them all.
    """

    dim: int = option(128, least=1, most=MOST)
    width: int = option(32, "Channels of the first layer; the others have 2 and 4 times as many.", least=1, most=MOST)
    gain: float = 0.6  # of the orthogonal initialization; 0 = torch's default initialization
    preprocessing: Preprocessing = HARDNET_INPUT

    def build(self) -> PatchNetwork:
        width, side = self.width, self.preprocessing.size
        shape = ((1, width, 2), (width, 2 * width, 2), (2 * width, 2 * width, 1), (2 * width, 4 * width, 2))
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for k, (inside, outside, stride) in enumerate(shape, start=1):
            layers[f"conv{k}"] = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
            layers[f"norm{k}"] = nn.BatchNorm2d(outside, affine=False)
            layers[f"relu{k}"] = nn.ReLU(inplace=True)
            side = -(-side // stride)
        layers["conv5"] = nn.Conv2d(4 * width, self.dim, side, bias=False)
        network = PatchNetwork(
            nn.Sequential(layers),
            nn.BatchNorm1d(self.dim, affine=False),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=False,
        )
        initialize_orthogonal(network, self.gain)
        return network
