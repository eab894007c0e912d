"""The quickstart, on a small set; on the embedded photographs it is slow."""

from pathlib import Path

import pytest

from keypatch.benchmarks import Result
from keypatch.studies import quickstart as study


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, small_set: Path) -> None:
    from dataclasses import replace

    from keypatch.sampling import RandomPairs

    monkeypatch.setattr(study, "TRAIN", str(small_set))
    monkeypatch.setattr(study, "TEST", str(small_set))
    monkeypatch.setattr(study, "RECIPE", replace(study.RECIPE, sampler=RandomPairs(pairs=32), pairs=96))


@pytest.mark.usefixtures("short")
def test_four_descriptors_are_scored_and_their_results_lie_in_the_run_folder(tmp_path: Path) -> None:
    done = study.quickstart(tmp_path / "run")
    assert [result.descriptor for result in done.results] == ["sift", "rootsift", "untrained", "trained"]
    for result in done.results:
        assert Result.load(done.folder / f"{result.descriptor}.json").scores == result.scores
    assert (done.folder / "recipe.toml").exists()


@pytest.mark.usefixtures("short")
def test_a_second_call_uses_the_run_and_gives_the_same_scores(tmp_path: Path) -> None:
    first = study.quickstart(tmp_path / "run")
    log = (tmp_path / "run" / "log.jsonl").read_text()
    second = study.quickstart(tmp_path / "run")
    assert (tmp_path / "run" / "log.jsonl").read_text() == log
    assert [result.scores for result in second.results] == [result.scores for result in first.results]


@pytest.mark.slow
def test_the_trained_network_halves_the_errors_of_rootsift(tmp_path: Path) -> None:
    done = study.quickstart(tmp_path / "run")
    scores = {result.descriptor: result.scores for result in done.results}
    hard = next(name for name in scores["sift"] if name.startswith("fpr95.hard"))
    assert scores["rootsift"][hard] >= 0.05
    assert scores["trained"][hard] <= scores["rootsift"][hard] / 2
    assert scores["trained"][hard] < scores["untrained"][hard]
