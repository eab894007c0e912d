"""The table of the six splits of PhotoTour: its rows, with scores and intervals, as JSON."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keypatch.files import write_json
from keypatch.studies.methods_rows import number_or_none
from keypatch.studies.ubc_page import write_page
from keypatch.studies.ubc_published import published_rows
from keypatch.studies.ubc_rows import SETS, UNTRAINED, Row, Scored, Split, columns_of, mean, mean_replicates

FORMAT = "keypatch-ubc-table"
FORMAT_NUMBER = 1


@dataclass(frozen=True)
class UbcTable:
    """All rows of a study's folder, on one pair list."""

    rows: tuple[Row, ...]
    pair_list: str

    @property
    def fpr95(self) -> str:
        return f"fpr95.{self.pair_list}"

    def save(self, folder: Path) -> None:
        rows = [self._entry(row, "last", row.last()) for row in self.rows]
        rows += [self._entry(row, "best on the test sets", row.best(self.fpr95)) for row in self.rows if row.is_trained]
        head = {"format": FORMAT, "format_number": FORMAT_NUMBER, "pair_list": self.pair_list}
        published = [asdict(each) for each in published_rows()]
        write_json(folder / "table.json", {**head, "rows": rows, "published_fpr95_percent": published})
        write_page(folder / "table.md", self.rows, self.pair_list)

    def _entry(self, row: Row, checkpoint: str, scored: Scored) -> dict[str, Any]:
        return {
            "descriptor": row.name,
            "checkpoint": checkpoint if row.is_trained else None,
            "steps": {split.train: result.settings["step"] for split, result in scored.items() if row.is_trained},
            "checkpoints_scored": row.checkpoints() if row.is_trained else None,
            **{kind: _scores(scored, f"{kind}.{self.pair_list}", checkpoint == "last") for kind in ("fpr95", "ap")},
        }


def _scores(scored: Scored, score: str, with_intervals: bool) -> dict[str, Any]:
    """By column; a checkpoint that was chosen on the test pairs has no honest interval over them."""
    whole = mean_replicates(scored, score) if with_intervals else None
    entries: dict[str, Any] = {
        _column(split): _entry(result.scores[score], result.interval(score) if with_intervals else None)
        for split, result in sorted(scored.items(), key=lambda item: columns_of(scored).index(item[0]))
    }
    return {**entries, "mean": _entry(mean(scored, score), whole.interval() if whole else None)}


def _column(split: Split) -> str:
    return SETS[split.test] if split.train == UNTRAINED else str(split)


def _entry(score: float, interval: tuple[float, float] | None) -> dict[str, Any]:
    return {"score": number_or_none(score), "interval": interval}
