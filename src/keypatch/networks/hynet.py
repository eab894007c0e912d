"""The L2-Net trunk with filter response normalization: HyNet's and SDGMNet's network."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from keypatch.networks.frn import FilterResponse
from keypatch.networks.l2net import initialize_orthogonal, map_side, trunk_shape
from keypatch.networks.patch_network import PatchNetwork
from keypatch.networks.preprocessing import Preprocessing

HYNET_INPUT = Preprocessing(value_range=255.0)
SDGMNET_INPUT = Preprocessing(value_range=1.0, resize="antialias")


@dataclass(frozen=True)
class HyNet:
    """FRN and TLU after each convolution and on the patch itself; only the last normalization sees the batch.

    The patch must come as it is, 0..255 (SDGMNet: 0..1, `SDGMNET_INPUT`): the first FRN divides by the root mean square
    and subtracts no mean, so a standardized patch is another input.
    """

    dim: int = 128
    width: int = 32  # channels of the first two layers; the others have 2 and 4 times as many
    dropout: float = 0.3
    gain: float = 0.0  # of an orthogonal initialization; 0 = torch's default, as the authors have it
    preprocessing: Preprocessing = HYNET_INPUT

    def build(self) -> PatchNetwork:
        layers: OrderedDict[str, nn.Module] = OrderedDict(norm0=FilterResponse(1))
        for k, (inside, outside, stride) in enumerate(trunk_shape(self.width), start=1):
            layers[f"conv{k}"] = nn.Conv2d(inside, outside, 3, stride, padding=1)
            layers[f"norm{k}"] = FilterResponse(outside)
        layers["dropout"] = nn.Dropout(self.dropout)
        layers["conv7"] = nn.Conv2d(4 * self.width, self.dim, map_side(self.preprocessing), bias=False)
        network = PatchNetwork(
            nn.Sequential(layers),
            nn.BatchNorm1d(self.dim, affine=False),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=True,
        )
        initialize_orthogonal(network, self.gain)
        return network
