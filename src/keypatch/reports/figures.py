"""The figures of a page: axes, curves and densities as places in a picture, which templates/figures.html draws."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.scores import find_score
from keypatch.metrics import Curve
from keypatch.reports.protocols import Run
from keypatch.training.epochs import read_epochs
from keypatch.training.statistics import TABLE_II


class Frame(NamedTuple):
    """Where the axes of a figure stand in it, in units of its picture."""

    width: int = 360
    height: int = 250
    left: int = 46
    right: int = 350
    top: int = 10
    bottom: int = 206


FRAME = Frame()
_STEPS = (1, 2, 2.5, 5, 10)  # between ticks, times a power of ten
_POINTS = 160  # of a line: closer than two pixels
_LEAST = 0.1  # of an axis of shares: a smaller one would make noise look like a fall
_COLOURS, _DASHES = 8, 4  # as in page.css


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, both finite and apart; a logarithmic one is above 0. Shares are written in %."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False

    def places(self, values: NDArray[np.float64], start: float, end: float) -> NDArray[np.float64]:
        """Where values stand if `low` is at `start` and `high` at `end`; those outside are moved to the ends."""
        inside = np.clip(np.asarray(values, np.float64), self.low, self.high)
        low, high, at = (np.log(v) if self.log else v for v in (np.float64(self.low), np.float64(self.high), inside))
        return np.asarray(start + (at - low) / (high - low) * (end - start))

    def ticks(self) -> list[float]:
        """Round values along the axis, about five; powers of ten on a logarithmic one."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        step = _round_step((self.high - self.low) / 5)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def text(self, value: float) -> str:
        """A tick as it is written: 0.5, 12, 20k; the digits that its neighbours need and no more."""
        shown = 100 * value if self.percent else value
        if abs(shown) >= 10_000:
            return f"{shown / 1000:g}k"
        return f"{float(f'{shown:.6g}'):g}"

    def marks(self, start: float, end: float) -> list[tuple[float, str]]:
        """The ticks as places and texts."""
        ticks = self.ticks()
        return list(zip(self.places(np.array(ticks), start, end).tolist(), map(self.text, ticks), strict=True))

    def spoken(self, start: float, end: float) -> dict[str, object]:
        """What the page's script needs to turn a place on the axis into a value and to write it."""
        return {
            "label": self.label.removesuffix(", %"), "low": self.low, "high": self.high,
            "log": self.log, "percent": self.percent, "start": start, "end": end,
        }  # fmt: skip


def fitted(label: str, values: NDArray[np.float64], *, percent: bool = False, span: float = 0.0) -> Axis:
    """An axis that holds the finite values, between round numbers, and goes down until it is `span` long."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low = min(low, high - span)
    step = _round_step(max(high - low, 1e-3 * max(abs(high), 1e-6)) / 5)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(label, low, high if high > low else low + step, percent=percent)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


@dataclass(frozen=True)
class DrawnLine:
    """A line of a figure: the number in the legend and the name of whom it belongs to, and its points for SVG."""

    of: int
    name: str
    points: str


@dataclass(frozen=True)
class Figure:
    """What a template draws: lines that can be pointed at, or areas of kinds ("matching", "others") for SVG."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[DrawnLine, ...] = ()
    areas: tuple[tuple[str, str], ...] = ()
    of: int | None = None

    @property
    def x_marks(self) -> list[tuple[float, str]]:
        return self.x.marks(FRAME.left, FRAME.right)

    @property
    def y_marks(self) -> list[tuple[float, str]]:
        return self.y.marks(FRAME.bottom, FRAME.top)

    @property
    def axes(self) -> str:
        """For the page's script, as JSON."""
        x, y = self.x.spoken(FRAME.left, FRAME.right), self.y.spoken(FRAME.bottom, FRAME.top)
        return json.dumps({"x": x, "y": y})


class CurveOf(NamedTuple):
    """A curve and whose it is: a number in the legend and a name."""

    of: int
    name: str
    curve: Curve


@dataclass(frozen=True)
class Kind:
    """How curves of a kind are drawn."""

    title: str
    x: str
    y: str
    log: bool = False
    shares: bool = False  # x too is a share, in %
    from_zero: bool = False  # the heights of several figures are to be compared


KINDS = {  # the first part of a curve's name
    "roc": Kind("ROC", "false-positive rate, %", "recall, %", log=True, shares=True),
    "pr": Kind("Precision and recall", "recall, %", "precision, %", shares=True),
    "mma": Kind("Mean matching accuracy", "pixels", "right matches, %", from_zero=True),
    "maa": Kind("Pose accuracy", "degrees", "right poses, %", from_zero=True),
    "share": Kind("Rotated photographs", "rotation, degrees", "matched correctly, %"),
}
_LOGGED = {  # fields of a record of a training: title of the figure, its axis
    "loss": ("Loss", "loss"),
    "positive": ("Matching pairs", "mean distance"),
    "negative": ("Mined negatives", "mean distance"),
}
_STATISTICS = {  # running statistics by their names in a record: title of the figure, its axis; others by their names
    **{
        name: (f"SDGMNet: {symbol}", "sum of weights" if "[P" in symbol else "radians")
        for name, symbol in TABLE_II.items()
    },
    "sampler/loss": ("AdaSample: L_avg", "loss"),
    "sampler/exponent": ("AdaSample: exponent", "lambda / L_avg"),
    "sampler/effective_candidates": ("AdaSample: candidates, in effect", "exp of the entropy"),
    "sampler/candidate_distance": ("AdaSample: candidates", "mean distance"),
    "sampler/chosen_distance": ("AdaSample: chosen positives", "mean distance"),
    "sampler/same_source": ("AdaSample: turned copies of their anchor", "share"),
    "DynamicMargin/mean": ("Dynamic margin: mean", "d+ - d-"),
    "DynamicMargin/std": ("Dynamic margin: deviation", "d+ - d-"),
    "DynamicMargin/median": ("Dynamic margin: median", "d+ - d-"),
}
_FLAGS = ("finetuning",)  # not drawn


def curve_title(name: str) -> str:
    """ "roc.m50_100" -> "ROC, m50_100"; a kind without a title is called by its own name."""
    kind, _, of = name.partition(".")
    title = KINDS[kind].title if kind in KINDS else kind
    return f"{title}, {of}" if of else title


def curve_figure(name: str, curves: Sequence[CurveOf]) -> Figure:
    """The curves of one name, a line for each descriptor."""
    kind = KINDS.get(name.partition(".")[0], Kind(name, "", ""))
    shares = kind.title != name
    xs = np.concatenate([each.curve.x for each in curves])
    positive = xs[np.isfinite(xs) & (xs > 0)]
    if kind.log and positive.size and positive.min() < 1:
        x = Axis(kind.x, 10.0 ** max(-6, np.floor(np.log10(positive.min()))), 1.0, log=True, percent=True)
    else:
        x = fitted(kind.x, xs, percent=kind.shares)
    ys = np.concatenate([[0.0] if kind.from_zero else [], *(each.curve.y for each in curves)])
    y = fitted(kind.y, ys, percent=shares, span=_LEAST if shares else 0.0)
    return _with_lines(curve_title(name), x, y, curves)


def training_figures(runs: Sequence[Run], numbers: Mapping[str, int]) -> list[Figure]:
    """A figure for each quantity that some run logged, over the pairs trained on; `numbers` are those of the legend."""
    made = [
        _over_pairs(title, label, {run: _logged(run, field) for run in runs}, numbers)
        for field, (title, label) in _LOGGED.items()
    ]
    scored = {run: {(each.of, each.score): each for each in read_epochs(run.records)} for run in runs}
    for of, score in dict.fromkeys(key for epochs in scored.values() for key in epochs):
        known = find_score(score)
        curves = {
            run: Curve(*np.array(epochs[of, score].epochs, np.float64).T)
            for run, epochs in scored.items()
            if (of, score) in epochs
        }
        title = f"{known.title}, {of}" if of.startswith("mean of ") else f"{known.title} on {of}"
        made.append(_over_pairs(title, f"{known.title}, %", curves, numbers, percent=True))
    return [figure for figure in made if figure is not None]


def statistics_figures(runs: Sequence[Run], numbers: Mapping[str, int]) -> list[Figure]:
    """A figure for each running statistic of a loss or a sampler that some run logged."""
    tables = {run: [_table(record.get("statistics")) for record in run.records] for run in runs}
    logged = dict.fromkeys(name for records in tables.values() for record in records for name in record)
    ordered = [*(name for name in _STATISTICS if name in logged), *(name for name in logged if name not in _STATISTICS)]
    made = [
        _over_pairs(
            *_STATISTICS.get(name, (name, "")), {run: _logged(run, name, "statistics") for run in runs}, numbers
        )
        for name in ordered
        if not name.endswith(_FLAGS)
    ]
    return [figure for figure in made if figure is not None]


def _over_pairs(
    title: str, label: str, logged: Mapping[Run, Curve], numbers: Mapping[str, int], *, percent: bool = False
) -> Figure | None:
    """A line for each run with more than one point; None where there is none."""
    curves = [CurveOf(numbers[run.name], run.name, curve) for run, curve in logged.items() if len(curve.x) > 1]
    if not curves:
        return None
    x = fitted("pairs", np.concatenate([each.curve.x for each in curves]))
    y = fitted(label, np.concatenate([each.curve.y for each in curves]), percent=percent)
    return _with_lines(title, x, y, curves)


def similarity_axes(curves: Sequence[Curve]) -> tuple[Axis, Axis]:
    """Axes that hold all these densities, so that figures of several descriptors compare."""
    x, y = (np.concatenate([getattr(curve, side) for curve in curves]) for side in "xy")
    seen = y > 1e-3 * np.nanmax(y, initial=0.0)
    low = np.floor(4 * min(x[seen], default=-1.0)) / 4
    return Axis("cosine similarity", float(max(-1.0, min(low, 0.75))), 1.0), fitted("density", np.append(y, 0.0))


def similarity_figure(title: str, of: int, axes: tuple[Axis, Axis], matching: Curve, others: Curve) -> Figure:
    """Densities of the similarity of matching pairs and of others (GOR, figure 5)."""
    areas = []
    for kind, curve in (("others", others), ("matching", matching)):
        shown = np.isfinite(curve.x) & np.isfinite(curve.y) & (curve.x >= axes[0].low)
        at = axes[0].places(curve.x[shown], FRAME.left, FRAME.right)
        height = axes[1].places(curve.y[shown], FRAME.bottom, FRAME.top)
        if len(at):
            ends = (at[0], FRAME.bottom), (at[-1], FRAME.bottom)
            areas.append((kind, _points([ends[0], *zip(at, height, strict=True), ends[1]])))
    return Figure(title, *axes, areas=tuple(areas), of=of)


def line_class(of: int) -> str:
    """The classes of a descriptor's lines, which say its colour and dashes."""
    return f"line c{of % _COLOURS} d{(of + of // _COLOURS) % _DASHES}"


def _with_lines(title: str, x: Axis, y: Axis, curves: Sequence[CurveOf]) -> Figure:
    return Figure(title, x, y, tuple(_line(x, y, each) for each in curves))


def _line(x: Axis, y: Axis, whose: CurveOf) -> DrawnLine:
    curve = whose.curve
    shown = np.isfinite(curve.x) & np.isfinite(curve.y)
    before = np.flatnonzero(shown & (curve.x < x.low))  # of a rate of 0 on a logarithmic axis: the last point
    shown[before[:-1]] = False
    at = x.places(curve.x[shown], FRAME.left, FRAME.right), y.places(curve.y[shown], FRAME.bottom, FRAME.top)
    thin = Curve(*at).thinned(_POINTS)
    return DrawnLine(whose.of, whose.name, _points(zip(thin.x, thin.y, strict=True)))


def _points(corners: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{a:.2f},{b:.2f}" for a, b in corners)


def _table(value: object) -> Mapping[str, object]:
    return {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}


def _logged(run: Run, field: str, inside: str | None = None) -> Curve:
    points = [
        (record.get("pairs"), (record if inside is None else _table(record.get(inside))).get(field))
        for record in run.records
    ]
    known = [(x, y) for x, y in points if isinstance(x, int | float) and isinstance(y, int | float)]
    table = np.array(known, np.float64).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    return Curve(table[:, 0], table[:, 1])
