"""What a benchmark gives: scores, curves and where they came from, as a value and as a JSON file."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import DataError
from keypatch.files import reason, write_json
from keypatch.metrics import Curve
from keypatch.provenance import Provenance, provenance

FORMAT = "keypatch-result"
FORMAT_NUMBER = 1


@dataclass(frozen=True, eq=False)
class Result:
    """Scores under flat names ("fpr95.m50_100000_100000_0"); nan where a score is not defined.

    All are fractions but the moments "spread.m1" and "spread.dm2" and numbers of matches, "count.matches".
    """

    benchmark: str
    descriptor: str
    settings: Mapping[str, Any]
    scores: Mapping[str, float]
    curves: Mapping[str, Curve]
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_number": FORMAT_NUMBER,
            "benchmark": self.benchmark,
            "descriptor": self.descriptor,
            "settings": dict(self.settings),
            "scores": {name: None if math.isnan(score) else score for name, score in self.scores.items()},
            "curves": {name: {"x": curve.x.tolist(), "y": curve.y.tolist()} for name, curve in self.curves.items()},
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
                benchmark=value["benchmark"],
                descriptor=value["descriptor"],
                settings=value["settings"],
                scores={name: math.nan if score is None else float(score) for name, score in value["scores"].items()},
                curves={name: Curve(np.array(c["x"]), np.array(c["y"])) for name, c in value["curves"].items()},
                provenance=Provenance.from_json(value["provenance"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{source} is incomplete or damaged ({error}). Run the evaluation again.") from None

    def save(self, path: str | Path) -> None:
        write_json(Path(path), self.to_json())

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
    """A score for people: a fraction in %, a number with a digit, a moment of the spread as it is."""
    if name.startswith("count."):
        return f"{score:.1f}"
    return f"{score:.4f}" if "spread." in name else f"{100 * score:.2f} %"


def provenance_of(describer: Describer, data_hash: str) -> Provenance:
    """The provenance of scores of this describer on data with this hash."""
    weights = {"weights": describer.weights_hash} if isinstance(describer, HasWeights) else {}
    return provenance(data=data_hash, **weights)
