"""A described batch: what every loss term looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.errors import KeypatchError
from keypatch.losses.measures import EUCLIDEAN, Measure
from keypatch.losses.mining import Hardest, Mining, Negatives
from keypatch.losses.rows import Rows

_HARDEST = Hardest()
_ALL = slice(None)


@dataclass(frozen=True)
class Moment:
    """Where in a training a batch stands: what depends on the share that is done, or on the length, reads it here."""

    step: float  # steps done before this one
    steps: float  # of the whole training

    @property
    def share(self) -> float:
        return self.step / self.steps


@dataclass(frozen=True, eq=False)
class Described:
    """n matching pairs: their descriptors, the negatives mined for them (once, for all terms) and their weights.

    `raw` and `unit` (2n, d) stack anchors and positives, (3n, d) with third patches; `negatives` are rows of the stack.
    """

    raw: Tensor
    unit: Tensor
    n: int
    point_id: Tensor | None = None  # (n,), equal ids are never negatives of each other; None: all points differ
    negatives: Negatives | None = None
    weights: Tensor | None = None  # (n,), detached; None: all one
    moment: Moment | None = None  # None: no training, or its end
    maps: Mapping[str, Tensor] = field(default_factory=dict)  # flattened layers of the network (2n, features), by name
    generator: torch.Generator | None = None  # of random choices; None: torch's own, of the device
    rows: Rows | None = None  # which pairs are this process's, where several share the batch; None: all
    teacher: Tensor | None = None  # another describer's unit descriptors, a row for each row of `unit`

    @classmethod
    def of_pairs(
        cls,
        raw_anchors: Tensor,
        raw_positives: Tensor,
        mining: Mining | None = _HARDEST,
        *,
        point_id: Tensor | None = None,
        raw_negatives: Tensor | None = None,
        weights: Tensor | None = None,
        moment: Moment | None = None,
        maps: Mapping[str, Tensor] | None = None,
        generator: torch.Generator | None = None,
        rows: Rows | None = None,
        teacher: Tensor | None = None,
    ) -> "Described":
        """Row i of both (n, d) tensors shows the same point. Makes unit descriptors and mines, in float32 or float64.

        `raw_negatives` (n, d) are third patches, `teacher` has a row for each anchor, then each positive, then each of
        these. Raises KeypatchError where a pair has no valid negative.
        """
        parts = [raw_anchors, raw_positives] if raw_negatives is None else [raw_anchors, raw_positives, raw_negatives]
        _check_shapes(parts, {"point_id": point_id, "weights": weights})
        raw = torch.cat([_widen(part) for part in parts])
        if teacher is not None and len(teacher) != len(raw):
            raise KeypatchError(
                f"teacher must have a row for each of the {len(raw)} descriptors; found {len(teacher)}."
            )
        # The floor leaves every real descriptor exact and bounds the gradient of a zero one.
        unit = normalize(raw, dim=1, eps=1e-6)
        batch = cls(raw, unit, len(raw_anchors), point_id, None, weights, moment, maps or {}, generator, rows, teacher)
        return batch if mining is None else replace(batch, negatives=mining(batch))

    @property
    def anchors(self) -> Tensor:
        return self.unit[: self.n]

    @property
    def positives(self) -> Tensor:
        return self.unit[self.n : 2 * self.n]

    @property
    def raw_anchors(self) -> Tensor:
        return self.raw[: self.n]

    @property
    def raw_positives(self) -> Tensor:
        return self.raw[self.n : 2 * self.n]

    @property
    def raw_negatives(self) -> Tensor | None:
        return self.raw[2 * self.n :] if len(self.raw) > 2 * self.n else None

    @property
    def labels(self) -> Tensor:
        """(2n,): the point of each row of the stack [anchors; positives]; the row's number where no ids were given."""
        ids = torch.arange(self.n, device=self.unit.device) if self.point_id is None else self.point_id
        return torch.cat([ids, ids])

    def same_point(self, rows: slice = _ALL) -> Tensor:
        """(n, n) or some of its rows, true where pairs i and j show the same point, so on the diagonal."""
        ids = self.labels[: self.n]
        return ids[rows, None] == ids[None, :]

    def positive_distances(self, measure: Measure = EUCLIDEAN) -> Tensor:
        """Anchor to positive, (n,)."""
        if measure.of_raw:
            return measure(self.raw_anchors, self.raw_positives)
        return measure(self.anchors, self.positives)

    def negative_distances(self, measure: Measure = EUCLIDEAN) -> Tensor:
        """Between the two ends of each pair's negative, (n,)."""
        if self.negatives is None:
            raise KeypatchError(
                "The loss needs a negative for each pair, but none was mined. Set mining, for example to Hardest()."
            )
        stack = self.raw if measure.of_raw else self.unit
        distances = measure(stack[self.negatives.first.flatten()], stack[self.negatives.second.flatten()])
        return distances.view(-1, self.n).amin(0)


def _widen(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _check_shapes(parts: list[Tensor], per_pair: dict[str, Tensor | None]) -> None:
    shapes = [tuple(part.shape) for part in parts]
    if len(shapes) > 1 and len(shapes[0]) == 2 and shapes[1] == shapes[0][:1]:  # embeddings and labels
        raise KeypatchError(
            f"Anchors have shape {shapes[0]} and positives {shapes[1]}, the shape of labels. A loss takes pairs: "
            "anchors and positives of one shape, row i of both showing the same point; labels are given as point_id=."
        )
    if len(shapes[0]) != 2 or shapes[0][0] == 0 or any(shape != shapes[0] for shape in shapes):
        raise KeypatchError(
            "Descriptors must be tensors of one shape (pairs, dimensions) with at least one pair, row i belonging to "
            f"pair i; found the shapes {', '.join(map(str, shapes))}."
        )
    n = shapes[0][0]
    for name, value in per_pair.items():
        if value is not None and tuple(value.shape) != (n,):
            raise KeypatchError(f"{name} must have one entry per pair, ({n},); found shape {tuple(value.shape)}.")
