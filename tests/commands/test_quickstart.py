"""The quickstart, on a small set; on the embedded photographs it is slow."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from keypatch.benchmarks import load_result
from keypatch.commands import quickstart as study
from keypatch.errors import Interrupted
from keypatch.sampling import RandomPairs
from keypatch.training import loop as running


@pytest.fixture(scope="module")
def short(small_set: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "TRAIN", str(small_set))
        patch.setattr(study, "TEST", str(small_set))
        patch.setattr(running, "_LOG_SECONDS", 0.0)  # three steps are over before the first record is due
        patch.setattr(study, "RECIPE", replace(study.RECIPE, sampler=RandomPairs(pairs=32), pairs=96))
        yield


@pytest.fixture(scope="module")
def done(short: None, tmp_path_factory: pytest.TempPathFactory) -> study.Quickstart:
    return study.quickstart(tmp_path_factory.mktemp("runs") / "run")


def test_four_descriptors_are_scored_and_their_results_lie_in_the_run_folder(done: study.Quickstart) -> None:
    assert [result.descriptor for result in done.results] == ["sift", "rootsift", "untrained", "trained"]
    for result in done.results:
        assert load_result(done.folder / f"{result.descriptor}.json").scores == result.scores
    assert (done.folder / "recipe.toml").exists()


def test_it_ends_with_a_match_picture_and_a_page_of_everything(done: study.Quickstart) -> None:
    with Image.open(done.picture) as picture:
        assert picture.width > 2 * picture.height  # two photographs side by side
    page = done.page.read_text(encoding="utf-8")
    assert (done.picture.parent, done.page.parent) == (done.folder, done.folder)
    assert all(f">{name}</span>" in page for name in ("sift", "rootsift", "untrained", "trained"))
    assert 'alt="a photograph and a turned view of it, matched, trained"' in page
    assert ">Training</h2>" in page and ">Loss</figcaption>" in page


def test_a_second_call_uses_the_run_and_gives_the_same_scores(done: study.Quickstart) -> None:
    log = (done.folder / "log.jsonl").read_text()
    second = study.quickstart(done.folder)
    assert (done.folder / "log.jsonl").read_text() == log
    assert [result.scores for result in second.results] == [result.scores for result in done.results]


def test_a_stop_in_training_names_no_option_that_the_quickstart_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> Path:
        raise Interrupted("the run keeps a checkpoint", "run the same command with --resume to resume")

    monkeypatch.setattr(study, "train", stopped)
    with pytest.raises(Interrupted, match=r"has what was saved so far; run the same command to resume\.$"):
        study.quickstart(tmp_path / "run")


@pytest.mark.slow
def test_the_trained_network_halves_the_errors_of_rootsift(tmp_path: Path) -> None:
    done = study.quickstart(tmp_path / "run")
    scores = {result.descriptor: result.scores for result in done.results}
    hard = next(name for name in scores["sift"] if name.startswith("fpr95.hard"))
    assert scores["rootsift"][hard] >= 0.05
    assert scores["trained"][hard] <= scores["rootsift"][hard] / 2
    assert scores["trained"][hard] < scores["untrained"][hard]
