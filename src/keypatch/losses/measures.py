"""Measures: how far apart two descriptors are. Each is a value; of two (n, d) tensors it gives n numbers, row by row.

All are distances (small means alike) with gradients that are finite everywhere, for identical and opposite vectors too.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pairwise_distance

from keypatch.parts import table


class Measure(Protocol):
    """`of_raw` says which descriptors it is meant for: unit ones, or the network's raw output."""

    of_raw: ClassVar[bool]

    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Euclidean:
    """sqrt(|x - y|^2 + eps), for unit vectors sqrt(2 - 2s + eps); differences keep near pairs exact in float32."""

    eps: float = 1e-6  # HardNet, SOSNet, HyNet; HardNet's form with third patches has 1e-8
    of_raw: ClassVar[bool] = False

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return (_squared(x, y) + self.eps).sqrt()


@dataclass(frozen=True)
class Squared:
    """|x - y|^2 = 2 - 2s."""

    of_raw: ClassVar[bool] = False

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return _squared(x, y)


@dataclass(frozen=True)
class Angle:
    """The angle between unit vectors, in radians, as 2 atan2(|x - y|, |x + y|).

    acos(s) has an infinite slope at both ends and float32 loses angles under 3e-4 there; this form has neither flaw.
    """

    eps: float = 1e-12  # inside both roots: identical vectors are 1e-6 apart instead of at a kink
    of_raw: ClassVar[bool] = False

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * torch.atan2((_squared(x, y) + self.eps).sqrt(), (_squared(x, -y) + self.eps).sqrt())


@dataclass(frozen=True)
class SquaredAngle:
    """The square of `Angle`: AdaSample's angular hinge (AHT, eq. 14 and 15) is `Triplet(measure=SquaredAngle())`."""

    eps: float = 1e-12
    floor: float = 0.0  # radians; arccos(1 - 1e-7) = 4.472e-4 where cosines are clamped to 1 - 1e-7
    of_raw: ClassVar[bool] = False

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return Angle(self.eps)(x, y).clamp(min=self.floor).square()


@dataclass(frozen=True)
class Hybrid:
    """HyNet's s_H without Z: alpha (1 - s) + d, with d the Euclidean distance."""

    alpha: float = 2.0
    eps: float = 1e-6
    of_raw: ClassVar[bool] = False

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        squared = _squared(x, y)
        return self.alpha / 2 * squared + (squared + self.eps).sqrt()


@dataclass(frozen=True)
class InnerProduct:
    """1 - s, with s the inner product of unit vectors."""

    of_raw: ClassVar[bool] = False

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return 1 - (x * y).sum(1)


@dataclass(frozen=True)
class Raw:
    """|x - y + eps| of the raw outputs, eps added to every component: TFeat, and PyTorch's own triplet loss."""

    eps: float = 1e-6
    of_raw: ClassVar[bool] = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, eps=self.eps)


def similarities(x: Tensor, y: Tensor) -> Tensor:
    """All inner products, (n, m), never in half precision: autocast would round s where near pairs are told apart."""
    with exactly(x.device):
        return x @ y.T


def exactly(device: torch.device) -> AbstractContextManager[object]:
    """Autocast switched off."""
    available = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if available else nullcontext()


def distance_matrix(x: Tensor, y: Tensor, eps: float = 1e-6) -> Tensor:
    """sqrt(2 - 2s + eps) of all pairs of unit vectors, (n, m)."""
    return ((2 - 2 * similarities(x, y)).clamp(min=0) + eps).sqrt()


def _squared(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).square().sum(1)


EUCLIDEAN = Euclidean()
MEASURES: dict[str, type] = table(
    "measure",
    {measure.__name__: measure for measure in (Euclidean, Squared, Angle, SquaredAngle, Hybrid, InnerProduct, Raw)},
)
