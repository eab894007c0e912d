"""DEGENSAC: what it is asked for, without the package; what it finds, with it."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keypatch.errors import KeypatchError, MissingExtra
from keypatch.geometry import Keypoints
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.verification import verify

COUNT, WRONG = 120, 40
DEGENSAC = Matching(estimator="degensac")


def two_views() -> tuple[Keypoints, Keypoints, Matches]:
    """Points of a scene in two cameras side by side; the first 40 are matched at random."""
    rng = np.random.default_rng(0)
    scene = rng.uniform([-2, -2, 4], [2, 2, 9], (COUNT, 3))
    views = [800 * (scene + shift)[:, :2] / (scene + shift)[:, 2:] for shift in ([0, 0, 0], [1, 0.1, 0.2])]
    views[1][:WRONG] = rng.uniform(-400, 400, (WRONG, 2))
    ones = np.ones(COUNT)
    first, second = (Keypoints(*view.T, ones, 0 * ones) for view in views)
    return first, second, Matches(np.column_stack([np.arange(COUNT)] * 2), ones)


def fake(matrix: np.ndarray, asked: dict[str, Any]) -> SimpleNamespace:
    def find(first: np.ndarray, second: np.ndarray, **how: Any) -> tuple[np.ndarray, np.ndarray]:
        asked.update(how)
        return matrix, np.arange(len(first)) >= WRONG

    return SimpleNamespace(findFundamentalMatrix=find)


def test_the_challenges_checks_are_asked_for_and_the_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    matrix = np.arange(1.0, 10).reshape(3, 3)
    monkeypatch.setitem(sys.modules, "pydegensac", fake(matrix, asked))
    left = verify(*_views_last(), replace(DEGENSAC, threshold=0.5, seed=3, confidence=0.999999, iterations=100_000))
    assert asked == {
        "px_th": 0.5,
        "conf": 0.999999,
        "max_iters": 100_000,
        "laf_consistensy_coef": 0.0,
        "error_type": "sampson",
        "symmetric_error_check": True,
        "enable_degeneracy_check": True,
        "seed": 3,
    }
    assert left.indices[:, 0].tolist() == list(range(WRONG, COUNT))
    np.testing.assert_array_equal(left.matrix, matrix)  # type: ignore[arg-type]


def _views_last() -> tuple[Matches, Keypoints, Keypoints]:
    first, second, matches = two_views()
    return matches, first, second


def test_zeros_are_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydegensac", fake(np.zeros((3, 3)), {}))
    left = verify(*_views_last(), DEGENSAC)
    assert len(left) == 0 and left.matrix is None


@pytest.mark.parametrize("model", ["E", "H"])
def test_only_fundamental_matrices_are_found(model: Any) -> None:
    with pytest.raises(KeypatchError, match="only estimates fundamental matrices"):
        replace(DEGENSAC, model=model)


def test_a_missing_pydegensac_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydegensac", None)
    with pytest.raises(MissingExtra, match=r"keypatch\[degensac\]"):
        verify(*_views_last(), DEGENSAC)


@pytest.mark.skipif(find_spec("pydegensac") is None, reason="pydegensac is not installed")
def test_the_right_matches_are_found_and_a_seed_repeats() -> None:
    one, two = (verify(*_views_last(), replace(DEGENSAC, threshold=0.5, seed=1)) for _ in range(2))
    assert np.array_equal(one.indices, two.indices) and np.array_equal(one.matrix, two.matrix)  # type: ignore[arg-type]
    right = one.indices[:, 0] >= WRONG
    assert right.sum() == COUNT - WRONG and (~right).sum() <= 0.1 * WRONG
    first, second, _ = two_views()
    x0, x1 = (np.column_stack([p.xy, np.ones(len(p))]) for p in (first, second))
    assert one.matrix is not None
    lines = x0[WRONG:] @ one.matrix.T
    offsets = np.abs(np.sum(lines * x1[WRONG:], axis=1)) / np.hypot(lines[:, 0], lines[:, 1])
    assert offsets.max() < 0.5  # x1.F.x0 = 0, not the other way round
