"""Whether an adaptation has gained anything: paired differences of two scores on the held-out part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from keypatch.benchmarks.comparison import Difference, paired_difference
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.scores import find_score
from keypatch.errors import KeypatchError

FEW_POINTS = 200  # held out: of fewer, one point is more than half a percentage point of rank-1
DECIDING = ("fpr95.hard", "rank1")  # telling a match from its look-alikes, and finding it among all points

Outcome = Literal["better", "worse", "no difference", "too small"]


@dataclass(frozen=True)
class Verdict:
    """What the held-out part says of the adapted descriptor.

    "better" and "worse" are shown by an interval that leaves out zero; of two scores that disagree the worse one
    counts. `differences` are after minus before, none where there are too few pairs for an interval; `forgotten` are
    the same on other photographs, where they are shown to be worse.
    """

    outcome: Outcome
    points: int  # held out
    before: str  # the names of the descriptors
    after: str
    differences: tuple[Difference, ...] = ()
    forgotten: tuple[Difference, ...] = ()

    def headline(self) -> str:
        return {
            "better": f"Use {self.after}: it is better on these photos than {self.before}",
            "worse": f"Keep {self.before}: {self.after} is worse on these photos",
            "no difference": f"Keep {self.before}: there is no clear gain on these photos",
            "too small": f"Keep {self.before}: the held-out part is too small to show a gain",
        }[self.outcome]

    def reasons(self) -> list[str]:
        """Sentences: the differences with their intervals, and what makes them doubtful."""
        told = [_tell(each) for each in self.differences]
        if self.points < FEW_POINTS:
            told.append(
                f"Only {self.points:,} points are held out, so only large differences can be shown. Use more photos or "
                "a larger --held-out."
            )
        if self.forgotten:
            names = " and ".join(find_score(each.score).title for each in self.forgotten)
            only = f": use {self.after} for photos like these only" if self.outcome == "better" else ""
            told.append(f"On other photographs, {names} got worse{only}.")
        return told


def judge(before: Result, after: Result, points: int, others: tuple[Result, Result] | None = None) -> Verdict:
    """The verdict of two results on the held-out part, which has so many points; `others` on other photographs."""
    found = tuple(_differences(before, after))
    shown = {way(each) for each in found}
    outcome: Outcome = "no difference" if found and points >= FEW_POINTS else "too small"
    for seen in ("better", "worse"):  # the second counts
        if seen in shown:
            outcome = seen
    forgotten = tuple(each for each in _differences(*others) if way(each) == "worse") if others else ()
    return Verdict(outcome, points, before.descriptor, after.descriptor, found, forgotten)


def way(found: Difference) -> Outcome:
    """Whether the first of two descriptors is shown to be better or worse than the second."""
    if not found.shown:
        return "no difference"
    return "better" if (found.low > 0) == (find_score(found.score).better == "higher") else "worse"


def _differences(before: Result, after: Result) -> Sequence[Difference]:
    names = [name for begin in DECIDING for name in before.scores if name.startswith(begin)]
    try:
        return [paired_difference(after, before, name) for name in names]
    except KeypatchError:  # there is no interval where there are too few pairs
        return []


def _tell(found: Difference) -> str:
    score = find_score(found.score)
    of = f" ({score.of.partition('_')[0]} pairs)" if score.of else ""
    moved = f"{'fell' if found.value < 0 else 'rose'} by {score.number(abs(found.value))} percentage points"
    moved = moved if found.value else "is the same"
    interval = f"95 % interval of the paired difference {score.number(found.low)} to {score.number(found.high)}"
    chance = "excludes zero, so this is more than chance" if found.shown else "includes zero, so this may be chance"
    return f"{score.title}{of}, {score.better} is better, {moved} ({interval}, {chance})."
