"""The table of a study of methods: its rows by recipe, best first, beside the order that the papers publish."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keypatch.files import write_json
from keypatch.studies.methods_plan import read_conditions
from keypatch.studies.methods_published import PUBLISHED
from keypatch.studies.methods_rows import Row, load_rows, number_or_none

FORMAT = "keypatch-study-table"
FORMAT_NUMBER = 1


class Column(NamedTuple):
    """A score of a test set, under its name in result files."""

    test: str
    score: str

    @property
    def is_error(self) -> bool:
        return self.score.startswith("fpr95")


@dataclass(frozen=True)
class Line:
    """A recipe: its rows that reached the end, one per seed."""

    recipe: str
    rows: tuple[Row, ...]

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
        recipe = self.rows[0].trained
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
    unfinished: tuple[Row, ...]  # failed, or not at their end yet; a fault at a new test set leaves a row in its line

    @property
    def equal_seconds(self) -> float:
        """How long the shortest training took: the time at which all can be compared."""
        return min((seconds for line in self.lines for seconds in line.seconds), default=math.nan)

    def error(self, line: Line) -> float:
        return _error(line, self.order)

    def save(self, path: Path) -> None:
        places = ranks(self)
        recipes = [
            {
                "recipe": line.recipe,
                "dim": line.dim,
                "seeds": [row.seed for row in line.rows],
                "seconds": line.seconds,
                "pairs_per_second": line.rates,
                "scores": self._scores(line),
                "paper_fpr95_percent": PUBLISHED[line.recipe].fpr95 if line.recipe in PUBLISHED else None,
                "paper_rank": places[line.recipe][0] if line.recipe in places else None,
                "our_rank": places[line.recipe][1] if line.recipe in places else None,
            }
            for line in self.lines
        ]
        unfinished = [{"recipe": row.recipe, "seed": row.seed, "failed": row.failed} for row in self.unfinished]
        head = {"format": FORMAT, "format_number": FORMAT_NUMBER, "conditions": dict(self.conditions)}
        seconds = number_or_none(self.equal_seconds)
        write_json(path, {**head, "equal_seconds": seconds, "recipes": recipes, "unfinished": unfinished})

    def _scores(self, line: Line) -> dict[str, dict[str, Any]]:
        by_test: dict[str, dict[str, Any]] = {}
        for column in self.columns:
            end, early = line.scores(column), line.scores_after(self.equal_seconds, column)
            by_test.setdefault(column.test, {})[column.score] = {
                "mean": number_or_none(mean(end)),
                "seeds": [number_or_none(score) for score in end],
                "mean_at_equal_seconds": number_or_none(mean(early)),
            }
        return by_test


def read_table(folder: Path, planned: Sequence[Row] = ()) -> Table:
    """The table of the rows in a study's folder; planned ones that are not there yet are unfinished."""
    rows = load_rows(folder)
    rows += [row for row in planned if row.name not in {each.name for each in rows}]
    return make_table(rows, read_conditions(folder))


def make_table(rows: Iterable[Row], conditions: Mapping[str, Any]) -> Table:
    rows = list(rows)
    ended = [row for row in rows if row.at(1.0)]
    unfinished = [row for row in rows if row.failed or not row.at(1.0)]
    lines = [
        Line(recipe, tuple(row for row in ended if row.recipe == recipe))
        for recipe in dict.fromkeys(row.recipe for row in ended)
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
    headlines = _headlines(columns)
    order = _order(lines, headlines)
    ordered = sorted(lines, key=lambda line: (math.isnan(_error(line, order)), _error(line, order)))
    return Table(conditions, tuple(ordered), columns, headlines, order, tuple(unfinished))


def ranks(table: Table) -> dict[str, tuple[int, int]]:
    """Place in the papers' order and in this study, among the recipes that have both; equal ones share a place."""
    ours = {line.recipe: table.error(line) for line in table.lines if line.recipe in PUBLISHED}
    ours = {recipe: error for recipe, error in ours.items() if not math.isnan(error)}
    theirs = {recipe: PUBLISHED[recipe].fpr95 for recipe in ours}
    return {recipe: (_place(theirs[recipe], theirs), _place(ours[recipe], ours)) for recipe in ours}


def mean(scores: Sequence[float]) -> float:
    """The mean; nan where one is missing, so that a mean never hides a seed."""
    return float(np.mean(scores)) if scores else math.nan


def _order(lines: Sequence[Line], headlines: Sequence[Column]) -> tuple[Column, ...]:
    """Lists of pairs, else strips; of them those that all were scored on, so that a new test set moves nobody."""
    alike = [column for column in headlines if column.is_error] or headlines
    known = [column for column in alike if not any(math.isnan(mean(line.scores(column))) for line in lines)]
    return tuple(known or alike)


def _error(line: Line, order: Sequence[Column]) -> float:
    """Mean FPR95 of lists of pairs, or the share of points missed in strips."""
    scores = [mean(line.scores(column)) for column in order]
    return mean([score if column.is_error else 1 - score for column, score in zip(order, scores, strict=True)])


def _headlines(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Of each test set its hard list, else the papers' list, else its first; of strips the hard ones."""
    wanted = ("fpr95.hard", "fpr95.m50_100000_100000_0", "fpr95.", "rank1.h", "")
    chosen = []
    for test in dict.fromkeys(column.test for column in columns):
        own = [column for column in columns if column.test == test]
        chosen.append(next(column for start in wanted for column in own if column.score.startswith(start)))
    return tuple(chosen)


def _of_one_sequence(score: str) -> bool:
    """rank1.e.v_boat, which would fill the table with hundreds of columns; not rank1.e and rank1.e.v."""
    parts = score.split(".", 2)
    return parts[0] == "rank1" and len(parts) == 3 and parts[2] not in ("i", "v")


def _place(value: float, values: Mapping[str, float]) -> int:
    return 1 + sum(other < value for other in values.values())
