"""The study of pipelines as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keypatch.benchmarks.relative_pose import DEGREES, Unit
from keypatch.benchmarks.result import Result

STEPS = ("detect", "select", "describe")


@dataclass(frozen=True)
class PipelineRow:
    """One pipeline with one ratio test."""

    pipeline: str
    ratio: float | None
    planes: Result
    poses: Mapping[tuple[str, Unit], Result]  # by scene and by what the estimator was given
    seconds: Mapping[str, float]  # by step, for one photograph; empty before they were measured

    def mean_area(self, unit: Unit, degrees: int = 5) -> float:
        """The area under the recall curve, mean over scenes."""
        areas = [result.scores[f"auc{degrees}"] for (_, each), result in self.poses.items() if each == unit]
        return sum(areas) / len(areas)

    def to_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "ratio": self.ratio,
            "planes": dict(self.planes.scores),
            "poses": {f"{scene}.{unit}": dict(result.scores) for (scene, unit), result in self.poses.items()},
            "seconds": dict(self.seconds),
        }


def table(rows: Sequence[PipelineRow]) -> str:
    """Markdown: planes, then every scene and unit, the spread over seeds behind the area to 5 degrees, then seconds."""
    columns = list(rows[0].poses) if rows else []
    units = list(dict.fromkeys(unit for _, unit in columns))
    heads = ["pipeline", "ratio", "within 1 px", "3 px", "right matches", "H accuracy"]
    heads += [f"{scene} ({unit}) AUC {' / '.join(map(str, DEGREES))}" for scene, unit in columns]
    heads += [f"mean AUC 5 ({unit})" for unit in units] + [f"s: {' + '.join(STEPS)}", "s in all"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for row in rows:
        scores = row.planes.scores
        cells = [row.pipeline, "none" if row.ratio is None else str(row.ratio)]
        cells += [f"{scores['mma1']:.3f}", f"{scores['mma3']:.3f}", f"{scores['count.within3']:.0f}"]
        cells += [f"{scores['accuracy3']:.3f} ({scores['accuracy3.lowest']:.3f}-{scores['accuracy3.highest']:.3f})"]
        cells += [_areas(row.poses[column]) for column in columns] + [f"{row.mean_area(unit):.3f}" for unit in units]
        lines.append(_line([*cells, *_seconds(row.seconds)]))
    return "".join(lines)


def _areas(result: Result) -> str:
    cells = [f"{result.scores[f'auc{degrees}']:.3f}" for degrees in DEGREES]
    spread = f"{result.scores['auc5.lowest']:.3f}-{result.scores['auc5.highest']:.3f}"
    return f"{' / '.join(cells)} ({spread})"


def _seconds(seconds: Mapping[str, float]) -> tuple[str, str]:
    steps = [f"{seconds[step]:.2f}" for step in STEPS if step in seconds]
    return " + ".join(steps), f"{sum(seconds.get(step, 0) for step in STEPS):.2f}" if steps else ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
