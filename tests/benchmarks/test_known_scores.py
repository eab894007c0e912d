"""The scores of SIFT and of published networks on the shared sets, computed once without this package.

Values in % from the table of the shared data: FPR95 (two decimals), rank-1 (one decimal).
"""

from pathlib import Path

import pytest

from keypatch.benchmarks import evaluate_rank1, evaluate_ubc
from keypatch.zoo import find

# FPR95 of the m50 and of the hard list, rank-1 over the points
CASTLE = {
    "sift": (0.37, 5.23, 89.9),
    "rootsift": (0.47, 3.83, 91.7),
}
# rank-1 of e, h, t
OXFORD = {
    "sift": (91.8, 80.7, 53.8),
    "rootsift": (90.2, 80.2, 53.4),
}


@pytest.mark.parametrize("name", CASTLE)
def test_castle(name: str, castle: Path) -> None:
    scores = evaluate_ubc(find(name), castle).scores
    m50, hard, rank1 = CASTLE[name]
    assert 100 * scores["fpr95.m50_6000_6000_0"] == pytest.approx(m50, abs=0.0051)
    assert 100 * scores["fpr95.hard_6000_6000_0"] == pytest.approx(hard, abs=0.0051)
    assert 100 * scores["rank1"] == pytest.approx(rank1, abs=0.051)


@pytest.mark.parametrize("name", OXFORD)
def test_oxford(name: str, shared: Path) -> None:
    result = evaluate_rank1(find(name), shared / "data" / "patches" / "oxford-hpatches")
    assert [100 * result.scores[f"rank1.{level}"] for level in "eht"] == pytest.approx(OXFORD[name], abs=0.051)
