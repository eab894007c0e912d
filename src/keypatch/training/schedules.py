"""Learning-rate schedules: a factor on the optimizer's rate as a function of the done share of the budget.

Being functions of a share, all of them stretch with the budget. `warmup` is a share too: the factor rises linearly
from 0 over it.
"""

import math
from dataclasses import dataclass

from keypatch.parts import table


def _warmed(share: float, warmup: float) -> float:
    return min(1.0, share / warmup) if warmup > 0 else 1.0


@dataclass(frozen=True)
class Linear:
    """Decays linearly to zero at the end of the budget."""

    warmup: float = 0.0

    def factor(self, share: float) -> float:
        return _warmed(share, self.warmup) * max(0.0, 1.0 - share)


@dataclass(frozen=True)
class Steps:
    """Multiplied by `gamma` at each share of the budget in `at`."""

    at: tuple[float, ...] = (1 / 3, 2 / 3, 8 / 9)
    gamma: float = 0.1
    warmup: float = 0.0

    def factor(self, share: float) -> float:
        return float(_warmed(share, self.warmup) * self.gamma ** sum(share >= at for at in self.at))


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 to `floor`."""

    floor: float = 0.0
    warmup: float = 0.0

    def factor(self, share: float) -> float:
        falling = 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
        return _warmed(share, self.warmup) * (self.floor + (1 - self.floor) * falling)


@dataclass(frozen=True)
class Constant:
    """A constant rate."""

    warmup: float = 0.0

    def factor(self, share: float) -> float:
        return _warmed(share, self.warmup)


Schedule = Linear | Steps | Cosine | Constant
SCHEDULES: dict[str, type[Schedule]] = table(
    "schedule", {"Linear": Linear, "Steps": Steps, "Cosine": Cosine, "Constant": Constant}
)
