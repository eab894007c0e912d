"""The triplet losses compared in "Learning Deep Descriptors with Scale-Aware Triplet Networks"."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn.functional import softplus

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Measure


@dataclass(frozen=True)
class ScaleAware:
    """Keller et al., eq. 47-58: a loss of how well a triplet does, rho(d+, d-), against a margin alpha, at scale delta.

    `rho`: "sub" d- - d+; "sub2" the same of squares; "div" d- / (d+ + eps). `loss`: "hinge" [alpha - rho]+, "log"
    softplus(-delta (rho - alpha)) / delta, "sse" sigmoid(-delta (rho - alpha))^2 / delta. The paper's names: L_sub and
    L_sub2 are hinges, L_div is the hinge with alpha 1, L_log and L_sse are of "sub" with alpha 0 and delta 1.
    """

    loss: Literal["hinge", "log", "sse"] = "log"
    rho: Literal["sub", "sub2", "div"] = "sub"
    alpha: float = 0.0
    delta: float = 1.0  # log: a hinge when large, -rho / 2 when small; sse: no gradient for hard triplets when large
    eps: float = 1e-2  # of "div", whose slopes grow with 1 / (d+ + eps)
    measure: Measure = EUCLIDEAN
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.loss not in ("hinge", "log", "sse") or self.rho not in ("sub", "sub2", "div"):
            raise RecipeError('ScaleAware: loss must be "hinge", "log" or "sse", and rho "sub", "sub2" or "div".')
        if self.delta <= 0 or self.eps <= 0:
            raise RecipeError("ScaleAware: delta and eps must be above 0.")

    def __call__(self, batch: Described) -> Tensor:
        return self.of_distances(batch.positive_distances(self.measure), batch.negative_distances(self.measure))

    def of_distances(self, d_p: Tensor, d_n: Tensor) -> Tensor:
        """The loss of triplets with these distances, of any shape."""
        return self.of_performance(self.performance(d_p, d_n))

    def performance(self, d_p: Tensor, d_n: Tensor) -> Tensor:
        """rho, large where the triplet does well."""
        if self.rho == "sub":
            return d_n - d_p
        if self.rho == "sub2":
            return d_n.square() - d_p.square()
        return d_n / (d_p + self.eps)

    def of_performance(self, rho: Tensor) -> Tensor:
        if self.loss == "hinge":
            return (self.alpha - rho).relu()
        shortfall = self.delta * (self.alpha - rho)
        # 1 / delta keeps the slope, hence the learning rate, whatever the scale.
        return (softplus(shortfall) if self.loss == "log" else shortfall.sigmoid().square()) / self.delta
