"""`examine`: the doctor by names and files, as the command `keypatch doctor` calls it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from keypatch.detection import Detector, make_detector
from keypatch.doctor.judging import judge
from keypatch.doctor.pipeline import CHANGES, Pipeline, Row, judge_pipeline, try_changes
from keypatch.doctor.stated_files import read_stated_database, read_stated_h5
from keypatch.doctor.verdicts import CANNOT_TELL, FINE, Finding
from keypatch.errors import KeypatchError
from keypatch.features.extracting import Extraction, extract
from keypatch.features.photos import PIXEL_LIMIT, read_photo
from keypatch.zoo import find


@dataclass(frozen=True)
class Examination:
    """What the doctor found."""

    findings: tuple[Finding, ...]
    rows: tuple[Row, ...] = ()  # the table of changes; empty for a file

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
    descriptor: str = "hynet-notredame",
    detector: str | Detector = "dog",
    keypoints: int | None = 1000,
    pipeline: Pipeline | None = None,
    pixel_limit: int = PIXEL_LIMIT,
    device: str = "auto",
    precision: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Examination:
    """Judge the keypoints that a feature file or a COLMAP database has of a photo, or else a pipeline.

    The pipeline is the detector with the descriptor, or a function of one's own from a grey image to Features. `name`
    is the photo's in the file; by default its file name. `keypoints` is the most of a photo, None for all.
    """
    if sum(each is not None for each in (features, database, pipeline)) > 1:
        raise KeypatchError("Give one of a feature file, a database and a pipeline, not more of them.")
    photo = read_photo(Path(image), pixel_limit=pixel_limit)
    if features is not None:
        return Examination(tuple(judge(photo, read_stated_h5(Path(features), Path(image).name, name))))
    if database is not None:
        return Examination(tuple(judge(photo, read_stated_database(Path(database), Path(image).name, name))))
    unit_length = True
    if pipeline is None:
        chosen = make_detector(detector) if isinstance(detector, str) else detector
        describer = find(descriptor, device=device, precision=precision)
        unit_length = describer.unit_length
        pipeline = partial(extract, describer=describer, extraction=Extraction(chosen, keypoints))
    found = pipeline(photo)
    rows = list[Row]()
    for row in try_changes(photo, pipeline, found):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(CHANGES))
    return Examination(tuple(judge_pipeline(photo, found, rows, unit_length)), tuple(rows))
