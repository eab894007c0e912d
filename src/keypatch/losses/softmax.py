"""HardNet's softmax form."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Measure

_EPS = 1e-8  # in the published code's denominator


@dataclass(frozen=True)
class SoftmaxTriplet:
    """HardNet's code, `softmax`: -log(e^(2 - d+) / (e^(2 - d+) + e^(2 - d-) + 1e-8)), in practice softplus(d+ - d-)."""

    measure: Measure = EUCLIDEAN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        positive = batch.positive_distances(self.measure)
        negative = batch.negative_distances(self.measure)
        exponents = [torch.zeros_like(positive), positive - negative, positive - 2 + math.log(_EPS)]
        return torch.stack(exponents).logsumexp(0)  # the equation divided by e^(2 - d+): nothing overflows
