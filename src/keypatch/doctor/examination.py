"""`examine`: the keypoints of a file judged against the photo, or a pipeline by how it takes known changes of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from keypatch.describers.protocol import Describer
from keypatch.doctor import EXTRACTION
from keypatch.doctor.changes import Count, SameFrame, count, rescale, same_frames, shift, turn
from keypatch.doctor.stated import Image, read_stated_database, read_stated_h5, state
from keypatch.doctor.verdicts import CANNOT_TELL, FEWEST, FINE, Finding, judge, judge_bias
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction, Features, extract_grey
from keypatch.geometry.homographies import Matrix, apply_homography
from keypatch.images import PIXEL_LIMIT, read_photo
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.progress import Callback, Progress, track
from keypatch.zoo import load

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
class ViewOutcome:
    """The outcome for the keypoints under one change."""

    change: str
    count: Count
    again: int  # keypoints found again in place and scale, whatever their angles
    bias: tuple[float, float]  # median of the place found minus the place expected, pixels

    @property
    def kept(self) -> float:
        """Correct matches over keypoints found again in place and scale; nan if there are none."""
        return self.count.right / self.again if self.again else float("nan")


@dataclass(frozen=True)
class Examination:
    """What the doctor found.

    >>> found = kp.examine("photos/a.jpg", features=kp.describe("photos", "features.h5", "rootsift"))
    >>> [finding.subject for finding in found.findings]
    ['places', 'scale', 'centres', 'orientation', 'descriptors']
    """

    findings: tuple[Finding, ...]
    views: tuple[ViewOutcome, ...] = ()  # the photo under known changes; empty for a file

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(finding.verdict for finding in self.findings if finding.is_fault)

    @property
    def verdict(self) -> str:
        """The faults, "fine", or "cannot tell: ..."."""
        if self.faults:
            return "; ".join(self.faults)
        judged = [each for each in self.findings if each.subject in ("keypoints", "scale", "centres", "orientation")]
        if any(finding.verdict == FINE for finding in judged):
            return FINE
        if {finding.subject for finding in judged} >= {"scale", "centres", "orientation"}:
            return f"{CANNOT_TELL}: perhaps the keypoints of another photo, or corners"
        reasons = dict.fromkeys(finding.evidence for finding in judged)  # each once
        return f"{CANNOT_TELL}: {'; '.join(reasons)}"


def examine(
    image: str | Path,
    *,
    features: str | Path | None = None,
    database: str | Path | None = None,
    name: str | None = None,
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = EXTRACTION,
    pipeline: Pipeline | None = None,
    pixel_limit: int = PIXEL_LIMIT,
    progress: Progress | Callback | None = None,
) -> Examination:
    """Find wrong conventions by measuring: in the keypoints of a feature file or a COLMAP database, or in a pipeline.

    features, database: the file, with the keypoints of this photo under `name`; by default the photo's file name.
    describer, extraction: the pipeline to examine if no file is given.
    pipeline: your own pipeline instead, a function from a grey image (h, w) to Features.

    >>> kp.examine("photos/a.jpg", features=kp.describe("photos", "features.h5", "rootsift")).verdict
    'fine'
    """
    if sum(each is not None for each in (features, database, pipeline)) > 1:
        raise KeypatchError("Give only one of feature file, database and pipeline.")
    photo = read_photo(Path(image), pixel_limit=pixel_limit)
    if features is not None:
        return Examination(tuple(judge(photo, read_stated_h5(Path(features), Path(image).name, name))))
    if database is not None:
        return Examination(tuple(judge(photo, read_stated_database(Path(database), Path(image).name, name))))
    unit_length = True
    if pipeline is None:
        chosen = load(describer) if isinstance(describer, str | Path) else describer
        unit_length = chosen.unit_length
        pipeline = partial(extract_grey, describer=chosen, extraction=extraction)
    found = pipeline(photo)
    rows = list(try_changes(photo, pipeline, found, progress))
    return Examination(tuple(judge_pipeline(photo, found, rows, unit_length)), tuple(rows))


def try_changes(
    image: Image, pipeline: Pipeline, features: Features, progress: Progress | Callback | None = None
) -> Iterator[ViewOutcome]:
    """Run the pipeline on every changed photo and match it with the features of the photo itself."""
    for name, change in track(CHANGES.items(), "views", progress):
        changed, homography = change(image)
        found = pipeline(changed)
        matches = match_descriptors(features.descriptors, found.descriptors, Matching(ratio=None)).indices
        near = same_frames(features.keypoints, found.keypoints, homography, SameFrame(degrees=360))
        apart = found.keypoints.xy[near[:, 1]] - apply_homography(homography, features.keypoints.xy[near[:, 0]])
        bias = np.median(apart, axis=0) if len(near) >= FEWEST else (float("nan"),) * 2
        counted = count(features.keypoints, found.keypoints, homography, matches)
        yield ViewOutcome(name, counted, len(np.unique(near[:, 0])), (float(bias[0]), float(bias[1])))


def judge_pipeline(
    image: Image, features: Features, rows: list[ViewOutcome], unit_length: bool = True
) -> list[Finding]:
    """As for a file, but centres, and angles that look right or cannot be judged, by what turning the photo did."""
    stays = [each for each in judge(image, state(features, unit_length)) if each.subject != "centres"]
    by_change = {row.change: row for row in rows}
    centres = _judge_centres(by_change["turned by 180"])
    if any(each.subject == "orientation" and each.is_fault for each in stays):
        return [*stays, centres]
    return [*(each for each in stays if each.subject != "orientation"), centres, _judge_turns(by_change)]


def _judge_centres(half_turn: ViewOutcome) -> Finding:
    """A bias d that stays the same in the turned photo puts every point 2 d beside its expected place."""
    x, y = (value / 2 for value in half_turn.bias)
    return judge_bias(x, y, f"half the offset from the expected place after a half turn: ({x:+.2f}, {y:+.2f}) px")


def _judge_turns(rows: Mapping[str, ViewOutcome]) -> Finding:
    turns = {change: row for change, row in rows.items() if change.startswith("turned")}
    kept = {change: row.kept for change, row in turns.items() if row.again >= FEWEST}
    half = kept.pop("turned by 180", None)
    if half is None or not kept:
        return Finding("orientation", CANNOT_TELL, "too few keypoints were found again")
    median = float(np.median(list(kept.values())))
    evidence = (
        f"correct matches are {median:.1%} of the keypoints in place (median of all turns except the half turn), "
        f"{half:.1%} at the half turn"
    )
    if median >= KEPT:
        return Finding("orientation", FINE, evidence)
    if half >= KEPT:  # a patch turned by minus the angle comes right again after half a turn
        remedy = "Angles go clockwise on screen (kornia's go the other way): negate them where patches are cut."
        return Finding("orientation", "orientation sign is wrong", evidence, remedy)
    remedy = "Fine for upright photos; otherwise cut patches at the keypoints' angles, in radians."
    return Finding("orientation", "descriptors do not turn with the photo", evidence, remedy)
