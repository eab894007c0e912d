"""TFeat: two convolutions with tanh (Balntas et al. 2016), and HardTFeat, the same with unit descriptors."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from keypatch.errors import RecipeError
from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

TFEAT_INPUT = Preprocessing(value_range=255.0, normalization="instance")


@dataclass(frozen=True)
class TFeat(CheckedFields):
    """Conv 7x7, tanh, max pooling, conv 6x6, tanh, linear, tanh; descriptors compared by their raw distance.

    HardTFeat, the same network under HardNet's loss, has `unit_length=True`.
    """

    dim: int = option(128, least=1, most=MOST)
    width: int = option(32, "Channels of the first convolution; the second has twice as many.", least=1, most=MOST)
    unit_length: bool = False
    preprocessing: Preprocessing = TFEAT_INPUT

    def build(self) -> PatchNetwork:
        side = (self.preprocessing.size - 6) // 2 - 5
        if side < 1:
            raise RecipeError(f"TFeat needs patches of at least 18 pixels, found size={self.preprocessing.size}.")
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv1=nn.Conv2d(1, self.width, 7),
            tanh1=nn.Tanh(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(self.width, 2 * self.width, 6),
            tanh2=nn.Tanh(),
            flat=nn.Flatten(),
            linear=nn.Linear(2 * self.width * side * side, self.dim),
        )
        return PatchNetwork(
            nn.Sequential(layers),
            nn.Tanh(),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=True,
            unit_length=self.unit_length,
        )
