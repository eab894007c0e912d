"""What matching two photographs gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.matching.judging import transfer_errors
from keypatch.matching.matches import Matches, Model
from keypatch.matching.matching import Matching
from keypatch.matching.verifying import FEWEST

# Of 15 pairs of unrelated photos with 2,048 keypoints each, 13 to 19 matches agreed with one fundamental matrix.
BY_CHANCE = 25

_MODEL_NAMES = {"F": "fundamental matrix", "E": "essential matrix", "H": "homography"}


@dataclass(frozen=True, eq=False)
class Truth:
    """The true homography, x1 ~ H x0, and how many pixels off a match still counts as right."""

    homography: NDArray[np.float64]
    within: float = 3.0

    def __post_init__(self) -> None:
        if self.homography.shape != (3, 3) or not np.isfinite(self.homography).all():
            raise KeypatchError(f"A homography is a finite 3x3 matrix, not one of {self.homography.shape} numbers.")
        if not 0 < self.within < np.inf:
            raise KeypatchError(f"Matches within {self.within} pixels were asked for; it must be above 0.")


@dataclass(frozen=True, eq=False)
class MatchedPhotos:
    """The features of two photos, all their matches, and those that agree with one geometry."""

    names: tuple[str, str]
    features: tuple[Features, Features]
    candidates: Matches
    matches: Matches  # the candidates that are left by the verification
    matching: Matching
    truth: Truth | None = None

    def right(self, matches: Matches) -> NDArray[np.bool_]:
        """Which of the matches are right, by the true homography."""
        if self.truth is None:
            raise ValueError("without the true homography nothing is known to be right")
        first, second = (self.features[side].keypoints.xy[matches.indices[:, side]] for side in (0, 1))
        return transfer_errors(self.truth.homography, first, second) <= self.truth.within

    def counts(self) -> dict[str, int]:
        counts = {"keypoints0": len(self.features[0]), "keypoints1": len(self.features[1])}
        counts["matches"] = len(self.candidates)
        if self.matches.verified:
            counts["verified"] = len(self.matches)
        if self.truth is not None:
            counts["right"] = int(self.right(self.candidates).sum())
            if self.matches.verified:
                counts["right_verified"] = int(self.right(self.matches).sum())
        return counts

    def sentences(self) -> list[str]:
        """The counts as a person reads them, a line each."""
        counts, matching = self.counts(), self.matching
        photos = [f"{name}: {len(one):,} keypoints" for name, one in zip(self.names, self.features, strict=True)]
        neighbours = "mutual nearest neighbours" if matching.mode == "mutual" else "nearest neighbours one way"
        ratio = "" if matching.ratio is None else f", ratio {matching.ratio:g}"
        if ratio and matching.mode == "mutual" and matching.ratio_sides == "first":
            ratio += " seen from the first photo"
        lines = [f"{photos[0]}, {photos[1]}, described by {self.features[0].descriptor}"]
        lines.append(f"{counts['matches']:,} matches: {neighbours}{ratio}{self._share_right('right', 'matches')}")
        if matching.model is not None:
            lines.append(self._verified(matching.model, counts) + self._share_right("right_verified", "verified"))
        return lines

    def _verified(self, model: Model, counts: dict[str, int]) -> str:
        if counts["matches"] < FEWEST[model]:
            return f"too few to verify: one {_MODEL_NAMES[model]} takes {FEWEST[model]} matches"
        agree = f"{counts['verified']:,} agree with one {_MODEL_NAMES[model]} within {self.matching.threshold:g} px"
        doubtful = model == "F" and counts["verified"] < BY_CHANCE
        return agree + "; so few do in unrelated photos too" * doubtful

    def _share_right(self, right: str, all_: str) -> str:
        counts = self.counts()
        if self.truth is None or not counts[all_]:
            return ""
        return f"; {counts[right]:,} right ({counts[right] / counts[all_]:.1%}), within {self.truth.within:g} px"
