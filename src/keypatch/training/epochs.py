"""What a run's log says epoch by epoch: the last score, the best, the mean of the best few."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

BEST = 10  # epochs of SDGMNet's Table V


class Epoch(NamedTuple):
    """A score after so many pairs."""

    pairs: int
    value: float


@dataclass(frozen=True)
class Epochs:
    """One score of one validation set over a run, in the order of training."""

    of: str  # the set
    score: str  # "fpr95.hard_6000_6000_0", "matching.map": shares, as in result files
    epochs: tuple[Epoch, ...]

    @property
    def last(self) -> Epoch:
        """What the training gives."""
        return self.epochs[-1]

    @property
    def best(self) -> Epoch:
        """Chosen by this very set: a score that has seen it. The first of equals."""
        return self._best_first()[0]

    def mean_of_best(self, k: int = BEST) -> float | None:
        """SDGMNet's Table V averages the 10 best epochs; None where there are no more than k to choose from."""
        values = [epoch.value for epoch in self._best_first()]
        return sum(values[:k]) / k if len(values) > k else None

    def to_json(self) -> dict[str, Any]:
        last, best, mean = self.last._asdict(), self.best._asdict(), self.mean_of_best()
        return {"last": last, "best": best} | ({} if mean is None else {f"mean of the {BEST} best": mean})

    def _best_first(self) -> list[Epoch]:
        sign = 1 if is_error(self.score) else -1
        return sorted(self.epochs, key=lambda epoch: sign * epoch.value)


def is_error(score: str) -> bool:
    """Whether lower is better; the other scores of a validation are shares of what is right."""
    return score.partition(".")[0] == "fpr95"


def read_epochs(records: Iterable[Mapping[str, Any]]) -> list[Epochs]:
    """Of every set that the records of a log hold scores of, and the mean of those of a kind, as papers print it.

    Sets of which one has several scores of a kind, on several pair lists, have no mean.
    Records of an older version hold the FPR95 of a set without a name, in %.
    """
    found: dict[tuple[str, str], list[Epoch]] = {}
    for record in records:
        given, pairs = record.get("validation"), record.get("pairs")
        if isinstance(given, int | float):
            given = {"the validation set": {"fpr95": given / 100}}
        for of, scores in given.items() if isinstance(given, Mapping) else ():
            for score, value in scores.items() if isinstance(scores, Mapping) else ():
                if isinstance(pairs, int) and isinstance(value, int | float) and math.isfinite(value):
                    found.setdefault((str(of), str(score)), []).append(Epoch(pairs, float(value)))
    every = [Epochs(of, score, tuple(epochs)) for (of, score), epochs in found.items()]
    return [*every, *_means(every)]


def _means(every: Sequence[Epochs]) -> list[Epochs]:
    kinds: dict[str, list[Epochs]] = {}
    for each in every:
        kinds.setdefault(each.score.partition(".")[0], []).append(each)
    made = []
    for kind, members in kinds.items():
        sets = {each.of for each in members}
        tables = [dict(each.epochs) for each in members]
        shared = [pairs for pairs in tables[0] if all(pairs in table for table in tables)]
        if len(members) == len(sets) > 1 and shared:
            means = tuple(Epoch(pairs, sum(table[pairs] for table in tables) / len(tables)) for pairs in shared)
            score = members[0].score if len({each.score for each in members}) == 1 else kind
            made.append(Epochs(f"mean of {len(members)} sets", score, means))
    return made
