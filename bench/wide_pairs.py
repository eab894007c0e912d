"""Pairs of photographs that are hard to match, WxBS and EVD: how many of them matches solve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from poses import ESTIMATORS, SEEDS, Estimation, Matcher, told

from keypatch.benchmarks.result import Result
from keypatch.errors import DataError
from keypatch.features import Features, Photo
from keypatch.files import hash_folder, reading
from keypatch.geometry.homographies import Matrix, read_matrix
from keypatch.matching.verification import verify
from keypatch.metrics import corner_error
from keypatch.provenance import provenance

NEAR, ENOUGH = 8.0, 0.5  # WxBS: so many pixels from its epipolar line, for more than this share of the true matches
CORNERS = 10.0  # EVD: pixels of mean corner error


@dataclass(frozen=True, eq=False)
class WidePair:
    """Two photographs; true matches (n, 4) for a fundamental matrix, or the homography (3, 3)."""

    name: str
    photos: tuple[Photo, Photo]
    truth: NDArray[np.float64]
    files: tuple[Path, ...]

    def is_solved(self, estimates: Sequence[Matrix | None], size: tuple[int, int]) -> bool:
        """By the median estimate; `size` is the first photograph's."""
        if self.truth.shape == (3, 3):
            return bool(np.median([corner_error(each, self.truth, size) for each in estimates]) < CORNERS)
        errors = [epipolar_errors(each, self.truth) for each in estimates]
        return bool(np.median([np.mean(each < NEAR) for each in errors]) > ENOUGH)


def read_wide_pairs(folder: Path) -> list[WidePair]:
    """The pairs below a folder, 01.jpg and 02.jpg with corrs.txt (WxBS) or 1.jpg and 2.jpg with H_1_2 (EVD)."""
    pairs = []
    for path in [*sorted(folder.rglob("corrs.txt")), *sorted(folder.rglob("H_1_2"))]:
        stems = ("01", "02") if path.name == "corrs.txt" else ("1", "2")
        paths = [path.with_name(f"{stem}.jpg") for stem in stems]
        first, second = (Photo(each.relative_to(folder).as_posix(), each) for each in paths)
        truth = _read_matches(path) if path.name == "corrs.txt" else read_matrix(path)
        pairs.append(
            WidePair(
                path.parent.relative_to(folder).as_posix(), (first, second), truth, (first.path, second.path, path)
            )
        )
    if not pairs:
        raise DataError(f"{folder} has no pairs: photographs with corrs.txt or H_1_2 beside them. Check the path.")
    return pairs


def _read_matches(path: Path) -> NDArray[np.float64]:
    with reading(path, "list of matches, four numbers in each line"):
        return np.loadtxt(path, ndmin=2).reshape(-1, 4)


def epipolar_errors(fundamental: Matrix | None, matches: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) pixels from a point to the epipolar line of its partner, the larger of both photographs; inf without F."""
    if fundamental is None:
        return np.full(len(matches), np.inf)
    ones = np.ones((len(matches), 1))
    first, second = np.hstack([matches[:, :2], ones]), np.hstack([matches[:, 2:], ones])
    lines = second @ fundamental, first @ fundamental.T
    off = np.abs(np.sum(lines[1] * second, axis=1))
    return np.asarray(off / np.minimum(*(np.hypot(line[:, 0], line[:, 1]) for line in lines)))


def evaluate_wide_pairs(
    features: Mapping[str, Features],
    pairs: Sequence[WidePair],
    match: Matcher,
    threshold: float,
    estimators: Sequence[Estimation] = ESTIMATORS,
    seeds: Sequence[int] = SEEDS,
) -> Result:
    """How many pairs an estimator at this threshold solves, "solved.poselib", and whether one pair, "poselib.cat"."""
    solved: dict[str, float] = {}
    for pair in pairs:
        first, second = (features[photo.name] for photo in pair.photos)
        found = match(first, second).once(first.keypoints, second.keypoints)
        model = "H" if pair.truth.shape == (3, 3) else "F"
        for estimator in estimators:
            tries = [told(estimator, found, model=model, threshold=threshold, seed=seed) for seed in seeds]
            estimates = [verify(given, first.keypoints, second.keypoints, each).matrix for given, each in tries]
            solved[f"{estimator}.{pair.name}"] = float(pair.is_solved(estimates, first.image_size))
    counts = {
        f"solved.{estimator}": sum(value for name, value in solved.items() if name.startswith(f"{estimator}."))
        for estimator in estimators
    }
    return Result(
        benchmark="wide-pairs",
        descriptor=", ".join(sorted({each.descriptor for each in features.values()})),
        settings={"pairs": len(pairs), "threshold": threshold, "estimators": list(estimators), "seeds": list(seeds)},
        scores=counts | solved,
        curves={},
        provenance=provenance(data=hash_folder(path for pair in pairs for path in pair.files)),
    )
