"""Photographs turned in steps of 15 degrees: of the keypoints found again, how many are matched correctly?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import KeptFeatures
from keypatch.benchmarks.contamination import seen_photos
from keypatch.benchmarks.result import Replicates, Result, provenance_of
from keypatch.benchmarks.stages import BenchmarkExtraction
from keypatch.describers.protocol import Describer
from keypatch.doctor.changes import SameFrame, same_frames, turn
from keypatch.errors import DataError
from keypatch.features import find_photos, read_photo
from keypatch.files import hash_file, hash_folder
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.metrics import Curve, bootstrap, bootstrap_mean
from keypatch.progress import Progress, track
from keypatch.settings import CheckedFields, option


@dataclass(frozen=True)
class Rotation(CheckedFields):
    """By how much photographs are turned, and which frames count as the same afterwards."""

    extraction: BenchmarkExtraction = option(factory=BenchmarkExtraction)
    step: int = option(15, "Degrees between rotations, clockwise.", least=1, below=360)
    pixels: float = option(3.0, "Largest distance in pixels between corresponding frames.")
    octaves: float = option(0.25, "Largest scale difference between corresponding frames, in octaves.")
    degrees: float = option(15.0, "Largest angle difference between corresponding frames, in degrees.")

    @property
    def turns(self) -> tuple[int, ...]:
        """Degrees, without 0 and 360."""
        return tuple(range(self.step, 360, self.step))

    @property
    def same(self) -> SameFrame:
        return SameFrame(self.pixels, self.octaves, self.degrees)


@dataclass(frozen=True, eq=False)
class Turned:
    """Which keypoints of a photograph were found again and matched, (turns, keypoints)."""

    found: NDArray[np.bool_]  # the turned photograph has one of the same frame
    matched: NDArray[np.bool_]  # one of these is its match

    def shares(self) -> NDArray[np.float64]:
        """(turns,): of the keypoints found again, those matched correctly."""
        return np.asarray(self.matched.sum(axis=1) / self.found.sum(axis=1))

    def replicate(self, counts: NDArray[np.int64]) -> float:
        """The mean of the shares if each keypoint counts so often; nan if none was found again at some turn."""
        found = self.found @ counts
        return float(np.mean(self.matched @ counts / found)) if found.all() else float("nan")


def evaluate_rotation(
    describer: Describer,
    data: str | Path | Sequence[str | Path],
    settings: Rotation = Rotation(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """The share of keypoints matched correctly in photographs (images, folders or lists) that are turned.

    A keypoint is found again if the turned photograph has one with the same frame: within 3 pixels, a quarter octave
    and 15 degrees of where the turn carries it. It is matched correctly if its mutual nearest neighbour among all
    keypoints is one of these; of equally near ones none is its match. Scores: "share.<degrees>", the mean over
    photographs; "share", the mean of all; "lowest", the lowest of any photograph and turn; "found_again", the mean
    share of keypoints found again. A curve "share.<photograph>" over the degrees for each. Intervals are over
    photographs, of a single one over its keypoints.
    """
    photos = find_photos([data] if isinstance(data, str | Path) else data)
    kept = KeptFeatures(describer, settings.extraction)
    turned = {photo.name: turn_photo(photo.path, kept, settings) for photo in track(photos, "photos", progress)}
    shares = np.array([each.shares() for each in turned.values()])  # (photographs, turns)
    again = np.array([each.found.mean() for each in turned.values()])
    by_turn = zip(settings.turns, shares.mean(axis=0), strict=True)
    degrees = np.array(settings.turns)
    tolerances = {"step": settings.step, **asdict(settings.same)}
    return Result(
        benchmark="rotation",
        descriptor=describer.name,
        settings={"data": ", ".join(turned), **tolerances, "features": dict(kept.settings)},
        scores={
            "share": float(shares.mean()),
            "lowest": float(shares.min()),
            "found_again": float(again.mean()),
            **{f"share.{turned_by:03}": float(mean) for turned_by, mean in by_turn},
        },
        curves={f"share.{name}": Curve(degrees, row) for name, row in zip(turned, shares, strict=True)},
        provenance=provenance_of(describer, hash_folder(photo.path for photo in photos)),
        replicates=_replicates(list(turned.values()), shares),
        contamination=seen_photos(describer, photos),
    )


def turn_photo(path: Path, kept: KeptFeatures, settings: Rotation) -> Turned:
    """Find and match the keypoints of a photograph again at each turn.

    Raises:
        DataError: nothing was found again at one of them.
    """
    image, key = read_photo(path), hash_file(path)
    upright = kept.read(key, lambda: image)
    rows = []
    for degrees in settings.turns:
        pixels, homography = turn(image, degrees)
        features = kept.read(f"{key}-{degrees}", partial(np.asarray, pixels))
        same = same_frames(upright.keypoints, features.keypoints, homography, settings.same)
        matches = match_descriptors(upright.descriptors, features.descriptors, Matching(ratio=None)).indices
        right = same[np.isin(same @ [len(features), 1], matches @ [len(features), 1])]
        rows.append([np.isin(np.arange(len(upright)), pairs[:, 0]) for pairs in (same, right)])
        if not len(same):
            raise DataError(
                f"No keypoint of {path.name} was found again after a turn of {degrees} degrees. "
                "Choose a photo with more texture."
            )
    found, matched = zip(*rows, strict=True)
    return Turned(np.array(found), np.array(matched))


def _replicates(turned: Sequence[Turned], shares: NDArray[np.float64]) -> dict[str, Replicates]:
    """Of "share": one photograph is no sample of photographs, but its keypoints are one of its own."""
    if len(turned) > 1:
        return {"share": Replicates(bootstrap_mean(shares.mean(axis=1)), "photos", len(turned))}
    [only] = turned
    keypoints = only.found.shape[1]
    return {"share": Replicates(bootstrap(only.replicate, keypoints), "keypoints", keypoints)}
