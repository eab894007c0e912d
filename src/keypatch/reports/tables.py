"""The tables of a protocol as values: scores with intervals, paired differences, what papers print, all scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from keypatch.benchmarks.comparison import paired_difference
from keypatch.benchmarks.result import marked
from keypatch.benchmarks.scores import find_score
from keypatch.errors import KeypatchError
from keypatch.reports.figures import Axis
from keypatch.reports.protocols import Entry, Protocol, Run
from keypatch.reports.published import PublishedFigure
from keypatch.training.epochs import BEST, Epoch, read_epochs
from keypatch.training.statistics import table_ii

Numbers = Mapping[str, int]  # of the descriptors in the legend, by their labels

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
TRACK = 92  # pixels of the line below a number that shows its interval


@dataclass(frozen=True)
class Head:
    """The head of a column, a button that sorts by it; `note` stands below the title and `of`."""

    title: str
    of: str = ""
    note: str = ""
    direction: str = "none"
    column: str = ""  # "text" or "papers", a class


class Track(NamedTuple):
    """An interval as a bar, from 0 to TRACK pixels, and the score as a dot on it."""

    low: float
    high: float
    dot: float


@dataclass(frozen=True)
class Cell:
    """A text that looks like a "number", the "best" one of its column, "quiet" or plain; `note` stands below it."""

    text: str = ""
    look: str = ""
    note: str = ""
    sort: str | None = None  # what the column is sorted by; its text unless given
    track: Track | None = None
    column: str = ""


class TableRow(NamedTuple):
    head: str
    of: int | None  # the number of its descriptor in the legend
    cells: list[Cell]


class ScoreTable(NamedTuple):
    heads: list[Head]
    rows: list[TableRow]


def summary_table(protocol: Protocol, numbers: Numbers, published: Sequence[PublishedFigure]) -> ScoreTable:
    """A row per descriptor: the best in bold, numbers with their intervals, papers' figures in columns of their own."""
    names = protocol.headline()
    columns = {name: _Column.of(protocol, name) for name in names}
    theirs = {name: found for name in names if (found := _by_entry(protocol, name, published))}
    forms = _forms(protocol)
    rows = [
        TableRow(
            marked(entry.label, entry.result),
            numbers[entry.label],
            [Cell(form, column="text") for form in forms.get(entry, [])]
            + [column.cell(entry, name) for name, column in columns.items()]
            + [_published_cell(found.get(entry)) for found in theirs.values()],
        )
        for entry in protocol.entries
    ]
    heads = [_score_head(name, sorted_=name == names[0]) for name in names]
    heads += [_score_head(name, note="printed in a paper, not measured here", column="papers") for name in theirs]
    told = [Head("trained", column="text")] if forms else []
    return ScoreTable([Head("descriptor"), *told, *heads], rows)


def _forms(protocol: Protocol) -> dict[Entry, list[str]]:
    """Who was trained as its paper prints, and who with choices of ours; nothing where that is known of nobody."""
    forms = {entry: [str(entry.result.notes.get("trained", DASH))] for entry in protocol.entries}
    return forms if any(entry.result.notes.get("trained") for entry in protocol.entries) else {}


def summary_note(protocol: Protocol) -> str:
    """What bold and the small numbers mean, and over what the intervals were drawn."""
    names = protocol.headline()
    drawn = dict.fromkeys(
        f"{each.count:,} {each.units}"
        for entry in protocol.entries
        for name, each in entry.result.replicates.items()
        if name in names
    )
    sentences = ["The best of each column is bold."] if any(protocol.best(name) for name in names) else []
    if drawn:
        sentences.append(f"Below each number its 95 % bootstrap interval, over {' or '.join(drawn)}.")
    else:
        sentences.append("These results carry no bootstrap intervals; evaluate them again to see how sure they are.")
    if _forms(protocol):
        sentences.append('Only what was trained "as published" is by the text of its paper and without detector noise.')
    if any(find_score(name).better == "neither" for name in names):
        sentences.append("Counts and moments are neither better nor worse.")
    return " ".join(sentences)


def difference_table(protocol: Protocol, numbers: Numbers, baseline: str | None) -> ScoreTable | None:
    """Paired differences to the baseline or to the best of each column; None where nothing can be compared."""
    ordered = [name for name in protocol.headline() if find_score(name).better != "neither"]
    compared = [name for name in ordered if sum(name in entry.result.replicates for entry in protocol.entries) > 1]
    columns = {name: other for name in compared if (other := _reference(protocol, name, baseline))}
    if not columns:
        return None
    heads = [_score_head(name, note=f"minus {other.label}") for name, other in columns.items()]
    rows = [
        TableRow(
            marked(entry.label, entry.result),
            numbers[entry.label],
            [_difference_cell(entry, other, name) for name, other in columns.items()],
        )
        for entry in protocol.entries
    ]
    return ScoreTable([Head("descriptor"), *heads], rows)


def published_table(published: Sequence[PublishedFigure]) -> ScoreTable:
    """Everything that papers print for this set, a row for each method of each paper."""
    names = list(dict.fromkeys(each.score for each in published))
    heads = [Head("method"), Head("trained on", column="text")]
    heads += [Head(score.column, score.of, "as printed") for score in map(find_score, names)]
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for each in published:
        found.setdefault((each.method, each.trained_on, each.source), {})[each.score] = each.value
    rows = []
    for (method, trained_on, source), values in found.items():
        cells = [Cell(values.get(name, DASH), sort=values.get(name, "")) for name in names]
        rows.append(
            TableRow(method, None, [Cell(trained_on or DASH, column="text"), *cells, Cell(source, column="text")])
        )
    return ScoreTable([*heads, Head("printed in", column="text")], rows)


def epoch_table(runs: Sequence[Run], numbers: Numbers) -> ScoreTable | None:
    """What validation sets say of each run: the last epoch, the best, the mean of the best; None where none do."""
    rows = [
        TableRow(
            run.name,
            numbers[run.name],
            [
                Cell(run.form or DASH, column="text"),
                Cell(each.of, column="text"),
                Cell(find_score(each.score).label, column="text"),
                _epoch_cell(each.score, each.last),
                _epoch_cell(each.score, each.best),
                Cell(DASH, sort="") if mean is None else Cell(_text(each.score, mean), "number", sort=repr(mean)),
            ],
        )
        for run in runs
        for each in read_epochs(run.records)
        for mean in [each.mean_of_best()]
    ]
    texts = [Head(title, column="text") for title in ("trained", "set", "score")]
    heads = [Head("last"), Head("best", note="chosen by this set"), Head(f"mean of the {BEST} best")]
    return ScoreTable([Head("run"), *texts, *heads], rows) if rows else None


def _epoch_cell(score: str, epoch: Epoch) -> Cell:
    return Cell(_text(score, epoch.value), "number", f"after {epoch.pairs:,} pairs", repr(epoch.value))


def statistics_tables(runs: Sequence[Run]) -> dict[str, ScoreTable]:
    """SDGMNet's Table II of each run that has its statistics."""
    made = {}
    for run in runs:
        if (table := table_ii(run.records)) is not None:
            heads = [Head(f"{pairs:,}", note="pairs") for pairs in table.pairs]
            rows = [
                TableRow(row.symbol, None, [Cell(f"{value:.4g}", "number") for value in row.values])
                for row in table.rows
            ]
            made[f"{run.name}, {run.form}".rstrip(", ")] = ScoreTable([Head("statistic"), *heads], rows)
    return made


def all_scores(protocol: Protocol) -> dict[str, list[str]]:
    """Every score by name, a text for each descriptor."""
    names = dict.fromkeys(name for entry in protocol.entries for name in entry.result.scores)
    return {name: [_with_unit(name, entry.score(name)) for entry in protocol.entries] for name in names}


@dataclass(frozen=True)
class _Column:
    """What the cells of one score share: who is best, all intervals, and the line that they are drawn on."""

    best: list[Entry]
    intervals: dict[Entry, tuple[float, float]]
    axis: Axis

    @classmethod
    def of(cls, protocol: Protocol, name: str) -> "_Column":
        found = {entry: entry.result.interval(name) for entry in protocol.entries if math.isfinite(entry.score(name))}
        intervals = {entry: interval for entry, interval in found.items() if interval is not None}
        ends = [end for entry, interval in intervals.items() for end in (*interval, entry.score(name))] or [0.0]
        return cls(protocol.best(name), intervals, Axis("", min(ends), max(ends) + (max(ends) == min(ends))))

    def cell(self, entry: Entry, name: str) -> Cell:
        score, interval = entry.score(name), self.intervals.get(entry)
        look, sort = "best" if entry in self.best else "number", repr(score) if math.isfinite(score) else ""
        if interval is None:
            return Cell(_text(name, score), look, sort=sort)
        low, high, dot = self.axis.places(np.array([*interval, score]), 4, TRACK - 4)
        note = f"{_text(name, interval[0])} {DASH} {_text(name, interval[1])}"
        return Cell(_text(name, score), look, note, sort, Track(low, max(high, low + 0.5), dot))


def _score_head(name: str, *, note: str = "", column: str = "", sorted_: bool = False) -> Head:
    score = find_score(name)
    lower = score.better == "lower"
    direction = ("ascending" if lower else "descending") if sorted_ else "none"
    title = score.column if score.unit == "%" else score.title
    return Head(title, score.of, note or ("lower is better" if lower else ""), direction, column)


def _by_entry(protocol: Protocol, name: str, published: Sequence[PublishedFigure]) -> dict[Entry, PublishedFigure]:
    """The figures of a score for the descriptors of the table, the first paper's where several print it."""
    by_name = {each.name: each for each in reversed(published) if each.score == name}
    named = {entry: by_name.get(entry.result.descriptor.lower()) for entry in protocol.entries}
    return {entry: found for entry, found in named.items() if found is not None}


def _published_cell(found: PublishedFigure | None) -> Cell:
    if found is None:
        return Cell(sort="", column="papers")
    return Cell(found.value, "number", found.source, found.value, column="papers")


def _reference(protocol: Protocol, name: str, baseline: str | None) -> Entry | None:
    """Whom a column is compared with; nobody where the baseline is not in the table or nothing is the best."""
    if baseline is not None:
        return next((each for each in protocol.entries if baseline in (each.label, each.result.descriptor)), None)
    best = protocol.best(name)
    return best[0] if best else None


def _difference_cell(entry: Entry, other: Entry, name: str) -> Cell:
    if entry is other:
        return Cell("reference", "quiet", sort="0")
    try:
        found = paired_difference(entry.result, other.result, name)
    except KeypatchError:  # one of the two has no replicates of it
        return Cell(DASH, sort="")
    text = _signed(name, found.value) if found.shown else "no difference shown"
    interval = f"{_signed(name, found.low)} to {_signed(name, found.high)}"
    return Cell(text, "number" if found.shown else "quiet", interval, repr(found.value))


def _with_unit(name: str, score: float) -> str:
    return find_score(name).text(score) if math.isfinite(score) else DASH


def _text(name: str, score: float) -> str:
    return _with_unit(name, score).removesuffix(" %")


def _signed(name: str, score: float) -> str:
    text = _text(name, abs(score))
    return f"{MINUS if score < 0 else '+'}{text}" if any(digit in text for digit in "123456789") else text
