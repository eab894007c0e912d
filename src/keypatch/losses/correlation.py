"""L2-Net's compactness: the dimensions of a descriptor should not say the same."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities


@dataclass(frozen=True)
class Correlation:
    """L2-Net, E2: mean square of the correlations between different dimensions, over anchors and over positives.

    A batch statistic. The paper, known from memory, sums where this is a mean: `weight` d (d - 1) / n and the reduction
    "sum" give its number. "hardnet" is the penalty of HardNet's code: of anchors alone, root of the sum of squared
    covariances, each not divided by anything, over n.
    """

    form: Literal["l2net", "hardnet"] = "l2net"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in ("l2net", "hardnet"):
            raise RecipeError(f'Correlation: form must be "l2net" or "hardnet", not "{self.form}".')

    def __call__(self, batch: Described) -> Tensor:
        if self.form == "hardnet":
            return (_off_diagonal(_centred(batch.anchors)).square().sum() + 1e-12).sqrt() / batch.n
        squares = [_off_diagonal(_standardized(x)).square().sum() for x in (batch.anchors, batch.positives)]
        d = batch.unit.shape[1]
        return (squares[0] + squares[1]) / (2 * d * (d - 1))


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(0)


def _standardized(x: Tensor) -> Tensor:
    """Columns of mean 0 and length 1, so that their products are correlations; a constant one stays 0."""
    centred = _centred(x)
    return centred * (centred.square().sum(0) + 1e-12).rsqrt()


def _off_diagonal(x: Tensor) -> Tensor:
    """Products of different columns, (d, d), 0 on the diagonal."""
    products = similarities(x.T, x.T)
    return products - torch.diag(products.diagonal())
