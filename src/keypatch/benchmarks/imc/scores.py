"""The scores of stereo and multiview: of pairs and of bags, of one scene or several."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.benchmarks.imc.bags import Bag, BagOutcome
from keypatch.benchmarks.result import Replicates
from keypatch.metrics import DEGREES, Curve, are_accurate, average_accuracies, bootstrap_mean
from keypatch.progress import Progress

Outcomes = Mapping[str, Sequence[tuple[Bag, BagOutcome]]]  # by scene
Measure = Callable[[Bag, BagOutcome], float]
GROUP = "group"  # bags of one size and scene
MEASURES: dict[str, Measure] = {
    "maa10": lambda _, outcome: float(average_accuracies(outcome.errors, 10).mean()),
    "maa5": lambda _, outcome: float(average_accuracies(outcome.errors, 5).mean()),
    "registered": lambda bag, outcome: outcome.registered / bag.size,
    "count.points": lambda _, outcome: float(outcome.points),
    "track_length": lambda _, outcome: np.nan if outcome.track_length is None else outcome.track_length,
}


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
class Tally:
    """Counts pairs or bags over all scenes."""

    progress: Progress | None
    unit: str
    total: int
    done: int = 0

    def one_more(self) -> None:
        self.done += 1
        Progress.of(self.progress).count(self.done, self.total, self.unit)


def stereo_scores(outcomes: Mapping[str, SceneOutcome]) -> dict[str, float]:
    """The mean over scenes; of several also each one's, with its name behind a dot."""
    by_scene = {name: outcome.scores() for name, outcome in outcomes.items()}
    first = next(iter(by_scene.values()))
    means = {score: float(np.mean([scores[score] for scores in by_scene.values()])) for score in first}
    if len(by_scene) == 1:
        return means
    return means | {f"{score}.{name}": value for name, scores in by_scene.items() for score, value in scores.items()}


def stereo_curve(outcomes: Iterable[SceneOutcome]) -> Curve:
    """The share of accurate poses at 1, 2, ..., 10 degrees, the mean over scenes; mAA is the mean of it."""
    by_scene = [np.mean([are_accurate(errors).mean(axis=0) for errors in each.errors.T], axis=0) for each in outcomes]
    return Curve(DEGREES.astype(np.float64), np.mean(by_scene, axis=0))


def stereo_replicates(outcomes: Iterable[SceneOutcome], degrees: int) -> Replicates:
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


def sizes_of(outcomes: Outcomes) -> list[int]:
    return sorted({bag.size for found in outcomes.values() for bag, _ in found})


def bag_scores(outcomes: Outcomes) -> dict[str, float]:
    """Every measure under its name, and that of bags of five under "<name>.bag5"; of scenes also "maa10.<scene>".

    The track length is the mean over bags with a model, nan where there is none.
    """
    scores = {}
    for name, measure in MEASURES.items():
        values = {size: _values(outcomes, size, measure) for size in sizes_of(outcomes)}
        by_size = {size: _defined_mean([_defined_mean(some) for some in by_scene]) for size, by_scene in values.items()}
        scores[name] = _defined_mean(list(by_size.values()))
        scores |= {f"{name}.bag{size}": value for size, value in by_size.items()}
    if len(outcomes) > 1:
        scores |= {f"maa10.{name}": bag_scores({name: found})["maa10"] for name, found in outcomes.items()}
    return scores


def bag_replicates(outcomes: Outcomes) -> dict[str, Replicates]:
    """mAA with the bags of every size and scene drawn again."""
    sizes, replicates = sizes_of(outcomes), dict[str, Replicates]()
    for name in ("maa10", "maa5"):
        by_size = [
            draw_groups(_values(outcomes, size, MEASURES[name]), "bags", GROUP, first_seed=place * len(outcomes))
            for place, size in enumerate(sizes)
        ]
        mean = np.mean([drawn.values for drawn in by_size], axis=0)
        units = by_size[0].units if len(sizes) == 1 else f"bags in the smallest {GROUP}"
        replicates[name] = Replicates(mean, units, min(drawn.count for drawn in by_size))
        replicates |= {f"{name}.bag{size}": drawn for size, drawn in zip(sizes, by_size, strict=True)}
    return replicates


def _values(outcomes: Outcomes, size: int, measure: Measure) -> list[list[float]]:
    """Of the bags of a size, for each scene that has some."""
    by_scene = [[measure(bag, found) for bag, found in each if bag.size == size] for each in outcomes.values()]
    return [values for values in by_scene if values]


def _defined_mean(values: Sequence[float]) -> float:
    """Of those that are defined; nan if none is."""
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")
