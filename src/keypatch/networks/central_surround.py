"""CS-L2-Net (Tian et al., CVPR 2017): one L2-Net sees the whole patch, another its middle."""

from collections import OrderedDict
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keypatch.errors import RecipeError
from keypatch.networks.l2net import L2Net
from keypatch.networks.patch_network import MOST, PatchNetwork, unit_length
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

CENTRAL_SURROUND_INPUT = Preprocessing(size=64, normalization="patch")


@dataclass(frozen=True)
class CentralSurround(CheckedFields):
    """Two L2-Nets with separate weights, each giving half of the descriptor.

    Both halves are scaled to unit length, then the whole is, as every descriptor of ours: all distances are those of
    the published descriptor, whose length is sqrt(2), divided by sqrt(2). The authors also subtract the mean image of
    their training patches; here there is none.
    """

    dim: int = option(256, "Both halves together.", least=1, most=MOST)
    width: int = option(32, least=1, most=MOST)
    dropout: float = option(0.3, least=0, most=1)
    gain: float = 0.6
    preprocessing: Preprocessing = CENTRAL_SURROUND_INPUT

    def build(self) -> PatchNetwork:
        size = self.preprocessing.size
        if size % 4 or self.dim % 2:
            raise RecipeError(
                f"CentralSurround needs a patch side divisible by 4 and an even dim, found size={size} and "
                f"dim={self.dim}."
            )
        seen = replace(self.preprocessing, size=size // 2)
        half = L2Net(self.dim // 2, self.width, self.dropout, self.gain, seen)
        halves = Halves(half.build().layers, half.build().layers)
        last: OrderedDict[str, nn.Module] = OrderedDict(
            norm=nn.BatchNorm1d(self.dim, affine=False), unit_halves=UnitHalves()
        )
        return PatchNetwork(
            nn.Sequential(OrderedDict(halves=halves)),
            nn.Sequential(last),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=False,
        )


class Halves(nn.Module):
    """(n, 1, size, size) -> (n, dim): the patch at half its size and its middle, each through a trunk."""

    def __init__(self, surround: nn.Module, centre: nn.Module) -> None:
        super().__init__()
        self.surround = surround
        self.centre = centre
        self.norm = nn.InstanceNorm2d(1)  # what each trunk sees has mean 0 and deviation 1, not only the patch

    def forward(self, x: Tensor) -> Tensor:
        quarter = x.shape[2] // 4
        # As the authors' imresize does it: bicubic, smoothed.
        whole = F.interpolate(x, scale_factor=0.5, mode="bicubic", antialias=True) if x.shape[0] else x[..., ::2, ::2]
        middle = x[..., quarter : 3 * quarter, quarter : 3 * quarter]
        return torch.cat([self.surround(self.norm(whole)), self.centre(self.norm(middle))], dim=1).flatten(1)


class UnitHalves(nn.Module):
    """Each half of the rows scaled to unit length."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([unit_length(half) for half in x.chunk(2, dim=1)], dim=1)
