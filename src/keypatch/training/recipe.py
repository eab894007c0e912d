"""A recipe: everything that decides what a training run computes, as one frozen value."""

from dataclasses import dataclass
from typing import Any, Literal

from keypatch.errors import RecipeError
from keypatch.losses import (
    MEASURES,
    MINING,
    TERMS,
    WEIGHTINGS,
    AnyTerm,
    Measure,
    Mining,
    Reduction,
    ThirdPatch,
    Weighting,
)
from keypatch.networks import NETWORKS, NetworkSpec
from keypatch.sampling import SAMPLERS, AdaptivePairs, Augmentation, RandomTriplets, Sampler
from keypatch.training.optimizers import OPTIMIZERS, Optimizer
from keypatch.training.schedules import SCHEDULES, Schedule


@dataclass(frozen=True)
class Recipe:
    """Network, data order, augmentation, loss, optimizer, schedule and budget of a training.

    >>> from dataclasses import replace
    >>> replace(kp.find_recipe("hynet"), name="mine", pairs=50_000, seed=1).sampler
    RandomPairs(pairs=512)

    `branches`: the last batch normalization (and all of them in a trunk with batch normalization) sees anchors and
    positives "together" or "apart", as the authors' two forward passes do.
    """

    name: str
    network: NetworkSpec
    sampler: Sampler
    augment: Augmentation
    loss: tuple[AnyTerm, ...]
    optimizer: Optimizer
    schedule: Schedule
    pairs: int  # the budget; the schedule stretches over it
    mining: Mining | None = None  # of negatives, for the terms that compare with one
    reduction: Reduction = "mean"
    branches: Literal["together", "apart"] = "together"
    weighting: Weighting | None = None  # of the pairs, from their descriptors
    last_layer: float = 1.0  # times the learning rate, for the network's last layer with weights
    needs_weights: bool = False  # a second phase, which starts from a trained network
    average: float = 0.0  # decay per step of a moving average of the weights, which is then what is used; 0 = none
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.loss:
            raise RecipeError("A recipe needs at least one loss term.")
        if self.pairs < self.sampler.pairs:
            raise RecipeError(
                f"The budget of {self.pairs} pairs is less than one batch of {self.sampler.pairs}. "
                f"Raise --pairs or lower --set sampler.pairs."
            )
        if isinstance(self.mining, ThirdPatch) and not isinstance(self.sampler, RandomTriplets):
            raise RecipeError(
                f"Mining with ThirdPatch needs third patches, which the sampler {type(self.sampler).__name__} does not "
                "draw. Use RandomTriplets."
            )
        if self.mining is None and isinstance(self.sampler, AdaptivePairs) and self.sampler.chooses:
            raise RecipeError("AdaptivePairs measures batch difficulty by mined negatives. Give a mining.")
        if not 0 <= self.average < 1:
            raise RecipeError(
                f"average={self.average}: the decay of the moving average must be at least 0 and below 1."
            )

    @property
    def steps(self) -> int:
        return self.pairs // self.sampler.pairs


# The types a recipe file may name, by the annotation of the field. Nothing is imported by a name from a file.
TYPES: dict[Any, dict[str, Any]] = {
    NetworkSpec: NETWORKS,
    Sampler: SAMPLERS,
    Mining: MINING,
    AnyTerm: TERMS,
    Measure: MEASURES,
    Weighting: WEIGHTINGS,
    Optimizer: OPTIMIZERS,
    Schedule: SCHEDULES,
}
