"""Whether a study shows what is claimed: a method against its control, seed by seed, by one rule for all claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from keypatch.benchmarks.scores import find_score
from keypatch.errors import DataError, KeypatchError
from keypatch.settings import choose_from
from keypatch.studies.table import Column, Line, Table, heading, read_table

CONFIDENCE = 0.95
Verdict = Literal["seen", "contradicted at this budget", "not told apart", "no verdict: fewer than two seeds"]


@dataclass(frozen=True)
class Difference:
    """What the method gains over its control in a score, one value per seed that both have; negative where it loses."""

    column: Column
    seeds: tuple[int, ...]
    method: tuple[float, ...]
    control: tuple[float, ...]

    @property
    def gains(self) -> tuple[float, ...]:
        sign = -1 if self.column.is_error else 1
        return tuple(sign * (ours - theirs) for ours, theirs in zip(self.method, self.control, strict=True))

    @property
    def mean(self) -> float:
        return float(np.mean(self.gains)) if self.gains else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean gain."""
        return t_interval(self.gains)


@dataclass(frozen=True)
class Compared:
    """A method and its control in the columns that decide."""

    method: str
    control: str
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> Verdict:
        return decide([each.interval for each in self.differences])


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Student's interval of the mean of independent values; nan for fewer than two.

    >>> tuple(round(end, 3) for end in t_interval([1.0, 2.0, 3.0]))
    (-0.484, 4.484)
    """
    if len(values) < 2:
        return math.nan, math.nan
    from scipy.stats import t

    half = t.ppf((1 + confidence) / 2, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    mean = float(np.mean(values))
    return mean - float(half), mean + float(half)


def decide(intervals: Sequence[tuple[float, float]]) -> Verdict:
    """By the intervals of what the method gains: all above zero, all below zero, or neither."""
    if not intervals or any(math.isnan(end) for interval in intervals for end in interval):
        return "no verdict: fewer than two seeds"
    if all(low > 0 for low, _ in intervals):
        return "seen"
    if all(high < 0 for _, high in intervals):
        return "contradicted at this budget"
    return "not told apart"


def study_compare(folder: str | Path, method: str, control: str, columns: Sequence[str] = ()) -> Compared:
    """A method against its control, two arms of the study in a folder, over the seeds that both have.

    columns: which scores decide, named as in tables ("castle-test hard FPR95 %") or as in files ("castle-test
        fpr95.hard_6000_6000_0"); by default the headline scores of test sets with pair lists, or of strips if there
        are no others.

    >>> kp.study_compare("studies/sweep", "hynet loss.alpha=2", "hynet loss.alpha=0").verdict  # doctest: +SKIP
    'not told apart'

    Raises:
        KeypatchError: the folder has no such arm or column, or the arms share no seed, or one lacks a score of them.
    """
    if not (Path(folder) / "rows").is_dir():
        raise DataError(f"{folder} is not a study: it has no folder rows. Give the --out folder of a study.")
    return compare_lines(read_table(Path(folder)), method, control, columns)


def compare_lines(table: Table, method: str, control: str, columns: Sequence[str] = ()) -> Compared:
    """The same of a table that is at hand."""
    ours, theirs = _find_line(table, method), _find_line(table, control)
    if ours is theirs:
        raise KeypatchError(f'"{method}" is compared with itself. Name another control.')
    chosen = [_find_column(table, name) for name in columns] or _headlines(table, (ours, theirs))
    return Compared(method, control, tuple(_difference(column, ours, theirs) for column in chosen))


def _headlines(table: Table, lines: Sequence[Line]) -> list[Column]:
    """Of every test set that one of the lines was scored on: lists of pairs, else strips."""
    tests = {test for line in lines for row in line.rows for test in row.milestones[-1].scores}
    headlines = [column for column in table.headlines if column.test in tests]
    return [column for column in headlines if column.is_error] or headlines


def _difference(column: Column, method: Line, control: Line) -> Difference:
    seeds = sorted({row.seed for row in method.rows} & {row.seed for row in control.rows})
    if not seeds:
        raise KeypatchError(f'"{method.label}" and "{control.label}" share no seed. Train both with the same seeds.')
    scores = [
        dict(zip((row.seed for row in line.rows), line.scores(column), strict=True)) for line in (method, control)
    ]
    for line, own in zip((method, control), scores, strict=True):
        if lacking := [seed for seed in seeds if math.isnan(own[seed])]:
            raise KeypatchError(
                f'"{line.label}" has no {heading(column)} with seed {lacking[0]}. Run the study with that test set.'
            )
    of_method, of_control = (tuple(own[seed] for seed in seeds) for own in scores)
    return Difference(column, tuple(seeds), of_method, of_control)


def _find_line(table: Table, label: str) -> Line:
    for line in table.lines:
        if line.label == label:
            return line
    if unfinished := [row for row in table.unfinished if row.label == label]:
        if failed := next((row for row in unfinished if row.failed), None):
            raise KeypatchError(f'"{label}" failed with seed {failed.seed}: {failed.failed}')
        raise KeypatchError(f'"{label}" is not finished. Run the study to its end.')
    raise KeypatchError(
        f'There is no arm "{label}".{choose_from(label, [each.label for each in table.lines], "table.md")}'
    )


def _find_column(table: Table, name: str) -> Column:
    named = {each: column for column in table.columns for each in (" ".join(column), heading(column))}
    column = named.get(name)
    if column is None:
        known = [heading(each) for each in table.columns]
        raise KeypatchError(f'There is no column "{name}".{choose_from(name, known, "table.md")}')
    if find_score(column.score).better == "neither":
        raise KeypatchError(f'Neither a higher nor a lower "{name}" is better, so it cannot decide a comparison.')
    return column
