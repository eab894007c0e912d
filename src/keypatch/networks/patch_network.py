"""The one module every network is: layers up to the last convolution, then what needs the whole batch."""

from contextlib import nullcontext
from dataclasses import Field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from keypatch.errors import RecipeError
from keypatch.networks.preprocessing import Preprocessing

MOST = 65_536  # channels, and numbers of a descriptor: beyond it a specification is a slip


class PatchNetwork(nn.Module):
    """Prepared patches (n, channels, size, size) -> raw descriptors (n, dim), not normalized to unit length.

    `trunk` is everything up to and including the last convolution (or linear layer), `head` the rest, always in
    float32: the last batch normalization, where there is one. `per_patch` says that nothing in the trunk looks at the
    other patches of the batch in training, so that it may run in chunks. `unit_length` says how the descriptors are
    compared: scaled to unit length, or raw.
    """

    def __init__(
        self,
        layers: nn.Sequential,
        last: nn.Module,
        *,
        dim: int,
        preprocessing: Preprocessing,
        per_patch: bool,
        unit_length: bool = True,
    ) -> None:
        super().__init__()
        first = next((layer for layer in layers.modules() if isinstance(layer, nn.Conv2d)), None)
        if preprocessing.channels == 3 and first is not None and first.in_channels == 1:
            raise RecipeError(
                "The first convolution of this network takes grey patches, not the three channels of "
                "network.preprocessing.channels=3. Choose EmbeddingNet or a network of your own."
            )
        self.layers = layers
        self.last = last
        self.dim = dim
        self.preprocessing = preprocessing
        self.per_patch = per_patch
        self.unit_length = unit_length

    def trunk(self, x: Tensor) -> Tensor:
        z: Tensor = self.layers(x)
        return z.flatten(1)

    def head(self, z: Tensor) -> Tensor:
        kind = z.device.type
        exact = torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()
        with exact:
            raw: Tensor = self.last(z if z.dtype == torch.float64 else z.float())
        return raw

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(x))


class NetworkSpec(Protocol):
    """A frozen dataclass of plain values that describes a network and builds it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def dim(self) -> int: ...

    @property
    def preprocessing(self) -> Preprocessing: ...

    def build(self) -> PatchNetwork:
        """A new network in training mode, its weights drawn from torch's global generator."""
        ...


def unit_length(x: Tensor) -> Tensor:
    """Rows scaled to length 1; a zero row stays zero, with a finite gradient (HardNet's x / sqrt(sum x^2 + 1e-10))."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-10).rsqrt()
