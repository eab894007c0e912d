"""The L2-Net trunk with filter response normalization: HyNet's and SDGMNet's network, and HyNet's ablation of it."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from torch import nn

from keypatch.networks.frn import FilterResponse
from keypatch.networks.l2net import initialize_orthogonal, map_side, trunk_shape
from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

HYNET_INPUT = Preprocessing(value_range=255.0)
SDGMNET_INPUT = Preprocessing(value_range=1.0, resize="antialias")


@dataclass(frozen=True)
class HyNet(CheckedFields):
    """FRN and TLU after each convolution and on the patch itself; only the last normalization sees the batch.

    The patch must come as it is, 0..255 (SDGMNet: 0..1, `SDGMNET_INPUT`): the first FRN divides by the root mean square
    and subtracts no mean, so a standardized patch is another input.

    `normalization` "batch" and "instance" are the "Norm type" rows of the paper's table 3: that normalization and ReLU
    in place of FRN and TLU. The paper says no more. As in the L2-Net of the authors' code, both have no affine part and
    no biases, and the patch itself is normalized per instance.
    """

    dim: int = option(128, least=1, most=MOST)
    width: int = option(
        32, "Channels of the first two layers; the others have 2 and 4 times as many.", least=1, most=MOST
    )
    dropout: float = option(0.3, least=0, most=1)
    gain: float = 0.0  # of an orthogonal initialization; 0 = torch's default, as the authors have it
    normalization: Literal["frn", "batch", "instance"] = "frn"
    preprocessing: Preprocessing = HYNET_INPUT

    def build(self) -> PatchNetwork:
        frn = self.normalization == "frn"
        layers: OrderedDict[str, nn.Module] = OrderedDict(norm0=FilterResponse(1) if frn else nn.InstanceNorm2d(1))
        for k, (inside, outside, stride) in enumerate(trunk_shape(self.width), start=1):
            layers[f"conv{k}"] = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=frn)
            layers[f"norm{k}"] = self._norm(outside)
            if not frn:
                layers[f"relu{k}"] = nn.ReLU(inplace=True)
        layers["dropout"] = nn.Dropout(self.dropout)
        layers["conv7"] = nn.Conv2d(4 * self.width, self.dim, map_side(self.preprocessing), bias=False)
        network = PatchNetwork(
            nn.Sequential(layers),
            nn.BatchNorm1d(self.dim, affine=False),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=self.normalization != "batch",
        )
        initialize_orthogonal(network, self.gain)
        return network

    def _norm(self, channels: int) -> nn.Module:
        if self.normalization == "frn":
            return FilterResponse(channels)
        return nn.BatchNorm2d(channels, affine=False) if self.normalization == "batch" else nn.InstanceNorm2d(channels)
