"""Options of stages that benchmarks embed: which of them act, and what results say about them.

A benchmark whose defaults are not those of a stage has a subclass with its own: whoever replaces one field keeps them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from keypatch.errors import KeypatchError
from keypatch.features.extraction import Extraction
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matching import Matching, Model
from keypatch.settings import other_default

VERIFICATION = (
    "model",
    "estimator",
    "threshold",
    "seed",
    "tries",
    "confidence",
    "iterations",
)  # what COLMAP does itself


@dataclass(frozen=True, repr=False)
class BenchmarkExtraction(Extraction):
    """`Extraction` with the budget at which the field compares."""

    keypoints: int | None = other_default(Extraction, "keypoints", 2048)


@dataclass(frozen=True, repr=False)
class ColmapMatching(Matching):
    """`Matching` whose matches COLMAP verifies itself."""

    turn: float = other_default(Matching, "turn", 180.0)
    filter: AdaLAM | None = other_default(Matching, "filter", None)
    model: Model | None = other_default(Matching, "model", None)


def refuse_idle(part: str, given: Any, names: Iterable[str], why: str, instead: str = "") -> None:
    """KeypatchError if one of these fields differs from its default, although nothing depends on it."""
    usual = type(given)()
    for name in names:
        if getattr(given, name) != getattr(usual, name):
            raise KeypatchError(f"{why} Leave out {part}.{name}, which would have no effect{instead}.")


def recorded_matching(matching: Matching, names: Iterable[str]) -> dict[str, Any]:
    """These fields, and the others where they are not the benchmark's defaults; an exact search is "exact"."""
    usual, values = type(matching)().plain(), matching.plain()
    values["neighbours"] = "flann" if matching.neighbours == "flann" else "exact"
    changed = {name: value for name, value in values.items() if value not in (usual.get(name), "exact")}
    return {name: values[name] for name in names} | changed
