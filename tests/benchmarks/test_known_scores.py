"""The scores of SIFT and of published networks on the shared sets, computed once without this package.

Values in % from the table of the shared data: FPR95 (two decimals), rank-1 (one decimal).
"""

from pathlib import Path

import pytest

from keypatch.benchmarks import evaluate_rank1, evaluate_ubc
from keypatch.describers import Describer
from keypatch.zoo import load

# FPR95 of the m50 and of the hard list, rank-1 over the points
CASTLE = {
    "sift": (0.37, 5.23, 89.9),
    "rootsift": (0.47, 3.83, 91.7),
    "tfeat-liberty": (0.10, 0.97, 95.3),
    "tfeat-notredame": (0.20, 1.40, 94.6),
    "tfeat-yosemite": (0.17, 1.77, 94.7),
    "hardtfeat": (0.10, 0.73, 96.5),
}
# rank-1 of e, h, t
OXFORD = {
    "sift": (91.8, 80.7, 53.8),
    "rootsift": (90.2, 80.2, 53.4),
    "tfeat-liberty": (80.4, 65.7, 44.2),
    "tfeat-notredame": (83.6, 70.8, 48.6),
    "tfeat-yosemite": (86.1, 72.9, 49.5),
    "hardtfeat": (86.8, 71.3, 44.0),
}


FPR_ROUNDING = 0.0051
RANK_ROUNDING = 0.051


def find_peer(name: str, shared: Path) -> Describer:
    published = shared / "data" / "peers" / f"{name}.safetensors"
    return load(published if published.exists() else name, device="cpu", precision="float32")


@pytest.mark.parametrize("name", CASTLE)
def test_castle(name: str, castle: Path, shared: Path) -> None:
    scores = evaluate_ubc(find_peer(name, shared), castle).scores
    m50, hard, rank1 = CASTLE[name]
    assert 100 * scores["fpr95.m50_6000_6000_0"] == pytest.approx(m50, abs=FPR_ROUNDING)
    assert 100 * scores["fpr95.hard_6000_6000_0"] == pytest.approx(hard, abs=FPR_ROUNDING)
    assert 100 * scores["rank1"] == pytest.approx(rank1, abs=RANK_ROUNDING)


SLOW = {"tfeat-notredame", "tfeat-yosemite"}  # the same network as tfeat-liberty


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in OXFORD])
def test_oxford(name: str, shared: Path) -> None:
    result = evaluate_rank1(find_peer(name, shared), shared / "data" / "patches" / "oxford-hpatches")
    scores = [100 * result.scores[f"rank1.{level}"] for level in "eht"]
    assert scores == pytest.approx(OXFORD[name], abs=RANK_ROUNDING)
