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
from keypatch.settings import CheckedFields, Types, Unregistered, option
from keypatch.training.optimizers import OPTIMIZERS, Optimizer
from keypatch.training.schedules import SCHEDULES, Schedule


@dataclass(frozen=True)
class Recipe(CheckedFields):
    """Network, data order, augmentation, loss, optimizer, schedule and budget of a training run.

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
    pairs: int = option(about="Training budget; the schedule is stretched to fit.", least=1)
    mining: Mining | None = None  # of negatives, for the terms that compare with one
    reduction: Reduction = "mean"
    branches: Literal["together", "apart"] = "together"
    weighting: Weighting | None = None  # of the pairs, from their descriptors
    last_layer: float = 1.0  # times the learning rate, for the network's last layer with weights
    needs_weights: bool = False  # a second phase, which starts from a trained network
    average: float = option(  # which is then what is used
        0.0, "Decay per step of a moving average of the weights; 0 disables it.", least=0, below=1
    )
    seed: int = option(0, "Seed of all random numbers.", least=0, most=2**32 - 1)
    published: bool = False  # made by `recipes.as_published`: what its paper prints, and no detector noise

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.loss:
            raise RecipeError("A recipe needs at least one loss term.")
        batch = getattr(self.sampler, "pairs", None)
        if not isinstance(batch, int) or batch < 1:
            raise RecipeError(f"sampler.pairs is {batch}; it must be 1 or more ({self.sampler}).")
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
            raise RecipeError(
                "AdaptivePairs measures batch difficulty by mined negatives. Set mining, for example to Hardest()."
            )

    @property
    def steps(self) -> int:
        return self.pairs // self.sampler.pairs

    @property
    def form(self) -> str:
        """Whether this recipe's scores compare with the paper's: as published, or with choices of ours."""
        noise = self.augment.detector_noise
        if self.published:
            return f"as published, but with detector noise {noise:g}" if noise else "as published"
        return f"with our detector noise ({noise:g})" if noise else "our choices, without detector noise"


# The types a recipe file may name, by the annotation of the field.
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
TRAINED: Types = {**TYPES, Unregistered: {}}  # of a recipe that was trained: it is read where its parts are unknown too
