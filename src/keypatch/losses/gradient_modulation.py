"""SDGMNet's gradient modulation."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described, Moment
from keypatch.losses.measures import Angle
from keypatch.losses.terms import State

_ANGLE = Angle()
_NEAREST = math.acos(1 - 1e-5)  # SDGMNet's code: pairs closer than that get no gradient
_TINY = 1e-6  # where all triplets are equally hard, neither r nor a power has a spread to divide by


@dataclass(frozen=True)
class GradientModulation:
    """SDGMNet eq. 15: alpha / E[P+] * sum w+ theta+ - 1 / E[P-] * sum w- theta-, one value, in which only theta moves.

    It is there for its gradient (eq. 13): the value is negative and no measure of progress; the state is. All weights
    are one during `warmup`, a share of the training; `finetune` is a share at its end, with `finetune_m` and without
    `psm`, on statistics of its own. Weights of the batch multiply w+ and w-; the statistics of angles ignore them.
    """

    m: float = 0.6  # probabilistic hard margin: this share of the triplets is done; 0 = off
    alpha: float = 0.9  # of the positive pairs in the power adjustment
    psm: bool = True  # probabilistic soft margin: the harder a triplet among all, the more it counts
    self_weight: Literal["af", "theta", "s", "l2"] = "af"  # auto-focus, or the gradient of another measure (eq. 5-7)
    power_adjust: bool = True  # False: both sums are divided by n, without alpha
    warmup: float = 0.1
    # Of the moving statistics, per step (eq. 14). None: the published 0.001, more in a training under 200,000 steps.
    rate: float | None = None
    # Angles begin with the first batch, the powers at 9.77 n, a slow start; "restart": the powers with the first batch
    # too; "released": as in the authors' file, E[r] at -1 and the powers at 10000 for every n.
    init: Literal["first_batch", "restart", "released"] = "first_batch"
    sample: int | None = None  # statistics from the first so many pairs of the batch (Table V); None = all
    finetune: float = 0.0
    finetune_m: float = 0.1
    weight: float = 1.0

    def __post_init__(self) -> None:
        shares = {name: getattr(self, name) for name in ("m", "warmup", "finetune", "finetune_m")}
        wrong = [
            f"{name}={value}, but it must be at least 0 and below 1"
            for name, value in shares.items()
            if not 0 <= value < 1
        ]
        if self.self_weight not in ("af", "theta", "s", "l2"):
            wrong.append(f'self_weight is "{self.self_weight}", not "af", "theta", "s" or "l2"')
        if self.init not in ("first_batch", "restart", "released"):
            wrong.append(f'init is "{self.init}", not "first_batch", "restart" or "released"')
        if self.rate is not None and not 0 < self.rate <= 1:
            wrong.append(f"rate={self.rate}, but it must be above 0 and at most 1")
        if self.sample is not None and self.sample < 2:
            wrong.append(f"sample={self.sample}, but a standard deviation needs 2 pairs or more")
        if wrong:
            raise RecipeError(f"GradientModulation: {wrong[0]}.")

    def start(self) -> State:
        return {}

    def __call__(self, batch: Described, state: State) -> tuple[Tensor, State]:
        if not self.finetune or batch.moment is None or batch.moment.share < 1 - self.finetune:
            value, after = self._modulate(batch, state)
        else:
            tuned = replace(self, m=self.finetune_m, psm=False, warmup=0.0, init="restart")
            value, after = tuned._modulate(batch, state if "finetuning" in state else {})
            after = {**after, "finetuning": torch.ones_like(after["mean_r"])}
        return value, after if torch.is_grad_enabled() else state

    def pair_weights(self, theta: Tensor, state: State) -> Tensor:
        """w+ and w- after the warm-up (2, n) of the angles theta+ and theta- (2, n): eq. 9 to 12."""
        c = torch.special.ndtr((theta[0] - theta[1] - state["mean_r"]) / state["std_r"].clamp(min=_TINY))
        coupled = (c if self.psm else torch.ones_like(c)) * (c > self.m if self.m else 1.0)
        return self._self_weights(theta, state) * coupled

    def _self_weights(self, theta: Tensor, state: State) -> Tensor:
        if self.self_weight == "theta":
            return torch.ones_like(theta)
        if self.self_weight == "s":
            return theta.sin()
        if self.self_weight == "l2":
            return (theta / 2).cos()
        mean = torch.stack([state["mean_positive"], state["mean_negative"]])[:, None]
        std = torch.stack([state["std_positive"], state["std_negative"]])[:, None]
        return torch.exp(-(theta - mean).square() / (2 * (math.pi / 6 + std).square()))

    def _modulate(self, batch: Described, state: State) -> tuple[Tensor, State]:
        """Algorithm 1: the weights see the statistics after this batch, and so does the value the powers."""
        rate = self._rate(batch.moment) if torch.is_grad_enabled() else 0.0
        theta = angles(batch)
        with torch.no_grad():
            after = self._angle_statistics(theta[:, : self.sample], state, rate)
            warming = batch.moment is not None and batch.moment.share < self.warmup
            w = torch.ones_like(theta) if warming else self.pair_weights(theta, after)
            w = w if batch.weights is None else w * batch.weights
            powers = w[:, : self.sample].mean(1) * batch.n  # eq. 12
            after |= self._power_statistics(powers, batch, state, rate)
            expected = torch.stack([after["power_positive"], after["power_negative"]]).clamp(min=_TINY)
            w = w / (expected[:, None] if self.power_adjust else batch.n)
        alpha = self.alpha if self.power_adjust else 1.0
        return (alpha * w[0] * theta[0] - w[1] * theta[1]).sum(), after

    def _angle_statistics(self, theta: Tensor, state: State, rate: float) -> dict[str, Tensor]:
        rows = {"r": theta[0] - theta[1], "positive": theta[0], "negative": theta[1]}
        now = {f"mean_{name}": row.mean() for name, row in rows.items()}
        now |= {f"std_{name}": row.std() for name, row in rows.items()}
        if state:
            return {name: state[name].lerp(value, rate) for name, value in now.items()}
        return now | {"mean_r": torch.full_like(now["mean_r"], -1.0)} if self.init == "released" else now

    def _power_statistics(self, powers: Tensor, batch: Described, state: State, rate: float) -> dict[str, Tensor]:
        slow = batch.moment is not None and batch.moment.steps >= 200  # a shorter training has no time for it
        if state:
            before = torch.stack([state["power_positive"], state["power_negative"]])
        elif self.init == "released":
            before = torch.full_like(powers, 10_000.0)
        elif self.init == "first_batch" and slow:
            before = torch.full_like(powers, 10_000.0 / 1024 * batch.n)
        else:
            before = powers
        positive, negative = before.lerp(powers, rate)
        return {"power_positive": positive, "power_negative": negative}

    def _rate(self, moment: Moment | None) -> float:
        if self.rate is not None:
            return self.rate
        return 0.001 if moment is None else min(0.1, max(0.001, 200 / moment.steps))


def angles(batch: Described) -> Tensor:
    """theta+ and theta- (2, n) in radians (eq. 3)."""
    return torch.stack([batch.positive_distances(_ANGLE).clamp(min=_NEAREST), batch.negative_distances(_ANGLE)])
