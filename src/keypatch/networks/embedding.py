"""A small convolutional network for whole images, trained from scratch."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from keypatch.errors import RecipeError
from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

EMBEDDING_INPUT = Preprocessing(size=64, normalization="fixed", mean=0.5, std=0.5)


@dataclass(frozen=True)
class EmbeddingNet(CheckedFields):
    """`blocks` times convolution 3x3, batch normalization, ReLU and max pooling, then a linear layer."""

    dim: int = option(64, least=1, most=MOST)
    width: int = option(
        32, "Channels of the first block; each further block has twice as many, at most 4 times.", least=1, most=MOST
    )
    blocks: int = option(4, least=1, most=16)
    dropout: float = option(0.0, "Before the linear layer.", least=0, most=1)
    unit_length: bool = True  # how embeddings are compared; Song et al. compare raw ones
    preprocessing: Preprocessing = EMBEDDING_INPUT

    def build(self) -> PatchNetwork:
        side, inside = self.preprocessing.size >> self.blocks, 1
        if side < 1:
            raise RecipeError(
                f"EmbeddingNet with {self.blocks} blocks needs patches of at least {2**self.blocks} pixels, "
                f"found size={self.preprocessing.size}."
            )
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for k in range(1, self.blocks + 1):
            outside = self.width * min(2 ** (k - 1), 4)
            layers[f"conv{k}"] = nn.Conv2d(inside, outside, 3, padding=1, bias=False)
            layers[f"norm{k}"] = nn.BatchNorm2d(outside)
            layers[f"relu{k}"] = nn.ReLU(inplace=True)
            layers[f"pool{k}"] = nn.MaxPool2d(2)
            inside = outside
        layers["flat"] = nn.Flatten()
        layers["dropout"] = nn.Dropout(self.dropout)
        layers["linear"] = nn.Linear(inside * side * side, self.dim)
        return PatchNetwork(
            nn.Sequential(layers),
            nn.Identity(),
            dim=self.dim,
            preprocessing=self.preprocessing,
            per_patch=False,
            unit_length=self.unit_length,
        )
