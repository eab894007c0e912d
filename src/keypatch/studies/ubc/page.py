"""The page of the six-split table: table.md."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from keypatch.files import write_text
from keypatch.reports.published import published_rows
from keypatch.studies.methods.page import section
from keypatch.studies.ubc.table import SPLITS, Scored, TrainTest, UbcRow, columns_of, mean_replicates, mean_score

COLUMNS = [*map(str, SPLITS), "Mean"]
BEST = (
    "Best on the test sets, as HyNet's and SDGMNet's code select: of the checkpoints that a run kept, the one with the "
    "lowest mean FPR95 on its two test sets. It has seen the test sets, so it is no estimate for new data; compare it "
    "only with figures that were chosen in the same way."
)


def write_ubc_page(path: Path, rows: Sequence[UbcRow], pair_list: str) -> None:
    fpr95, ap = f"fpr95.{pair_list}", f"ap.{pair_list}"
    last = [(row.name, row.last()) for row in rows]
    parts = [
        f"# PhotoTour: trained on one set, tested on another\n\n{_opening(pair_list)}",
        _scores("FPR95 in %, last checkpoint", "", last, fpr95),
        _intervals(last, fpr95),
        _scores("Average precision in %, last checkpoint", "", last, ap),
    ]
    if trained := [row for row in rows if row.is_trained]:
        best = [(row.name, row.best(fpr95)) for row in trained]
        parts += [
            _scores("FPR95 in %, best checkpoint on the test sets", f"{BEST}\n\n{_kept(trained)}", best, fpr95),
            _scores("Average precision in %, best checkpoint on the test sets", "", best, ap),
        ]
    write_text(path, "\n\n".join([*parts, _published()]) + "\n")


def score_cells(scored: Scored, score: str) -> list[str]:
    """The six columns and the mean; empty where there is no such number, "-" where it is still missing."""
    cells = _placed(scored, lambda split: _percent(scored[split].scores[score]))
    return [*cells, _percent(mean_score(scored, score))]


def _placed(scored: Scored, text: Callable[[TrainTest], str]) -> list[str]:
    return ["" if split is None else text(split) if split in scored else "-" for split in columns_of(scored)]


def _opening(pair_list: str) -> str:
    return (
        f"FPR95 (lower is better) and average precision (higher is better) in % on the pairs of {pair_list}. A column "
        "is the set of training -> the set of the test; the mean is over the six. A descriptor that was not trained "
        "has one number for each test set, under the first of its two columns, and a mean over three."
    )


def _scores(title: str, text: str, rows: Iterable[tuple[str, Scored]], score: str) -> str:
    return section(title, text, ["", *COLUMNS], [[name, *score_cells(scored, score)] for name, scored in rows])


def _intervals(rows: Iterable[tuple[str, Scored]], score: str) -> str:
    text = "95 % bootstrap intervals over the pairs of each list; they say nothing of other seeds or other training."
    cells = []
    for name, scored in rows:
        whole = mean_replicates(scored, score)
        texts = {split: _interval(result.interval(score)) for split, result in scored.items()}
        own = _placed(scored, texts.__getitem__)
        cells.append([name, *own, _interval(whole.interval() if whole else None)])
    return section("How sure the FPR95 of the last checkpoints is", text, ["", *COLUMNS], cells)


def _kept(rows: Sequence[UbcRow]) -> str:
    counts = [f"{row.name}: {', '.join(f'{n} on {train}' for train, n in row.checkpoints().items())}" for row in rows]
    return f"Checkpoints scored for each run: {'; '.join(counts)}."


def _published() -> str:
    text = (
        "From the papers, not measured here: other budgets, other code, other rules for choosing the epoch and, in "
        "GOR's own rows, perhaps another definition of FPR95 (docs/methods/gor.md). They stand apart for comparison."
    )
    rows = []
    for each in published_rows():
        values = [f"{value:.2f}" for value in each.values]
        if len(values) < len(SPLITS):
            values = [cell for value in values for cell in (value, "")]
        rows.append([each.method, *values, f"{each.mean:.2f}", each.source])
    return section("Published FPR95 in %", text, ["", *COLUMNS, "source"], rows)


def _percent(score: float) -> str:
    return "-" if math.isnan(score) else f"{100 * score:.2f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{100 * interval[0]:.2f} - {100 * interval[1]:.2f}"
