"""An axis of a figure: where a value stands on it, and which values are written beside it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, both finite and apart; a logarithmic one is above 0. Shares are written in %."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False

    def places(self, values: NDArray[np.float64], start: float, end: float) -> NDArray[np.float64]:
        """Where values stand if `low` is at `start` and `high` at `end`; those outside are moved to the ends."""
        inside = np.clip(np.asarray(values, np.float64), self.low, self.high)
        low, high, at = (np.log(v) if self.log else v for v in (np.float64(self.low), np.float64(self.high), inside))
        return np.asarray(start + (at - low) / (high - low) * (end - start))

    def ticks(self) -> list[float]:
        """Round values along the axis, about five; powers of ten on a logarithmic one."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        step = _round_step((self.high - self.low) / 5)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def text(self, value: float) -> str:
        """A tick as it is written: 0.5, 12, 20k; the digits that its neighbours need and no more."""
        shown = 100 * value if self.percent else value
        if abs(shown) >= 10_000:
            return f"{shown / 1000:g}k"
        return f"{float(f'{shown:.6g}'):g}"


def fitted(label: str, values: NDArray[np.float64], *, percent: bool = False, span: float = 0.0) -> Axis:
    """An axis that holds the finite values, between round numbers, and goes down until it is `span` long."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low = min(low, high - span)
    step = _round_step(max(high - low, 1e-3 * max(abs(high), 1e-6)) / 5)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(label, low, high if high > low else low + step, percent=percent)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))
