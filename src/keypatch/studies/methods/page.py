"""The page of a study of methods: table.md."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2

from keypatch.benchmarks.contamination import MARK
from keypatch.benchmarks.scores import find_score
from keypatch.files import write_text
from keypatch.reports.published import published_recipes
from keypatch.studies.methods.plan import EMBEDDED_TEST
from keypatch.studies.methods.table import Column, RecipeRow, Table, Trial, mean_over_seeds, ranks

DECIMALS = {"spread.m1": 3, "spread.dm2": 2}
WITHOUT_FIGURE = ("scale_aware",)  # its paper's figures on these sets are not at hand: no place in the papers' order
SHOWN = ("rank1", "spread.dm2", "rank1.e", "rank1.h", "rank1.t")  # beside the headlines


def write_methods_page(path: Path, table: Table) -> None:
    """As templates/methods.md has it."""
    rows = [row for line in table.lines for row in line.rows]
    columns, seconds = main_columns(table), table.equal_seconds
    notes = [f"{MARK} {test}: {sentence}" for test, sentence in table.seen.items()]
    page = render_page(
        "methods.md",
        table=table,
        seeds=sorted({row.seed for row in rows}),
        ways=sorted({"{precision} on {device}, threads: {threads}".format(**row.run) for row in rows}),
        machines=sorted({str(row.provenance["machine"]) for row in rows}),
        embedded_test=EMBEDDED_TEST,
        heads=[marked_heading(table, column) for column in columns],
        headline_heads=[marked_heading(table, column) for column in table.headlines],
        notes=notes,
        ends=[
            [
                line.recipe,
                dimension(line),
                *(cell(column, line.scores(column)) for column in columns),
                f"{mean_over_seeds(line.seconds) / 60:.1f}",
                f"{mean_over_seeds(line.rates):,.0f}",
            ]
            for line in table.lines
        ],
        equal_minutes=[
            [line.recipe, *(cell(column, line.scores_after(seconds, column)) for column in table.headlines)]
            for line in table.lines
        ],
        papers=_papers(table),
        scores=_every_score(table),
        unfinished=[[row.name, why(row)] for row in table.unfinished],
    )
    write_text(path, page)


def render_page(template: str, **values: object) -> str:
    """A page of Markdown; paragraphs stand one empty line apart, however the template is laid out."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("keypatch.studies"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["heading"] = heading
    page = made.get_template(template).render(grid=_grid, **values)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
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


def heading(column: Column) -> str:
    """ "castle-test hard FPR95 %" of fpr95.hard_6000_6000_0, without what is only the size of the list."""
    score = find_score(column.score)
    return " ".join(filter(None, (column.test, score.of.split("_")[0], score.column)))


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


def dimension(line: RecipeRow) -> str:
    return "-" if line.dim is None else str(line.dim)


def why(row: Trial) -> str:
    """Why a row is not finished."""
    if not row.failed:
        return "not finished yet"
    return f"failed: {row.failed}" + (" What was scored before stays in the table." if row.at(1.0) else "")


def _papers(table: Table) -> list[list[str]]:
    places, rows = ranks(table), list[list[str]]()
    for line in table.lines:
        if line.recipe in places:
            published, (theirs, ours) = published_recipes()[line.recipe], places[line.recipe]
            rows.append([line.recipe, f"{published.mean:.2f}", str(theirs), str(ours), published.citation])
        elif line.recipe in WITHOUT_FIGURE:
            rows.append([line.recipe, "-", "-", "-", "the paper's figures are not at hand"])
    return rows


def _every_score(table: Table) -> dict[str, tuple[list[str], list[list[str]]]]:
    """The names of a test set's scores, as result files have them, and a row for each recipe."""
    scores = {}
    for test in dict.fromkeys(column.test for column in table.columns):
        columns = [column for column in table.columns if column.test == test]
        rows = [[line.recipe, *(cell(column, line.scores(column)) for column in columns)] for line in table.lines]
        scores[test] = [column.score for column in columns], rows
    return scores
