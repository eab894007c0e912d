"""HyNet's regularization of the norms."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from keypatch.losses.described import Described


@dataclass(frozen=True)
class NormDifference:
    """HyNet, R_L2: (|x| - |x+|)^2 of the raw descriptors of a pair, before they are made unit."""

    weight: float = 0.1  # gamma
    weighted: ClassVar[bool] = False  # a property of the network, whatever the pair

    def __call__(self, batch: Described) -> Tensor:
        return (_norm(batch.raw_anchors) - _norm(batch.raw_positives)).square()


def _norm(x: Tensor) -> Tensor:
    return torch.sqrt(x.square().sum(1) + 1e-6)  # HyNet's code
