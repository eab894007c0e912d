"""`Matching`: how descriptors are matched, and the geometry that matches must agree with."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from keypatch.detection import DETECTOR_TYPES
from keypatch.errors import KeypatchError
from keypatch.matching.adalam import AdaLAM
from keypatch.settings import CheckedFields, Types, brief, checked, option, type_name

Mode = Literal["mutual", "one-way"]
Sides = Literal["both", "first"]
Neighbours = Literal["tiles", "faiss", "flann"]
Model = Literal["F", "E", "H"]
Estimator = Literal["poselib", "magsac", "degensac"]

FILTER_TYPES: Types = {AdaLAM: {"adalam": AdaLAM}}
PHOTO_TYPES: Types = {**DETECTOR_TYPES, **FILTER_TYPES}  # what settings of describing and matching may name


@dataclass(frozen=True)
class Matching(CheckedFields):
    """Which nearest neighbours count as matches, and how matches are verified by the geometry of the two views.

    With both a ratio and a filter, a match must pass only one of them. The defaults were chosen by measurement:
    docs/results/defaults.md.

    >>> kp.Matching(ratio=0.8, model="H").threshold
    1.0
    >>> kp.Matching(filter=None).filter is None
    True
    """

    mode: Mode = option("mutual", "mutual: each is the other's nearest neighbour; one-way: first image to second only.")
    ratio: float | None = option(
        0.9, "Ratio test: largest ratio of nearest to second-nearest distance; 1 disables it.", above=0, most=1
    )
    apart: float = option(
        0.0,
        "In the ratio test, take the second neighbour at least this many pixels from the first; 0 takes any.",
        least=0,
    )
    ratio_sides: Sides = option("both", "Apply the ratio test from both images or only from the first (mutual mode).")
    turn: float = option(
        60.0,
        "Largest deviation of a match from the pair's dominant rotation, in degrees; 180 keeps all matches.",
        above=0,
        most=180,
    )
    filter: AdaLAM | None = option(
        factory=AdaLAM, about="Also keep matches that fail the ratio test but agree with the matches around them."
    )
    model: Model | None = option("F", "Geometric model that matches must fit: F, E (see --intrinsics), H or none.")
    estimator: Estimator = option("poselib", "Robust estimator: poselib, magsac (OpenCV), or degensac (F only).")
    threshold: float = option(1.0, "Inlier threshold of the estimator, in pixels.", above=0)
    seed: int = option(0, "Random seed of the estimator.")
    tries: int = option(
        1,
        "Estimates per kind of match; the one with the most support among nearest neighbours, beyond chance, wins.",
        least=1,
    )
    neighbours: Neighbours = option("tiles", "Nearest-neighbour search: tiles or faiss (exact), flann (approximate).")
    confidence: float = option(0.99999, "Confidence at which the estimator stops.", above=0, below=1)
    iterations: int = option(10_000, "Maximum number of estimator iterations.", least=1)

    __repr__ = brief

    def __post_init__(self) -> None:
        if isinstance(self.filter, str):
            object.__setattr__(self, "filter", checked(self.filter, AdaLAM | None, "filter", FILTER_TYPES))
        super().__post_init__()
        if self.estimator == "degensac" and self.model not in ("F", None):
            raise KeypatchError(
                f'degensac only estimates fundamental matrices. Use model "F", or magsac for "{self.model}".'
            )

    @property
    def judges(self) -> bool:
        """Whether several models are estimated and the best one is chosen."""
        return self.model is not None and (self.tries > 1 or self.filter is not None)

    def plain(self) -> dict[str, Any]:
        """Every field as a plain value; the filter by its name, plus any of its parameters that were changed."""
        changed = () if self.filter is None else asdict(self.filter).items() - asdict(AdaLAM()).items()
        named = {"filter": self.filter and type_name(self.filter, FILTER_TYPES)}
        return asdict(self) | named | {f"filter.{name}": value for name, value in sorted(changed)}

    def settings(self) -> dict[str, Any]:
        """What the matches depend on, as plain values by name."""
        dropped = set() if self.neighbours == "flann" else {"neighbours"}  # the others are exact
        dropped |= {name for name in ("confidence", "iterations") if getattr(self, name) == getattr(Matching, name)}
        if self.model is None:
            dropped |= {"estimator", "threshold", "seed", "tries", "confidence", "iterations"}
        return {name: value for name, value in self.plain().items() if name not in dropped}
