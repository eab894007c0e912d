"""The N-pair loss, and what the GOR authors' code has in its place."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.batch_softmax import other_pairs_of_the_point, pair_softmax
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities
from keypatch.losses.rows import by_rows


@dataclass(frozen=True)
class NPair:
    """Sohn 2016: log(1 + sum over j != i of exp(scale (a_i.p_j - a_i.p_i))), a softmax over all positives.

    The original takes raw descriptors and punishes their length: `descriptors="raw", norm_penalty=0.002`. Unit ones
    cannot get below log(1 + (n - 1) e^(-2 scale)), which for n = 1024 and the original's scale 1 is 4.94.
    """

    scale: float = 1.0
    norm_penalty: float = 0.0  # times the mean of |f|^2; 0.002 is remembered, not read
    symmetric: bool = False  # ours: the mean of both directions, each positive asking for its anchor too
    descriptors: Literal["unit", "raw"] = "unit"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.descriptors not in ("unit", "raw"):
            raise RecipeError('NPair: descriptors must be "unit" or "raw".')

    def __call__(self, batch: Described) -> Tensor:
        raw = self.descriptors == "raw"
        anchors, positives = (batch.raw_anchors, batch.raw_positives) if raw else (batch.anchors, batch.positives)
        values = pair_softmax(lambda a, p: self.scale * similarities(a, p), anchors, positives, batch, self.symmetric)
        values = values / 2 if self.symmetric else values
        return values + self.norm_penalty * (anchors.square().sum(1) + positives.square().sum(1)) / 2


@dataclass(frozen=True)
class NPairHinge:
    """The branch called N-pair in the GOR authors' code: sum over j of [margin + a_i.p_j - a_j.p_j]+.

    The sum includes j = i, which adds the margin to every value.
    """

    margin: float = 0.5
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        def sums(rows: slice, anchors: Tensor, positives: Tensor) -> Tensor:
            matching = (anchors * positives).sum(1)
            hinges = (self.margin + similarities(anchors[rows], positives) - matching).relu()
            return hinges.masked_fill(other_pairs_of_the_point(batch, rows), 0.0).sum(1)

        return by_rows(batch, batch.n, sums, batch.anchors, batch.positives)
