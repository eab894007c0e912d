"""The table of the six splits of PhotoTour: a descriptor's results on the sets that it was not trained on."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keypatch.benchmarks.result import Replicates, Result, load_result
from keypatch.errors import DataError
from keypatch.files import Format, write_json
from keypatch.reports.published import published_rows
from keypatch.studies.rows import number_or_none

SETS = {"liberty": "LIB", "notredame": "ND", "yosemite": "YOS"}
UNTRAINED = "none"  # what a descriptor made by hand was trained on
TABLE = Format("keypatch-ubc-table", 1, "table of PhotoTour scores")


class TrainTest(NamedTuple):
    """Trained on one set, tested on another."""

    train: str
    test: str

    def __str__(self) -> str:
        return f"{SETS[self.train]}->{SETS[self.test]}"


# in the order of the papers' columns
SPLITS = tuple(TrainTest(train, test) for test in SETS for train in sorted(SETS) if train != test)

Scored = Mapping[TrainTest, Result]


@dataclass(frozen=True)
class UbcRow:
    """`results` of every split by the step of the checkpoint; made by hand: three "splits" from "none", at step 0."""

    name: str
    results: Mapping[TrainTest, Mapping[int, Result]]

    @property
    def is_trained(self) -> bool:
        return any(split.train != UNTRAINED for split in self.results)

    def last(self) -> Scored:
        """The results of the last checkpoint of every run."""
        return {split: by_step[max(by_step)] for split, by_step in self.results.items()}

    def best(self, score: str) -> Scored:
        """Of every run the checkpoint with the lowest mean of a score over its two test sets, the earliest if equal."""
        chosen: dict[TrainTest, Result] = {}
        for train in dict.fromkeys(split.train for split in self.results):
            own = {split: by_step for split, by_step in self.results.items() if split.train == train}
            steps = sorted(set.intersection(*(set(by_step) for by_step in own.values())))
            if len(own) < 2 or not steps:
                continue  # not scored on both test sets yet
            means = [np.mean([by_step[step].scores[score] for by_step in own.values()]) for step in steps]
            chosen |= {split: by_step[steps[int(np.argmin(means))]] for split, by_step in own.items()}
        return chosen

    def checkpoints(self) -> dict[str, int]:
        """How many checkpoints of each run were scored on both test sets, by its training set."""
        counts: dict[str, int] = {}
        for split, by_step in self.results.items():
            counts[split.train] = min(len(by_step), counts.get(split.train, len(by_step)))
        return counts


def columns_of(scored: Scored) -> list[TrainTest | None]:
    """The place of each of the papers' six columns; None under the second column of a test set if made by hand."""
    if any(split.train == UNTRAINED for split in scored):
        return [place for test in SETS for place in (TrainTest(UNTRAINED, test), None)]
    return list(SPLITS)


def mean_score(scored: Scored, score: str) -> float:
    """The plain mean over six splits, or over three sets; nan while one is missing."""
    expected = [split for split in columns_of(scored) if split]
    return float(np.mean([scored[split].scores[score] if split in scored else math.nan for split in expected]))


def mean_replicates(scored: Scored, score: str) -> Replicates | None:
    """Of the mean: on one test set two runs see the same draws, on different sets their draws meet unrelated pairs."""
    own = [result.replicates.get(score) for result in scored.values()]
    known = [each for each in own if each is not None]
    if math.isnan(mean_score(scored, score)) or len(known) < len(own):
        return None
    return Replicates(
        np.mean([each.values for each in known], axis=0), known[0].units, min(each.count for each in known)
    )


def result_file(folder: Path, name: str, split: TrainTest, step: int) -> Path:
    end = f"-step-{step}" if split.train != UNTRAINED else ""
    return folder / "results" / name / f"{split.train}-{split.test}{end}.json"


def load_ubc_rows(folder: Path) -> list[UbcRow]:
    """The rows of a study's folder, by name."""
    places = sorted(path for path in (folder / "results").glob("*") if path.is_dir())
    rows = (make_ubc_row(place.name, map(_load, sorted(place.glob("*.json")))) for place in places)
    return [row for row in rows if row.results]


def make_ubc_row(name: str, results: Iterable[Result]) -> UbcRow:
    by_split: dict[TrainTest, dict[int, Result]] = {}
    for result in results:
        split = TrainTest(result.notes["trained_on"], result.settings["data"])
        by_split.setdefault(split, {})[result.notes["step"]] = result
    return UbcRow(name, by_split)


def _load(path: Path) -> Result:
    result = load_result(path)
    if not {"trained_on", "step"} <= set(result.notes) or "data" not in result.settings:
        raise DataError(f"{path} is not a result of this study. Move it elsewhere.")
    return result


@dataclass(frozen=True)
class UbcTable:
    """All rows of a study's folder, on one pair list."""

    rows: tuple[UbcRow, ...]
    pair_list: str

    @property
    def fpr95(self) -> str:
        return f"fpr95.{self.pair_list}"

    def save(self, path: Path) -> None:
        rows = [self._entry(row, "last", row.last()) for row in self.rows]
        rows += [self._entry(row, "best on the test sets", row.best(self.fpr95)) for row in self.rows if row.is_trained]
        head = {**TABLE.head(), "pair_list": self.pair_list}
        published = [
            {"method": each.method, "source": each.source, "values": each.values, "mean": each.mean}
            for each in published_rows()
        ]
        write_json(path, {**head, "rows": rows, "published_fpr95_percent": published})

    def _entry(self, row: UbcRow, checkpoint: str, scored: Scored) -> dict[str, Any]:
        return {
            "descriptor": row.name,
            "checkpoint": checkpoint if row.is_trained else None,
            "steps": {split.train: result.notes["step"] for split, result in scored.items() if row.is_trained},
            "checkpoints_scored": row.checkpoints() if row.is_trained else None,
            **{kind: _scores(scored, f"{kind}.{self.pair_list}", checkpoint == "last") for kind in ("fpr95", "ap")},
        }


def _scores(scored: Scored, score: str, with_intervals: bool) -> dict[str, Any]:
    """By column; a checkpoint that was chosen on the test pairs has no honest interval over them."""
    whole = mean_replicates(scored, score) if with_intervals else None
    entries: dict[str, Any] = {
        _column(split): _entry(result.scores[score], result.interval(score) if with_intervals else None)
        | ({"contamination": result.contamination.to_json()} if result.contamination else {})
        for split, result in sorted(scored.items(), key=lambda item: columns_of(scored).index(item[0]))
    }
    return {**entries, "mean": _entry(mean_score(scored, score), whole.interval() if whole else None)}


def _column(split: TrainTest) -> str:
    return SETS[split.test] if split.train == UNTRAINED else str(split)


def _entry(score: float, interval: tuple[float, float] | None) -> dict[str, Any]:
    return {"score": number_or_none(score), "interval": interval}
