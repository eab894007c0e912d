"""Scores as tables: one result with its intervals and details, or several results side by side."""

import math
from collections.abc import Sequence

from rich.console import Console

from keypatch.benchmarks.result import Result, score_text
from keypatch.benchmarks.score_names import score_title, split_score
from keypatch.benchmarks.table import detail_scores, headline_scores
from keypatch.cli.printing import print_table

COMPARED = ("fpr95", "rank1")
ROWS = 24  # of details


def print_result(console: Console, result: Result) -> int:
    """The headline scores, one to a line with its 95 % interval, and a table of others; how many were printed."""
    headline = headline_scores(result)
    lines = [(_title(name), _with_interval(result, name), _units(result, name)) for name in headline]
    print_table(console, ["", "95 % interval", "over"], lines, numbers=True)
    details = detail_scores(result)
    if details:
        console.print()
        details = _print_details(console, result, details)
    return len({*headline, *details})


def print_comparison(console: Console, results: Sequence[Result]) -> None:
    """A row per descriptor, with the scores that are compared in papers."""
    names = [name for name in results[0].scores if split_score(name)[0] in COMPARED]
    lines = [[result.descriptor, *(_number(result, name) for name in names)] for result in results]
    print_table(console, ["", *(_title(name) for name in names)], lines, numbers=True)


def _print_details(console: Console, result: Result, names: Sequence[str]) -> list[str]:
    """A row for the whole set, for groups of sequences, and for each list or sequence; the names of those shown."""
    columns = list(dict.fromkeys(map(_column, names)))
    rows: dict[str, dict[str, str]] = {}
    for name in names:
        rows.setdefault(score_title(name)[1], {})[_column(name)] = name
    ordered = sorted(rows.items(), key=lambda named: (named[0] != "", "_" in named[0]))  # groups have no "_"
    shown = ordered[:ROWS]
    lines = [
        [of or "all", *(_number(result, row[column]) if column in row else "" for column in columns)]
        for of, row in shown
    ]
    print_table(console, ["", *columns], lines, numbers=True)
    if len(ordered) > ROWS:
        console.print(f"and {len(ordered) - ROWS} rows more")
    return [name for _, row in shown for name in row.values()]


def _column(name: str) -> str:
    """What a column of such scores is called, with its unit: "FPR95 %"."""
    return f"{score_title(name)[0]} {score_text(name, 0.0).partition(' ')[2]}".strip()


def _title(name: str) -> str:
    """ "FPR95 % m50_100"."""
    return f"{_column(name)} {score_title(name)[1]}".strip()


def _with_interval(result: Result, name: str) -> str:
    """ "2.33 (2.01-2.70)"."""
    interval = result.interval(name)
    if interval is None:
        return _number(result, name)
    return f"{_number(result, name)} ({'-'.join(_without_unit(name, end) for end in interval)})"


def _units(result: Result, name: str) -> str:
    drawn = result.replicates.get(name)
    return "" if drawn is None else f"{drawn.count:,} {drawn.units}"


def _number(result: Result, name: str) -> str:
    score = result.scores[name]
    return "none" if math.isnan(score) else _without_unit(name, score)


def _without_unit(name: str, score: float) -> str:
    return score_text(name, score).partition(" ")[0]
