"""`Matching`: how descriptors are matched, and the geometry that matches must agree with."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from keypatch.errors import KeypatchError
from keypatch.settings import CheckedFields, brief, option

Mode = Literal["mutual", "one-way"]
Sides = Literal["both", "first"]
Neighbours = Literal["tiles", "faiss", "flann"]
Model = Literal["F", "E", "H"]
Estimator = Literal["magsac", "poselib", "degensac"]


@dataclass(frozen=True)
class Matching(CheckedFields):
    """Which nearest neighbours are matches, and how matches are verified by the geometry of the two views.

    The default ratio was chosen by measuring: docs/results/defaults.md.

    >>> kp.Matching(ratio=0.8, model="H").threshold
    1.0
    """

    mode: Mode = option("mutual", "mutual: each is the other's nearest neighbour; one-way: first image to second only.")
    ratio: float | None = option(
        0.9, "Ratio test: largest ratio of nearest to second-nearest distance; 1 disables it.", above=0, most=1
    )
    ratio_sides: Sides = option("both", "Apply the ratio test from both images or only from the first (mutual mode).")
    model: Model | None = option("F", "Geometric model that matches must fit: F, E (needs intrinsics), H or none.")
    estimator: Estimator = option("magsac", "Robust estimator: magsac (OpenCV), poselib, or degensac (F only).")
    threshold: float = option(1.0, "Inlier threshold of the estimator in pixels.", above=0)
    seed: int = option(0, "Random seed of the estimator.")
    neighbours: Neighbours = option("tiles", "Nearest-neighbour search: tiles or faiss (exact), flann (approximate).")
    confidence: float = option(0.99999, "Confidence at which the estimator stops.", above=0, below=1)
    iterations: int = option(10_000, "Most iterations the estimator may take.", least=1)

    __repr__ = brief

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.estimator == "degensac" and self.model not in ("F", None):
            raise KeypatchError(
                f'degensac only estimates fundamental matrices. Use model "F", or magsac for "{self.model}".'
            )

    def settings(self) -> dict[str, Any]:
        """What the matches depend on, as plain values by name."""
        dropped = set() if self.neighbours == "flann" else {"neighbours"}  # the others are exact
        dropped |= {name for name in ("confidence", "iterations") if getattr(self, name) == getattr(Matching, name)}
        if self.model is None:
            dropped |= {"estimator", "threshold", "seed", "confidence", "iterations"}
        return {name: value for name, value in asdict(self).items() if name not in dropped}
