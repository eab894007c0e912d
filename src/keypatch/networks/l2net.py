"""The L2-Net trunk with batch normalization: HardNet's and SOSNet's network."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

HARDNET_INPUT = Preprocessing(normalization="patch")
SOSNET_INPUT = Preprocessing(value_range=255.0, normalization="instance")


@dataclass(frozen=True)
class L2Net(CheckedFields):
    """Six 3x3 convolutions and one over the whole map, each followed by batch normalization without affine part.

    The defaults are HardNet's; SOSNet's network is `L2Net(dropout=0.1, preprocessing=SOSNET_INPUT)`.
    """

    dim: int = option(128, least=1, most=MOST)
    width: int = option(
        32, "Channels of the first two layers; the others have 2 and 4 times as many.", least=1, most=MOST
    )
    dropout: float = option(0.3, least=0, most=1)
    gain: float = 0.6  # of the orthogonal initialization; 0 = torch's default initialization
    preprocessing: Preprocessing = HARDNET_INPUT

    def build(self) -> PatchNetwork:
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for k, (inside, outside, stride) in enumerate(trunk_shape(self.width), start=1):
            layers[f"conv{k}"] = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
            layers[f"norm{k}"] = nn.BatchNorm2d(outside, affine=False)
            layers[f"relu{k}"] = nn.ReLU(inplace=True)  # saves a seventh of a step's memory
        layers["dropout"] = nn.Dropout(self.dropout)
        layers["conv7"] = nn.Conv2d(4 * self.width, self.dim, map_side(self.preprocessing), bias=False)
        network = PatchNetwork(
            nn.Sequential(layers),
            nn.BatchNorm1d(self.dim, affine=False),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=False,
        )
        initialize_orthogonal(network, self.gain)
        return network


def trunk_shape(width: int) -> tuple[tuple[int, int, int], ...]:
    """(channels in, channels out, stride) of the six 3x3 convolutions."""
    return (
        (1, width, 1),
        (width, width, 1),
        (width, 2 * width, 2),
        (2 * width, 2 * width, 1),
        (2 * width, 4 * width, 2),
        (4 * width, 4 * width, 1),
    )


def map_side(preprocessing: Preprocessing) -> int:
    """Side of the map after the two strides of the trunk: 8 for 32x32 patches."""
    return -(-preprocessing.size // 4)


def initialize_orthogonal(network: nn.Module, gain: float) -> None:
    """HardNet's initialization: every convolution an orthogonal (out, in * k * k) matrix times `gain`."""
    if gain:
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.orthogonal_(module.weight, gain)
