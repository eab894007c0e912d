"""Two descriptors on the same data: is one better, or is their difference within what the data can tell?"""

from dataclasses import dataclass

from keypatch.benchmarks.result import Replicates, Result, lower_is_better, score_text
from keypatch.errors import KeypatchError


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
    benchmarks or data, and for a score that one of them lacks or has no interval for.
    """
    data = [result.provenance.hashes.get("data") for result in (first, second)]
    if first.benchmark != second.benchmark:
        raise _refusal(first, second, f"one is from {first.benchmark}, the other from {second.benchmark}")
    if data[0] is None or data[0] != data[1]:
        raise _refusal(first, second, f"they are not from the same data ({_data(first)} and {_data(second)})")
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


def _refusal(first: Result, second: Result, why: str) -> KeypatchError:
    return KeypatchError(f"The results of {first.descriptor} and {second.descriptor} cannot be compared: {why}.")


def _data(result: Result) -> str:
    name, data_hash = result.settings.get("data", "data"), result.provenance.hashes.get("data", "none")
    return f"{name}, hash {data_hash[:8]}"
