"""GOR's regularization: descriptors of different points spread over the sphere."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities
from keypatch.losses.rows import by_rows

_KINDS = ("hinge", "l1", "sqrt", "l2")
_PAIRS = ("all", "roll", "third")


@dataclass(frozen=True)
class SpreadOut:
    """GOR eq. 5: M1^2 + [M2 - 1/d]+, the first two moments of the cosines of non-matching pairs. One value per batch.

    The pairs are random, never the mined ones: "third" takes each anchor with its third patch, as the authors do;
    "all" each anchor with the positives of all other points of the batch, "roll" with the one of the pair before.
    """

    kind: Literal["hinge", "l1", "sqrt", "l2"] = "hinge"  # of M2 - beta/d; "sqrt" is in the code only
    pairs: Literal["all", "roll", "third"] = "all"
    beta: float = 1.0
    weight: float = 1.0  # alpha of eq. 6, for a base loss that is a mean; the code's "l2" has it on the M2 part only

    def __post_init__(self) -> None:
        if self.kind not in _KINDS or self.pairs not in _PAIRS:
            raise RecipeError(
                f"SpreadOut: kind must be one of {', '.join(_KINDS)}, and pairs one of {', '.join(_PAIRS)}."
            )

    def __call__(self, batch: Described) -> Tensor:
        if self.pairs == "all":
            sums = by_rows(
                batch,
                batch.n,
                lambda rows, x, y: _sums(similarities(x[rows], y), ~batch.same_point(rows)),
                batch.anchors,
                batch.positives,
            )
        else:
            sums = _sums(*self._cosines(batch))
        m1, m2 = (sums[:2].sum(1) / sums[2].sum()).unbind()  # eq. 3 and 4
        return m1.square() + self._part(m2 - self.beta / batch.unit.shape[1])

    def _cosines(self, batch: Described) -> tuple[Tensor, Tensor]:
        """A cosine for each pair, and true where the two descriptors are of different points."""
        if self.pairs == "roll":
            cosines = (batch.anchors * batch.positives.roll(1, 0)).sum(1)
            ids = batch.labels[: batch.n]
            return cosines, ids != ids.roll(1)
        third = batch.unit[2 * batch.n :]
        if not len(third):
            raise KeypatchError(
                'SpreadOut with pairs="third" needs a third patch for every pair, but the batch has none. Choose the '
                'sampler RandomTriplets (or pass raw_negatives), or pairs="all".'
            )
        cosines = (batch.anchors * third).sum(1)
        return cosines, torch.ones_like(cosines, dtype=torch.bool)

    def _part(self, excess: Tensor) -> Tensor:
        if self.kind == "hinge":
            return excess.relu()
        if self.kind == "l1":
            return excess.abs()
        if self.kind == "sqrt":
            return (excess.abs() + 1e-12).sqrt()  # where M2 is just right the slope of the root has no bound
        return excess.square()


def _sums(cosines: Tensor, counted: Tensor) -> Tensor:
    """Of the cosines that count, (n,) or each row's: their sum, that of their squares, their number."""
    kept = cosines * counted
    found = torch.stack([kept, kept.square(), counted.to(kept.dtype)])
    return found.sum(-1) if cosines.ndim == 2 else found
