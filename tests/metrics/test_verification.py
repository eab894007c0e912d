"""FPR95, average precision and the curves against the figures of others and against their definitions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn import metrics as sk

from keypatch.errors import KeypatchError
from keypatch.metrics import FPR_RULES, Curve, average_precision, fpr95, precision_recall_curve, roc_auc, roc_curve
from keypatch.metrics.verification import FprRule

# The 18 cases; a column taken from an unstable or input-ordered sort is compared only where no two kinds are tied.
CASES = [
    *("tiny_10_10", "p20_n20", "p19_n30", "p21_n30", "p60_n60_float_edge", "p100_n100", "p100_n100_ties"),
    *("p500_n500_ties_hard", "p37_n900_imbalanced", "p900_n37_imbalanced", "p5000_n5000", "p5000_n5000_ties"),
    *("perfect", "reversed", "constant_pos_listed_first", "constant_neg_listed_first", "one_positive", "zeros_and_big"),
]
ALWAYS: dict[str, FprRule] = {
    "ties_negatives_first": "rank",
    "sklearn_first_tpr_ge_95": "rank",
    "ties_positives_first": "optimistic",
    "hynet_nan_if_index_error": "hynet",
    "sklearn_interp": "interpolated",
}
WITHOUT_TIES: dict[str, FprRule] = {"hardnet": "rank", "stable_input_order": "rank", "old_fdr": "discovery"}
Pairs = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture(scope="module")
def figures(reference: Path) -> dict[str, NDArray[np.float64]]:
    with np.load(reference / "fpr95.npz") as file:
        return dict(file)


def case_of(figures: dict[str, NDArray[np.float64]], case: str) -> tuple[Pairs, dict[str, float]]:
    row = figures["values"][list(figures["case_names"]).index(case)]
    values = dict(zip((str(name) for name in figures["column_names"]), row.tolist(), strict=True))
    return (figures[f"dist__{case}"], figures[f"label__{case}"].astype(bool)), values


def tied(distances: NDArray[np.float64], is_match: NDArray[np.bool_]) -> bool:
    return bool(np.isin(distances[is_match], distances[~is_match]).any())


def test_every_stored_case_is_compared(figures: dict[str, NDArray[np.float64]]) -> None:
    assert sorted(CASES) == sorted(str(name) for name in figures["case_names"])


@pytest.mark.parametrize("case", CASES)
def test_fpr95_gives_the_figures_of_others(figures: dict[str, NDArray[np.float64]], case: str) -> None:
    (distances, is_match), values = case_of(figures, case)
    rules = ALWAYS if tied(distances, is_match) else ALWAYS | WITHOUT_TIES
    for column, rule in rules.items():
        assert fpr95(distances, is_match, rule) == pytest.approx(values[column], abs=1e-12, nan_ok=True), column


@pytest.mark.parametrize("case", CASES)
def test_average_precision_and_area_give_the_figures_of_others(
    figures: dict[str, NDArray[np.float64]], case: str
) -> None:
    (distances, is_match), values = case_of(figures, case)
    assert average_precision(distances, is_match) == pytest.approx(values["average_precision_sklearn"], abs=1e-12)
    assert roc_auc(distances, is_match) == pytest.approx(values["roc_auc_sklearn"], abs=1e-12)
    if not tied(distances, is_match):
        assert roc_auc(distances, is_match) == pytest.approx(values["auc_trapezoid_stable"], abs=1e-12)


def test_fpr95_gives_the_figures_beside_the_losses(reference: Path) -> None:
    with np.load(reference / "triplets.npz") as file:
        labels = file["fpr95/labels"]
        ties, distinct = file["fpr95/dist"], file["fpr95/dist_noties"]
        assert fpr95(ties, labels) == pytest.approx(float(file["fpr95/exact_ties"]), abs=1e-12)
        assert fpr95(ties, labels, "hynet") == pytest.approx(float(file["fpr95/hynet_ties"]), abs=1e-12)
        for name, rule in {"hardnet": "rank", "exact": "rank", "hynet": "hynet"}.items():
            assert fpr95(distinct, labels, rule) == pytest.approx(float(file[f"fpr95/{name}_noties"]), abs=1e-12)  # type: ignore[arg-type]


def test_discovery_with_ties_is_the_old_rule_with_non_matches_listed_first() -> None:
    rng = np.random.default_rng(0)
    distances, is_match = rng.integers(0, 6, 80).astype(float), rng.random(80) < 0.5
    order = np.lexsort((is_match, distances))
    walked = int(np.flatnonzero(np.cumsum(is_match[order]) >= 0.95 * is_match.sum())[0]) + 1
    found = int(is_match[order][:walked].sum())
    expected = (walked - found) / walked
    # the walk stops inside a group of ties only among its matches, so the non-matches of the group are all counted
    assert fpr95(distances, is_match, "discovery") == pytest.approx(expected)


@st.composite
def pair_lists(draw: st.DrawFn) -> Pairs:
    """Lists with both kinds of pairs and many equal distances."""
    size = draw(st.integers(2, 120))
    distances = draw(arrays(np.float64, size, elements=st.integers(0, 30).map(lambda value: value / 8)))
    is_match = draw(arrays(np.bool_, size))
    is_match[0], is_match[1] = True, False
    return distances, is_match


@given(pair_lists())
def test_rank_rule_is_the_first_point_of_the_curve_with_recall_95(pairs: Pairs) -> None:
    distances, is_match = pairs
    fpr, tpr, _ = sk.roc_curve(is_match, -distances, drop_intermediate=False)
    assert fpr95(distances, is_match) == pytest.approx(fpr[tpr >= 0.95 - 1e-12][0])


@given(pair_lists(), st.sampled_from(FPR_RULES))
def test_fpr95_depends_only_on_the_order_of_the_distances(pairs: Pairs, rule: FprRule) -> None:
    distances, is_match = pairs
    value = fpr95(distances, is_match, rule)
    assert np.isnan(value) or 0 <= value <= 1
    shuffled = np.random.default_rng(0).permutation(len(distances))
    assert fpr95(distances[shuffled], is_match[shuffled], rule) == pytest.approx(value, nan_ok=True)
    assert fpr95(np.exp(distances) - 3, is_match, rule) == pytest.approx(value, nan_ok=True)
    assert fpr95(distances.astype(np.float32), is_match.astype(int), rule) == pytest.approx(value, nan_ok=True)


@given(pair_lists())
def test_the_rules_are_ordered(pairs: Pairs) -> None:
    distances, is_match = pairs
    rank = fpr95(distances, is_match)
    assert fpr95(distances, is_match, "optimistic") <= rank
    hynet = fpr95(distances, is_match, "hynet")
    assert np.isnan(hynet) == (is_match.sum() < 20)
    assert np.isnan(hynet) or hynet >= rank


@given(pair_lists())
def test_average_precision_and_curves_are_scikit_learns(pairs: Pairs) -> None:
    distances, is_match = pairs
    assert average_precision(distances, is_match) == pytest.approx(sk.average_precision_score(is_match, -distances))
    assert roc_auc(distances, is_match) == pytest.approx(sk.roc_auc_score(is_match, -distances))
    precision, recall, _ = sk.precision_recall_curve(is_match, -distances)
    ours = precision_recall_curve(distances, is_match)
    np.testing.assert_allclose(ours.x, recall[::-1])
    np.testing.assert_allclose(ours.y, precision[::-1])
    fpr, tpr, _ = sk.roc_curve(is_match, -distances, drop_intermediate=False)
    np.testing.assert_allclose([roc_curve(distances, is_match).x, roc_curve(distances, is_match).y], [fpr, tpr])


@pytest.mark.parametrize("rule", FPR_RULES)
@pytest.mark.parametrize("labels", [[], [True, True, True], [False, False]])
def test_without_both_kinds_of_pairs_there_is_no_score(labels: list[bool], rule: FprRule) -> None:
    distances = np.arange(float(len(labels)))
    assert np.isnan(fpr95(distances, labels, rule))
    assert np.isnan(average_precision(distances, labels))
    assert np.isnan(roc_auc(distances, labels))
    assert precision_recall_curve(distances, labels).x.size == roc_curve(distances, labels).x.size == 0


@pytest.mark.parametrize("score", [fpr95, average_precision, roc_auc, roc_curve, precision_recall_curve])
@pytest.mark.parametrize(
    ("distances", "labels", "words"),
    [
        ([0.1, np.nan, 0.3], [1, 0, 1], "1 of 3 distances are not finite, the first at position 1"),
        ([0.1, np.inf], [1, 0], "not finite"),
        ([0.1, 0.2], [1, 0, 1], "equal length"),
        ([[0.1, 0.2]], [[1, 0]], "equal length"),
    ],
)
def test_wrong_lists_are_named(score: object, distances: object, labels: object, words: str) -> None:
    with pytest.raises(KeypatchError, match=words):
        score(distances, labels)  # type: ignore[operator]


def test_an_unknown_rule_lists_the_rules() -> None:
    with pytest.raises(KeypatchError, match="rank, optimistic, hynet, discovery, interpolated"):
        fpr95([0.0, 1.0], [True, False], "sosnet")  # type: ignore[arg-type]


def test_a_thinned_curve_keeps_its_ends_and_its_area() -> None:
    rng = np.random.default_rng(1)
    is_match = rng.random(20000) < 0.5
    curve = roc_curve(rng.normal(np.where(is_match, 0.0, 2.0)), is_match)
    thin = curve.thinned()
    assert 400 <= len(thin.x) <= 500
    assert (thin.x[0], thin.y[0], thin.x[-1], thin.y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(thin.y, thin.x) == pytest.approx(np.trapezoid(curve.y, curve.x), abs=1e-4)
    assert len(curve.thinned(3).x) == 3
    short = Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert short.thinned() is short
