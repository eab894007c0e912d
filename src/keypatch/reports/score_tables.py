"""The tables of a protocol: scores with intervals, paired differences, what papers print, and all scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keypatch.benchmarks.result import lower_is_better, score_text
from keypatch.benchmarks.score_names import score_title
from keypatch.reports.axes import Axis
from keypatch.reports.comparisons import compared_names, difference, reference
from keypatch.reports.figures import swatch
from keypatch.reports.markup import Content, Markup, element
from keypatch.reports.protocols import Entry, Protocol, has_order
from keypatch.reports.published import Published

Numbers = Mapping[str, int]  # of the descriptors in the legend, by their labels

_DASH, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
_TRACK = 92  # pixels of the line below a number that shows its interval


def summary_table(protocol: Protocol, numbers: Numbers, published: Sequence[Published]) -> Markup:
    """A row per descriptor: the best in bold, numbers with their intervals, papers' figures in columns of their own."""
    names = protocol.headline()
    columns = {name: _Column.of(protocol, name) for name in names}
    printed = {each.score: [p for p in published if p.score == each.score] for each in published}
    theirs = {name: found for name in names if (found := _by_entry(protocol, printed.get(name, [])))}
    rows = [
        element(
            "tr",
            _row_head(entry, numbers),
            *(_score_cell(column, entry, name) for name, column in columns.items()),
            *(_published_cell(found.get(entry)) for found in theirs.values()),
            data_of=numbers[entry.label],
        )
        for entry in protocol.entries
    ]
    heads = [_head("descriptor")]
    heads += [_score_head(name, sorted_=name == names[0]) for name in names]
    heads += [_score_head(name, note="printed in a paper, not measured here", theirs=True) for name in theirs]
    return _boxed(element("thead", element("tr", *heads)), element("tbody", *rows), sortable=True)


def difference_table(protocol: Protocol, numbers: Numbers, baseline: str | None) -> Markup | None:
    """Paired differences to the baseline or to the best of each column; None where nothing can be compared."""
    columns = {name: other for name in compared_names(protocol) if (other := reference(protocol, name, baseline))}
    if not columns:
        return None
    rows = [
        element(
            "tr",
            _row_head(entry, numbers),
            *(_difference_cell(entry, other, name) for name, other in columns.items()),
            data_of=numbers[entry.label],
        )
        for entry in protocol.entries
    ]
    heads = [_head("descriptor")]
    heads += [_score_head(name, note=f"minus {other.label}") for name, other in columns.items()]
    return _boxed(element("thead", element("tr", *heads)), element("tbody", *rows), sortable=True)


def published_table(published: Sequence[Published]) -> Markup:
    """Everything that papers print for this set."""
    rows = [
        element(
            "tr",
            element("th", each.method, scope="row"),
            element("td", each.trained_on or _DASH, class_="text"),
            element("td", each.percent, data_sort=each.percent),
            element("td", each.source, class_="text"),
        )
        for each in published
    ]
    score = score_title(published[0].score)
    heads = [
        _head("method"),
        _head("trained on", text=True),
        _head(f"{score[0]} %", score[1], "as printed"),
        _head("printed in", text=True),
    ]
    return _boxed(element("thead", element("tr", *heads)), element("tbody", *rows), sortable=True)


def all_scores_table(protocol: Protocol, numbers: Numbers) -> Markup:
    """A row per score, a column per descriptor."""
    names = dict.fromkeys(name for entry in protocol.entries for name in entry.result.scores)
    heads = [element("th", "score", scope="col")]
    heads += [
        element("th", swatch(numbers[each.label]), each.label, scope="col", data_of=numbers[each.label])
        for each in protocol.entries
    ]
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            *(element("td", _with_unit(name, e.score(name)), data_of=numbers[e.label]) for e in protocol.entries),
        )
        for name in names
    ]
    return _boxed(element("thead", element("tr", *heads)), element("tbody", *rows))


def facts_table(facts: Mapping[str, Content]) -> Markup:
    """Names and values, a row each."""
    rows = (element("tr", element("th", name, scope="row"), element("td", value)) for name, value in facts.items())
    return element("div", element("table", element("tbody", *rows), class_="facts"), class_="box")


def text_table(heads: Sequence[str], rows: Sequence[Sequence[Content]], of: Sequence[int]) -> Markup:
    """Texts in columns; `of` says to which descriptor each row belongs."""
    lines = [
        element("tr", *(element("td", cell, class_="text") for cell in row), data_of=number)
        for row, number in zip(rows, of, strict=True)
    ]
    titles = (element("th", head, scope="col", class_="text") for head in heads)
    return _boxed(element("thead", element("tr", *titles)), element("tbody", *lines))


def _boxed(*parts: Markup, sortable: bool = False) -> Markup:
    """A table in a box that scrolls sideways when the page is narrow."""
    table = element("table", *parts, class_="sortable" if sortable else None)
    return element("div", table, class_="box", tabindex=0, role="group", aria_label="table")


def _by_entry(protocol: Protocol, published: Sequence[Published]) -> dict[Entry, Published]:
    by_name = {each.name: each for each in reversed(published)}  # the first paper's, where several print it
    named = {entry: by_name.get(entry.result.descriptor.lower()) for entry in protocol.entries}
    return {entry: found for entry, found in named.items() if found is not None}


def _row_head(entry: Entry, numbers: Numbers) -> Markup:
    return element("th", element("div", swatch(numbers[entry.label]), element("span", entry.label)), scope="row")


def _score_head(name: str, *, note: str = "", theirs: bool = False, sorted_: bool = False) -> Markup:
    title, of = score_title(name)
    unit = " %" if score_text(name, 0.5).endswith(" %") else ""
    direction = ("ascending" if lower_is_better(name) else "descending") if sorted_ else "none"
    hint = note or ("lower is better" if lower_is_better(name) else "")
    return _head(f"{title}{unit}", of, hint, direction=direction, theirs=theirs)


def _head(
    title: str,
    of: str = "",
    note: str = "",
    *,
    direction: str = "none",
    text: bool = False,
    theirs: bool = False,
) -> Markup:
    """The head of a column: a button that sorts by it."""
    below = [element("small", part) for part in (of, note) if part]
    button = element("button", element("span", title, class_="title"), *below, type="button")
    kinds = [kind for kind, is_one in (("text", text), ("papers", theirs)) if is_one]
    return element("th", button, scope="col", aria_sort=direction, class_=" ".join(kinds) or None)


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


def _score_cell(column: _Column, entry: Entry, name: str) -> Markup:
    score, interval = entry.score(name), column.intervals.get(entry)
    shown: list[Content] = [element("strong" if entry in column.best else "span", _text(name, score), class_="number")]
    if interval is not None:
        low, high = (_text(name, end) for end in interval)
        shown += [element("small", f"{low} {_DASH} {high}"), _track(column.axis, score, interval)]
    return element("td", *shown, data_sort=repr(score) if math.isfinite(score) else "")


def _track(axis: Axis, score: float, interval: tuple[float, float]) -> Markup:
    """The interval as a bar on a line that is the same for the whole column, the score as a dot on it."""
    low, high, dot = axis.places(np.array([*interval, score]), 4, _TRACK - 4)
    return element(
        "svg",
        element("line", x1=0, x2=_TRACK, y1=5, y2=5, class_="grid"),
        element("line", x1=f"{low:.1f}", x2=f"{max(high, low + 0.5):.1f}", y1=5, y2=5, class_="bar"),
        element("circle", cx=f"{dot:.1f}", cy=5, r=3),
        viewBox=f"0 0 {_TRACK} 10",
        width=_TRACK,
        height=10,
        class_="track",
        aria_hidden="true",
    )


def _published_cell(found: Published | None) -> Markup:
    if found is None:
        return element("td", "", class_="papers", data_sort="")
    number = element("span", found.percent, class_="number")
    return element("td", number, element("small", found.source), class_="papers", data_sort=found.percent)


def _difference_cell(entry: Entry, other: Entry, name: str) -> Markup:
    if entry is other:
        return element("td", element("span", "reference", class_="quiet"), data_sort="0")
    found = difference(entry, other, name)
    if found is None:
        return element("td", _DASH, data_sort="")
    interval = f"{_signed(name, found.low)} to {_signed(name, found.high)}"
    text = _signed(name, found.value) if found.shown else "no difference shown"
    number = element("span", text, class_="number" if found.shown else "quiet")
    return element("td", number, element("small", interval), data_sort=repr(found.value))


def _with_unit(name: str, score: float) -> str:
    return score_text(name, score) if math.isfinite(score) else _DASH


def _text(name: str, score: float) -> str:
    return _with_unit(name, score).removesuffix(" %")


def _signed(name: str, score: float) -> str:
    text = _text(name, abs(score))
    return f"{_MINUS if score < 0 else '+'}{text}" if any(digit in text for digit in "123456789") else text


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
    if any(not has_order(name) for name in names):
        sentences.append("Counts and moments are neither better nor worse.")
    return " ".join(sentences)
