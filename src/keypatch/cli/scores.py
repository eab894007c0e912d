"""Scores as tables: one result with its intervals and details, or several results side by side."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from keypatch.cli.printing import print_table

if TYPE_CHECKING:
    from keypatch.benchmarks.result import Result

TITLES = {  # what score names are or begin with; what follows after a dot is a pair list, a sequence or the like
    "fpr95": "FPR95",
    "ap": "AP",
    "auc": "AUC",
    "verification.ap": "verification AP",
    "verification.auc": "verification AUC",
    "matching.map": "matching mAP",
    "matching.sr": "matched right",
    "retrieval.map": "retrieval mAP",
    **{f"mma{k}": f"MMA {k} px" for k in range(1, 11)},
    **{f"accuracy{k}": f"accuracy {k} px" for k in (1, 3, 5)},
    **{f"auc{k}": f"AUC {k} px" for k in (1, 3, 5)},
    **{f"maa{k}": f"mAA {k} deg" for k in (5, 10)},
    "rank1": "rank-1",
    "revisited_map": "mAP in reference images",
    "rank1.e": "easy",
    "rank1.h": "hard",
    "rank1.t": "tough",
    **{f"recall@{k}": f"R@{k}" for k in (1, 10, 100, 1000)},
    "nmi": "NMI",
    "f1": "F1",
    **{f"error.{what}": f"{what} error" for what in ("reprojection", "rotation", "position")},
    "spread.m1": "M1",
    "spread.dm2": "d*M2",
}
FAMILIES = ("count", "error", "spread", "verification", "matching", "retrieval")  # words that name no column alone
COMPARED = ("fpr95", "rank1")
ROWS = 40  # of details


def print_result(console: Console, result: "Result") -> None:
    """The headline scores, one to a line with its 95 % interval, and all others in a table below."""
    from keypatch.benchmarks.table import headline_scores

    headline = headline_scores(result)
    lines = [(_title(name), _with_interval(result, name), _units(result, name)) for name in headline]
    print_table(console, ["", "95 % interval", "over"], lines, numbers=True)
    others = [name for name in result.scores if name not in headline]
    if others:
        console.print()
        _print_details(console, result, others)


def print_comparison(console: Console, results: Sequence["Result"]) -> None:
    """A row per descriptor, with the scores that are compared in papers."""
    names = [name for name in results[0].scores if _split(name)[0] in COMPARED]
    lines = [[result.descriptor, *(_number(result, name) for name in names)] for result in results]
    print_table(console, ["", *(_title(name) for name in names)], lines, numbers=True)


def _print_details(console: Console, result: "Result", names: Sequence[str]) -> None:
    """The columns of these scores: a row for the whole set, for groups of sequences, and for each list or sequence."""
    wanted = {_column(name) for name in names}
    columns = [column for column in dict.fromkeys(map(_column, result.scores)) if column in wanted]
    rows: dict[str, dict[str, str]] = {}
    for name in result.scores:
        if _column(name) in wanted:
            rows.setdefault(_split(name)[1], {})[_column(name)] = _number(result, name)
    ordered = sorted(rows.items(), key=lambda named: (named[0] != "", "_" in named[0]))  # groups have no "_"
    lines = [[name or "all", *(row.get(column, "") for column in columns)] for name, row in ordered]
    print_table(console, ["", *columns], lines[:ROWS], numbers=True)
    if len(lines) > ROWS:
        console.print(f"and {len(lines) - ROWS} rows more, which --out writes to a file")


def _split(name: str) -> tuple[str, str]:
    """ "fpr95.m50_100" -> ("fpr95", "m50_100"); "rank1.e" -> ("rank1.e", ""); "count.matches.boat" by its family."""
    words = name.split(".")
    first = ".".join(words[: 2 if words[0] in FAMILIES else 1])
    column = max((known for known in [first, *TITLES] if f"{name}.".startswith(f"{known}.")), key=len)
    return column, name.removeprefix(column).removeprefix(".")


def _column(name: str) -> str:
    """What a column of such scores is called, with its unit: "FPR95 %"."""
    from keypatch.benchmarks.result import score_text  # here, so that a help text imports no numpy

    known, _ = _split(name)
    title = TITLES.get(known) or known.removeprefix("count.").replace("_", " ").replace(".", " ")
    return f"{title} {score_text(name, 0.0).partition(' ')[2]}".strip()


def _title(name: str) -> str:
    """ "FPR95 % m50_100"."""
    return f"{_column(name)} {_split(name)[1]}".strip()


def _with_interval(result: "Result", name: str) -> str:
    """ "2.33 (2.01-2.70)"."""
    interval = result.interval(name)
    if interval is None:
        return _number(result, name)
    return f"{_number(result, name)} ({'-'.join(_without_unit(name, end) for end in interval)})"


def _units(result: "Result", name: str) -> str:
    drawn = result.replicates.get(name)
    return "" if drawn is None else f"{drawn.count:,} {drawn.units}"


def _number(result: "Result", name: str) -> str:
    score = result.scores[name]
    return "none" if math.isnan(score) else _without_unit(name, score)


def _without_unit(name: str, score: float) -> str:
    from keypatch.benchmarks.result import score_text

    return score_text(name, score).partition(" ")[0]
