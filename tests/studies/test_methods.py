"""The study itself on tiny data: equal conditions, what is finished stays, faults and stops cost nothing else."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image

from keypatch.errors import DataError, Interrupted, KeypatchError, RecipeError
from keypatch.files import lock
from keypatch.images import Photo
from keypatch.patches import open_patches
from keypatch.patches.embedded import TEST_PHOTOS, photo_path
from keypatch.patches.phototour import find_pair_lists, write_phototour
from keypatch.patches.sources import find_sources
from keypatch.progress import Progress
from keypatch.recipes import HARDNET, HYNET, RECIPES
from keypatch.sampling import RandomTriplets
from keypatch.studies import study as engine
from keypatch.studies.methods import MethodsSetup, choose_recipes, study_methods
from keypatch.studies.scoring import TestData, open_tests
from keypatch.studies.table import Table
from keypatch.training.checkpoints import load_checkpoint, milestone_path
from keypatch.training.conditions import Conditions
from keypatch.training.recipe_files import read_recipe, write_recipe

THIN = ("network.width=4", "network.dim=16")
EXACT = Conditions("cpu", "float32", "off", threads=1)


class Told(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.counted: list[int] = []

    def note(self, message: str) -> None:
        self.said.append(message)

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        self.counted.append(done)


@pytest.fixture(scope="module")
def train_set(small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The points of the small set, which is scored on, seen the other way round."""
    patches = open_patches(small_set)
    folder = tmp_path_factory.mktemp("sets") / "turned"
    write_phototour(folder, np.ascontiguousarray(patches.patches[:, ::-1]), patches.point_id)
    return folder


@pytest.fixture
def study(small_set: Path, train_set: Path, tmp_path: Path) -> Callable[..., Table]:
    """study(...) -> its table, of two thin recipes of four steps unless told otherwise."""

    def call(data: Any = train_set, **changes: Any) -> Table:
        told = {field.name: changes.pop(field.name) for field in fields(MethodsSetup) if field.name in changes}
        how = {field.name: changes.pop(field.name) for field in fields(Conditions) if field.name in changes}
        setup = MethodsSetup(**{"pairs": 128, "batch": 32, "settings": THIN, **told})
        usual = {"out": tmp_path / "study", "recipes": ["hardnet", "sosnet"], "tests": [small_set]}
        return study_methods(data, setup, conditions=replace(EXACT, **how), **{**usual, **changes})

    return call


def row_file(tmp_path: Path, name: str) -> Path:
    return tmp_path / "study" / "rows" / f"{name}.json"


def test_every_recipe_and_seed_becomes_a_row_under_equal_conditions(
    study: Callable[..., Table], tmp_path: Path, small_set: Path
) -> None:
    table = study(seeds=[0, 3])
    assert {(line.label, tuple(row.seed for row in line.rows)) for line in table.lines} == {
        ("hardnet", (0, 3)),
        ("sosnet", (0, 3)),
    }
    recipes = [read_recipe(path) for path in (tmp_path / "study" / "runs").glob("*/recipe.toml")]
    assert {(recipe.sampler.pairs, recipe.pairs) for recipe in recipes} == {(32, 128)}
    row = json.loads(row_file(tmp_path, "hardnet-3").read_text())
    assert [milestone["pairs"] for milestone in row["milestones"]] == [32, 64, 96, 128]
    seconds = [milestone["seconds"] for milestone in row["milestones"]]
    assert seconds == sorted(seconds)
    scores = row["milestones"][-1]["scores"]["small"]
    assert {"fpr95.m50_160_160_0", "ap.m50_160_160_0", "rank1", "spread.m1", "spread.dm2"} <= set(scores)
    assert row["run"] == {"device": "cpu", "precision": "float32", "threads": 1}
    assert row["provenance"]["machine"]
    for name in ("table.md", "table.json", "study.json"):
        assert (tmp_path / "study" / name).exists()


def test_the_score_of_a_milestone_is_that_of_its_weights(
    study: Callable[..., Table], tmp_path: Path, small_set: Path
) -> None:
    from keypatch.benchmarks.evaluation import evaluate

    study(recipes=["hardnet"])
    row = json.loads(row_file(tmp_path, "hardnet-0").read_text())
    weights = milestone_path(tmp_path / "study" / "runs" / "hardnet-0", 0.5)
    assert load_checkpoint(weights).step == 2
    assert evaluate(weights, "ubc", small_set).scores == row["milestones"][1]["scores"]["small"]


def test_each_test_set_is_described_once_per_milestone(
    study: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Path] = []
    original = engine.load

    def counted(path: Path, *rest: str) -> Any:
        found.append(path)
        return original(path, *rest)

    monkeypatch.setattr(engine, "load", counted)
    study(recipes=["hardnet"])
    assert [path.stem for path in found] == ["at-025", "at-050", "at-075", "at-100"]
    study(recipes=["hardnet"])  # finished: nothing is described again
    assert len(found) == 4


def test_what_is_finished_is_left_alone_and_new_rows_join_the_table(
    study: Callable[..., Table], tmp_path: Path
) -> None:
    study(recipes=["hardnet"])
    before = row_file(tmp_path, "hardnet-0").read_bytes()
    shutil.rmtree(tmp_path / "study" / "runs" / "hardnet-0")
    table = study()
    assert row_file(tmp_path, "hardnet-0").read_bytes() == before
    assert not (tmp_path / "study" / "runs" / "hardnet-0").exists()
    assert {line.label for line in table.lines} == {"hardnet", "sosnet"}


def test_a_new_test_set_is_scored_from_the_kept_weights_without_training(
    study: Callable[..., Table], tmp_path: Path, small_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(recipes=["hardnet"])
    other = shutil.copytree(small_set, tmp_path / "other")
    log = tmp_path / "study" / "runs" / "hardnet-0" / "log.jsonl"
    trained = log.read_text()
    before = json.loads(row_file(tmp_path, "hardnet-0").read_text())
    monkeypatch.setattr(engine, "train", None)  # not called
    table = study(recipes=["hardnet"], tests=[small_set, other], threads=1)
    assert table.unfinished == ()
    assert log.read_text() == trained
    assert {column.test for column in table.columns} == {"small", "other"}
    after = json.loads(row_file(tmp_path, "hardnet-0").read_text())
    assert (after["run"], after["provenance"]) == (before["run"], before["provenance"])


def test_a_row_that_is_trained_again_has_scores_of_one_run(
    study: Callable[..., Table], tmp_path: Path, small_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the second run ended without a score, and the next call finds it at its end."""
    study(recipes=["hardnet"])
    before = json.loads(row_file(tmp_path, "hardnet-0").read_text())
    before["provenance"]["date"] = "2026-01-01T00:00:00+00:00"  # dates are to the second, and training may be faster
    row_file(tmp_path, "hardnet-0").write_text(json.dumps(before))
    shutil.rmtree(tmp_path / "study" / "runs" / "hardnet-0")
    other = shutil.copytree(small_set, tmp_path / "other")
    with monkeypatch.context() as context:
        _unscorable(context, "other")
        study(recipes=["hardnet"], tests=[other])
    assert json.loads(row_file(tmp_path, "hardnet-0").read_text())["milestones"] == before["milestones"]
    told = Told()
    study(recipes=["hardnet"], tests=[other], progress=told)
    assert "hardnet-0 was trained again: its scores of the earlier run are dropped." in told.said
    row = json.loads(row_file(tmp_path, "hardnet-0").read_text())
    card = json.loads((tmp_path / "study" / "runs" / "hardnet-0" / "card.json").read_text())
    assert row["provenance"] == card["provenance"] != before["provenance"]
    assert [list(each["scores"]) for each in row["milestones"]] == 4 * [["other"]]
    assert list(row["tests"]) == ["other"]


def test_a_fault_at_a_new_test_set_costs_none_of_the_older_scores(
    study: Callable[..., Table], tmp_path: Path, small_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _scores(study(recipes=["hardnet"]))
    other = shutil.copytree(small_set, tmp_path / "other")
    with monkeypatch.context() as context:
        _unscorable(context, "other")
        table = study(recipes=["hardnet"], tests=[small_set, other])
        assert [(row.name, row.failed) for row in table.unfinished] == [("hardnet-0", "other is damaged.")]
        assert _scores(table) == whole
        assert "hardnet-0 | failed: other is damaged." in (tmp_path / "study" / "table.md").read_text()
        assert study(recipes=["hardnet"]).unfinished == ()  # finished for what is asked
    assert json.loads(row_file(tmp_path, "hardnet-0").read_text())["failed"] == ""


def _unscorable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    original = TestData.score

    def score(test: TestData, describer: Any) -> Any:
        if test.name == name:
            raise DataError(f"{name} is damaged.")
        return original(test, describer)

    monkeypatch.setattr(TestData, "score", score)


def test_a_run_at_its_end_whose_scoring_failed_is_not_trained_again(
    study: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        _unscorable(context, "small")
        with pytest.raises(KeypatchError, match="small is damaged"):
            study(recipes=["hardnet"])
    monkeypatch.setattr(engine, "train", None)
    assert study(recipes=["hardnet"]).unfinished == ()
    row = json.loads(row_file(tmp_path, "hardnet-0").read_text())
    card = json.loads((tmp_path / "study" / "runs" / "hardnet-0" / "card.json").read_text())
    assert row["run"] == {"device": "cpu", "precision": "float32", "threads": 1}
    assert row["provenance"] == card["provenance"]


def test_other_data_under_the_name_of_a_test_set_are_refused(
    study: Callable[..., Table], small_set: Path, tmp_path: Path
) -> None:
    study(recipes=["hardnet"])
    other = shutil.copytree(small_set, tmp_path / "elsewhere" / "small")
    study(recipes=["hardnet"], tests=[other])  # a copy is the same set, wherever it lies
    lines = (other / "m50_160_160_0.txt").read_text().splitlines(keepends=True)
    (other / "m50_160_160_0.txt").write_text("".join(lines[1:]))
    for recipe in ("hardnet", "sosnet"):
        with pytest.raises(KeypatchError, match='"small" is not the one that hardnet-0 was scored on'):
            study(recipes=[recipe], tests=[other])


def test_the_hash_of_test_data_is_that_of_their_results(small_set: Path, tmp_path: Path) -> None:
    from keypatch.zoo import load

    for test in open_tests([small_set], _strips(tmp_path), []):
        assert test.data_hash == test.score(load("rootsift")).provenance.hashes["data"]


def test_a_field_that_a_row_does_not_know_yet_does_not_part_it_from_its_recipe(
    study: Callable[..., Table], tmp_path: Path
) -> None:
    study(recipes=["hardnet"])
    file = row_file(tmp_path, "hardnet-0")
    value = json.loads(file.read_text())
    assert "average = 0.0\n" in value["recipe_toml"]
    value["recipe_toml"] = value["recipe_toml"].replace("average = 0.0\n", "")
    file.write_text(json.dumps({**value, "recipe_hash": "of another text"}))
    assert study(recipes=["hardnet"]).lines[0].dim == 16


def test_a_study_of_before_labels_is_resumed_as_it_is(
    study: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """study.json of format 1, rows of format 2: nothing is trained again, and other conditions are refused."""
    scores = _scores(study(recipes=["hardnet"]))
    for file, number in ((tmp_path / "study" / "study.json", 1), (row_file(tmp_path, "hardnet-0"), 2)):
        value = {**json.loads(file.read_text()), "format_number": number}
        if "label" in value:
            value["recipe"] = value.pop("label")
            del value["varied"]
        file.write_text(json.dumps(value))
    monkeypatch.setattr(engine, "train", None)
    assert _scores(study(recipes=["hardnet"])) == scores
    with pytest.raises(KeypatchError, match="pairs = 128, not 256"):
        study(recipes=["hardnet"], pairs=256)


def test_a_run_folder_of_another_recipe_is_not_scored_as_this_one(study: Callable[..., Table], tmp_path: Path) -> None:
    study(recipes=["hardnet"])
    row_file(tmp_path, "hardnet-0").unlink()  # and its run folder is left behind
    with pytest.raises(KeypatchError, match="was started with another recipe"):
        study(recipes=[replace(HARDNET, average=0.5)])


def test_without_names_all_recipes_for_patches_that_start_from_nothing_are_chosen() -> None:
    chosen = {recipe.name for recipe in choose_recipes((), MethodsSetup(20000))}
    images = {"embedding_lifted", "embedding_lifted_gor", "embedding_images", "embedding_images_gor"}
    assert set(RECIPES) - chosen == {"adapt", "sdgmnet_finetune", *images}


def test_all_recipes_of_papers_are_chosen_as_published() -> None:
    chosen = choose_recipes([], MethodsSetup(pairs=1024, batch=64, published=True))
    assert {recipe.form for recipe in chosen} == {"as published"} and "small" not in {each.name for each in chosen}
    assert {"adasample", "hynet", "gor_triplet", "sdgm_raw", "scale_aware"} <= {recipe.name for recipe in chosen}


def test_a_sampler_of_another_type_gets_the_batch_of_the_study() -> None:
    chosen = choose_recipes(["hardnet"], MethodsSetup(128, 32, settings=("sampler=RandomTriplets",)))
    assert chosen[0].sampler == RandomTriplets(pairs=32)


def test_only_the_embedded_data_have_a_test_set_of_their_own(study: Callable[..., Table]) -> None:
    assert [test.name for test in open_tests((), None, [open_patches("embedded")])] == ["embedded-test"]
    with pytest.raises(KeypatchError, match="with --test or --hpatches"):
        study(tests=[])


def _failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    original = engine.train

    def train(recipe: Any, *rest: Any, **named: Any) -> Path:
        if recipe.name == "hardnet":
            raise error
        return original(recipe, *rest, **named)

    monkeypatch.setattr(engine, "train", train)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeypatchError("The loss is not finite at step 2."), "The loss is not finite at step 2."),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
    ],
)
def test_a_recipe_that_fails_is_a_row_that_says_so_and_the_others_go_on(
    study: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    with monkeypatch.context() as context:
        _failing(context, error)
        table = study()
    assert [line.label for line in table.lines] == ["sosnet"]
    assert [(row.name, row.failed) for row in table.unfinished] == [("hardnet-0", sentence)]
    assert sentence in (tmp_path / "study" / "table.md").read_text()
    healed = study()  # tried again
    assert {line.label for line in healed.lines} == {"hardnet", "sosnet"}
    assert healed.unfinished == ()


def test_a_loss_that_is_not_finite_fails_its_row_only(study: Callable[..., Table]) -> None:
    wild = replace(HARDNET, name="wild", optimizer=replace(HARDNET.optimizer, lr=1e30))
    table = study(recipes=[wild, "sosnet"])
    assert [line.label for line in table.lines] == ["sosnet"]
    assert "not finite" in table.unfinished[0].failed


def test_where_every_recipe_fails_the_study_says_why(
    study: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    _failing(monkeypatch, KeypatchError("The disk is full."))
    with pytest.raises(KeypatchError, match=r"Every recipe failed; hardnet-0 said: The disk is full\."):
        study(recipes=["hardnet"])


def test_a_row_that_another_process_is_at_is_passed_over(study: Callable[..., Table], tmp_path: Path) -> None:
    study(recipes=["sosnet"])
    told = Told()
    with lock(tmp_path / "study" / "rows" / ".hardnet-0.lock", "it"):
        table = study(progress=told)
    assert "hardnet-0 is being written by another process. Continuing with the next row." in told.said
    assert [line.label for line in table.lines] == ["sosnet"]
    assert [row.name for row in table.unfinished] == ["hardnet-0"]


def test_a_row_that_cannot_be_locked_stops_the_study(
    study: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no other process: the row could never be written."""
    study(recipes=["sosnet"])
    original = FileLock.acquire

    def refuse(self: FileLock) -> Any:
        if self.lock_file.endswith(".hardnet-0.lock"):
            raise OSError(errno.ENOLCK, "No locks available")
        return original(self)

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with pytest.raises(KeypatchError, match="cannot be locked: no locks available"):
        study()


def test_a_dry_study_trains_nothing_and_names_what_is_missing(study: Callable[..., Table], tmp_path: Path) -> None:
    table = study(dry=True)
    assert not (tmp_path / "study").exists()
    assert [row.name for row in table.unfinished] == ["hardnet-0", "sosnet-0"]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"batch": 16}, "batch = 32, not 16"),
        ({"settings": (*THIN, "optimizer.lr=0.5")}, "holds a study with settings"),
        ({"threads": 2}, "threads = 1, not 2"),
        ({"recipes": [replace(HARDNET, seed=0, average=0.5)]}, "another recipe of the same name"),
    ],
)
def test_other_conditions_are_refused_in_the_same_folder(
    study: Callable[..., Table], changes: dict[str, Any], part: str
) -> None:
    study(recipes=["hardnet"])
    with pytest.raises(KeypatchError, match=part):
        study(**{"recipes": ["hardnet"], **changes})


@pytest.mark.parametrize(
    ("changes", "kind", "part"),
    [
        ({"recipes": ["hynett"]}, RecipeError, 'Did you mean "hynet"'),
        ({"settings": ["loss.marginn=1"]}, RecipeError, "hardnet: --set loss.marginn=1"),
        ({"recipes": ["hardnet", HARDNET]}, RecipeError, 'Two rows would be named "hardnet-0".*rename one'),
        ({"recipes": [replace(HYNET, name="a/b")]}, RecipeError, "Rename the recipe"),
        ({"device": "tpu"}, KeypatchError, "tpu"),
        ({"precision": "int3"}, KeypatchError, "int3"),
        ({"settings": ["pairs=3"]}, RecipeError, "Use --pairs"),
        ({"settings": ["seed = 3"]}, RecipeError, "Use --seed"),
        ({"settings": ["sampler.pairs=3"]}, RecipeError, "Use --batch"),
        ({"seeds": [0, -1]}, KeypatchError, "--seed 0 -1"),
        ({"seeds": []}, KeypatchError, "--seed"),
        ({"threads": 0}, KeypatchError, "threads is 0"),
        ({"batch": 81}, DataError, "81"),
        ({"batch": 512}, RecipeError, "budget"),
        ({"tests": ["nowhere"]}, DataError, "nowhere"),
        ({"hpatches": "nowhere"}, DataError, "nowhere"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(
    study: Callable[..., Table], tmp_path: Path, changes: dict[str, Any], kind: type[KeypatchError], part: str
) -> None:
    with pytest.raises(kind, match=part):
        study(**changes)
    assert not (tmp_path / "study").exists()


def test_a_test_set_without_pairs_and_two_of_one_name_are_refused(
    study: Callable[..., Table], small_set: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    for file in small_set.iterdir():
        if not file.name.startswith("m50"):
            (tmp_path / "bare" / file.name).symlink_to(file)
    with pytest.raises(DataError, match="no pair list"):
        study(tests=[tmp_path / "bare"])
    with pytest.raises(KeypatchError, match='Two test sets are called "small"'):
        study(tests=[small_set, small_set])


def test_data_to_train_on_are_not_scored_on(
    study: Callable[..., Table], small_set: Path, train_set: Path, tmp_path: Path
) -> None:
    copy, link = shutil.copytree(small_set, tmp_path / "copy"), tmp_path / "link"
    link.symlink_to(small_set, target_is_directory=True)
    strips = _strips(tmp_path)
    for data, tests in (
        (small_set, {}),
        (copy, {}),
        ([train_set, link], {}),
        (open_patches(small_set), {}),
        (strips, {"tests": [], "hpatches": strips}),
    ):
        with pytest.raises(KeypatchError, match=r'"(small|strips)" would be both trained and scored on\..*--test'):
            study(data, batch=4, **tests)
    assert not (tmp_path / "study").exists()


def test_a_recipe_of_a_file_that_kept_its_name_is_to_be_renamed(study: Callable[..., Table], tmp_path: Path) -> None:
    write_recipe(tmp_path / "mine.toml", replace(HARDNET, average=0.5))
    with pytest.raises(RecipeError, match=r"if two recipes have the same name, rename one of them: name = "):
        study(recipes=["hardnet", tmp_path / "mine.toml"])


def _strips(tmp_path: Path) -> Path:
    folder = tmp_path / "strips"
    column = np.random.default_rng(0).integers(0, 256, (10 * 65, 65), dtype=np.uint8)
    (folder / "v_view").mkdir(parents=True)
    for strip in ("ref", *(f"{level}{k}" for level in "eht" for k in range(1, 6))):
        Image.fromarray(column).save(folder / "v_view" / f"{strip}.png")
    return folder


def test_strips_are_scored_by_level(study: Callable[..., Table], tmp_path: Path) -> None:
    table = study(recipes=["hardnet"], tests=[], hpatches=_strips(tmp_path))
    assert {column.score for column in table.columns} >= {"rank1.e", "rank1.h", "rank1.t"}
    assert {column.test for column in table.columns} == {"strips"}


class StopAt(Progress):
    """Asks the process to stop, as Ctrl-C does, at the first record of a training or at a word said."""

    def __init__(self, word: str) -> None:
        self.word = word

    def note(self, message: str) -> None:
        if message.startswith(self.word):
            signal.raise_signal(signal.SIGINT)

    def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
        if done and self.word == "record":
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c_heard() -> Iterator[None]:
    """A shell that starts the tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_heard")
@pytest.mark.parametrize("word", ["record", "Scoring hardnet-0 at 75%"])
def test_ctrl_c_in_training_or_scoring_leaves_a_study_that_resumes_to_the_same_scores(
    study: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)
    with pytest.raises(
        Interrupted, match="has everything finished so far, up to hardnet-0; run the same command to resume"
    ):
        study(recipes=["hardnet"], progress=StopAt(word))
    stopped = study(recipes=["hardnet"])
    whole = study(recipes=["hardnet"], out=tmp_path / "whole")
    assert _scores(stopped) == _scores(whole)


DIES_AT_HALF = """
import os, signal, sys
import keypatch as kp
from keypatch.training import loop

def die_at_half(done, total, unit):
    if done == 32 * 20:
        os.kill(os.getpid(), signal.SIGKILL)

loop._LOG_SECONDS = 0.0  # every step is told
data, test, out, *thin = sys.argv[1:]
setup = kp.MethodsSetup(pairs=32 * 40, batch=32, settings=tuple(thin))
conditions = kp.Conditions("cpu", "float32", "off", threads=1, checkpoint_seconds=0)
kp.study_methods(data, setup, out, conditions, recipes=["hardnet"], tests=[test], progress=die_at_half)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_killed_process_is_resumed(
    study: Callable[..., Table], tmp_path: Path, small_set: Path, train_set: Path
) -> None:
    command = [sys.executable, "-c", DIES_AT_HALF, train_set, small_set, tmp_path / "study", *THIN]
    killed = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not row_file(tmp_path, "hardnet-0").exists()
    told = Told()
    resumed = study(recipes=["hardnet"], pairs=32 * 40, progress=told)
    assert told.counted[0] == 32 * 19, "the checkpoint before the step at which it was killed"
    whole = study(recipes=["hardnet"], pairs=32 * 40, out=tmp_path / "whole")
    assert _scores(resumed) == _scores(whole)


def _scores(table: Table) -> list[Any]:
    return [milestone.scores for line in table.lines for row in line.rows for milestone in row.milestones]


def test_a_test_set_of_trained_images_is_marked_in_the_table(
    study: Callable[..., Table], small_set: Path, tmp_path: Path
) -> None:
    """Other patches of the same photo are scored, which the study does not refuse, but marks; the clean set is not."""
    patches = open_patches(small_set)
    photo = find_sources([Photo("camera.png", photo_path(TEST_PHOTOS[0]))])[0].to_json()
    other = find_sources([Photo("cat.png", photo_path(TEST_PHOTOS[1]))])[0].to_json()
    lists = find_pair_lists(patches)
    for name, source, turned in (("train", photo, -1), ("seen", photo, 1), ("unseen", other, 1)):
        pixels = np.ascontiguousarray(patches.patches[:, ::turned])
        card = {"sources": [source]}
        write_phototour(tmp_path / name, pixels, patches.point_id, pairs=lists if turned > 0 else (), card=card)
    table = study(tmp_path / "train", recipes=["hardnet"], tests=[tmp_path / "seen", tmp_path / "unseen"])
    sentence = "Trained on the test data (camera.png): not a score on unseen images."
    assert table.seen == {"seen": sentence}
    page = (tmp_path / "study" / "table.md").read_text(encoding="utf-8")
    assert f"\N{DAGGER} seen: {sentence}" in page and "seen m50 FPR95 % \N{DAGGER}" in page
    assert "| unseen m50 FPR95 % |" in page
    assert json.loads((tmp_path / "study" / "table.json").read_text())["seen"] == table.seen
