"""Models of one scene that COLMAP left apart, joined where they share enough points."""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.job import BuiltModel, MappingJob, MappingOutcome, VerifiedPair
from keypatch.colmap.models import load_model
from keypatch.colmap.overlay import Matcher, agreeing_links, find_links, lay_over
from keypatch.colmap.process import run_colmap
from keypatch.errors import KeypatchError
from keypatch.features import FeatureReader
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.progress import Progress

# Two scenes that share nothing had 4 points in common by chance (6 without a ratio test), two parts of one scene 28.
ENOUGH = 12
MATCHING = Matching(ratio=0.9, model=None)  # candidates are the points of two models
MOST_PAIRS = 500  # of photos, those with the most matches, between two models

Pair = tuple[str, str]
Int64 = NDArray[np.int64]
Matched = Mapping[Pair, NDArray[np.int32]]


@dataclass(frozen=True)
class _Kept:
    """A model in its folder."""

    folder: Path
    built: BuiltModel

    @property
    def photos(self) -> set[str]:
        return set(self.built.registered)


@contextmanager
def matcher_of(features: Path, given: Matched | None) -> Iterator[Matcher]:
    """Matches between some keypoints of two photos: the given ones, or else found anew by their descriptors."""
    if given is not None:
        yield lambda *both: _look_up(given, *both)
        return
    with FeatureReader(features) as reader:
        read = lru_cache(64)(lambda name: reader.read(name).descriptors)

        def match(one: str, keypoints0: Int64, other: str, keypoints1: Int64) -> Int64:
            return match_descriptors(read(one)[keypoints0], read(other)[keypoints1], MATCHING).indices.astype(np.int64)

        yield match


def _look_up(given: Matched, one: str, keypoints0: Int64, other: str, keypoints1: Int64) -> Int64:
    rows = given[one, other] if (one, other) in given else given.get((other, one), np.empty((0, 2), np.int32))[:, ::-1]
    rows = rows[np.isin(rows[:, 0], keypoints0) & np.isin(rows[:, 1], keypoints1)]
    return np.stack([np.searchsorted(keypoints0, rows[:, 0]), np.searchsorted(keypoints1, rows[:, 1])], axis=1)


def join_models(job: MappingJob, outcome: MappingOutcome, match: Matcher, progress: Progress) -> MappingOutcome:
    """The outcome with the models joined that share points; their folders are numbered again, the largest first.

    The largest model takes up one after the other. A joined model that lost a photo, or has no more points than the
    larger part had, is dropped, and so is one on which COLMAP fails. Notes say what was joined, and what was not.
    """
    progress.note(f"joining {len(outcome.models)} models")
    until = None if job.seconds is None else time.monotonic() + job.seconds
    first, *rest = (_Kept(Path(job.models) / str(number), built) for number, built in enumerate(outcome.models))
    notes, why, growing = list(outcome.notes), dict[Path, str](), True
    while growing:
        growing = False
        for other in rest:
            try:
                joined, shared = _join(job, outcome.pairs, first, other, match, progress, until)
            except KeypatchError as error:
                why[other.folder] = str(error)
                continue
            notes.append(
                f"Two models ({first.built.size}; {other.built.size}) were joined: they share {shared:,} points."
            )
            first, rest, growing = joined, [each for each in rest if not each.photos <= joined.photos], True
            break
    for number, other in enumerate(rest, start=1):
        notes.append(f"Model {number} ({other.built.size}) could not be joined with model 0: {why[other.folder]}")
    if rest:
        notes.append(
            "Photos that link the two, more keypoints (--keypoints 8192) or a looser ratio test (--ratio 0.95) may "
            "help to join them; scenes with nothing in common stay separate."
        )
    _renumber(Path(job.models), [first, *rest])
    return replace(outcome, models=[each.built for each in (first, *rest)], notes=notes)


def _join(
    job: MappingJob,
    known: Sequence[VerifiedPair],
    first: _Kept,
    second: _Kept,
    match: Matcher,
    progress: Progress,
    until: float | None,
) -> tuple[_Kept, int]:
    """One model of two, and how many points they share; KeypatchError, saying why, if it cannot be."""
    larger, smaller = load_model(first.folder, False), load_model(second.folder, False)
    matches = {frozenset(pair.images): (pair.inliers, pair.matches) for pair in known}
    pairs = [(one, other) for one in first.built.registered for other in second.built.registered if one != other]
    pairs.sort(key=lambda pair: matches.get(frozenset(pair), (0, 0)), reverse=True)
    links = agreeing_links(larger, smaller, find_links(larger, smaller, pairs[:MOST_PAIRS], match), job.seed)
    if links.shared < ENOUGH:
        nearest = " and ".join(pairs[0]) if pairs and frozenset(pairs[0]) in matches else ""
        where = f" The nearest photos are {nearest}, with {matches[frozenset(pairs[0])][1]} matches." if nearest else ""
        raise KeypatchError(f"they share {links.shared} points, and {ENOUGH} are needed.{where}")
    left = None if until is None else until - time.monotonic()
    if left is not None and left < 1:
        raise KeypatchError("the time limit was reached.")
    work = Path(tempfile.mkdtemp(dir=job.scratch))
    begun = work / "begun"
    begun.mkdir()
    lay_over(larger, smaller, links).write_binary(str(begun))
    try:
        models = run_colmap(replace(job, begun=str(begun), models=str(work), seconds=left), progress).models
    except KeypatchError:  # which speaks of a database that is about to be moved
        models = []
    both = first.photos | second.photos
    if (
        not models
        or not both <= set(models[0].registered)
        or models[0].statistics.points <= first.built.statistics.points
    ):
        raise KeypatchError("COLMAP could not refine the two as one model.")
    joined = _Kept(work / "0", models[0])
    across = _points_across(load_model(joined.folder, False), first.photos, second.photos - first.photos)
    if across < ENOUGH:
        raise KeypatchError(f"only {across} points were left in common when the two were refined as one model.")
    return joined, across


def _points_across(model: Any, ours: set[str], theirs: set[str]) -> int:
    """The points that photos of both parts see."""
    part = {image.image_id: (image.name in ours, image.name in theirs) for image in model.images.values()}
    tracks = ([part[element.image_id] for element in point.track.elements] for point in model.points3D.values())
    return sum(any(one for one, _ in track) and any(other for _, other in track) for track in tracks)


def _renumber(folder: Path, models: Sequence[_Kept]) -> None:
    """The models as 0, 1, ... in the folder, in the place of those that were there."""
    fresh = folder.with_name("joined")
    fresh.mkdir()
    for number, each in enumerate(models):
        each.folder.rename(fresh / str(number))
    shutil.rmtree(folder)
    fresh.rename(folder)
