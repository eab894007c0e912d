"""Networks of whole images: a small convolutional one, trained from scratch, and any module of torch."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor, nn

from keypatch.errors import RecipeError
from keypatch.networks.patch_network import MOST, PatchNetwork
from keypatch.networks.preprocessing import Preprocessing
from keypatch.settings import CheckedFields, option

EMBEDDING_INPUT = Preprocessing(size=64, normalization="fixed", mean=0.5, std=0.5)
# Song et al.: images are squeezed to 256x256, of which 227x227 are cropped. The figures are those that torchvision's
# networks were trained with on ImageNet; the public code of Song et al. subtracts a mean image of values 0..255.
IMAGE_INPUT = Preprocessing(
    size=227,
    channels=3,
    crop_from=256,
    normalization="fixed",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
MODULE = "layers.image.module."  # of the names of a module's tensors in the network around it


@dataclass(frozen=True)
class EmbeddingNet(CheckedFields):
    """`blocks` blocks of 3x3 convolution, batch normalization, ReLU and max pooling, then a linear layer."""

    dim: int = option(64, least=1, most=MOST)
    width: int = option(
        32, "Channels of the first block; each further block doubles them, up to 4 times as many.", least=1, most=MOST
    )
    blocks: int = option(4, least=1, most=16)
    dropout: float = option(0.0, "Before the linear layer.", least=0, most=1)
    unit_length: bool = True  # how embeddings are compared; Song et al. compare raw ones
    preprocessing: Preprocessing = EMBEDDING_INPUT

    def build(self) -> PatchNetwork:
        side, inside = self.preprocessing.size >> self.blocks, int(self.preprocessing.channels)
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


class _Image(nn.Module):
    """Features of a module, maps averaged over all places, then dropout and the linear layer of the embedding."""

    def __init__(self, module: nn.Module, features: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.module = module
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(features, dim)

    def forward(self, x: Tensor) -> Tensor:
        y = self.module(x)
        if not isinstance(y, Tensor) or y.ndim < 2 or y.shape[1] != self.linear.in_features:
            found = f"a tensor {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
            raise RecipeError(
                f"The module {type(self.module).__name__} returned {found}, but image_network expects "
                f"{self.linear.in_features} features: one tensor (n, {self.linear.in_features}), or maps of them. "
                "Switch off its classifier and auxiliary outputs, or correct `features`."
            )
        pooled: Tensor = self.linear(self.dropout(y.flatten(2).mean(2) if y.ndim > 2 else y))
        return pooled


def image_network(
    module: nn.Module,
    features: int,
    *,
    dim: int,
    preprocessing: Preprocessing = IMAGE_INPUT,
    dropout: float = 0.4,
    unit_length: bool = True,
) -> PatchNetwork:
    """Any module of torch as an embedding network, for the `build` of a network of your own.

    `module` takes images (n, channels, size, size) and gives (n, features), or maps of them, which are averaged as by
    GoogLeNet's pool5. Dropout and a linear layer to `dim` numbers follow, as Song et al. have them. To start from a
    trained module, give the file of its tensors as the weights to start from (`start_from`, --from).
    """
    image = _Image(module, features, dim, dropout)
    return PatchNetwork(
        nn.Sequential(OrderedDict(image=image)),  # one layer, which the fast path runs as it is
        nn.Identity(),
        dim=dim,
        preprocessing=preprocessing,
        per_patch=False,  # its normalization may look at the whole batch
        unit_length=unit_length,
    )
