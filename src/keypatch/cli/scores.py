"""Scores as tables: one result with its intervals and details, or several results side by side."""

from collections.abc import Sequence

from rich.console import Console

from keypatch.benchmarks.contamination import MARK
from keypatch.benchmarks.result import Result, marked
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.table import detail_scores, headline_scores
from keypatch.cli.printing import print_table

COMPARED = ("fpr95", "rank1")
ROWS = 24  # of details


def print_result(console: Console, result: Result) -> int:
    """The conditions, the headline scores with their 95 % intervals, and a table of others; how many were printed."""
    headline = headline_scores(result)
    _print_conditions(console, result)
    print_table(console, ["", "95 % interval", "over"], result.headline(), numbers=True)
    if result.contamination:
        console.print(f"{MARK} {result.contamination.sentence()}")
    details = detail_scores(result)
    if details:
        console.print()
        details = _print_details(console, result, details)
    return len({*headline, *details})


def print_comparison(console: Console, results: Sequence[Result]) -> None:
    """A row per descriptor, with the scores that are compared in papers."""
    _print_conditions(console, results[0])
    names = [name for name in results[0].scores if find_score(name).kind in COMPARED]
    lines = [[marked(result.descriptor, result), *(result.number(name) for name in names)] for result in results]
    print_table(console, ["", *(find_score(name).label for name in names)], lines, numbers=True)
    for result in results:
        if result.contamination:
            console.print(f"{MARK} {result.descriptor}: {result.contamination.sentence()}")


def _print_conditions(console: Console, result: Result) -> None:
    """The settings that decide the scores."""
    if conditions := result.conditions():
        console.print(f"Settings: {conditions}")


def _print_details(console: Console, result: Result, names: Sequence[str]) -> list[str]:
    """A row for the whole set, for groups of sequences, and for each list or sequence; the names of those shown."""
    columns = list(dict.fromkeys(find_score(name).column for name in names))
    rows: dict[str, dict[str, str]] = {}
    for name in names:
        score = find_score(name)
        rows.setdefault(score.of, {})[score.column] = name
    ordered = sorted(rows.items(), key=lambda named: (named[0] != "", "_" in named[0]))  # groups have no "_"
    shown = ordered[:ROWS]
    lines = [
        [of or "all", *(result.number(row[column]) if column in row else "" for column in columns)] for of, row in shown
    ]
    print_table(console, ["", *columns], lines, numbers=True)
    if len(ordered) > ROWS:
        console.print(f"and {len(ordered) - ROWS} more rows")
    return [name for _, row in shown for name in row.values()]
