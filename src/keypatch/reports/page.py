"""`report`: one page of HTML from results and runs, by the templates of this room; nothing is loaded from elsewhere."""

import base64
import hashlib
import json
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from keypatch.benchmarks.comparison import own_settings
from keypatch.benchmarks.result import Result, marked
from keypatch.benchmarks.table import BENCHMARKS
from keypatch.errors import KeypatchError
from keypatch.files import require_place, write_text
from keypatch.provenance import provenance
from keypatch.reports.figures import (
    FRAME,
    KINDS,
    CurveOf,
    Figure,
    curve_figure,
    line_class,
    similarity_axes,
    similarity_figure,
    statistics_figures,
    training_figures,
)
from keypatch.reports.protocols import Entry, Protocol, Sources, group, read_sources
from keypatch.reports.published import published_for
from keypatch.reports.tables import (
    TRACK,
    Numbers,
    ScoreTable,
    all_scores,
    difference_table,
    epoch_table,
    published_table,
    statistics_tables,
    summary_note,
    summary_table,
)
from keypatch.settings import choose_from

ENDINGS = (".html", ".htm")
MOST_DRAWN = 12  # descriptors with curves and pictures, the best by the first score: more nobody can tell apart
OPEN_FIGURES = 6  # of one kind of curve; those of further sequences or photos are folded away
_MATCHING, _OTHERS = "similarity.matching", "similarity.nonmatching"
_WIDE = 600  # pixels of a picture that gets a row of its own


def report(
    results: Iterable[str | Path | Result], out: str | Path, *, baseline: str | None = None, title: str | None = None
) -> Path:
    """Write one self-contained page about result files and folders of results and runs, and return its path.

    Results of one benchmark on the same data with the same settings share a table; others get their own. Unreadable
    files are left out, with a warning and a line on the page.
    baseline: the descriptor that the others are compared with; by default, the best one for each score.

    >>> kp.report(["rootsift.json", "sift.json"], "report.html")
    PosixPath('report.html')
    """
    path = Path(out)
    if path.suffix.lower() not in ENDINGS:
        raise KeypatchError(f"The page must be an .html file, not {path.name or path}. Use --out PAGE.html.")
    require_place(path)
    sources = read_sources([results] if isinstance(results, str | Path | Result) else results)
    known = dict.fromkeys(source.result.descriptor for source in sources.results)
    if baseline is not None and baseline not in known:
        raise KeypatchError(
            f'There is no result for the baseline "{baseline}".{choose_from(baseline, known, "The page without one")}'
        )
    for problem in sources.problems.values():
        warnings.warn(f"Left out: {problem}", stacklevel=2)
    write_text(path, build_page(sources, baseline, title))
    return path


def build_page(sources: Sources, baseline: str | None = None, title: str | None = None) -> str:
    """The whole page as text."""
    protocols = group(sources.results)
    labels = [entry.label for protocol in protocols for entry in protocol.entries]
    names = dict.fromkeys([*labels, *(run.name for run in sources.runs)])
    numbers = {name: number for number, name in enumerate(names)}
    return render_page(
        "page.html",
        command="report",
        title=title or _title(protocols),
        script=_read_part("page.js"),
        facts=_facts_of(sources, protocols),
        problems=[text.replace(str(file), file.name) for file, text in sources.problems.items()],
        numbers=numbers,
        sections=[_section(protocol, numbers, baseline) for protocol in protocols],
        training=training_figures(sources.runs[:MOST_DRAWN], numbers),
        epochs=epoch_table(sources.runs, numbers),
        statistics=statistics_figures(sources.runs[:MOST_DRAWN], numbers),
        statistics_tables=statistics_tables(sources.runs[:MOST_DRAWN]),
    )


def render_page(
    template: str, package: str = "keypatch.reports", *, command: str, title: str, script: str = "", **shown: Any
) -> str:
    """A page of the command by a template of that room, which extends frame.html; what is `shown` is up to it.

    Its style is that of all pages, and what the room has in the .css file of the template's name.
    """
    known = _templates(package)
    own = Path(template).with_suffix(".css").name
    style = "".join(known.get_template(name).render() for name in dict.fromkeys(["page.css", own]))
    page = known.get_template(template).render(command=command, title=title, style=style, script=script, **shown)
    return page.encode("utf-8", "replace").decode("utf-8")  # a name may hold half a surrogate pair


def _read_part(name: str) -> str:
    return files("keypatch.reports").joinpath("templates", name).read_text("utf-8")


@cache
def _templates(package: str) -> jinja2.Environment:
    """The templates of a room, and those that all pages share."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(each) for each in dict.fromkeys([package, "keypatch.reports"])]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(frame=FRAME, track_width=TRACK, line_class=line_class)
    made.filters["content_hash"] = _content_hash
    return made


def _content_hash(part: str) -> str:
    """What a page's policy names a style or a script by, so that the browser applies no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode('ascii')}"


def _title(protocols: Sequence[Protocol]) -> str:
    benchmarks = list(dict.fromkeys(protocol.benchmark for protocol in protocols))
    if not benchmarks:
        return "Training"
    first, last = ", ".join(benchmarks[:-1]), benchmarks[-1]
    return f"Descriptors on {first} and {last}" if first else f"Descriptors on {last}"


def _facts_of(sources: Sources, protocols: Sequence[Protocol]) -> list[str]:
    made = provenance()
    counts = [(len(sources.results), "result"), (len(protocols), "table"), (len(sources.runs), "run")]
    facts = [f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count]
    return [*facts, f"made on {made.date[:10]} with keypatch {made.version}"]


class Picture(NamedTuple):
    """A PNG file inside the page."""

    label: str
    of: int
    source: str
    width: int
    height: int
    wide: bool


class OriginRow(NamedTuple):
    """Where a result comes from: a text for each of `Section.origin_heads`."""

    of: int
    texts: list[str]


@dataclass(frozen=True)
class Section:
    """What templates/section.html shows of one protocol."""

    title: str
    about: str
    conditions: str
    differs: str
    summary: ScoreTable
    note: str
    seen: dict[str, str]  # of the rows that are marked: what they were trained on
    differences: ScoreTable | None
    left_out: str
    curves: list[Figure]
    further_curves: list[Figure]
    similarities: dict[str, list[Figure]]  # by the pair list
    pictures: dict[str, list[Picture]]  # by their titles
    published_data: str  # what papers call the data
    published: ScoreTable | None
    labels: list[str]
    scores: dict[str, list[str]]
    settings: dict[str, str]
    card: dict[str, str]
    origin_heads: list[str]
    origins: list[OriginRow]


def _section(protocol: Protocol, numbers: Numbers, baseline: str | None) -> Section:
    published = published_for(protocol)
    entries, drawn = protocol.entries, protocol.entries[:MOST_DRAWN]
    about = BENCHMARKS[protocol.benchmark].line if protocol.benchmark in BENCHMARKS else ""
    left_out = f"Curves and pictures show the first {MOST_DRAWN} of {len(entries)} rows."
    curves, further = _curves(drawn, numbers)
    settings = dict(protocol.settings)
    card = settings.pop("card", None)
    heads, origins = _origins(protocol, numbers)
    return Section(
        title=protocol.title,
        about=f"{about[:1].upper()}{about[1:]}." if about else "",
        conditions=entries[0].result.conditions(),
        differs=protocol.differs,
        summary=summary_table(protocol, numbers, published),
        note=summary_note(protocol),
        seen={
            marked(each.label, each.result): each.result.contamination.sentence()
            for each in entries
            if each.result.contamination
        },
        differences=difference_table(protocol, numbers, baseline),
        left_out=left_out if len(drawn) < len(entries) else "",
        curves=curves,
        further_curves=further,
        similarities=_similarities(drawn, numbers),
        pictures=_pictures(drawn, numbers),
        published_data=published[0].data if published else "",
        published=published_table(published) if published else None,
        labels=[entry.label for entry in entries],
        scores=all_scores(protocol),
        settings={**_texts(settings), "SHA-256 of the data": protocol.data_hash or "unknown"},
        card=_texts(card) if isinstance(card, Mapping) else {},
        origin_heads=heads,
        origins=origins,
    )


def _curves(entries: Sequence[Entry], numbers: Numbers) -> tuple[list[Figure], list[Figure]]:
    """A figure per name of a curve, by kinds: the first ones of each kind, and the further ones."""
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in dict.fromkeys(name for entry in entries for name in entry.result.curves):
        if not name.startswith((_MATCHING, _OTHERS)):
            kinds.setdefault(name.partition(".")[0], []).append(name)
    first = [name for names in kinds.values() for name in names[:OPEN_FIGURES]]
    further = [name for names in kinds.values() for name in names[OPEN_FIGURES:]]
    return [_curve(name, entries, numbers) for name in first], [_curve(name, entries, numbers) for name in further]


def _curve(name: str, entries: Sequence[Entry], numbers: Numbers) -> Figure:
    having = [entry for entry in entries if name in entry.result.curves]
    return curve_figure(name, [CurveOf(numbers[each.label], each.label, each.result.curves[name]) for each in having])


def _similarities(entries: Sequence[Entry], numbers: Numbers) -> dict[str, list[Figure]]:
    """Densities of similarity by pair list, a figure per descriptor, one height for all of a list."""
    suffixes = dict.fromkeys(
        name.removeprefix(_MATCHING) for entry in entries for name in entry.result.curves if name.startswith(_MATCHING)
    )
    figures: dict[str, list[Figure]] = {}
    for suffix in suffixes:
        keys = f"{_MATCHING}{suffix}", f"{_OTHERS}{suffix}"
        having = [entry for entry in entries if all(key in entry.result.curves for key in keys)]
        if having:
            axes = similarity_axes([each.result.curves[key] for each in having for key in keys])
            figures[suffix.removeprefix(".")] = [
                similarity_figure(each.label, numbers[each.label], axes, *(each.result.curves[key] for key in keys))
                for each in having
            ]
    return figures


def _pictures(entries: Sequence[Entry], numbers: Numbers) -> dict[str, list[Picture]]:
    """The pictures of results by title, side by side; titles with the same pictures share a heading."""
    titles: dict[tuple[tuple[str, bytes], ...], list[str]] = {}
    for title in dict.fromkeys(title for entry in entries for title in entry.result.pictures):
        same = tuple((each.label, png) for each in entries if (png := each.result.pictures.get(title)) is not None)
        titles.setdefault(same, []).append(title)
    return {
        " and ".join([named[0], *(_rest(other, named[0]) for other in named[1:])]): [
            _picture(label, png, numbers[label]) for label, png in same
        ]
        for same, named in titles.items()
    }


def _rest(title: str, first: str) -> str:
    """What follows the last comma, if the titles are the same before it."""
    start, comma, rest = title.rpartition(", ")
    return rest if comma and first.startswith(f"{start}, ") else title


def _picture(label: str, png: bytes, number: int) -> Picture:
    width, height = struct.unpack(">II", png[16:24]) if len(png) >= 24 else (1, 1)
    source = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    return Picture(label, number, source, width, height, width >= _WIDE)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(name): each if isinstance(each, str) else json.dumps(each, default=str) for name, each in values.items()
    }


def _origins(protocol: Protocol, numbers: Numbers) -> tuple[list[str], list[OriginRow]]:
    """A row per result: file, date, version, machine, command, hashes, and the descriptor's own settings."""
    heads = ("descriptor", "file", "date", "made with", "machine", "command", "SHA-256", "own settings")
    rows = []
    for entry in protocol.entries:
        origin = entry.result.provenance
        own = ", ".join(f"{name} {value}" for name, value in own_settings(entry.result).items())
        hashes = ", ".join(f"{name} {value}" for name, value in origin.hashes.items() if name != "data")
        made = f"keypatch {origin.version}, torch {origin.torch}, Python {origin.python}"
        rows.append([entry.label, entry.file, origin.date, made, origin.machine, origin.command, hashes, own])
    kept = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    of = [numbers[entry.label] for entry in protocol.entries]
    origins = [OriginRow(number, [row[column] for column in kept]) for number, row in zip(of, rows, strict=True)]
    return [heads[column] for column in kept], origins
