"""What a benchmark gives: scores, how sure they are, curves, pictures and where they came from; value and JSON file."""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import DataError
from keypatch.files import reason, write_text
from keypatch.metrics import Curve, interval
from keypatch.provenance import Provenance, provenance

FORMAT = "keypatch-result"
FORMAT_NUMBER = 2  # 1 had no replicates and no pictures

ERROR_UNITS = {"reprojection": "px", "rotation": "°"}  # positions are in the unit of the true cameras
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


@dataclass(frozen=True, eq=False)
class Result:
    """Scores under flat names ("fpr95.m50_100000_100000_0"); nan where a score is not defined.

    All are fractions but the moments "spread.m1" and "spread.dm2", numbers ("count.matches"), errors
    ("error.rotation", in the unit that `score_text` says) and means of a model ("track_length").
    """

    benchmark: str
    descriptor: str
    settings: Mapping[str, Any]
    scores: Mapping[str, float]
    curves: Mapping[str, Curve]
    provenance: Provenance
    replicates: Mapping[str, Replicates] = field(default_factory=dict)  # by the name of the score
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # PNG files by their titles

    def interval(self, name: str) -> tuple[float, float] | None:
        """The 95 % bootstrap interval of a score, where it has one."""
        return self.replicates[name].interval() if name in self.replicates else None

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_number": FORMAT_NUMBER,
            "benchmark": self.benchmark,
            "descriptor": self.descriptor,
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
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            raise DataError(f"{source} is not a result file of keypatch.")
        number = value.get("format_number")
        if not isinstance(number, int) or number > FORMAT_NUMBER:
            raise DataError(
                f"{source} has the format {FORMAT} {number}, this version of keypatch reads up to {FORMAT_NUMBER}. "
                "Upgrade keypatch."
            )
        try:
            return cls(
                benchmark=_checked(value["benchmark"], str),
                descriptor=_checked(value["descriptor"], str),
                settings=_checked(value["settings"], dict),
                scores={name: math.nan if score is None else float(score) for name, score in value["scores"].items()},
                curves={name: _curve(points, name) for name, points in value["curves"].items()},
                provenance=Provenance.from_json(value["provenance"]),
                replicates={
                    name: Replicates(_numbers(r["values"]), _checked(r["units"], str), _checked(r["count"], int))
                    for name, r in value.get("replicates", {}).items()
                },
                pictures={title: _png(text, title) for title, text in value.get("pictures", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{source} is incomplete or damaged ({error}). Run the evaluation again.") from None

    def save(self, path: str | Path) -> None:
        write_text(Path(path), _lines(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> "Result":
        try:
            value = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"{path} cannot be read: {reason(error)}.") from None
        except ValueError as error:
            raise DataError(f"{path} is not a JSON file ({error}).") from None
        return cls.from_json(value, str(path))


def score_text(name: str, score: float) -> str:
    """A score for people: a fraction in %, a number with a digit, an error in its unit, others as they are."""
    if name.startswith("count.") or name == "observations_per_image":
        return f"{score:.1f}" if abs(score) < 1000 else f"{score:,.0f}"
    if name.startswith("error."):
        return f"{score:.4g} {ERROR_UNITS.get(name.split('.')[1], '')}".rstrip()
    if name.startswith("track_length"):
        return f"{score:.2f}"
    return f"{score:.4f}" if "spread." in name else f"{100 * score:.2f} %"


def lower_is_better(name: str) -> bool:
    """Whether the lower of two such scores is the better one."""
    return name.startswith(("fpr95", "error."))


def provenance_of(describer: Describer, data_hash: str) -> Provenance:
    """The provenance of scores of this describer on data with this hash."""
    return provenance(data=data_hash, **weights_of(describer))


def weights_of(describer: Describer) -> dict[str, str]:
    """The hash of a describer's weights as the provenance names it; nothing for one without weights."""
    return {"weights": describer.weights_hash} if isinstance(describer, HasWeights) else {}


def _short(values: NDArray[np.float64]) -> list[float | None]:
    """Six digits are more than any curve or interval can tell; nan, which JSON has no word for, is null."""
    return [None if math.isnan(value) else float(f"{value:.6g}") for value in values.tolist()]


def _numbers(values: Any) -> NDArray[np.float64]:
    return np.array([math.nan if value is None else value for value in _checked(values, list)], np.float64)


def _curve(points: Mapping[str, Any], name: str) -> Curve:
    curve = Curve(_numbers(points["x"]), _numbers(points["y"]))
    if curve.x.ndim != 1 or curve.x.shape != curve.y.shape:
        raise ValueError(f'the curve "{name}" has not a y for every x')
    return curve


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"found {value!r:.40} where {kind.__name__} should be")
    return value


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
