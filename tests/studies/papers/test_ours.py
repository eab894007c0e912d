"""What stands in a page's cells: kept results, best moments, means of test sets."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keypatch.benchmarks import evaluate_ubc
from keypatch.describers import Describer
from keypatch.studies.papers.catalogue import PLANS
from keypatch.studies.papers.ours import Ours, TrainedSet, hash_below, kept_result, picture_of_run, score_table
from keypatch.studies.rows import Milestone, Trial
from keypatch.zoo import load


def trained(name: str, scores: dict[str, tuple[str, list[float]]]) -> Ours:
    """The first row of a plan trained on "train": of each test set a score at equal shares of the run."""
    plan = replace(PLANS[name], rows=PLANS[name].trained[:1])
    count = len(next(iter(scores.values()))[1])
    milestones = tuple(
        Milestone(
            (at + 1) / count, at + 1, 1.0, {test: {score: values[at]} for test, (score, values) in scores.items()}
        )
        for at in range(count)
    )
    tests: Any = tuple(SimpleNamespace(name=test) for test in scores)
    trial = Trial("row", 0, "", milestones)
    source: Any = None
    return Ours(plan, (TrainedSet("train", Path(), source, tests, {plan.rows[0].label: (trial,)}),))


def cells(ours: Ours) -> dict[str, str]:
    grid = score_table(ours)
    return dict(zip(grid.head, grid.rows[0], strict=True))


def test_the_best_moments_of_an_error_are_the_lowest() -> None:
    ours = trained("sdgmnet-fig-6c", {"one": ("fpr95.m50", [0.3, 0.1, 0.2]), "two": ("fpr95.m50", [0.5, 0.3, 0.2])})
    assert cells(ours)["ours, best moment"] == "20.00" and cells(ours)["ours, mean"] == "20.00"
    assert cells(ours)["ours, one: m50 FPR95 %"] == "20.00"


def test_the_best_moments_of_a_precision_are_the_highest() -> None:
    ours = trained("sdgmnet-fig-6c", {"strips": ("matching.map", [0.3, 0.5, 0.4])})
    assert cells(ours)["ours, best moment"] == "50.00"


def test_a_figure_of_means_over_test_sets_has_one_panel_of_them() -> None:
    ours = trained("hynet-fig-5c", {"one": ("fpr95.m50", [0.3, 0.1]), "two": ("fpr95.m50", [0.5, 0.3])})
    (panel,) = picture_of_run(ours)
    assert panel.lines[0].y == pytest.approx([40, 20]) and cells(ours)["ours, mean"] == "20.00"


def test_a_result_is_kept_for_the_same_weights_and_data_alone(small_set: Path, tmp_path: Path) -> None:
    calls, path = [], tmp_path / "results" / "sift.json"
    describer = load("sift")

    def make(describer: Describer, data_hash: str) -> float:
        def score() -> Any:
            calls.append(data_hash)
            return evaluate_ubc(describer, small_set)

        return kept_result(path, describer, data_hash, score).scores["rank1"]

    assert make(describer, "a") == make(describer, "a") and calls == ["a"]
    make(describer, "b")
    assert calls == ["a", "b"]

    class Weighted:
        name, dim, patch_size, weights_hash, patch_sigmas = "mine", describer.dim, describer.patch_size, "0", 24.0

        def describe(self, patches: Any) -> Any:
            return describer.describe(patches)

    make(Weighted(), "b")
    assert calls == ["a", "b", "b"]


def test_the_hash_of_a_folder_is_of_its_contents(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    np.save(tmp_path / "deep" / "a.npy", np.zeros(3))
    before = hash_below(tmp_path)
    np.save(tmp_path / "deep" / "a.npy", np.ones(3))
    assert hash_below(tmp_path) != before
