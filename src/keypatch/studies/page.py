"""The page of a study: table.md."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from keypatch.benchmarks.contamination import MARK
from keypatch.benchmarks.scores import find_score
from keypatch.files import write_text
from keypatch.recipes import form_of
from keypatch.reports.published import published_recipes
from keypatch.studies.rows import Trial
from keypatch.studies.scoring import EMBEDDED_TEST
from keypatch.studies.table import Column, Line, Table, heading, lines_in_order, mean_over_seeds, ranks

DECIMALS = {"spread.m1": 3, "spread.dm2": 2}
WITHOUT_FIGURE = ("scale_aware",)  # its paper's figures on these sets are not at hand: no place in the papers' order
WIDE = 16  # scores of a test set that stand beside each other; more stand below each other
SHOWN = ("rank1", "spread.dm2", "rank1.e", "rank1.h", "rank1.t", "verification.ap", "matching.map", "retrieval.map")


def write_methods_page(path: Path, table: Table) -> None:
    """Of recipes under equal conditions, as templates/methods.md has it."""
    seconds = table.equal_seconds
    page = render_page(
        "methods.md",
        **_values(table, table.lines, {}),
        headline_heads=[marked_heading(table, column) for column in table.headlines],
        equal_minutes=[
            [line.label, *(cell(column, line.scores_after(seconds, column)) for column in table.headlines)]
            for line in table.lines
        ],
        papers=_papers(table),
    )
    write_text(path, page)


def write_study_page(path: Path, table: Table) -> None:
    """Of arms that differ in what their labels say, in the order of these values, as templates/study.md has it."""
    lines = lines_in_order(table)
    write_text(path, render_page("study.md", **_values(table, lines, {line.label: _budget(line) for line in lines})))


def _values(table: Table, lines: Sequence[Line], budgets: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """What the pages of all studies show; `budgets` stand in the table where they differ."""
    rows, columns = [row for line in lines for row in line.rows], main_columns(table)
    differ = len({*budgets.values()}) > 1
    forms = {line.label: form_of(line.recipe) if line.recipe else "-" for line in lines}
    several = len({*forms.values()}) > 1
    ends = [
        [
            line.label,
            *([forms[line.label]] if several else []),
            *(budgets[line.label] if differ else ()),
            dimension(line),
            *(cell(column, line.scores(column)) for column in columns),
            f"{mean_over_seeds(line.seconds) / 60:.1f}",
            f"{mean_over_seeds(line.rates):,.0f}",
        ]
        for line in lines
    ]
    return {
        "table": table,
        "seeds": sorted({row.seed for row in rows}),
        "form": next(iter(forms.values())) if forms and not several else None,
        "budget": next(iter(budgets.values())) if budgets and not differ else None,
        "ways": sorted({"{precision} on {device}, threads: {threads}".format(**row.run) for row in rows}),
        "machines": sorted({str(row.provenance["machine"]) for row in rows}),
        "embedded_test": EMBEDDED_TEST,
        "notes": [f"{MARK} {test}: {sentence}" for test, sentence in table.seen.items()],
        "head": [
            *(["trained"] if several else []),
            *(["pairs", "batch"] if differ else []),
            "d",
            *(marked_heading(table, column) for column in columns),
        ],
        "ends": ends,
        "scores": _every_score(table, lines),
        "unfinished": [[row.name, why(row)] for row in table.unfinished],
    }


def _budget(line: Line) -> tuple[str, str]:
    recipe = line.recipe
    return (f"{recipe.pairs:,}", f"{recipe.sampler.pairs:,}") if recipe else ("-", "-")


def render_page(template: str, **values: object) -> str:
    """A page of Markdown; paragraphs stand one empty line apart, however the template is laid out."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("keypatch.studies"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["heading"] = heading
    page = made.get_template(template).render(grid=grid, **values)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, columns of numbers to the right."""
    columns = zip(*rows, strict=True)
    sides = [
        "---:" if all(set(value) <= set(f"0123456789.,()- {MARK}") for value in column) else "---" for column in columns
    ]
    return "\n".join(
        "| " + " | ".join(value.replace("|", "\\|").replace("\n", " ") for value in row) + " |"
        for row in (head, sides, *rows)
    )


def main_columns(table: Table) -> list[Column]:
    """What is shown first: of pair lists the headline and rank-1 and the spread, of strips easy, hard and tough."""
    return [column for column in table.columns if column in table.headlines or column.score in SHOWN]


def marked_heading(table: Table, column: Column) -> str:
    """The heading, with a dagger where images of the test set were trained on."""
    return f"{heading(column)} {MARK}" if column.test in table.seen else heading(column)


def cell(column: Column, scores: Sequence[float]) -> str:
    """The mean, and behind it every seed's value where there are several; "-" where the score was not taken."""

    def text(score: float) -> str:
        if math.isnan(score):
            return "-"
        if column.score in DECIMALS:
            return f"{score:.{DECIMALS[column.score]}f}"
        return find_score(column.score).text(score).removesuffix(" %")

    seeds = f" ({', '.join(map(text, scores))})" if len(scores) > 1 else ""
    return text(mean_over_seeds(scores)) + seeds


def dimension(line: Line) -> str:
    return "-" if line.dim is None else str(line.dim)


def why(row: Trial) -> str:
    """Why a row is not finished."""
    if not row.failed:
        return "not finished yet"
    return f"failed: {row.failed}" + (" Earlier scores stay in the table." if row.at(1.0) else "")


def _papers(table: Table) -> list[list[str]]:
    places, rows = ranks(table), list[list[str]]()
    for line in table.lines:
        if line.label in places:
            published, (theirs, ours) = published_recipes()[line.label], places[line.label]
            rows.append([line.label, f"{published.mean:.2f}", str(theirs), str(ours), published.citation])
        elif line.label in WITHOUT_FIGURE:
            rows.append([line.label, "-", "-", "-", "the paper's figures are not at hand"])
    return rows


def _every_score(table: Table, lines: Sequence[Line]) -> dict[str, tuple[list[str], list[list[str]]]]:
    """By test set a head and rows: an arm each, or a score each where there are many; named as result files do."""
    scores = {}
    for test in dict.fromkeys(column.test for column in table.columns):
        columns = [column for column in table.columns if column.test == test]
        cells = [[cell(column, line.scores(column)) for column in columns] for line in lines]
        names, labels = [column.score for column in columns], [line.label for line in lines]
        if len(names) > WIDE:
            rows = [[name, *row] for name, row in zip(names, zip(*cells, strict=True), strict=True)]
            scores[test] = ["score", *labels], rows
        else:
            rows = [[label, *row] for label, row in zip(labels, cells, strict=True)]
            scores[test] = ["arm", *names], rows
    return scores
