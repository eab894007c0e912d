"""The tables of docs/results/pipelines.md in Markdown, from the scores of pipelines."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from poses import DEGREES, Estimation, over_seeds

Scores = Mapping[str, float]
SHOWN: tuple[Estimation, ...] = ("magsac", "poselib")


@dataclass(frozen=True)
class Row:
    """The scores of one pipeline, matched in one way."""

    pipeline: str
    matcher: str
    planes: Mapping[str, Scores]  # by sequence
    poses: Mapping[str, Scores]  # by scene
    wide: Mapping[str, Scores]  # by set of pairs

    @property
    def cells(self) -> list[str]:
        return [self.pipeline, self.matcher]

    def estimation(self, estimator: Estimation) -> Estimation:
        """What stands in the column of an estimator: `match` has poselib's estimates judged, all others have one."""
        return "judged" if self.matcher == "default" and estimator == "poselib" else estimator

    def accuracies(self, estimator: Estimation, sequences: Collection[str]) -> NDArray[np.float64]:
        """(seeds,) shares of pairs with an accurate homography; sequences have equally many pairs."""
        score = f"accuracy3.{self.estimation(estimator)}"
        return np.asarray(np.mean([over_seeds(self.planes[name], score) for name in sequences], axis=0))

    def mean(self, score: str, sequences: Collection[str]) -> float:
        return float(np.mean([self.planes[name][score] for name in sequences]))


def table(rows: Sequence[Row], seconds: Scores, fitness: Mapping[str, Scores], tuning_planes: Collection[str]) -> str:
    """Every table below its title; `fitness` is by pipeline and matcher, on the tuning scenes."""
    every = list(rows[0].planes) if rows else []
    reported = [name for name in every if name not in tuning_planes]
    parts = {
        f"Planes: {', '.join(reported)}": _planes(rows, reported) if reported else "",
        "Planes: all": _planes(rows, every) if every else "",
        "Poses: AUC " + " / ".join(map(str, DEGREES)): _poses(rows) if rows and rows[0].poses else "",
        "Wide pairs: solved": _wide(rows) if rows and rows[0].wide else "",
        "Seconds": _seconds(rows, seconds),
        "Tuning scenes: mean area to 5": _fitness(fitness),
    }
    return "\n".join(f"## {title}\n\n{part}" for title, part in parts.items() if part)


def _planes(rows: Sequence[Row], sequences: Collection[str]) -> str:
    heads = ["pipeline", "matching", "within 1 px", "3 px", "right matches"]
    lines = []
    for row in rows:
        cells = [*row.cells, *(f"{row.mean(score, sequences):.3f}" for score in ("mma1", "mma3"))]
        cells.append(f"{row.mean('count.within3', sequences):.0f}")
        lines.append(cells + [_spread(row.accuracies(estimator, sequences)) for estimator in SHOWN])
    return _markdown(heads + [f"H accuracy, {estimator}" for estimator in SHOWN], lines)


def _poses(rows: Sequence[Row]) -> str:
    columns = [(scene, estimator) for scene in (rows[0].poses if rows else ()) for estimator in SHOWN]
    heads = ["pipeline", "matching", *(f"{scene}, {estimator}" for scene, estimator in columns)]
    return _markdown(
        heads,
        [[*row.cells, *(_areas(row.poses[scene], row.estimation(each)) for scene, each in columns)] for row in rows],
    )


def _areas(scores: Scores, estimator: Estimation) -> str:
    """The means over seeds, and the range of the area to 5 degrees."""
    areas = [over_seeds(scores, f"auc{degrees}.{estimator}") for degrees in DEGREES]
    middle = areas[DEGREES.index(5)]
    return f"{' / '.join(f'{area.mean():.3f}' for area in areas)} ({middle.min():.3f}-{middle.max():.3f})"


def _wide(rows: Sequence[Row]) -> str:
    columns = [(name, estimator) for name in (rows[0].wide if rows else ()) for estimator in SHOWN]
    heads = ["pipeline", "matching", *(f"{name}, {estimator}" for name, estimator in columns)]
    return _markdown(
        heads,
        [
            [*row.cells, *(f"{row.wide[name][f'solved.{row.estimation(by)}']:.0f}" for name, by in columns)]
            for row in rows
        ],
    )


def _seconds(rows: Sequence[Row], seconds: Scores) -> str:
    lines = [
        [*row.cells, f"{seconds[row.pipeline]:.2f}", f"{seconds[pair]:.3f}"]
        for row in rows
        if (pair := f"{row.pipeline}: {row.matcher}") in seconds
    ]
    return _markdown(["pipeline", "matching", "s per photo", "s per pair"], lines)


def _fitness(fitness: Mapping[str, Scores]) -> str:
    ways = list(dict.fromkeys(way for scores in fitness.values() for way in scores))
    lines = [[name, *(f"{scores[way]:.4f}" for way in ways)] for name, scores in fitness.items()]
    return _markdown(["pipeline", *ways], lines)


def _spread(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.3f} ({values.min():.3f}-{values.max():.3f})"


def _markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Nothing without a line."""
    if not lines:
        return ""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *lines))
