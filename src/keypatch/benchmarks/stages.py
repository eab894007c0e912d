"""Options of stages that benchmarks embed: which of them act, and what results say about them."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from keypatch.errors import KeypatchError
from keypatch.matching.matching import Matching

VERIFICATION = ("model", "estimator", "threshold", "seed", "confidence", "iterations")  # what COLMAP does itself


def refuse_idle(part: str, given: Any, usual: Any, names: Iterable[str], why: str, instead: str = "") -> None:
    """KeypatchError if one of these fields differs from the usual value, although nothing depends on it."""
    for name in names:
        if getattr(given, name) != getattr(usual, name):
            raise KeypatchError(f"{why} Leave out {part}.{name}, which would have no effect{instead}.")


def recorded_matching(matching: Matching, usual: Matching, names: Iterable[str]) -> dict[str, Any]:
    """These fields, and the others where they are not the benchmark's usual ones; an exact search is "exact"."""
    values = {field.name: getattr(matching, field.name) for field in fields(matching)}
    values["neighbours"] = "flann" if matching.neighbours == "flann" else "exact"
    changed = {name: value for name, value in values.items() if value not in (getattr(usual, name), "exact")}
    return {name: values[name] for name in names} | changed
