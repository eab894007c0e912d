"""Whether an adaptation has gained anything: the paired difference of one score on the held-out part."""

from dataclasses import dataclass
from typing import Literal

from keypatch.benchmarks.comparison import Difference, paired_difference
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.scores import find_score
from keypatch.errors import KeypatchError

FEW_POINTS = 200  # held out: of fewer, one point is more than half a percentage point of rank-1

Outcome = Literal["better", "worse", "no difference", "too small"]


@dataclass(frozen=True)
class Verdict:
    """What the held-out part says of the adapted descriptor; `difference` is its score minus that before."""

    outcome: Outcome
    points: int  # held out
    before: str  # the names of the descriptors
    after: str
    difference: Difference | None = None  # None where there are too few pairs for an interval

    def headline(self) -> str:
        return {
            "better": f"Use {self.after}: it is better on these photos than {self.before}",
            "worse": f"Keep {self.before}: {self.after} is worse on these photos",
            "no difference": f"Keep {self.before}: no gain is shown on these photos",
            "too small": f"Keep {self.before}: the held-out part is too small to tell whether anything is gained",
        }[self.outcome]

    def reasons(self) -> list[str]:
        """Sentences: the difference with its interval, and what makes it doubtful."""
        return [*self._measured(), *([self._small()] if self.points < FEW_POINTS else [])]

    def _measured(self) -> list[str]:
        found = self.difference
        if found is None:
            return []
        score = find_score(found.score)
        ends = f"{score.number(found.low)} to {score.number(found.high)}"
        told = (
            f"{score.title} on {score.of or 'the held-out points'} changed by {score.number(found.value)} percentage "
            f"points (95 % interval of the paired difference {ends}; {score.better} is better)"
        )
        if found.shown:
            return [f"{told}: zero lies outside the interval, so this is more than chance."]
        return [f"{told}: zero lies within the interval, so this may be chance."]

    def _small(self) -> str:
        return (
            f"Only {self.points:,} points are held out, so that only large differences can be shown. More photos, or a "
            "larger --held-out, tell more."
        )


def judge(before: Result, after: Result, points: int) -> Verdict:
    """The verdict of two results on the held-out part, which has so many points."""
    score = deciding_score(before)
    try:
        found = paired_difference(after, before, score)
    except KeypatchError:  # a draw has no interval where there are too few pairs
        return Verdict("too small", points, before.descriptor, after.descriptor)
    outcome: Outcome = "too small" if points < FEW_POINTS else "no difference"
    if found.shown:
        higher = find_score(score).better == "higher"
        outcome = "better" if (found.low > 0) == higher else "worse"
    return Verdict(outcome, points, before.descriptor, after.descriptor, found)


def deciding_score(result: Result) -> str:
    """FPR95 on the pair list with look-alike negatives."""
    return next(name for name in result.scores if name.startswith("fpr95.hard"))
