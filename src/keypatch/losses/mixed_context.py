"""The loss proposed in "Learning Deep Descriptors with Scale-Aware Triplet Networks"."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import softplus

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Measure


@dataclass(frozen=True)
class MixedContext:
    """Keller et al., mixed context: d+ stays below and d- above a threshold, partly the triplet's own, partly global.

    theta = gamma (d+ + d-) / 2 + (1 - gamma) theta_glo, and the loss is softplus(-2 delta (theta - alpha/2 - d+)) +
    softplus(-2 delta (d- - theta - alpha/2)), over 2 delta. gamma 0 is a Siamese loss, gamma 1 the triplet loss
    `ScaleAware("log", alpha=alpha, delta=delta)`. The form is a third party's; alpha in it is derived.
    """

    gamma: float = 0.5
    theta_glo: float = 1.1  # between the distances of positives and of hard negatives: another for raw descriptors
    delta: float = 5.0
    alpha: float = 0.0
    detach_theta: bool = False  # true: no gradient through the threshold
    measure: Measure = EUCLIDEAN
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1 or self.delta <= 0:
            raise RecipeError("MixedContext: gamma must be between 0 and 1, and delta above 0.")

    def __call__(self, batch: Described) -> Tensor:
        return self.of_distances(batch.positive_distances(self.measure), batch.negative_distances(self.measure))

    def of_distances(self, d_p: Tensor, d_n: Tensor) -> Tensor:
        """The loss of triplets with these distances, of any shape."""
        theta = self.gamma * (d_p + d_n) / 2 + (1 - self.gamma) * self.theta_glo
        if self.detach_theta:
            theta = theta.detach()
        scale = 2 * self.delta  # theta halves the triplet's gap
        too_far = softplus(scale * (d_p - theta + self.alpha / 2))
        too_near = softplus(scale * (theta - d_n + self.alpha / 2))
        return (too_far + too_near) / scale
