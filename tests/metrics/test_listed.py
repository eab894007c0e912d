"""Ranked lists with a tie rule: against the public tool's numbers, scikit-learn, hand-worked lists and a plain loop."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from keypatch.errors import KeypatchError
from keypatch.metrics.listed import false_before, listed_auc, listed_precision

LISTS = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30)


def test_the_public_tools_numbers(reference: Path) -> None:
    values = np.load(reference / "fpr95.npz", allow_pickle=False)
    columns = values["column_names"].tolist()
    cases = 0
    for name, row in zip(values["case_names"].tolist(), values["values"], strict=True):
        distance, match = values[f"dist__{name}"], values[f"label__{name}"].astype(bool)
        if match.all() or not match.any():
            continue
        before = false_before(distance, match, "public")
        area = listed_precision(before, int(match.sum()))
        assert area == pytest.approx(row[columns.index("ap_trapezoid_stable_pos_listed_as_given")], abs=1e-9), name
        assert listed_auc(before, int((~match).sum())) == pytest.approx(
            row[columns.index("auc_trapezoid_stable")], abs=1e-9
        ), name
        cases += 1
    assert cases > 10


def test_a_list_by_hand() -> None:
    """Right, wrong, right; a third positive was never retrieved."""
    before = false_before([1.0, 3.0, 2.0], [True, True, False])
    assert before.tolist() == [0, 1]
    assert listed_precision(before, 2, "classic") == pytest.approx((1 + 2 / 3) / 2)
    assert listed_precision(before, 3, "classic") == pytest.approx((1 + 2 / 3) / 3)
    assert listed_precision(before, 2) == pytest.approx(((1 + 1) / 2 + (2 / 3 + 1 / 2) / 2) / 2)
    assert listed_auc(before, 1) == 1 / 2


def test_a_wrong_first_costs_double_by_trapezoids() -> None:
    before = false_before([1.0, 2.0], [False, True])
    assert listed_precision(before, 1, "classic") == 1 / 2
    assert listed_precision(before, 1) == pytest.approx(1 / 4)


def test_ties_are_pessimistic_or_as_listed() -> None:
    distances, match = [1.0, 1.0, 1.0], [True, False, True]
    assert false_before(distances, match).tolist() == [1, 1]
    assert false_before(distances, match, "public").tolist() == [0, 1]


@given(LISTS, st.sampled_from(["pessimistic", "public"]))
def test_counts_are_those_of_a_plain_sort(pairs: list[tuple[int, bool]], ties: str) -> None:
    ordered = sorted(pairs, key=lambda pair: pair if ties == "pessimistic" else pair[0])
    expected = [sum(not right for _, right in ordered[:k]) for k, (_, right) in enumerate(ordered) if right]
    distances, match = zip(*pairs, strict=True)
    assert false_before(distances, match, ties).tolist() == expected


@given(st.lists(st.booleans(), min_size=2, max_size=30))
def test_classic_precision_and_roc_area_are_scikit_learns_without_ties(match: list[bool]) -> None:
    if all(match) or not any(match):
        return
    distances = np.arange(len(match))
    before = false_before(distances, match)
    assert listed_precision(before, sum(match), "classic") == pytest.approx(average_precision_score(match, -distances))
    assert listed_auc(before, len(match) - sum(match)) == pytest.approx(roc_auc_score(match, -distances))


def test_many_lists_at_once_are_as_one_by_one() -> None:
    before = np.sort(np.random.default_rng(0).integers(0, 9, (4, 3, 5)), axis=2)
    at_once = listed_precision(before, 7)
    assert at_once.shape == (4, 3)
    assert at_once[2, 1] == listed_precision(before[2, 1], 7)


def test_lists_without_one_kind() -> None:
    assert np.isnan(listed_precision(np.empty(0), 0))
    assert listed_precision(np.empty(0), 3) == 0
    assert np.isnan(listed_auc(np.empty(0), 3)) and np.isnan(listed_auc(np.zeros(3), 0))


@pytest.mark.parametrize("distances", [[1.0], [[1.0, 2.0]], [1.0, np.nan], [1.0, np.inf]])
def test_what_is_no_list_is_refused(distances: list[float]) -> None:
    with pytest.raises(KeypatchError, match="ranked list"):
        false_before(distances, [True, False])


def test_more_retrieved_than_there_are_is_refused() -> None:
    with pytest.raises(KeypatchError, match="2 matches were retrieved, but there are only 1"):
        listed_precision(np.zeros(2), 1)
