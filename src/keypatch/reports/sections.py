"""What the page shows of one protocol, and of trainings."""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from keypatch.benchmarks.table import BENCHMARKS
from keypatch.reports.figures import KINDS, Line, curve_figure, histogram, similarity_axes, swatch
from keypatch.reports.markup import Content, Markup, element
from keypatch.reports.protocols import Entry, Protocol
from keypatch.reports.published import published_for
from keypatch.reports.reading import Run
from keypatch.reports.score_tables import (
    Numbers,
    all_scores_table,
    difference_table,
    facts_table,
    published_table,
    summary_note,
    summary_table,
    text_table,
)
from keypatch.reports.training import training_figures

MOST_DRAWN = 12  # descriptors with curves and pictures, the best by the first score: more nobody can tell apart
OPEN_FIGURES = 6  # of one kind of curve; those of further sequences or photos are folded away
_MATCHING, _OTHERS = "similarity.matching", "similarity.nonmatching"
_WIDE = 600  # pixels of a picture that gets a row of its own


def protocol_section(protocol: Protocol, numbers: Numbers, baseline: str | None) -> Markup:
    published = published_for(protocol)
    drawn = protocol.entries[:MOST_DRAWN]
    parts: list[Content] = [element("h2", protocol.title)]
    if protocol.benchmark in BENCHMARKS:
        about = BENCHMARKS[protocol.benchmark].line
        parts.append(element("p", f"{about[:1].upper()}{about[1:]}.", class_="note"))
    if protocol.differs:
        parts.append(element("p", protocol.differs, class_="differs"))
    parts += [summary_table(protocol, numbers, published), element("p", summary_note(protocol), class_="note")]
    differences = difference_table(protocol, numbers, baseline)
    if differences is not None:
        parts += [element("h3", "Is there a difference?"), differences, element("p", _PAIRED, class_="note")]
    if len(drawn) < len(protocol.entries):
        left_out = f"Curves and pictures are those of the first {MOST_DRAWN} of {len(protocol.entries)} rows."
        parts.append(element("p", left_out, class_="note"))
    parts += [*_curves(drawn, numbers), *_histograms(drawn, numbers), *_pictures(drawn, numbers)]
    last = [folded(f"What papers print for {published[0].data}", published_table(published))] if published else []
    last.append(folded("All scores", all_scores_table(protocol, numbers)))
    last.append(folded("Settings and data", *_settings(protocol)))
    last.append(folded("Where these results come from", _origins(protocol, numbers)))
    return element("section", *parts, element("div", *last, class_="last"))


_PAIRED = (
    "The score of the row minus that of the reference, in points of the score, with the 95 % interval of the "
    "difference: both were drawn again from the same data, draw by draw. Where it holds zero, no difference is shown."
)


def training_section(runs: Sequence[Run], numbers: Numbers) -> Markup | None:
    figures = training_figures(runs[:MOST_DRAWN], numbers)
    return (
        element("section", element("h2", "Training"), element("div", *figures, class_="figures small"))
        if figures
        else None
    )


def folded(title: str, *content: Content) -> Markup:
    return element("details", element("summary", title), *content)


def _curves(entries: Sequence[Entry], numbers: Numbers) -> list[Markup]:
    """A figure per name of a curve, by kinds; the further ones of a kind folded away."""
    kinds: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for entry in entries for name in entry.result.curves):
        if not name.startswith((_MATCHING, _OTHERS)):
            kinds.setdefault(name.partition(".")[0], []).append(name)
    open_, further = [], []
    for names in (kinds[kind] for kind in sorted(kinds, key=_place)):
        open_ += [_curve(name, entries, numbers) for name in names[:OPEN_FIGURES]]
        further += [_curve(name, entries, numbers) for name in names[OPEN_FIGURES:]]
    parts = [element("h3", "Curves"), element("div", *open_, class_="figures")] if open_ else []
    if further:
        parts.append(folded(f"{len(further)} further curves", element("div", *further, class_="figures")))
    return parts


def _place(kind: str) -> int:
    return list(KINDS).index(kind) if kind in KINDS else len(KINDS)


def _curve(name: str, entries: Sequence[Entry], numbers: Numbers) -> Markup:
    having = [entry for entry in entries if name in entry.result.curves]
    return curve_figure(name, [Line(numbers[each.label], each.label, each.result.curves[name]) for each in having])


def _histograms(entries: Sequence[Entry], numbers: Numbers) -> list[Markup]:
    """Densities of similarity, a figure per pair list and descriptor, one height for all of a list."""
    parts: list[Markup] = []
    suffixes = dict.fromkeys(
        name.removeprefix(_MATCHING) for entry in entries for name in entry.result.curves if name.startswith(_MATCHING)
    )
    for suffix in suffixes:
        keys = f"{_MATCHING}{suffix}", f"{_OTHERS}{suffix}"
        having = [entry for entry in entries if all(key in entry.result.curves for key in keys)]
        if having:
            axes = similarity_axes([each.result.curves[key] for each in having for key in keys])
            figures = [
                histogram(
                    each.label, numbers[each.label], each.result.curves[keys[0]], each.result.curves[keys[1]], axes
                )
                for each in having
            ]
            of = suffix.removeprefix(".")
            parts += [element("h3", f"Similarity of pairs{', ' if of else ''}{of}"), _AREAS]
            parts.append(element("div", *figures, class_="figures small"))
    return parts


_AREAS = element(
    "p",
    element("span", class_="key matching"),
    "matching pairs",
    element("span", class_="key others"),
    "other pairs",
    class_="note",
)


def _pictures(entries: Sequence[Entry], numbers: Numbers) -> list[Markup]:
    """The pictures of results, those of one title side by side; titles with the same pictures stand together."""
    titles: dict[tuple[tuple[str, bytes], ...], list[str]] = {}
    for title in dict.fromkeys(title for entry in entries for title in entry.result.pictures):
        same = tuple((each.label, png) for each in entries if (png := each.result.pictures.get(title)) is not None)
        titles.setdefault(same, []).append(title)
    parts: list[Markup] = []
    for same, named in titles.items():
        title = " and ".join([named[0], *(_rest(other, named[0]) for other in named[1:])])
        shown = [_picture(title, label, png, numbers[label]) for label, png in same]
        parts += [element("h3", title[:1].upper() + title[1:]), element("div", *shown, class_="pictures")]
    return parts


def _rest(title: str, first: str) -> str:
    """What follows the last comma, if the titles are the same before it."""
    start, comma, rest = title.rpartition(", ")
    return rest if comma and first.startswith(f"{start}, ") else title


def _picture(title: str, label: str, png: bytes, number: int) -> Markup:
    width, height = struct.unpack(">II", png[16:24]) if len(png) >= 24 else (1, 1)
    source = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    image = element("img", src=source, alt=f"{title}, {label}", width=width, height=height)
    kind = "picture wide" if width >= _WIDE else "picture"
    return element("figure", element("figcaption", swatch(number), label), image, class_=kind, data_of=number)


def _settings(protocol: Protocol) -> list[Markup]:
    """The settings that all rows share, the hash of the data, and the card of the set where there is one."""
    settings = dict(protocol.settings)
    card = settings.pop("card", None)
    shared = facts_table({**_facts(settings), "SHA-256 of the data": protocol.data_hash or "unknown"})
    if not isinstance(card, Mapping) or not card:
        return [shared]
    return [shared, element("h4", "The data's card"), facts_table(_facts(card))]


def _facts(values: Mapping[str, Any]) -> dict[str, Content]:
    return {
        str(name): value if isinstance(value, str) else json.dumps(value, default=str) for name, value in values.items()
    }


def _origins(protocol: Protocol, numbers: Numbers) -> Markup:
    """A row per result: file, date, version, machine, command, hashes, and how its patches were cut."""
    rows = []
    for entry in protocol.entries:
        origin = entry.result.provenance
        cut = ", ".join(f"{name} {value}" for name, value in entry.own_settings().items())
        hashes = ", ".join(f"{name} {value}" for name, value in origin.hashes.items() if name != "data")
        made = f"keypatch {origin.version}, torch {origin.torch}, Python {origin.python}"
        rows.append([entry.label, entry.file, origin.date, made, origin.machine, origin.command, hashes, cut])
    heads = ("descriptor", "file", "date", "made with", "machine", "command", "SHA-256", "patches")
    kept = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    table = [[row[column] for column in kept] for row in rows]
    return text_table([heads[column] for column in kept], table, [numbers[entry.label] for entry in protocol.entries])
