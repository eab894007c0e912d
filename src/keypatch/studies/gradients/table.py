"""What was measured of gradients: checkpoints and seeds, as a file and as a table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keypatch.files import Format, reading, write_json, write_text
from keypatch.provenance import provenance

FORMAT = Format("keypatch-gradients", 1, "study of gradients")
MEASUREMENTS, PAGE, FIGURE = "gradients.json", "gradients.md", "gradients.png"
HEADS = ("run", "pairs trained on", "seeds", "theta+^2 alone", "whole hinge", "open hinges")


@dataclass(frozen=True)
class Measurement:
    """One checkpoint on the pairs of one seed. A correlation is None where the norms do not vary."""

    run: str
    pairs: int | None  # trained on so far; None of weights that do not say
    seed: int
    weights: str  # their hash
    positive: float | None  # of the angle with the norm of the gradient of theta+^2
    full: float | None  # and of the whole hinge
    open: float  # share of the pairs with an open hinge
    angles: tuple[float, ...]
    positive_norms: tuple[float, ...]
    full_norms: tuple[float, ...]

    @property
    def place(self) -> tuple[str, int | None, int]:
        return self.run, self.pairs, self.seed


@dataclass(frozen=True)
class Gradients:
    """What was measured in a folder, on the same pairs: runs in the order given, checkpoints in that of training."""

    data: str
    identity: str  # of the data
    pairs: int
    noise: tuple[float, ...]
    measured: tuple[Measurement, ...] = ()

    def runs(self) -> list[str]:
        return list(dict.fromkeys(each.run for each in self.measured))

    def checkpoints(self, run: str) -> dict[int | None, list[Measurement]]:
        """The measurements of a run, of all seeds, by the pairs it was trained on."""
        mine = [each for each in self.measured if each.run == run]
        return {pairs: [each for each in mine if each.pairs == pairs] for pairs in dict.fromkeys(e.pairs for e in mine)}

    def with_one(self, new: Measurement) -> "Gradients":
        rows = {each.place: each for each in self.measured} | {new.place: new}
        runs = list(dict.fromkeys(run for run, *_ in rows))
        ordered = sorted(rows.values(), key=lambda row: (runs.index(row.run), row.pairs or 0, row.seed))
        return replace(self, measured=tuple(ordered))

    @classmethod
    def load(cls, path: Path) -> "Gradients":
        value = FORMAT.read_json(path)
        with reading(path, FORMAT.title):
            rows = [{name: _tuple(field) for name, field in row.items()} for row in value["measured"]]
            measured = tuple(Measurement(**row) for row in rows)
            return cls(value["data"], value["identity"], value["pairs"], tuple(value["noise"]), measured)

    def save(self, folder: Path) -> None:
        write_json(folder / MEASUREMENTS, {**FORMAT.head(), **asdict(self), "provenance": provenance().to_json()})
        write_text(folder / PAGE, page_of(self))


class Spread(NamedTuple):
    """The mean over the seeds of the pairs, and the smallest and largest; nan where nothing is defined."""

    mean: float
    low: float
    high: float


def spread(measured: Sequence[Measurement], name: str) -> Spread:
    """Over the seeds, of `positive`, `full` or `open`."""
    values = [float(value) for each in measured if (value := getattr(each, name)) is not None]
    return Spread(float(np.mean(values)), min(values), max(values)) if values else Spread(*[math.nan] * 3)


def table_of(found: Gradients) -> Iterator[list[str]]:
    """The cells below `HEADS`, a row for each checkpoint."""
    for run in found.runs():
        for pairs, measured in found.checkpoints(run).items():
            cells = [_cell(spread(measured, name)) for name in ("positive", "full")]
            seeds, share = ", ".join(str(each.seed) for each in measured), spread(measured, "open").mean
            yield [run, "" if pairs is None else f"{pairs:,}", seeds, *cells, f"{100 * share:.0f} %"]


def page_of(found: Gradients) -> str:
    """gradients.md."""
    noise = ", ".join(f"{level:g}" for level in found.noise)
    rows = [HEADS, ["---"] * len(HEADS), *table_of(found)]
    lines = [
        "# Does the gradient grow with the distance",
        "",
        "Pearson's correlation of the angle of a pair with the norm of its gradient by all weights (AdaSample, figure "
        f"2, where it is above 0.8), on {found.pairs:,} pairs of {found.data}, an equal share of them with {noise} "
        'times the detector noise. "theta+^2 alone" is the positive term, which the derivation (eq. 22) is about; '
        '"whole hinge" is [1 + theta+^2 - theta-^2]+ with the mined negative: pairs whose hinge is not open have no '
        "gradient. The mean over the seeds of the pairs, and from the smallest to the largest.",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"![probabilities and correlations]({FIGURE})",
        "",
    ]
    return "\n".join(lines)


def _cell(values: Spread) -> str:
    if math.isnan(values.mean):
        return "not defined"
    return f"{values.mean:.2f}" + (f" ({values.low:.2f} to {values.high:.2f})" if values.low != values.high else "")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
