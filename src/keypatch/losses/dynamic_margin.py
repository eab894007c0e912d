"""The dynamic soft margin."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described, Moment
from keypatch.losses.hardest_bits import signs
from keypatch.losses.measures import Euclidean, Measure
from keypatch.losses.terms import State


@dataclass(frozen=True)
class DynamicMargin:
    """Zhang and Rusinkiewicz, ICCV 2019: cdf(x) * x with x = d+ - d-, the share of easier triplets being constant.

    The state is a histogram of x over [-2, 2], the first batch's, then moved by `rate` before it is used. There is no
    hinge: the value is usually negative. `binary`: the raw outputs, made by a tanh, stand for bits; negatives from
    `HardestBits`, the histogram from bits, the gradient from d = mean(1 - x y).
    """

    bins: int = 512
    rate: float | None = None  # per step; None: the published 0.01, more in a training under 100,000 steps
    eps: float = 2e-6  # inside the root of d; the authors' code has 1e-6 inside a factor 2
    binary: bool = False
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.bins < 2:
            raise RecipeError(f"DynamicMargin: bins={self.bins}; a histogram over [-2, 2] needs 2 or more.")

    def start(self) -> State:
        return {}

    def __call__(self, batch: Described, state: State) -> tuple[Tensor, State]:
        x = _gap(batch, _Bits(hard=False) if self.binary else Euclidean(self.eps))
        rate = self._rate(batch.moment) if torch.is_grad_enabled() else 0.0
        with torch.no_grad():
            place = ((_gap(batch, _Bits(hard=True)) if self.binary else x) + 2) * ((self.bins - 1) / 4)
            # rounding may leave [-2, 2]; a distance that is not finite shows in the value, here it would be no index
            place = place.nan_to_num(0.0).clamp(0, self.bins - 1)
            histogram = self._binned(place)
            if "histogram" in state:
                histogram = state["histogram"].lerp(histogram, rate)
            cdf = (histogram / histogram.sum()).cumsum(0)[place.long()]
        return cdf * x, {"histogram": histogram} if torch.is_grad_enabled() else state

    def statistics(self, state: State) -> dict[str, float]:
        """Mean, deviation and median of x = d+ - d- in the running histogram."""
        share = state["histogram"].double() / state["histogram"].double().sum()
        x = torch.linspace(-2, 2, self.bins, dtype=torch.float64, device=share.device)
        mean = (share * x).sum()
        median = x[int((share.cumsum(0) < 0.5).sum().clamp(max=self.bins - 1))]
        std = (share * (x - mean).square()).sum().sqrt()
        return {"mean": float(mean), "std": float(std), "median": float(median)}

    def _rate(self, moment: Moment | None) -> float:
        if self.rate is not None:
            return self.rate
        return 0.01 if moment is None else min(0.1, max(0.01, 1000 / moment.steps))

    def _binned(self, place: Tensor) -> Tensor:
        """Shares of the bins, each place counted linearly in the two around it."""
        low = place.floor()
        histogram = place.new_zeros(self.bins)
        histogram.index_add_(0, low.long(), 1 - (place - low))
        histogram.index_add_(0, (low.long() + 1).clamp(max=self.bins - 1), place - low)
        return histogram / (histogram.sum() + 1e-6)  # 1e-6: the authors' code


@dataclass(frozen=True)
class _Bits:
    """mean(1 - x y) in [0, 2]: of bits (+-1), twice the share of different ones."""

    hard: bool
    of_raw: ClassVar[bool] = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return 1 - (signs(x) * signs(y) if self.hard else x * y).mean(1)


def _gap(batch: Described, measure: Measure) -> Tensor:
    return batch.positive_distances(measure) - batch.negative_distances(measure)
