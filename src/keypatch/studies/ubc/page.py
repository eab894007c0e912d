"""The page of the six-split table: table.md."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from keypatch.benchmarks.contamination import MARK
from keypatch.benchmarks.result import marked
from keypatch.files import write_text
from keypatch.reports.published import published_rows
from keypatch.studies.page import render_page
from keypatch.studies.ubc.table import SPLITS, Scored, TrainTest, UbcRow, columns_of, mean_replicates, mean_score

COLUMNS = [*map(str, SPLITS), "Mean"]


def write_ubc_page(path: Path, rows: Sequence[UbcRow], pair_list: str) -> None:
    """As templates/ubc.md has it."""
    fpr95, trained = f"fpr95.{pair_list}", [row for row in rows if row.is_trained]
    counts = {row.name: ", ".join(f"{n} on {train}" for train, n in row.checkpoints().items()) for row in trained}
    last, best = {row.name: row.last() for row in rows}, {row.name: row.best(fpr95) for row in trained}

    def scores(results: Mapping[str, Scored]) -> dict[str, list[list[str]]]:
        return {
            kind: [[name, *score_cells(scored, f"{kind}.{pair_list}")] for name, scored in results.items()]
            for kind in ("fpr95", "ap")
        }

    page = render_page(
        "ubc.md",
        pair_list=pair_list,
        columns=COLUMNS,
        last=scores(last),
        intervals=[[name, *_interval_cells(scored, fpr95)] for name, scored in last.items()],
        best=scores(best),
        kept=[f"{name}: {count}" for name, count in counts.items()],
        notes=seen_notes(rows),
        published=_published(),
    )
    write_text(path, page)


def seen_notes(rows: Sequence[UbcRow]) -> list[str]:
    """A sentence for each marked result of the last checkpoints."""
    return [
        f"{MARK} {row.name}, {split}: {result.contamination.sentence()}"
        for row in rows
        for split, result in row.last().items()
        if result.contamination
    ]


def score_cells(scored: Scored, score: str) -> list[str]:
    """The six columns and the mean; empty where there is no such number, "-" where it is still missing."""
    cells = _placed(scored, lambda split: marked(_percent(scored[split].scores[score]), scored[split]))
    return [*cells, _percent(mean_score(scored, score))]


def _interval_cells(scored: Scored, score: str) -> list[str]:
    whole = mean_replicates(scored, score)
    cells = _placed(scored, lambda split: _interval(scored[split].interval(score)))
    return [*cells, _interval(whole.interval() if whole else None)]


def _placed(scored: Scored, text: Callable[[TrainTest], str]) -> list[str]:
    return ["" if split is None else text(split) if split in scored else "-" for split in columns_of(scored)]


def _published() -> list[list[str]]:
    rows = []
    for each in published_rows():
        values = [f"{value:.2f}" for value in each.values]
        if len(values) < len(SPLITS):
            values = [cell for value in values for cell in (value, "")]
        rows.append([each.method, *values, f"{each.mean:.2f}", each.source])
    return rows


def _percent(score: float) -> str:
    return "-" if math.isnan(score) else f"{100 * score:.2f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{100 * interval[0]:.2f} - {100 * interval[1]:.2f}"
