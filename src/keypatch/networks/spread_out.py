"""The network of "Learning Spread-out Local Feature Descriptors" (Zhang et al. 2017), on 64x64 patches."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from keypatch.errors import RecipeError
from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

# The authors normalize by the mean and deviation of the training set; here always by PhotoTour Liberty's, in 0..1.
SPREAD_OUT_INPUT = Preprocessing(size=64, normalization="fixed", mean=0.443728, std=0.201979)


@dataclass(frozen=True)
class SpreadOutNet(CheckedFields):
    """Three blocks of convolution (7x7, 6x6, 5x5), batch normalization, ReLU and max pooling, then a linear layer.

    Ordinary batch normalization, one mean per channel; the authors' code has one per channel and pixel.
    """

    dim: int = option(128, least=1, most=MOST)
    width: int = option(
        32, "Channels of the first convolution; the others have 2 and 4 times as many.", least=1, most=MOST
    )
    preprocessing: Preprocessing = SPREAD_OUT_INPUT

    def build(self) -> PatchNetwork:
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        side, inside = self.preprocessing.size, 1
        for k, (kernel, outside) in enumerate(zip((7, 6, 5), (1, 2, 4), strict=True), start=1):
            layers[f"conv{k}"] = nn.Conv2d(inside, outside * self.width, kernel)
            layers[f"norm{k}"] = nn.BatchNorm2d(outside * self.width, eps=1e-3)
            layers[f"relu{k}"] = nn.ReLU(inplace=True)
            layers[f"pool{k}"] = nn.MaxPool2d(2)
            side, inside = (side - kernel + 1) // 2, outside * self.width
        if side < 1:
            raise RecipeError(f"SpreadOutNet needs patches of at least 40 pixels, found {self.preprocessing.size}.")
        layers["flat"] = nn.Flatten()
        layers["linear"] = nn.Linear(inside * side * side, self.dim)
        network = nn.Sequential(layers)
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.1, a=-0.2, b=0.2)  # as TensorFlow cuts: at two deviations
                nn.init.constant_(cast(Tensor, module.bias), 0.1)
        return PatchNetwork(network, nn.Identity(), dim=self.dim, preprocessing=self.preprocessing, per_patch=False)
