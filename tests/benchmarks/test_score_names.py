"""Names of scores as people write them, and which are printed."""

from typing import Any

import pytest

from keypatch.benchmarks.result import Result
from keypatch.benchmarks.score_names import score_title, split_score
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
        ("apple", "apple", "apple", ""),
    ],
)
def test_a_name_is_a_kind_with_a_title_and_what_it_is_of(name: str, kind: str, title: str, of: str) -> None:
    assert split_score(name) == (kind, of)
    assert score_title(name) == (title, of)


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
