"""The candidate pass of samplers that look at the network: candidates are described, and two of them make each pair."""

from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from keypatch.losses import Described, Moment, State
from keypatch.patches import Classes
from keypatch.sampling import Draw
from keypatch.training.feeding import Batch, Batches
from keypatch.training.recipe import Recipe
from keypatch.training.stepping import Step


@runtime_checkable
class ChoosingSampler(Protocol):
    """A sampler whose draw holds candidates. Its state is explicit, and checkpoints save it."""

    @property
    def chooses(self) -> bool:
        """Whether there is a choice to make; without one the draw is the pairs."""
        ...

    def start(self, classes: Classes, dim: int) -> State: ...

    def choose(
        self, draw: Draw, descriptors: Tensor, state: State, moment: Moment | None, rng: np.random.Generator
    ) -> tuple[Draw, Tensor | None, State]:
        """The pairs; which columns of the draw they are, None where they are not among the described ones."""
        ...

    def observe(self, batch: Described, state: State, moment: Moment | None) -> State: ...


def chooser_of(recipe: Recipe) -> ChoosingSampler | None:
    """The recipe's sampler where it has a choice to make."""
    sampler = recipe.sampler
    return sampler if isinstance(sampler, ChoosingSampler) and sampler.chooses else None


def choose_pairs(
    batch: Batch, chooser: ChoosingSampler, step: Step, batches: Batches, state: State, moment: Moment
) -> tuple[Batch, State]:
    """The pairs to train on, and the sampler's next state."""
    number = int(moment.step)
    descriptors = step.candidates(batch.x)
    by_row = descriptors.view(-1, batch.pairs, descriptors.shape[1]).transpose(0, 1)  # (pairs, views, dim)
    rng = np.random.default_rng([batches.recipe.seed, number, 2])
    draw, columns, state = chooser.choose(batch.draw, by_row, state, moment, rng)
    return Batch(batches.cut(draw, number) if columns is None else batch.columns(columns), draw), state
