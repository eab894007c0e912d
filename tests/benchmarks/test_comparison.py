"""Two descriptors on the same data: paired draws, what is said of them, and what cannot be compared."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.benchmarks import Difference, Replicates, Result, compare, paired_difference
from keypatch.errors import KeypatchError
from keypatch.metrics import bootstrap_mean
from keypatch.provenance import provenance

QUESTIONS = 400


def result_of(
    name: str, right: NDArray[np.bool_], score: str = "rank1", data: str = "12ab", **settings: object
) -> Result:
    """A result whose score is the share of questions answered rightly."""
    return Result(
        benchmark="ubc",
        descriptor=name,
        settings={"data": "liberty", **settings},
        scores={score: float(right.mean())},
        curves={},
        provenance=provenance(data=data),
        replicates={score: Replicates(bootstrap_mean(right), "points", len(right))},
    )


@pytest.fixture
def answers() -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two describers that fail on nearly the same questions: 70 % and 68 % right."""
    better = np.arange(QUESTIONS) % 10 < 7
    worse = better.copy()
    worse[np.flatnonzero(better)[:8]] = False
    return better, worse


def test_a_paired_interval_is_narrower_than_that_of_two_results_on_their_own(
    answers: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> None:
    better, worse = (result_of(name, right) for name, right in zip(("a", "b"), answers, strict=True))
    paired = paired_difference(better, worse, "rank1")
    assert paired.value == pytest.approx(0.02)
    assert paired.low < 0.02 < paired.high and paired.shown
    apart = bootstrap_mean(answers[0], seed=0) - bootstrap_mean(answers[1], seed=1)
    unpaired = np.quantile(apart, [0.025, 0.975])
    assert paired.high - paired.low < (unpaired[1] - unpaired[0]) / 3
    assert unpaired[0] < 0 < unpaired[1]  # unpaired, the same answers would show nothing


def test_the_better_one_is_named_whichever_way_the_score_runs(
    answers: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> None:
    for score, best in {"rank1": "high", "fpr95.list": "low"}.items():
        high, low = result_of("high", answers[0], score), result_of("low", answers[1], score)
        for one, two in ((high, low), (low, high)):
            worst = {"high": "low", "low": "high"}[best]
            sentence = paired_difference(one, two, score).sentence()
            assert sentence.startswith(f"{best} is better than {worst}: {score} of {one.descriptor} minus that of ")
            assert " percentage points (95 % interval " in sentence


def test_a_difference_whose_interval_holds_zero_is_not_shown() -> None:
    rng = np.random.default_rng(0)
    one, two = (result_of(name, rng.random(QUESTIONS) < 0.7) for name in ("a", "b"))
    difference = paired_difference(one, two, "rank1")
    assert difference.low < 0 < difference.high and not difference.shown
    assert difference.sentence().startswith("No difference shown: rank1 of a minus that of b is ")
    assert paired_difference(one, one, "rank1") == Difference(0.0, 0.0, 0.0, "rank1", "a", "a")
    assert not paired_difference(one, one, "rank1").shown


def test_other_numbers_are_not_called_percentage_points() -> None:
    assert Difference(12.0, 8.0, 16.0, "count.matches", "a", "b").sentence() == (
        "a and b differ: count.matches of a minus that of b is 12.0 (95 % interval 8.0 to 16.0)."
    )


A = result_of("a", np.arange(QUESTIONS) % 2 == 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"benchmark": "hpatches"}, "one is from ubc, the other from hpatches"),
        ({"provenance": provenance(data="ffff")}, "not from the same data .*hash 12ab and liberty, hash ffff"),
        ({"provenance": provenance()}, "not from the same data"),
        ({"replicates": {}}, "b has no interval for rank1; evaluate it again"),
        ({"scores": {}}, "b has no interval for rank1"),
        ({"replicates": {"rank1": Replicates(np.ones(1000), "points", 399)}}, "1000 draws of 399 points"),
        ({"replicates": {"rank1": Replicates(np.ones(1000), "pairs", 400)}}, "1000 draws of 400 pairs"),
        ({"replicates": {"rank1": Replicates(np.ones(10), "points", 400)}}, "10 draws of 400 points"),
    ],
)
def test_what_is_not_the_same_cannot_be_compared(change: dict[str, Any], words: str) -> None:
    other = replace(A, descriptor="b", **change)
    with pytest.raises(KeypatchError, match=f"The results of a and b cannot be compared: .*{words}"):
        paired_difference(A, other, "rank1")


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ({"rule": "rank"}, {"rule": "discovery"}, 'rule is "rank" in one and "discovery" in the other'),
        ({"features": {"keypoints": 2048}}, {"features": {"keypoints": 8000}}, "features.keypoints is 2048 .* 8000 in"),
        ({}, {"seeds": [0, 1]}, r"seeds is null in one and \[0, 1\] in the other"),
    ],
)
def test_other_settings_cannot_be_compared(ours: dict[str, Any], theirs: dict[str, Any], words: str) -> None:
    right = np.arange(QUESTIONS) % 2 == 0
    with pytest.raises(KeypatchError, match=f"The results of a and b cannot be compared: {words}"):
        paired_difference(result_of("a", right, **ours), result_of("b", right, **theirs), "rank1")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"card": {"date": "2026-01-02"}}, {"card": {"date": "2026-01-03"}}),
        ({"features": {"patch_sigmas": 12.0, "keypoints": 9}}, {"features": {"patch_sigmas": 24.0, "keypoints": 9}}),
        ({"data": "liberty"}, {"data": "liberty copied"}),
        ({"seeds": (0, 1)}, {"seeds": [0, 1]}),
    ],
)
def test_what_is_told_of_the_data_and_of_the_descriptor_parts_nothing(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    right = np.arange(QUESTIONS) % 2 == 0
    one, two = (replace(result_of(name, right), settings=each) for name, each in (("a", ours), ("b", theirs)))
    assert paired_difference(one, two, "rank1").value == 0


def test_a_single_unit_cannot_tell() -> None:
    one = replace(A, replicates={"rank1": Replicates(np.ones(1000), "points", 1)})
    with pytest.raises(KeypatchError, match="1 points are too few for an interval on the difference in rank1"):
        paired_difference(one, one, "rank1")


def test_results_are_compared_by_their_headline_scores_or_by_those_asked_for() -> None:
    rng = np.random.default_rng(0)
    one, two = (result_of(name, rng.random(QUESTIONS) < share) for name, share in (("a", 0.9), ("b", 0.5)))
    comparison = compare(one, two)
    assert list(comparison.differences) == ["rank1"] and comparison["rank1"] == paired_difference(one, two, "rank1")
    assert repr(comparison) == comparison["rank1"].sentence()
    assert comparison["rank1"].better == "a" and compare(two, one, "rank1")["rank1"].better == "a"
    page = comparison._repr_html_()
    assert page.startswith("<table>") and "<td>rank-1 %</td>" in page and f"<td>{one.number('rank1')}</td>" in page
    with pytest.raises(KeypatchError, match="no headline score with intervals in common"):
        compare(one, replace(two, replicates={}))


def test_notes_on_the_descriptor_part_nothing() -> None:
    other = replace(A, descriptor="b", notes={"trained_on": "liberty", "step": 4})
    assert paired_difference(A, other, "rank1").value == 0
