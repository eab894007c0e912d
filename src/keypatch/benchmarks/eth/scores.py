"""Scores of a model and their intervals: photos are resampled, each with its share of the model's points."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.result import Replicates
from keypatch.colmap.job import MappingOutcome, Statistics
from keypatch.colmap.models import read_model
from keypatch.errors import KeypatchError
from keypatch.geometry.poses import Pose
from keypatch.metrics import draw_counts
from keypatch.metrics.poses import PoseErrors, pose_errors

UNITS = "photos"
NO_MODEL = Statistics(0, 0, 0, math.nan, math.nan, math.nan)

Sums = NDArray[np.float64]
# By the columns of `photo_shares`: scores as sums over photos, each with its share of every point it sees.
RATIOS: dict[str, Callable[[Sums], Sums]] = {
    "registered": lambda s: s[..., 0] / s[..., 4],
    "count.points": lambda s: s[..., 2],
    "count.observations": lambda s: s[..., 1],
    "track_length": lambda s: s[..., 1] / s[..., 2],
    "observations_per_image": lambda s: s[..., 1] / s[..., 0],
    "error.reprojection": lambda s: s[..., 3] / s[..., 2],
}


def model_scores(outcome: MappingOutcome, photos: int) -> dict[str, float]:
    """The columns of the benchmark's table; nan for means of a model that is not there."""
    numbers = outcome.statistics or NO_MODEL
    return {
        "registered": numbers.registered / photos,
        "count.images": float(photos),
        "count.registered": float(numbers.registered),
        "count.points": float(numbers.points),
        "count.observations": float(numbers.observations),
        "track_length": numbers.track_length,
        "observations_per_image": numbers.observations_per_image,
        "error.reprojection": numbers.reprojection_error,
        "count.inlier_pairs": float(len(outcome.verified)),
        "count.inlier_matches": float(sum(pair.inliers for pair in outcome.verified)),
    }


def photo_shares(model: Path | None, photos: Sequence[str]) -> Sums:
    """(photos, 5): registered, observations, points, errors of points, one; of a point seen n times an n-th for each.

    Without a model, photos have no share of any.
    """
    shares = np.zeros((len(photos), 5))
    shares[:, 4] = 1
    if model is None:
        return shares
    made = read_model(model, stand_ins=True)
    order = {name: number for number, name in enumerate(photos)}
    registered = np.array([order[name] for name in made.cameras], np.int64)
    rows, parts = registered[made.seen_by], 1 / made.points.track_lengths[made.seen]
    shares[registered, 0] = 1
    for column, weights in enumerate([np.ones(len(rows)), parts, parts * made.points.errors[made.seen]], start=1):
        shares[:, column] = np.bincount(rows, weights, len(photos))
    return shares


def model_replicates(shares: Sums) -> dict[str, Replicates]:
    """Scores on photos drawn again; the mapper is not run again, so a drawn photo brings what it has in the model.

    A draw without a registered photo has no means: nan.
    """
    count = len(shares)
    sums = np.stack([drawn @ shares for drawn in draw_counts(count)])
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: Replicates(ratio(sums), UNITS, count) for name, ratio in RATIOS.items()}


def compare_poses(model: Path, truth: Mapping[str, Pose]) -> PoseErrors | None:
    """The errors of the model's poses; None if it has too few cameras of the true ones, or all on one line."""
    try:
        return pose_errors(read_model(model, stand_ins=True).poses, truth)
    except KeypatchError:
        return None


def pose_scores(errors: PoseErrors) -> dict[str, float]:
    """Medians and largest errors of registered photos: degrees, and the unit of the true cameras."""
    return {
        "error.rotation": float(np.median(errors.rotation)),
        "error.rotation.largest": float(np.max(errors.rotation)),
        "error.position": float(np.median(errors.position)),
        "error.position.largest": float(np.max(errors.position)),
    }


def pose_replicates(errors: PoseErrors, photos: Sequence[str]) -> dict[str, Replicates]:
    """Median errors on photos drawn again; the model is not aligned again."""
    places = [photos.index(name) for name in errors.images]
    draws = [drawn[places] for drawn in draw_counts(len(photos))]
    return {
        name: Replicates(np.array([_median(np.repeat(values, drawn)) for drawn in draws]), UNITS, len(photos))
        for name, values in (("error.rotation", errors.rotation), ("error.position", errors.position))
    }


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else math.nan
