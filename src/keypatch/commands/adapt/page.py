"""The page of an adaptation: the verdict, the scores before and after, what was built and trained, how to use it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from keypatch.benchmarks.comparison import paired_difference
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.table import headline_scores
from keypatch.commands.adapt.options import REPORT, SET
from keypatch.commands.adapt.verdict import way
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR
from keypatch.files import read_json, write_text
from keypatch.progress import counted
from keypatch.reports.page import render_page

if TYPE_CHECKING:
    from keypatch.commands.adapt.pipeline import Adaptation

PACKAGE = "keypatch.commands.adapt"
SIGNED = {"-": "\N{MINUS SIGN}", "+": "+"}


class Row(NamedTuple):
    """A score: of each descriptor with its interval, and the paired difference."""

    title: str
    of: str
    better: str
    cells: list[tuple[str, str]]  # number and interval
    change: str
    interval: str
    found: str  # "better", "worse", "no difference" or "too small"


def write_adapt_page(path: Path, done: "Adaptation") -> None:
    """One HTML file, which links the page of the set and the report beside it; nothing is loaded from elsewhere."""
    page = render_page(
        "adapt.html",
        PACKAGE,
        command="adapt",
        title=done.folder.resolve().name,
        verdict=done.verdict,
        warnings=done.warnings,
        skipped=list(done.built.skipped),
        before=done.before.descriptor,
        after=done.after.descriptor,
        default=DESCRIPTOR,
        held_out=score_rows(done.before, done.after, done.rootsift),
        others=score_rows(*done.others),
        built=done.built.facts(),
        trained=_trained(done.folder),
        commands=commands(done),
        set_page=f"{SET}/{done.built.page.name}",
        report=REPORT,
    )
    write_text(path, page)


def score_rows(before: Result, after: Result, *others: Result) -> list[Row]:
    """A row for each headline score."""
    return [_row(name, before, after, others) for name in headline_scores(before)]


def _row(name: str, before: Result, after: Result, others: tuple[Result, ...]) -> Row:
    score = find_score(name)
    cells = [(each.number(name), _interval(each, name)) for each in (before, after, *others)]
    head = (score.column, score.of.partition("_")[0], f"{score.better} is better")
    try:
        found = paired_difference(after, before, name)
    except KeypatchError:  # too few pairs for an interval
        return Row(*head, cells, _signed(score.number(after.scores[name] - before.scores[name])), "", "too small")
    ends = f"{_signed(score.number(found.low))} to {_signed(score.number(found.high))}"
    return Row(*head, cells, _signed(score.number(found.value)), ends, way(found))


def _interval(result: Result, name: str) -> str:
    ends = result.interval(name)
    return "" if ends is None else " \N{EN DASH} ".join(map(find_score(name).number, ends))


def _signed(number: str) -> str:
    """ "+1.20"; zero without a sign."""
    if not any(digit in number for digit in "123456789"):
        return number.removeprefix("-")
    return f"{SIGNED['-']}{number[1:]}" if number.startswith("-") else f"{SIGNED['+']}{number}"


def _trained(folder: Path) -> dict[str, str]:
    card = read_json(folder / "card.json")
    return {
        "Points": f"{card['points']:,}",
        "Budget": f"{card['pairs']:,} pairs",
        "Time": f"{card['seconds'] / 60:.1f} minutes on {card['device']}, {counted(card['threads'], 'thread')}",
        "Recipe": "recipe.toml in this folder; the losses are in log.jsonl",
    }


def commands(done: "Adaptation") -> list[str]:
    """Lines to paste: with the descriptor that is recommended, where it is not the default."""
    chosen = f" --descriptor {shlex.quote(done.recommended)}" if done.recommended != DESCRIPTOR else ""
    return [
        f"keypatch match a.jpg b.jpg --draw matches.png{chosen}",
        f"keypatch describe photos --out features.h5{chosen}",
        f"keypatch reconstruct photos --out scene{chosen}",
    ]
