"""What became of the pairs of a scene, and the scores of one scene or several."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.benchmarks.result import Replicates
from keypatch.describers.protocol import Progress
from keypatch.metrics import DEGREES, Curve, are_accurate, average_accuracies, bootstrap_mean


@dataclass(frozen=True, eq=False)
class SceneOutcome:
    """Of every photo and pair of a scene."""

    keypoints: NDArray[np.int64]  # (photos,)
    matches: NDArray[np.int64]  # (pairs,)
    inliers: NDArray[np.int64]  # (pairs, seeds); 0 without a pose
    errors: NDArray[np.float64]  # (pairs, seeds) degrees

    def accuracies(self, degrees: int) -> NDArray[np.float64]:
        """(pairs,): what each pair adds to mAA, the mean over seeds."""
        by_seed = [average_accuracies(errors, degrees) for errors in self.errors.T]
        return np.asarray(np.mean(by_seed, axis=0), np.float64)

    def scores(self) -> dict[str, float]:
        return {
            "maa10": float(self.accuracies(10).mean()),
            "maa5": float(self.accuracies(5).mean()),
            "failed": float(np.mean(self.inliers == 0)),
            "count.keypoints": float(self.keypoints.mean()),
            "count.matches": float(self.matches.mean()),
            "count.inliers": float(self.inliers.mean()),
        }


@dataclass
class Told:
    """Counts pairs over all scenes, and tells."""

    progress: Progress | None
    total: int
    done: int = 0

    def one_more(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def scores_of(outcomes: Mapping[str, SceneOutcome]) -> dict[str, float]:
    """The mean over scenes; of several also each one's, with its name behind a dot."""
    by_scene = {name: outcome.scores() for name, outcome in outcomes.items()}
    first = next(iter(by_scene.values()))
    means = {score: float(np.mean([scores[score] for scores in by_scene.values()])) for score in first}
    if len(by_scene) == 1:
        return means
    return means | {f"{score}.{name}": value for name, scores in by_scene.items() for score, value in scores.items()}


def curve_of(outcomes: Iterable[SceneOutcome]) -> Curve:
    """The share of accurate poses at 1, 2, ..., 10 degrees, the mean over scenes; mAA is the mean of it."""
    by_scene = [np.mean([are_accurate(errors).mean(axis=0) for errors in each.errors.T], axis=0) for each in outcomes]
    return Curve(DEGREES.astype(np.float64), np.mean(by_scene, axis=0))


def replicates_of(outcomes: Iterable[SceneOutcome], degrees: int) -> Replicates:
    """mAA with the pairs of every scene drawn again."""
    return draw_groups([each.accuracies(degrees) for each in outcomes], "photo pairs", "scene")


def draw_groups(groups: Sequence[ArrayLike], units: str, group: str, first_seed: int = 0) -> Replicates:
    """The mean over groups of their means, with the units of each drawn again, and with draws of its own.

    The interval is as wide as the smallest group asks for, whose spread is known worst; if that is of one unit, there
    is none.
    """
    means = [bootstrap_mean(values, seed=seed) for seed, values in enumerate(groups, first_seed)]
    drawn = units if len(groups) == 1 else f"{units} in the smallest {group}"
    return Replicates(np.mean(means, axis=0), drawn, min(len(np.asarray(values)) for values in groups))
