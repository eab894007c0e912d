"""The table of a study of methods: what recipes reached with each seed, best first, beside the order of the papers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keypatch.benchmarks.scores import find_score
from keypatch.errors import DataError, RecipeError
from keypatch.files import Format, reading, safe_name, write_json
from keypatch.reports.published import published_recipes
from keypatch.training import Recipe
from keypatch.training.recipe import TRAINED
from keypatch.training.recipe_files import recipe_from_toml

STUDY = Format("keypatch-study", 1, "study")
TRIAL = Format("keypatch-study-row", 2, "row of a study")  # 1 had no recipe_toml
TABLE = Format("keypatch-study-table", 1, "table of a study")

PAPERS_LIST = "m50_100000_100000_0"  # the test list of every paper on PhotoTour
LEVELS = ("rank1.e", "rank1.h", "rank1.t")  # of strips: easy, hard and tough

Scores = Mapping[str, float]  # under the names of result files


@dataclass(frozen=True)
class Milestone:
    """The run after a share of its budget, scored."""

    share: float
    pairs: int
    seconds: float  # of training, all sittings
    scores: Mapping[str, Scores] = field(default_factory=dict)  # by the name of the test set


@dataclass(frozen=True)
class Trial:
    """A recipe and a seed. `failed` is the sentence of the fault that ended it, empty where there was none."""

    recipe: str
    seed: int
    recipe_hash: str  # SHA-256 of its TOML
    milestones: tuple[Milestone, ...] = ()
    failed: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)  # device, precision and threads of the training
    tests: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the data of each test set
    provenance: Mapping[str, Any] = field(default_factory=dict)  # of the training
    recipe_toml: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)  # by test set: which of its images were trained on

    @property
    def name(self) -> str:
        return f"{self.recipe}-{self.seed}"

    @property
    def trained(self) -> Recipe | None:
        """The recipe as this version reads it; None where the row does not hold it, or holds what is no recipe now."""
        try:
            return recipe_from_toml(self.recipe_toml, types=TRAINED)
        except (DataError, RecipeError):
            return None

    def at(self, share: float) -> Milestone | None:
        """The milestone after this share of the run, if it was scored."""
        return next((milestone for milestone in self.milestones if milestone.share == share), None)

    def lacks(self, share: float, test: str) -> bool:
        milestone = self.at(share)
        return milestone is None or test not in milestone.scores

    def with_milestone(self, milestone: Milestone) -> "Trial":
        others = [each for each in self.milestones if each.share != milestone.share]
        return replace(self, milestones=tuple(sorted([*others, milestone], key=lambda each: each.share)))

    def score_at(self, seconds: float, test: str, score: str) -> float:
        """A score after so many seconds of training, interpolated between milestones; nan before the first."""
        known = [each for each in self.milestones if score in each.scores.get(test, {})]
        if not known:
            return math.nan
        times, values = [each.seconds for each in known], [each.scores[test][score] for each in known]
        return float(np.interp(seconds, times, values, left=math.nan))

    @property
    def rate(self) -> float:
        """Pairs per second of training over the whole run; nan before its end."""
        end = self.at(1.0)
        return end.pairs / end.seconds if end else math.nan

    def save(self, folder: Path) -> None:
        head = {**TRIAL.head(), "pairs_per_second": number_or_none(self.rate)}
        write_json(folder / f"{self.name}.json", {**head, **_without_nan(self)})

    @classmethod
    def load(cls, path: Path) -> "Trial":
        value = TRIAL.read_json(path)
        for name in ("format", "format_number", "pairs_per_second"):  # the last follows from the milestones
            value.pop(name, None)
        with reading(path, TRIAL.title, "Remove it and run the study again."):
            milestones = tuple(_milestone(each) for each in value.pop("milestones"))
            row = cls(milestones=milestones, **value)
            safe_name(row.name, str(path))  # it names the file that the row is saved to
            return row


def load_trial(study: Path, name: str) -> Trial:
    """A row of the study in a folder; one of format 1 gets its recipe from its run folder, if that is still there."""
    row = Trial.load(study / "rows" / f"{name}.json")
    recipe = study / "runs" / name / "recipe.toml"
    if row.recipe_toml or not recipe.exists():
        return row
    return replace(row, recipe_toml=recipe.read_text(encoding="utf-8"))


def load_trials(study: Path) -> list[Trial]:
    """The rows of the study in a folder, by name."""
    return [load_trial(study, path.stem) for path in sorted((study / "rows").glob("*.json"))]


def _milestone(value: Mapping[str, Any]) -> Milestone:
    scores = {
        test: {name: math.nan if score is None else float(score) for name, score in named.items()}
        for test, named in value["scores"].items()
    }
    return Milestone(**{**value, "scores": scores})


def _without_nan(row: Trial) -> dict[str, Any]:
    """Plain values; a score that is not defined becomes null, which JSON knows."""
    value = asdict(row)
    for milestone in value["milestones"]:
        for scores in milestone["scores"].values():
            scores.update({name: number_or_none(score) for name, score in scores.items()})
    return value


def number_or_none(value: float) -> float | None:
    """None for nan, which JSON does not know."""
    return None if math.isnan(value) else value


def read_conditions(folder: Path) -> dict[str, Any]:
    """The conditions of the study in a folder; empty where there is none."""
    path = folder / "study.json"
    return STUDY.read_json(path) if path.exists() else {}


class Column(NamedTuple):
    """A score of a test set, under its name in result files."""

    test: str
    score: str

    @property
    def is_error(self) -> bool:
        return find_score(self.score).better == "lower"


@dataclass(frozen=True)
class RecipeRow:
    """A recipe: its rows that reached the end, one per seed."""

    recipe: str
    rows: tuple[Trial, ...]

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
    lines: tuple[RecipeRow, ...]
    columns: tuple[Column, ...]  # every score of every test set
    headlines: tuple[Column, ...]  # one of each test set, by which recipes are compared
    order: tuple[Column, ...]  # of the headlines those that decide which recipe is better
    unfinished: tuple[Trial, ...]  # failed, or not at their end yet; a fault at a new test set leaves a row in its line

    @property
    def equal_seconds(self) -> float:
        """How long the shortest training took: the time at which all can be compared."""
        return min((seconds for line in self.lines for seconds in line.seconds), default=math.nan)

    @property
    def seen(self) -> dict[str, str]:
        """By test set that shares images with the training: the sentence that says so."""
        return {test: sentence for line in self.lines for row in line.rows for test, sentence in row.seen.items()}

    def error(self, line: RecipeRow) -> float:
        return _error(line, self.order)

    def save(self, path: Path) -> None:
        places, published = ranks(self), published_recipes()
        recipes = [
            {
                "recipe": line.recipe,
                "dim": line.dim,
                "seeds": [row.seed for row in line.rows],
                "seconds": line.seconds,
                "pairs_per_second": line.rates,
                "scores": self._scores(line),
                "paper_fpr95_percent": published[line.recipe].mean if line.recipe in published else None,
                "paper_rank": places[line.recipe][0] if line.recipe in places else None,
                "our_rank": places[line.recipe][1] if line.recipe in places else None,
            }
            for line in self.lines
        ]
        unfinished = [{"recipe": row.recipe, "seed": row.seed, "failed": row.failed} for row in self.unfinished]
        head = {**TABLE.head(), "conditions": dict(self.conditions)}
        seconds = number_or_none(self.equal_seconds)
        rest = {"recipes": recipes, "unfinished": unfinished, "seen": self.seen}
        write_json(path, {**head, "equal_seconds": seconds, **rest})

    def _scores(self, line: RecipeRow) -> dict[str, dict[str, Any]]:
        by_test: dict[str, dict[str, Any]] = {}
        for column in self.columns:
            end, early = line.scores(column), line.scores_after(self.equal_seconds, column)
            by_test.setdefault(column.test, {})[column.score] = {
                "mean": number_or_none(mean_over_seeds(end)),
                "seeds": [number_or_none(score) for score in end],
                "mean_at_equal_seconds": number_or_none(mean_over_seeds(early)),
            }
        return by_test


def read_table(folder: Path, planned: Sequence[Trial] = ()) -> Table:
    """The table of the rows in a study's folder; planned ones that are not there yet are unfinished."""
    rows = load_trials(folder)
    rows += [row for row in planned if row.name not in {each.name for each in rows}]
    return make_table(rows, read_conditions(folder))


def make_table(rows: Iterable[Trial], conditions: Mapping[str, Any]) -> Table:
    rows = list(rows)
    ended = [row for row in rows if row.at(1.0)]
    unfinished = [row for row in rows if row.failed or not row.at(1.0)]
    lines = [
        RecipeRow(recipe, tuple(row for row in ended if row.recipe == recipe))
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
    published, errors = published_recipes(), {line.recipe: table.error(line) for line in table.lines}
    ours = {recipe: error for recipe, error in errors.items() if recipe in published and not math.isnan(error)}
    theirs = {recipe: published[recipe].mean for recipe in ours}
    return {recipe: (_place(theirs[recipe], theirs), _place(ours[recipe], ours)) for recipe in ours}


def mean_over_seeds(scores: Sequence[float]) -> float:
    """The mean; nan where one is missing, so that a mean never hides a seed."""
    return float(np.mean(scores)) if scores else math.nan


def _order(lines: Sequence[RecipeRow], headlines: Sequence[Column]) -> tuple[Column, ...]:
    """Lists of pairs, else strips; of them those that all were scored on, so that a new test set moves nobody."""
    alike = [column for column in headlines if column.is_error] or headlines
    known = [column for column in alike if not any(math.isnan(mean_over_seeds(line.scores(column))) for line in lines)]
    return tuple(known or alike)


def _error(line: RecipeRow, order: Sequence[Column]) -> float:
    """Mean FPR95 of lists of pairs, or the share of points missed in strips."""
    scores = [mean_over_seeds(line.scores(column)) for column in order]
    return mean_over_seeds(
        [score if column.is_error else 1 - score for column, score in zip(order, scores, strict=True)]
    )


def _headlines(columns: Sequence[Column]) -> tuple[Column, ...]:
    """One column of each test set, by which recipes are compared."""
    tests = dict.fromkeys(column.test for column in columns)
    return tuple(min((column for column in columns if column.test == test), key=_preference) for test in tests)


def _preference(column: Column) -> int:
    """Lowest for the hard list of a test set, then the papers' list, any list, the hard strips, any score."""
    score = find_score(column.score)
    if score.kind == "fpr95":
        return 0 if score.of.startswith("hard") else 1 if score.of == PAPERS_LIST else 2
    return 3 if column.score == "rank1.h" else 4


def _of_one_sequence(name: str) -> bool:
    """rank1.e.v_boat, which would fill the table with hundreds of columns; not rank1.e and rank1.e.v."""
    score = find_score(name)
    return score.kind in LEVELS and score.of not in ("", "i", "v")


def _place(value: float, values: Mapping[str, float]) -> int:
    return 1 + sum(other < value for other in values.values())
