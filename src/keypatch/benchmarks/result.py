"""The result of a benchmark: scores with intervals, curves, pictures and provenance, as a value and a JSON file."""

import json
import math
import textwrap
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.contamination import MARK, Contamination
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.table import BENCHMARKS, headline_scores
from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import MissingExtra
from keypatch.files import Format, reading, write_text
from keypatch.metrics import Curve, interval
from keypatch.provenance import Provenance, provenance

if TYPE_CHECKING:
    import pandas

FORMAT = Format("keypatch-result", 2, "result file")  # 1 had no replicates and no pictures

_IN_PIXELS = ("threshold", "max_error", "short_side", "pixels")
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, eq=False)
class Replicates:
    """A score on data drawn again from the data (`metrics.bootstrap`); nan where the draw gave none."""

    values: NDArray[np.float64]  # (1000,)
    units: str  # what was drawn: "pairs", "sequences", "photo pairs"
    count: int  # how many units there are

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or not len(self.values) or np.isinf(self.values).any():
            raise ValueError("replicates should be a list of finite numbers")

    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None where there is none, as from a single unit."""
        low, high = interval(self.values, self.count)
        return None if math.isnan(low) else (low, high)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Scores by flat name ("fpr95.m50_100000_100000_0"), nan where undefined; shown as a table in a notebook.

    All are fractions, except those to which `scores.find_score` gives another unit.

    >>> result = kp.load_result("rootsift.json")
    >>> result.scores["rank1"], result.interval("rank1")
    (0.85, (0.8..., 0.8...))
    >>> result.to_dict()["descriptor"]
    'rootsift'
    """

    benchmark: str
    descriptor: str
    settings: Mapping[str, Any]
    scores: Mapping[str, float]
    curves: Mapping[str, Curve]
    provenance: Provenance
    replicates: Mapping[str, Replicates] = field(default_factory=dict)  # by the name of the score
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # PNG files by their titles
    notes: Mapping[str, Any] = field(default_factory=dict)  # on the descriptor: "trained" (as), "trained_on", "step"
    contamination: Contamination | None = None  # test images that were trained on; None where that is not known

    def interval(self, name: str) -> tuple[float, float] | None:
        """The 95 % bootstrap interval of a score, if it has one."""
        return self.replicates[name].interval() if name in self.replicates else None

    def number(self, name: str) -> str:
        """A score as readable text, without its unit; "none" if undefined."""
        return "none" if math.isnan(self.scores[name]) else find_score(name).number(self.scores[name])

    def headline(self) -> list[tuple[str, str, str]]:
        """The headline scores: title with unit, value with its 95 % interval, and the units resampled for it."""
        return [
            (find_score(name).label, self._with_interval(name), self._units(name)) for name in headline_scores(self)
        ]

    def conditions(self) -> str:
        """The settings that determine the scores, as text: "estimator magsac, threshold 1.25 px, ratio 0.9, ..."."""
        features = self.settings.get("features")
        recorded = {**features, **self.settings} if isinstance(features, Mapping) else self.settings
        names = BENCHMARKS[self.benchmark].conditions if self.benchmark in BENCHMARKS else ()
        return ", ".join(
            f"{name.replace('_', ' ')} {_said(name, recorded[name])}" for name in names if name in recorded
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without curves, pictures and replicates."""
        intervals = {name: self.interval(name) for name in self.replicates}
        return {
            "benchmark": self.benchmark,
            "descriptor": self.descriptor,
            "notes": dict(self.notes),
            "contamination": None if self.contamination is None else self.contamination.to_json(),
            "settings": dict(self.settings),
            "scores": dict(self.scores),
            "intervals": {name: interval for name, interval in intervals.items() if interval is not None},
            "provenance": self.provenance.to_json(),
        }

    def to_frame(self) -> "pandas.DataFrame":
        """A pandas table with one row per score, so that several results can be stacked with `concat`.

        Besides the score's flat name and value, it has the ends of the 95 % interval and how many of which units were
        resampled, empty if there is no interval.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra.of("A data frame needs pandas", "pandas", "use to_dict()") from error

        intervals = {name: self.interval(name) or (math.nan, math.nan) for name in self.scores}
        columns = {
            "benchmark": self.benchmark,
            "data": self.settings.get("data"),
            "descriptor": self.descriptor,
            "score": list(self.scores),
            "value": list(self.scores.values()),
            "low": [intervals[name][0] for name in self.scores],
            "high": [intervals[name][1] for name in self.scores],
            "over": [self._units(name) for name in self.scores],
        }
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        scores = "".join(f", {title} {value}" for title, value, _ in self.headline())
        mark = ", trained on test images" if self.contamination else ""
        return f"<Result: {self.benchmark} of {self.descriptor}{scores}{mark}>"

    def _repr_html_(self) -> str:
        caption = f"{self.descriptor}, {self.benchmark} {self.settings.get('data', '')}".rstrip()
        table = html_table(caption, ["score", "95 % interval", "over"], self.headline(), self.conditions())
        return table + (f"<p>{escape(self.contamination.sentence())}</p>" if self.contamination else "")

    def _with_interval(self, name: str) -> str:
        """ "2.33 (2.01-2.70)"."""
        interval = self.interval(name)
        return self.number(name) + (f" ({'-'.join(map(find_score(name).number, interval))})" if interval else "")

    def _units(self, name: str) -> str:
        drawn = self.replicates.get(name)
        return "" if drawn is None else f"{drawn.count:,} {drawn.units}"

    def to_json(self) -> dict[str, Any]:
        return {
            **FORMAT.head(),
            "benchmark": self.benchmark,
            "descriptor": self.descriptor,
            **({"notes": dict(self.notes)} if self.notes else {}),
            **({} if self.contamination is None else {"contamination": self.contamination.to_json()}),
            "settings": dict(self.settings),
            "scores": {name: None if math.isnan(score) else score for name, score in self.scores.items()},
            "replicates": {
                name: {"units": each.units, "count": each.count, "values": _short(each.values)}
                for name, each in self.replicates.items()
            },
            "curves": {name: {"x": _short(curve.x), "y": _short(curve.y)} for name, curve in self.curves.items()},
            "pictures": {title: b64encode(png).decode("ascii") for title, png in self.pictures.items()},
            "provenance": self.provenance.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], source: str = "the result") -> "Result":
        """The result written by `to_json`; raises DataError, naming `source`, for anything else."""
        FORMAT.check(value, source)
        with reading(source, FORMAT.title, "Run the evaluation again."):
            settings = dict(_checked(value["settings"], dict))
            notes = dict(_checked(value.get("notes", {}), dict))
            if value["benchmark"] == "ubc":  # keypatch 0.1 had these among the settings
                notes |= {name: settings.pop(name) for name in ("trained_on", "step") if name in settings}
            return cls(
                benchmark=_checked(value["benchmark"], str),
                descriptor=_checked(value["descriptor"], str),
                settings=settings,
                scores={name: math.nan if score is None else float(score) for name, score in value["scores"].items()},
                curves={name: _curve(points, name) for name, points in value["curves"].items()},
                provenance=Provenance.from_json(value["provenance"]),
                replicates={
                    name: Replicates(_numbers(r["values"]), _checked(r["units"], str), _checked(r["count"], int))
                    for name, r in value.get("replicates", {}).items()
                },
                pictures={title: _png(text, title) for title, text in value.get("pictures", {}).items()},
                notes=notes,
                contamination=_contamination(value.get("contamination")),
            )

    def save(self, path: str | Path) -> None:
        write_text(Path(path), _lines(self.to_json()))


def load_result(path: str | Path) -> Result:
    """The result in a JSON file of `keypatch evaluate ... --out FILE.json` or `Result.save`.

    >>> kp.load_result("rootsift.json")
    <Result: ubc of rootsift, rank-1 % 85.00 (8...)>
    """
    return Result.from_json(FORMAT.read_json(Path(path)), str(path))


def marked(label: str, result: Result) -> str:
    """The label of a result, with a dagger where the descriptor was trained on images of the test."""
    return f"{label} {MARK}" if result.contamination else label


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], conditions: str = "") -> str:
    """A table for a notebook, below the settings that decide its scores."""
    above = escape(caption) + f"<br><small>Settings: {escape(conditions)}</small>" * bool(conditions)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{above}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def provenance_of(describer: Describer, data_hash: str) -> Provenance:
    """The provenance of scores of this describer on data with this hash."""
    return provenance(data=data_hash, **weights_of(describer))


def weights_of(describer: Describer) -> dict[str, str]:
    """The hash of a describer's weights as the provenance names it; nothing for one without weights."""
    return {"weights": describer.weights_hash} if isinstance(describer, HasWeights) else {}


def _said(name: str, value: object) -> str:
    """A setting as a person reads it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    text = f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
    return textwrap.shorten(text, 60, placeholder=" ...") + " px" * (name in _IN_PIXELS)


def _short(values: NDArray[np.float64]) -> list[float | None]:
    """Six digits are more than any curve or interval can tell; nan, which JSON has no word for, is null."""
    return [None if math.isnan(value) else float(f"{value:.6g}") for value in values.tolist()]


def _numbers(values: Any) -> NDArray[np.float64]:
    return np.array([math.nan if value is None else value for value in _checked(values, list)], np.float64)


def _curve(points: Mapping[str, Any], name: str) -> Curve:
    curve = Curve(_numbers(points["x"]), _numbers(points["y"]))
    if curve.x.ndim != 1 or curve.x.shape != curve.y.shape:
        raise ValueError(f'the curve "{name}" does not have a y for every x')
    return curve


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, found {value!r:.40}")
    return value


def _contamination(value: Any) -> Contamination | None:
    return None if value is None else Contamination.from_json(_checked(value, dict))


def _png(text: str, title: str) -> bytes:
    picture = b64decode(text, validate=True)
    if not picture.startswith(_PNG):
        raise ValueError(f'the picture "{title}" is not a PNG')
    return picture


def _lines(value: Mapping[str, Any]) -> str:
    """JSON with a line for each entry and each entry of an entry, so that a curve is one line and not a thousand."""
    fields = []
    for key, entry in value.items():
        if isinstance(entry, dict) and entry:
            text = "{\n    " + ",\n    ".join(_pair(*inner) for inner in entry.items()) + "\n  }"
            fields.append(f"{json.dumps(key)}: {text}")
        else:
            fields.append(_pair(key, entry))
    return "{\n  " + ",\n  ".join(fields) + "\n}\n"


def _pair(key: str, value: Any) -> str:
    return f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
