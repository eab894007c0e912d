"""The table of a study: what its arms reached with each seed, best first, beside the order of the papers."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keypatch.benchmarks.scores import find_score
from keypatch.files import Format, write_json
from keypatch.reports.published import published_recipes
from keypatch.studies.cost import Cost
from keypatch.studies.rows import Trial, load_trials, number_or_none, read_conditions
from keypatch.training import Recipe

TABLE = Format("keypatch-study-table", 2, "table of a study")  # 1 held recipes, each with one label: its name

PAPERS_LIST = "m50_100000_100000_0"  # the test list of every paper on PhotoTour
_OF_A_LEVEL = re.compile(r"(?:rank1|matching\.map|matching\.sr)\.[eht]\.(.+)")  # of strips: easy, hard or tough


class Column(NamedTuple):
    """A score of a test set, under its name in result files."""

    test: str
    score: str

    @property
    def is_error(self) -> bool:
        return find_score(self.score).better == "lower"


@dataclass(frozen=True)
class Line:
    """An arm of the study: its rows that reached the end, one per seed."""

    label: str
    rows: tuple[Trial, ...]

    @property
    def varied(self) -> Mapping[str, str]:
        """Values by path, where the label names them."""
        return self.rows[0].varied

    @property
    def base(self) -> str:
        """The label without the values that vary: the recipe, and whether it is as published."""
        heads = (self.label.partition(f" {path}=")[0] for path in self.varied)
        return min(heads, key=len, default=self.label)

    @property
    def recipe(self) -> Recipe | None:
        """With the first seed; None where it is not known any more."""
        return self.rows[0].trained

    def scores(self, column: Column) -> list[float]:
        """One score per seed at the end of the run; nan where it was not taken."""
        ends = [row.milestones[-1] for row in self.rows]
        return [end.scores.get(column.test, {}).get(column.score, math.nan) for end in ends]

    def scores_after(self, seconds: float, column: Column) -> list[float]:
        """One score per seed after so many seconds of training; nan before the first milestone."""
        return [row.score_at(seconds, *column) for row in self.rows]

    @property
    def dim(self) -> int | None:
        """Of the descriptors; None where the recipe is not known any more."""
        recipe = self.recipe
        return recipe.network.dim if recipe else None

    @property
    def seconds(self) -> list[float]:
        return [row.milestones[-1].seconds for row in self.rows]

    @property
    def rates(self) -> list[float]:
        """Pairs per second of training, one per seed."""
        return [row.rate for row in self.rows]


@dataclass(frozen=True)
class Table:
    """`lines` are ordered by `error`, the mean of `order`, best first."""

    conditions: Mapping[str, Any]
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]  # every score of every test set
    headlines: tuple[Column, ...]  # one of each test set, by which recipes are compared
    order: tuple[Column, ...]  # of the headlines those that decide which recipe is better
    unfinished: tuple[Trial, ...]  # failed, or not at their end yet; a fault at a new test set leaves a row in its line
    cost: Cost | None = None  # of what is unfinished, where it was asked for

    @property
    def equal_seconds(self) -> float:
        """How long the shortest training took: the time at which all can be compared."""
        return min((seconds for line in self.lines for seconds in line.seconds), default=math.nan)

    @property
    def seen(self) -> dict[str, str]:
        """By test set that shares images with the training: the sentence that says so."""
        return {test: sentence for line in self.lines for row in line.rows for test, sentence in row.seen.items()}

    def error(self, line: Line) -> float:
        return _error(line, self.order)

    def save(self, path: Path) -> None:
        places, published = ranks(self), published_recipes()
        lines = [
            {
                "label": line.label,
                "recipe": line.recipe.name if line.recipe else line.label,
                "varied": dict(line.varied),
                "pairs": line.recipe.pairs if line.recipe else None,
                "batch": line.recipe.sampler.pairs if line.recipe else None,
                "dim": line.dim,
                "seeds": [row.seed for row in line.rows],
                "seconds": line.seconds,
                "pairs_per_second": line.rates,
                "scores": self._scores(line),
                "paper_fpr95_percent": published[line.label].mean if line.label in published else None,
                "paper_rank": places[line.label][0] if line.label in places else None,
                "our_rank": places[line.label][1] if line.label in places else None,
            }
            for line in self.lines
        ]
        unfinished = [{"label": row.label, "seed": row.seed, "failed": row.failed} for row in self.unfinished]
        head = {**TABLE.head(), "conditions": dict(self.conditions)}
        seconds = number_or_none(self.equal_seconds)
        rest = {"lines": lines, "unfinished": unfinished, "seen": self.seen}
        write_json(path, {**head, "equal_seconds": seconds, **rest})

    def _scores(self, line: Line) -> dict[str, dict[str, Any]]:
        by_test: dict[str, dict[str, Any]] = {}
        for column in self.columns:
            end, early = line.scores(column), line.scores_after(self.equal_seconds, column)
            by_test.setdefault(column.test, {})[column.score] = {
                "mean": number_or_none(mean_over_seeds(end)),
                "seeds": [number_or_none(score) for score in end],
                "mean_at_equal_seconds": number_or_none(mean_over_seeds(early)),
            }
        return by_test


def read_table(folder: Path, planned: Sequence[Trial] = (), tests: Sequence[str] = ()) -> Table:
    """The table of the rows in a study's folder; planned ones that are not there or lack a test are unfinished."""
    rows = load_trials(folder)
    rows += [row for row in planned if row.name not in {each.name for each in rows}]
    names = {row.name for row in planned}
    waiting = [row.name for row in rows if row.name in names and any(row.lacks(1.0, test) for test in tests)]
    return make_table(rows, read_conditions(folder), waiting)


def make_table(rows: Iterable[Trial], conditions: Mapping[str, Any], waiting: Collection[str] = ()) -> Table:
    """`waiting` are the names of rows that have scores to come."""
    rows = list(rows)
    ended = [row for row in rows if row.at(1.0)]
    unfinished = [row for row in rows if row.failed or not row.at(1.0) or row.name in waiting]
    lines = [
        Line(label, tuple(sorted((row for row in ended if row.label == label), key=lambda row: row.seed)))
        for label in dict.fromkeys(row.label for row in ended)
    ]
    columns = tuple(
        dict.fromkeys(
            Column(test, score)
            for row in ended
            for test, scores in row.milestones[-1].scores.items()
            for score in scores
            if not _of_one_sequence(score)
        )
    )
    headlines = headlines_of(columns)
    order = _order(lines, headlines)
    ordered = sorted(lines, key=lambda line: (math.isnan(_error(line, order)), _error(line, order)))
    return Table(conditions, tuple(ordered), columns, headlines, order, tuple(unfinished))


def heading(column: Column) -> str:
    """ "castle-test hard FPR95 %" of fpr95.hard_6000_6000_0, without what is only the size of the list."""
    score = find_score(column.score)
    return " ".join(filter(None, (column.test, score.of.split("_")[0], score.column)))


def lines_in_order(table: Table) -> list[Line]:
    """By recipe and then by the values that vary, numbers by size."""

    def key(line: Line) -> list[tuple[float, str]]:
        return [(0.0, line.base), *((number_of(value), value) for value in line.varied.values()), (0.0, line.label)]

    return sorted(table.lines, key=key)


def number_of(text: str) -> float:
    """What a varied value says, as a number; inf for a word, which stands behind them."""
    try:
        return float(text)
    except ValueError:
        return math.inf


def ranks(table: Table) -> dict[str, tuple[int, int]]:
    """Place in the papers' order and in this study, among the recipes that have both; equal ones share a place."""
    published, errors = published_recipes(), {line.label: table.error(line) for line in table.lines}
    ours = {recipe: error for recipe, error in errors.items() if recipe in published and not math.isnan(error)}
    theirs = {recipe: published[recipe].mean for recipe in ours}
    return {recipe: (_place(theirs[recipe], theirs), _place(ours[recipe], ours)) for recipe in ours}


def mean_over_seeds(scores: Sequence[float]) -> float:
    """The mean; nan where one is missing, so that a mean never hides a seed."""
    return float(np.mean(scores)) if scores else math.nan


def _order(lines: Sequence[Line], headlines: Sequence[Column]) -> tuple[Column, ...]:
    """Lists of pairs, else strips; of them those that all were scored on, so that a new test set moves nobody."""
    alike = [column for column in headlines if column.is_error] or headlines
    known = [column for column in alike if not any(math.isnan(mean_over_seeds(line.scores(column))) for line in lines)]
    return tuple(known or alike)


def _error(line: Line, order: Sequence[Column]) -> float:
    """Mean FPR95 of lists of pairs, or the share of points missed in strips."""
    scores = [mean_over_seeds(line.scores(column)) for column in order]
    return mean_over_seeds(
        [score if column.is_error else 1 - score for column, score in zip(order, scores, strict=True)]
    )


def headlines_of(columns: Sequence[Column]) -> tuple[Column, ...]:
    """One column of each test set, by which recipes are compared."""
    tests = dict.fromkeys(column.test for column in columns)
    return tuple(min((column for column in columns if column.test == test), key=_preference) for test in tests)


def _preference(column: Column) -> int:
    """Lowest for the hard list of a test set, then the papers' list, any list, matching or hard strips, any score."""
    score = find_score(column.score)
    if score.kind in ("fpr95", "ap"):
        return 0 if score.of.startswith("hard") else 1 if score.of == PAPERS_LIST else 2
    return {"matching.map": 3, "rank1.h": 4}.get(column.score, 5)


def _of_one_sequence(name: str) -> bool:
    """rank1.e.v_boat, which would fill the table with hundreds of columns; not rank1.e and rank1.e.v."""
    found = _OF_A_LEVEL.fullmatch(name)
    return found is not None and found[1] not in ("i", "v")


def _place(value: float, values: Mapping[str, float]) -> int:
    return 1 + sum(other < value for other in values.values())
