"""Two descriptors on the same data: is one better, or is their difference within what the data can tell?"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keypatch.benchmarks.result import Replicates, Result, html_table
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.table import headline_scores
from keypatch.errors import KeypatchError

CARD = "card"  # tells how the data were made, and when: not which data they are, as their hash does
# Settings that come with the descriptor, not with the protocol.
_OF_THE_DESCRIPTOR = ("input", "patch_sigmas", "patch_size", "unit_length")


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

    @property
    def better(self) -> str | None:
        """The descriptor that is shown to be better; None if neither is."""
        way = find_score(self.score).better
        if not self.shown or way == "neither":
            return None
        return self.first if (self.high < 0) == (way == "lower") else self.second

    def sentence(self) -> str:
        """Which of the two is better and by how much, or that no difference is shown."""
        score = find_score(self.score)
        points = "percentage points " if score.unit == "%" else f"{score.unit} ".lstrip()
        interval = f"{score.number(self.low)} to {score.text(self.high)}"
        found = f"{score.number(self.value)} {points}(95 % interval {interval})"
        subtraction = f"{self.score} of {self.first} minus that of {self.second} is {found}"
        if not self.shown:
            return f"No difference shown: {subtraction}."
        if self.better is None:
            return f"{self.first} and {self.second} differ: {subtraction}."
        worse = self.second if self.better == self.first else self.first
        return f"{self.better} is better than {worse}: {subtraction}."


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two results on the same data, score by score: a table in a notebook, sentences elsewhere.

    >>> kp.compare(kp.load_result("rootsift.json"), kp.load_result("sift.json"))["rank1"].better
    'rootsift'
    """

    first: Result
    second: Result
    differences: Mapping[str, Difference]  # by the name of the score

    def __getitem__(self, score: str) -> Difference:
        return self.differences[score]

    def __repr__(self) -> str:
        return "\n".join(each.sentence() for each in self.differences.values())

    def _repr_html_(self) -> str:
        heads = ["score", self.first.descriptor, self.second.descriptor, "difference", "95 % interval", "better"]
        rows = map(self._row, self.differences.values())
        return html_table(f"{self.first.benchmark}, paired", heads, rows, self.first.conditions())

    def _row(self, found: Difference) -> list[str]:
        score = find_score(found.score)
        numbers = [result.number(found.score) for result in (self.first, self.second)]
        interval = f"{score.number(found.low)} to {score.number(found.high)}"
        better = found.better or ("they differ" if found.shown else "no difference shown")
        return [score.label, *numbers, score.number(found.value), interval, better]


def compare(first: Result, second: Result, *scores: str) -> Comparison:
    """The paired differences of two results on the same data, for these scores or else the headline scores.

    >>> kp.compare(kp.load_result("rootsift.json"), kp.load_result("sift.json"))
    rootsift is better than sift: rank1 of rootsift minus that of sift is ...

    Raises:
        KeypatchError: the results differ in benchmark, data or settings, or a score has no intervals.
    """
    names = scores or [
        name for name in headline_scores(first) if name in first.replicates and name in second.replicates
    ]
    if not names:
        raise _refusal(first, second, "they have no headline score with intervals in common; evaluate them again")
    return Comparison(first, second, {name: paired_difference(first, second, name) for name in names})


def paired_difference(first: Result, second: Result, score: str) -> Difference:
    """The paired difference of one score.

    Draw k is the same for both, so the differences of their replicates are the replicates of their difference: what
    makes the data easy or hard for both does not widen the interval. Raises KeypatchError as `compare`.
    """
    data = [result.provenance.hashes.get("data") for result in (first, second)]
    if first.benchmark != second.benchmark:
        raise _refusal(first, second, f"one is from {first.benchmark}, the other from {second.benchmark}")
    if data[0] is None or data[0] != data[1]:
        raise _refusal(first, second, f"they are not from the same data ({_data(first)} and {_data(second)})")
    _require_same_settings(first, second)
    for result in (first, second):
        if score not in result.replicates or score not in result.scores:
            raise _refusal(first, second, f"{result.descriptor} has no interval for {score}; evaluate it again")
    ours, theirs = first.replicates[score], second.replicates[score]
    if (ours.units, ours.count, len(ours.values)) != (theirs.units, theirs.count, len(theirs.values)):
        drawn = [f"{len(each.values)} draws of {each.count} {each.units}" for each in (ours, theirs)]
        raise _refusal(first, second, f"their intervals for {score} are from {drawn[0]} and {drawn[1]}")
    interval = Replicates(ours.values - theirs.values, ours.units, ours.count).interval()
    if interval is None:
        raise _refusal(
            first, second, f"{ours.count} {ours.units} are too few for an interval on the difference in {score}"
        )
    value = first.scores[score] - second.scores[score]
    return Difference(value, *interval, score, first.descriptor, second.descriptor)


def shared_settings(result: Result) -> dict[str, Any]:
    """The settings of the protocol, under flat names: {"pairs": {"a": 5}} -> {"pairs.a": 5}; a card stays whole."""
    return {name: value for name, value in _flat(result.settings).items() if not _is_own(name)}


def own_settings(result: Result) -> dict[str, Any]:
    """What belongs to the descriptor, under flat names: how its patches are cut, and the notes on its training."""
    return {name: value for name, value in _flat(result.settings).items() if _is_own(name)} | dict(result.notes)


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
    """KeypatchError names the first setting that differs; the name of the data may, since their hash is compared."""
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
