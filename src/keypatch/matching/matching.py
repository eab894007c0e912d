"""From the features of two photographs to their matches."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import ArrayLike

from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.matching.matches import Matches, Model
from keypatch.matching.neighbours import Mode, Sides, check_choices, match_descriptors
from keypatch.matching.verifying import Estimator, check_estimation, check_intrinsics, verify


@dataclass(frozen=True)
class Matching:
    """How features are matched: the neighbours that are taken, and the geometry that they must agree with."""

    mode: Mode = "mutual"
    ratio: float | None = 0.9  # chosen by measuring: docs/results/defaults.md
    ratio_sides: Sides = "both"  # from where the ratio is tested; "one-way" is from the first photo always
    model: Model | None = "F"  # None: matches are not verified
    estimator: Estimator = "magsac"
    threshold: float = 1.0  # pixels
    seed: int = 0
    neighbours: str = "tiles"
    device: str = "auto"

    def __post_init__(self) -> None:
        check_choices(self.ratio, self.mode, self.neighbours, self.ratio_sides)
        check_estimation(self.model or "F", self.estimator, self.threshold)

    def check_intrinsics(self, intrinsics: Sequence[ArrayLike] | None) -> None:
        """KeypatchError if the model needs other ones, or none; before the work, not in its middle."""
        if self.model == "E":
            check_intrinsics(intrinsics)
        elif intrinsics is not None:
            raise KeypatchError('Intrinsics are only for an essential matrix. Take the model "E", or leave them out.')

    def settings(self) -> dict[str, Any]:
        """What the matches depend on, as plain values by name."""
        dropped = {"device"} | (set() if self.neighbours == "flann" else {"neighbours"})  # the others are exact
        if self.model is None:
            dropped |= {"estimator", "threshold", "seed"}
        return {name: value for name, value in asdict(self).items() if name not in dropped}


def match_features(
    first: Features,
    second: Features,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    intrinsics: Sequence[ArrayLike] | None = None,
) -> tuple[Matches, Matches]:
    """All matches, and those left by the verification; without one they are the same."""
    if first.descriptor != second.descriptor:
        raise KeypatchError(
            f"Descriptors of {first.descriptor} and {second.descriptor} cannot be compared. Describe both photos alike."
        )
    found = match_descriptors(
        first.descriptors,
        second.descriptors,
        matching.ratio,
        matching.mode,
        ratio_sides=matching.ratio_sides,
        neighbours=matching.neighbours,
        device=matching.device,
    )
    if matching.model is None:
        return found, found
    left = verify(
        found,
        first.keypoints,
        second.keypoints,
        matching.model,
        matching.estimator,
        matching.threshold,
        intrinsics,
        matching.seed,
    )
    return found, left
