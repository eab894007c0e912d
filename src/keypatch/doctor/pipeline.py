"""A whole pipeline, photo to features, judged by how it takes known changes of the photo."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from keypatch.doctor.changes import Image, rescale, shift, turn
from keypatch.doctor.counting import Count, SameFrame, count, same_frames
from keypatch.doctor.judging import FEWEST, judge
from keypatch.doctor.stated import state
from keypatch.doctor.verdicts import CANNOT_TELL, FINE, Finding, judge_bias
from keypatch.features.features import Features
from keypatch.geometry.homographies import Matrix, apply_homography
from keypatch.matching.neighbours import match_descriptors

Pipeline = Callable[[Image], Features]

STEP = 15  # degrees
KEPT = 0.5  # correct matches over keypoints found again: 0.88 and more in right pipelines, 0.2 and less in wrong ones

SCALES = (0.5, 0.7, 1.4, 2.0)
SHIFTS = ((0.5, 0.0), (0.25, 0.25), (0.5, 0.5))  # pixels right and down
CHANGES: Mapping[str, Callable[[Image], tuple[Image, Matrix]]] = {
    **{f"turned by {angle}": partial(turn, degrees=angle) for angle in range(STEP, 360, STEP)},
    **{f"{factor:g} times as large": partial(rescale, factor=factor) for factor in SCALES},
    **{f"shifted by {x:g}, {y:g}": partial(shift, x=x, y=y) for x, y in SHIFTS},
}


@dataclass(frozen=True)
class Row:
    """What became of the keypoints under one change."""

    change: str
    count: Count
    again: int  # keypoints found again in place and scale, whatever their angles
    bias: tuple[float, float]  # median of the place found minus the place expected, pixels

    @property
    def kept(self) -> float:
        """Correct matches over keypoints found again in place and scale; nan if there are none."""
        return self.count.right / self.again if self.again else float("nan")


def try_changes(image: Image, pipeline: Pipeline, features: Features) -> Iterator[Row]:
    """Run the pipeline on every changed photo and match it with the features of the photo itself."""
    for name, change in CHANGES.items():
        changed, homography = change(image)
        found = pipeline(changed)
        matches = match_descriptors(features.descriptors, found.descriptors).indices
        near = same_frames(features.keypoints, found.keypoints, homography, SameFrame(degrees=360))
        apart = found.keypoints.xy[near[:, 1]] - apply_homography(homography, features.keypoints.xy[near[:, 0]])
        bias = np.median(apart, axis=0) if len(near) >= FEWEST else (float("nan"),) * 2
        counted = count(features.keypoints, found.keypoints, homography, matches)
        yield Row(name, counted, len(np.unique(near[:, 0])), (float(bias[0]), float(bias[1])))


def judge_pipeline(image: Image, features: Features, rows: list[Row], unit_length: bool = True) -> list[Finding]:
    """As for a file, but centres, and angles that look right or cannot be judged, by what turning the photo did."""
    stays = [each for each in judge(image, state(features, unit_length)) if each.subject != "centres"]
    by_change = {row.change: row for row in rows}
    centres = _judge_centres(by_change["turned by 180"])
    if any(each.subject == "orientation" and each.is_fault for each in stays):
        return [*stays, centres]
    return [*(each for each in stays if each.subject != "orientation"), centres, _judge_turns(by_change)]


def _judge_centres(half_turn: Row) -> Finding:
    """A bias d that stays the same in the turned photo puts every point 2 d beside its expected place."""
    x, y = (value / 2 for value in half_turn.bias)
    return judge_bias(x, y, f"half of the way from the expected place after a half turn: ({x:+.2f}, {y:+.2f}) px")


def _judge_turns(rows: Mapping[str, Row]) -> Finding:
    turns = {change: row for change, row in rows.items() if change.startswith("turned")}
    kept = {change: row.kept for change, row in turns.items() if row.again >= FEWEST}
    half = kept.pop("turned by 180", None)
    if half is None or not kept:
        return Finding("orientation", CANNOT_TELL, "too few keypoints were found again")
    median = float(np.median(list(kept.values())))
    evidence = (
        f"correct matches are {median:.1%} of the keypoints in place (median of all turns but the half one), "
        f"{half:.1%} at the half turn"
    )
    if median >= KEPT:
        return Finding("orientation", FINE, evidence)
    if half >= KEPT:  # a patch turned by minus the angle comes right again after half a turn
        remedy = "Angles go clockwise on screen (kornia's the other way): negate them where patches are cut."
        return Finding("orientation", "orientation sign is wrong", evidence, remedy)
    remedy = "Good for photos taken upright; else give the patches the keypoints' angles, in radians."
    return Finding("orientation", "descriptors do not turn with the photo", evidence, remedy)
