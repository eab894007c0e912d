"""The papers' rows of the six-split table."""

import csv
from pathlib import Path

import numpy as np
import pytest

from keypatch.studies.ubc_published import PublishedRow, published_rows
from keypatch.studies.ubc_rows import SETS, SPLITS

ROUNDED = {"TFeat": 0.03, "VGG-Opt": 0.1}  # printed means that are off by more than their last digit
ROWS = published_rows()
NAMES = [f"{row.method}, {row.source}" for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_row_has_six_or_three_values_and_about_their_mean(row: PublishedRow) -> None:
    assert len(row.values) in (len(SETS), len(SPLITS))
    assert row.mean == pytest.approx(np.mean(row.values), abs=ROUNDED.get(row.method, 0.011))


def test_no_row_stands_twice() -> None:
    assert len(set(NAMES)) == len({row.values for row in ROWS}) == len(ROWS)


def test_the_values_are_those_of_the_papers(shared: Path) -> None:
    printed: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    with (shared / "protocols" / "published.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            if line["metric"] == "FPR95_percent" and line["test"] in (*SETS, "mean"):
                paper = printed.setdefault((line["paper"], line["method"]), {})
                paper[line["train"], line["test"]] = float(line["value"])
    for row in ROWS:
        paper = printed[row.source.split(",")[0].lower(), row.method]
        if len(row.values) == len(SPLITS):
            expected = [paper[split] for split in SPLITS]
        else:
            expected = [next(value for (_, test), value in paper.items() if test == name) for name in SETS]
        assert list(row.values) == expected
        assert row.mean == paper.get(("mean", "mean"), row.mean)
