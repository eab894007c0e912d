"""The page of a study of methods: table.md."""

import math
from collections.abc import Sequence
from pathlib import Path

from keypatch.benchmarks.scores import find_score
from keypatch.files import write_text
from keypatch.reports.published import published_recipes
from keypatch.studies.methods.plan import EMBEDDED_TEST
from keypatch.studies.methods.table import Column, RecipeRow, Table, Trial, mean_over_seeds, ranks

DECIMALS = {"spread.m1": 3, "spread.dm2": 2}
WITHOUT_FIGURE = ("scale_aware",)  # its paper's figures on these sets are not at hand: no place in the papers' order
SHOWN = ("rank1", "spread.dm2", "rank1.e", "rank1.h", "rank1.t")  # beside the headlines


def write_methods_page(path: Path, table: Table) -> None:
    parts = [_opening(table)]
    if table.lines:
        parts += [_ends(table), _equal_minutes(table), *_papers(table), *_every_score(table)]
    if table.unfinished:
        rows = [[row.name, why(row)] for row in table.unfinished]
        parts.append(section("Not finished", "", ["row", "why"], rows))
    write_text(path, "\n\n".join(parts) + "\n")


def main_columns(table: Table) -> list[Column]:
    """What is shown first: of pair lists the headline and rank-1 and the spread, of strips easy, hard and tough."""
    return [column for column in table.columns if column in table.headlines or column.score in SHOWN]


def heading(column: Column) -> str:
    """ "castle-test hard FPR95 %" of fpr95.hard_6000_6000_0, without what is only the size of the list."""
    score = find_score(column.score)
    return " ".join(filter(None, (column.test, score.of.split("_")[0], score.column)))


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


def _opening(table: Table) -> str:
    said, rows = table.conditions, [row for line in table.lines for row in line.rows]
    changed = f", with {', '.join(said['settings'])}" if said["settings"] else ""
    paragraphs = [
        "# Methods under equal conditions",
        f"{len(table.lines)} recipes, each trained on {said['data']} for {said['pairs']:,} pairs in batches of "
        f"{said['batch']}{changed}.",
    ]
    if rows:
        seeds = sorted({row.seed for row in rows})
        how = sorted({"{precision} on {device}, threads: {threads}".format(**row.run) for row in rows})
        machines = sorted({str(row.provenance["machine"]) for row in rows})
        paragraphs[-1] += (
            f" Seeds: {', '.join(map(str, seeds))}. Computed in {' and '.join(how)} ({' and '.join(machines)})."
        )
        if len(how) > 1 or len(machines) > 1:
            paragraphs.append("The rows were computed in several ways or places, so their minutes do not compare.")
        paragraphs.append(
            "Scores are means over the seeds, every seed's value behind them where there are several. FPR95: lower is "
            "better; rank-1: higher is better; d*M2: 1 for a spread-out descriptor, more for a crowded one. Best first "
            f"by {'the mean of ' * (len(table.order) > 1)}{' and '.join(map(heading, table.order))}."
        )
    if any(column.test == EMBEDDED_TEST for column in table.columns):
        paragraphs.append(
            f"The photographs of {EMBEDDED_TEST} were settled after a first look at a trained network (docs/data.md), "
            "so its scores show that training works; they do not rank methods."
        )
    return "\n\n".join(paragraphs)


def _ends(table: Table) -> str:
    columns = main_columns(table)
    head = ["recipe", "d", *map(heading, columns), "minutes", "pairs/s"]
    rows = [
        [
            line.recipe,
            dimension(line),
            *(cell(column, line.scores(column)) for column in columns),
            f"{mean_over_seeds(line.seconds) / 60:.1f}",
            f"{mean_over_seeds(line.rates):,.0f}",
        ]
        for line in table.lines
    ]
    return section("At the end of the run", "", head, rows)


def _equal_minutes(table: Table) -> str:
    seconds = table.equal_seconds
    text = (
        f"After {seconds / 60:.1f} minutes of training, the time of the shortest run, interpolated between the scores "
        "at 25, 50, 75 and 100 % of each run; - where a run had not reached its first quarter. Schedules stretch over "
        "the whole run, so a slower recipe is seen here before its learning rate has fallen."
    )
    columns = table.headlines
    head = ["recipe", *map(heading, columns)]
    rows = [
        [line.recipe, *(cell(column, line.scores_after(seconds, column)) for column in columns)] for line in table.lines
    ]
    return section("At equal minutes", text, head, rows)


def _papers(table: Table) -> list[str]:
    places = ranks(table)
    text = (
        "Published figures are means of FPR95 over the six pairs of training and test set of PhotoTour, each under the "
        "conditions of its paper; places are among the recipes of this study that have one."
    )
    head = ["recipe", "published FPR95 %", "published place", "our place", "source of the figure"]
    rows = []
    for line in table.lines:
        if line.recipe in places:
            published, (theirs, ours) = published_recipes()[line.recipe], places[line.recipe]
            rows.append([line.recipe, f"{published.mean:.2f}", str(theirs), str(ours), published.citation])
        elif line.recipe in WITHOUT_FIGURE:
            rows.append([line.recipe, "-", "-", "-", "the paper's figures are not at hand"])
    return [section("The papers' order", text, head, rows)] if rows else []


def _every_score(table: Table) -> list[str]:
    """A section per test set, under the names of result files."""
    sections = []
    for test in dict.fromkeys(column.test for column in table.columns):
        columns = [column for column in table.columns if column.test == test]
        rows = [[line.recipe, *(cell(column, line.scores(column)) for column in columns)] for line in table.lines]
        sections.append(section(f"Every score on {test}", "", ["recipe", *(c.score for c in columns)], rows))
    return sections


def section(title: str, text: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    columns = zip(*rows, strict=True)
    sides = ["---:" if all(set(value) <= set("0123456789.,()- ") for value in column) else "---" for column in columns]
    lines = [
        "| " + " | ".join(value.replace("|", "\\|").replace("\n", " ") for value in row) + " |"
        for row in (head, sides, *rows)
    ]
    return "\n".join([f"## {title}", "", *([text, ""] if text else []), *lines])
