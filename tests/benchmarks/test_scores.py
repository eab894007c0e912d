"""Names of scores as people write them, and which are printed."""

from typing import Any

import pytest

from keypatch.benchmarks.result import Result
from keypatch.benchmarks.scores import SCORES, find_score
from keypatch.benchmarks.table import BENCHMARKS, detail_scores
from keypatch.provenance import provenance


@pytest.mark.parametrize(
    ("name", "kind", "title", "of"),
    [
        ("fpr95.m50_100", "fpr95", "FPR95", "m50_100"),
        ("rank1", "rank1", "rank-1", ""),
        ("rank1.e.v_boat", "rank1.e", "rank-1 easy", "v_boat"),
        ("matching.map.i", "matching.map", "matching mAP", "i"),
        ("mma10.boat", "mma10", "MMA 10 px", "boat"),
        ("maa5", "maa5", "mAA 5\N{DEGREE SIGN}", ""),
        ("count.inlier_pairs", "count.inlier_pairs", "inlier pairs", ""),
        ("count.matches.boat", "count.matches", "matches", "boat"),
        ("track_length.bag5", "track_length", "track length", "bag5"),
        ("error.rotation.largest", "error.rotation", "rotation error", "largest"),
        ("lowest", "lowest", "lowest", ""),
        ("apple", "apple", "apple", ""),
    ],
)
def test_a_name_is_a_kind_with_a_title_and_what_it_is_of(name: str, kind: str, title: str, of: str) -> None:
    score = find_score(name)
    assert (score.kind, score.title, score.of) == (kind, title, of)


def test_a_share_of_failed_pairs_is_better_when_lower() -> None:
    assert find_score("failed").better == "lower" and find_score("failed.sacre_coeur").better == "lower"
    assert find_score("fpr95.liberty").better == "lower" and find_score("error.rotation").better == "lower"
    assert find_score("ap.liberty").better == "higher" and find_score("recall@1").better == "higher"


@pytest.mark.parametrize(
    "name", ["count.matches", "spread.dm2", "nmi.sd", "accuracy3.lowest", "auc5.highest", "own.sd"]
)
def test_counts_moments_and_spreads_over_seeds_are_neither_better_nor_worse(name: str) -> None:
    assert find_score(name).better == "neither"


def test_the_name_of_the_data_may_stand_before_a_kind() -> None:
    score = find_score("castle-test.spread.m1")
    assert (score.kind, score.of, score.text(0.25)) == ("spread.m1", "castle-test", "0.2500")
    assert find_score("castle-test.fpr95.hard_60").of == "castle-test.hard_60"


def test_every_kind_has_a_title_and_is_found_by_its_name() -> None:
    for kind, score in SCORES.items():
        assert score.title and find_score(kind).kind == kind and find_score(f"{kind}.part").of == "part"


def result_of(benchmark: str, *names: str) -> Result:
    scores: dict[str, Any] = dict.fromkeys(names, 0.5)
    return Result(benchmark, "sift", {}, scores, {}, provenance())


def test_details_are_the_kinds_that_the_benchmark_names_with_their_headline_scores() -> None:
    names = ("mma1", "mma2", "mma3", "accuracy3", "mma1.boat", "mma2.boat", "mma3.boat", "count.keypoints")
    assert detail_scores(result_of("homography", *names)) == ["mma1", "mma1.boat", "mma3", "mma3.boat"]


@pytest.mark.parametrize("benchmark", ["ubc", "of others"])
def test_details_are_everything_else_where_no_kind_is_named(benchmark: str) -> None:
    found = detail_scores(result_of(benchmark, "rank1", "ap.list", "revisited_map"))
    assert found == (["ap.list", "revisited_map"] if benchmark == "ubc" else [])  # of others all is headline


def test_details_fit_beside_each_other() -> None:
    assert all(len(benchmark.details) <= 8 for benchmark in BENCHMARKS.values())
