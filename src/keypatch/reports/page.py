"""One page of HTML from results and runs; nothing in it is loaded from elsewhere."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from keypatch.provenance import provenance
from keypatch.reports.figures import swatch
from keypatch.reports.markup import Content, Markup, element
from keypatch.reports.protocols import Protocol, group
from keypatch.reports.reading import Sources
from keypatch.reports.score_tables import Numbers
from keypatch.reports.sections import protocol_section, training_section


def build_page(sources: Sources, baseline: str | None = None, title: str | None = None) -> str:
    """The whole page as text."""
    protocols = group(sources.results)
    labels = [entry.label for protocol in protocols for entry in protocol.entries]
    names = dict.fromkeys([*labels, *(run.name for run in sources.runs)])
    numbers = {name: number for number, name in enumerate(names)}
    heading = title or _heading(protocols)
    sections = [protocol_section(protocol, numbers, baseline) for protocol in protocols]
    training = training_section(sources.runs, numbers)
    body = [
        _header(heading, sources, protocols),
        _legend(numbers),
        element("main", *sections, *([training] if training else [])),
        element("footer", "Everything on this page is in this one file; nothing is loaded from elsewhere."),
    ]
    return _document(heading, body)


def _document(title: str, body: Sequence[Markup]) -> str:
    """The style and the script by their hashes are all that the browser may apply and run."""
    style, script = (Markup(files("keypatch.reports").joinpath(name).read_text(encoding="utf-8")) for name in _PARTS)
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    )
    page = element("html", head, element("body", *body, element("script", script)), lang="en")
    return f"<!doctype html>\n{page}\n"


_PARTS = ("page.css", "page.js")


def _hash(part: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode('ascii')}'"


def _heading(protocols: Sequence[Protocol]) -> str:
    benchmarks = list(dict.fromkeys(protocol.benchmark for protocol in protocols))
    if not benchmarks:
        return "Training"
    first, last = ", ".join(benchmarks[:-1]), benchmarks[-1]
    return f"Descriptors on {first} and {last}" if first else f"Descriptors on {last}"


def _header(heading: str, sources: Sources, protocols: Sequence[Protocol]) -> Markup:
    made = provenance()
    counts = [(len(sources.results), "result"), (len(protocols), "table"), (len(sources.runs), "run")]
    facts = [f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count]
    facts.append(f"made on {made.date[:10]} with keypatch {made.version}")
    return element(
        "header",
        element("p", "keypatch report", class_="kicker"),
        element("h1", heading),
        element("p", " · ".join(facts), class_="note"),
    )


def _legend(numbers: Numbers) -> Markup:
    """A box to tick for every descriptor: whether its rows, curves and pictures are shown."""
    boxes: list[Content] = [
        element(
            "label",
            element("input", type="checkbox", checked=True, value=number),
            swatch(number),
            element("span", name),
        )
        for name, number in numbers.items()
    ]
    return element("nav", *boxes, class_="legend", aria_label="Shown descriptors")
