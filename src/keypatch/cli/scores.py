"""Scores as tables, fractions in %: one result with all its lists, or several results side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from keypatch.cli.printing import print_table

if TYPE_CHECKING:
    from keypatch.benchmarks.result import Result

TITLES = {  # score names are one of these, or begin with one; what follows is the pair list or the sequence
    "fpr95": "FPR95 %",
    "ap": "AP %",
    "auc": "AUC %",
    "rank1": "rank-1 %",
    "rank1.e": "easy %",
    "rank1.h": "hard %",
    "rank1.t": "tough %",
    **{f"recall@{k}": f"R@{k} %" for k in (1, 10, 100, 1000)},
    "nmi": "NMI %",
    "f1": "F1 %",
    "spread.m1": "M1",
    "spread.dm2": "d*M2",
}
COMPARED = ("fpr95", "rank1")


def print_result(console: Console, result: "Result") -> None:
    """A row per pair list or sequence, after the rows of the whole set ("all") and of groups of sequences."""
    rows: dict[str, dict[str, float]] = {}
    for name, score in result.scores.items():
        column, row = _split(name)
        rows.setdefault(row or "all", {})[column] = score
    columns = [column for column in TITLES if any(column in row for row in rows.values())]
    ordered = sorted(rows.items(), key=lambda named: "_" in named[0])  # lists and sequences have it, groups do not
    lines = [[name, *(_shown(c, row[c]) if c in row else "" for c in columns)] for name, row in ordered]
    print_table(console, ["", *(TITLES[column] for column in columns)], lines, numbers=True)


def print_comparison(console: Console, results: Sequence["Result"]) -> None:
    """A row per descriptor, with the scores that are compared in papers."""
    names = [name for name in results[0].scores if _split(name)[0] in COMPARED]
    titles = [f"{TITLES[column]} {row}".strip() for column, row in map(_split, names)]
    lines = [[result.descriptor, *(_shown(name, result.scores[name]) for name in names)] for result in results]
    print_table(console, ["", *titles], lines, numbers=True)


def _split(name: str) -> tuple[str, str]:
    """ "fpr95.m50_100" -> ("fpr95", "m50_100"); "rank1.e" -> ("rank1.e", "")."""
    column = max((prefix for prefix in TITLES if f"{name}.".startswith(f"{prefix}.")), key=len)
    return column, name.removeprefix(column).removeprefix(".")


def _shown(name: str, score: float) -> str:
    from keypatch.benchmarks.result import score_text  # here, so that a help text imports no torch

    return score_text(name, score).removesuffix(" %")
