"""Scores of bags: means over the bags of a size, then over scenes, then over sizes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keypatch.benchmarks.multiview_bags import Bag
from keypatch.benchmarks.multiview_models import BagOutcome
from keypatch.benchmarks.result import Replicates
from keypatch.benchmarks.stereo_scores import draw_groups
from keypatch.metrics import average_accuracies

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


def sizes_of(outcomes: Outcomes) -> list[int]:
    return sorted({bag.size for found in outcomes.values() for bag, _ in found})


def scores_of(outcomes: Outcomes) -> dict[str, float]:
    """Every measure under its name, and that of bags of five under "<name>.bag5"; of scenes also "maa10.<scene>".

    The track length is the mean over bags with a model, nan where there is none.
    """
    scores = {}
    for name, measure in MEASURES.items():
        values = {size: _values(outcomes, size, measure) for size in sizes_of(outcomes)}
        by_size = {size: _mean([_mean(some) for some in by_scene]) for size, by_scene in values.items()}
        scores[name] = _mean(list(by_size.values()))
        scores |= {f"{name}.bag{size}": value for size, value in by_size.items()}
    if len(outcomes) > 1:
        scores |= {f"maa10.{name}": scores_of({name: found})["maa10"] for name, found in outcomes.items()}
    return scores


def replicates_of(outcomes: Outcomes) -> dict[str, Replicates]:
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


def _mean(values: Sequence[float]) -> float:
    """Of those that are defined; nan if none is."""
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")
