"""Two descriptors on the same data: is one better, or is their difference within what the data can tell?"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keypatch.benchmarks.result import Replicates, Result, lower_is_better, score_text
from keypatch.errors import KeypatchError

CARD = "card"  # tells how the data were made, and when: not which data they are, as their hash does
_OF_THE_DESCRIPTOR = ("patch_sigmas", "patch_size", "unit_length")  # settings that come with it, not with the protocol


@dataclass(frozen=True)
class Difference:
    """The score of the first descriptor minus that of the second, and its 95 % interval."""

    value: float
    low: float
    high: float
    score: str
    first: str  # the names of the descriptors
    second: str

    @property
    def shown(self) -> bool:
        """Whether the data show a difference: zero lies outside the interval."""
        return not self.low <= 0 <= self.high

    def sentence(self) -> str:
        """Which of the two is better and by how much, or that no difference is shown."""
        value, low, high = (score_text(self.score, number) for number in (self.value, self.low, self.high))
        points = "percentage points " if value.endswith(" %") else ""
        found = f"{value.removesuffix(' %')} {points}(95 % interval {low.removesuffix(' %')} to {high})"
        subtraction = f"{self.score} of {self.first} minus that of {self.second} is {found}"
        if not self.shown:
            return f"No difference shown: {subtraction}."
        first_is_better = (self.high < 0) == lower_is_better(self.score)
        better, worse = (self.first, self.second) if first_is_better else (self.second, self.first)
        return f"{better} is better than {worse}: {subtraction}."


def compare(first: Result, second: Result, score: str) -> Difference:
    """The paired difference of a score that two results have on the same data.

    Draw k is the same for both, so the differences of their replicates are the replicates of their difference: what
    makes the data easy or hard for both does not widen the interval. Raises KeypatchError for results of other
    benchmarks, data or settings, and for a score that one of them lacks or has no interval for.
    """
    data = [result.provenance.hashes.get("data") for result in (first, second)]
    if first.benchmark != second.benchmark:
        raise _refusal(first, second, f"one is from {first.benchmark}, the other from {second.benchmark}")
    if data[0] is None or data[0] != data[1]:
        raise _refusal(first, second, f"they are not from the same data ({_data(first)} and {_data(second)})")
    _require_same_settings(first, second)
    for result in (first, second):
        if score not in result.replicates or score not in result.scores:
            raise _refusal(first, second, f"{result.descriptor} has no interval of {score}; evaluate it again")
    ours, theirs = first.replicates[score], second.replicates[score]
    if (ours.units, ours.count, len(ours.values)) != (theirs.units, theirs.count, len(theirs.values)):
        drawn = [f"{len(each.values)} draws of {each.count} {each.units}" for each in (ours, theirs)]
        raise _refusal(first, second, f"their intervals of {score} are from {drawn[0]} and {drawn[1]}")
    interval = Replicates(ours.values - theirs.values, ours.units, ours.count).interval()
    if interval is None:
        raise _refusal(first, second, f"{ours.count} {ours.units} cannot say how sure a difference in {score} is")
    value = first.scores[score] - second.scores[score]
    return Difference(value, *interval, score, first.descriptor, second.descriptor)


def shared_settings(result: Result) -> dict[str, Any]:
    """The settings of the protocol, under flat names: {"pairs": {"a": 5}} -> {"pairs.a": 5}; a card stays whole."""
    return {name: value for name, value in _flat(result.settings).items() if not _is_own(name)}


def own_settings(result: Result) -> dict[str, Any]:
    """How patches are cut for the descriptor, under flat names."""
    return {name: value for name, value in _flat(result.settings).items() if _is_own(name)}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and name != CARD:
            made |= {f"{name}.{inner}": each for inner, each in _flat(value).items()}
        else:
            made[name] = value
    return made


def _is_own(name: str) -> bool:
    return name.rpartition(".")[2] in _OF_THE_DESCRIPTOR


def _require_same_settings(first: Result, second: Result) -> None:
    """KeypatchError names the first setting that differs, whatever the data are called, of which the hash is known."""
    ours, theirs = shared_settings(first), shared_settings(second)
    for name in dict.fromkeys([*ours, *theirs]):
        values = [json.dumps(each.get(name), default=str) for each in (ours, theirs)]  # a file has lists for tuples
        if name not in (CARD, "data") and values[0] != values[1]:
            raise _refusal(first, second, f"{name} is {values[0]:.60} in one and {values[1]:.60} in the other")


def _refusal(first: Result, second: Result, why: str) -> KeypatchError:
    return KeypatchError(f"The results of {first.descriptor} and {second.descriptor} cannot be compared: {why}.")


def _data(result: Result) -> str:
    name, data_hash = result.settings.get("data", "data"), result.provenance.hashes.get("data", "none")
    return f"{name}, hash {data_hash[:8]}"
