"""Runs: resumed ones end bit for bit where the whole one ends, and nothing written is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.losses import Described, SpreadOut
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.sampling import Augmentation
from keypatch.training import SGD, Recipe
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint, load_run_weights, save_checkpoint
from keypatch.training.loop import Conditions, run_training

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=0.0)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    checkpoint = load_checkpoint(find_checkpoints(folder)[-1])
    return {**checkpoint.network, **{f"average.{name}": tensor for name, tensor in checkpoint.average.items()}}


def assert_identical(a: Path, b: Path) -> None:
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


class StopAfter(Progress):
    """Asks the process to stop, as Ctrl-C does, once `step` is reached."""

    def __init__(self, step: int) -> None:
        self.step = step

    def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
        self.steps = getattr(self, "steps", -1) + 1  # the first call is before the first step
        if self.steps == self.step:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def log_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)


@pytest.mark.parametrize("name", ["hardnet", "hynet"])
def test_a_run_interrupted_at_any_step_ends_bit_identical(
    name: str, small_set: PatchSet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    recipe: Recipe = request.getfixturevalue(name)
    whole = run_training(recipe, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    for step in (1, 4):
        cut = tmp_path / f"cut-{step}"
        with pytest.raises(Interrupted, match="--resume"):
            run_training(recipe, small_set, cut, StopAfter(step), conditions=EXACT)
        run_training(recipe, small_set, cut, Progress(), conditions=EXACT, resume=True)
        assert_identical(whole, cut)
        logged = [json.loads(line)["step"] for line in (cut / "log.jsonl").read_text().splitlines()]
        assert logged == [1, 2, 3, 4, 5, 6]


CHILD = """
import sys
from pathlib import Path
import numpy as np
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.training.recipe_files import read_recipe
from keypatch.training.loop import Conditions, run_training
out, recipe, patches = map(Path, sys.argv[1:])
small = np.load(patches)
run_training(read_recipe(recipe), PatchSet("small", small, np.repeat(np.arange(48), 3)), out, Progress(),
    conditions=Conditions("cpu", "float32", "off", 1, 0.0), resume=(out / "recipe.toml").exists())
"""


def test_a_killed_process_is_resumed_from_its_last_checkpoint(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    import numpy as np

    from keypatch.training.recipe_files import write_recipe

    recipe = replace(hardnet, pairs=16 * 60)
    np.save(tmp_path / "patches.npy", small_set.patches)
    write_recipe(tmp_path / "recipe.toml", recipe)
    out = tmp_path / "killed"
    command = [sys.executable, "-c", CHILD, str(out), str(tmp_path / "recipe.toml"), str(tmp_path / "patches.npy")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(command, env=environment)
    give_up = time.monotonic() + 120
    while len(find_checkpoints(out)) < 2 and time.monotonic() < give_up and child.poll() is None:
        time.sleep(0.01)
    child.kill()
    child.wait()
    assert load_checkpoint(find_checkpoints(out)[-1]).step < recipe.steps
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    whole = run_training(recipe, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    assert_identical(whole, out)


def test_a_run_learns_and_leaves_its_files(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    easy = Augmentation(flips="none", detector_noise=0.0)
    recipe = replace(hardnet, pairs=16 * 40, optimizer=SGD(lr=0.3), augment=easy)
    out = run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    losses = [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]
    assert losses[-1] < 0.7 * losses[0]
    assert {path.name for path in out.iterdir()} >= {"recipe.toml", "log.jsonl", "checkpoints", "card.json"}
    assert len(find_checkpoints(out)) == 2
    card = json.loads((out / "card.json").read_text())
    assert card["pairs"] == 640 and card["data"] == "small" and card["points"] == 48
    spec, network = load_run_weights(out)
    assert spec == recipe.network and not network.training


def test_the_average_is_what_a_run_with_one_is_used_by(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    out = run_training(hynet, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    checkpoint = load_checkpoint(find_checkpoints(out)[-1])
    used = load_run_weights(out)[1].state_dict()
    assert all(torch.equal(used[name], tensor) for name, tensor in checkpoint.average.items())
    assert any(not torch.equal(used[name], tensor) for name, tensor in checkpoint.network.items())


def test_a_folder_is_not_overwritten_nor_resumed_with_another_recipe_or_data(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    out = run_training(hardnet, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    with pytest.raises(KeypatchError, match="already holds a run"):
        run_training(hardnet, small_set, out, Progress(), conditions=EXACT)
    with pytest.raises(KeypatchError, match="another recipe"):
        run_training(replace(hardnet, seed=1), small_set, out, Progress(), conditions=EXACT, resume=True)
    other = replace(small_set, point_id=small_set.point_id + 1)
    with pytest.raises(DataError, match="other data"):
        run_training(hardnet, other, out, Progress(), conditions=EXACT, resume=True)
    negative = replace(small_set, patches=255 - small_set.patches)  # other pixels under the same point ids
    with pytest.raises(DataError, match="other data"):
        run_training(hardnet, negative, out, Progress(), conditions=EXACT, resume=True)
    newest = find_checkpoints(out)[-1]
    save_checkpoint(newest, replace(load_checkpoint(newest), training=()))  # as an older version wrote it
    assert run_training(hardnet, negative, out, Progress(), conditions=EXACT, resume=True) == out
    with pytest.raises(DataError, match="no run to resume"):
        run_training(hardnet, small_set, tmp_path / "none", Progress(), conditions=EXACT, resume=True)


def test_a_second_writer_is_kept_out(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    class Second(Progress):
        def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
            with pytest.raises(KeypatchError, match="being written by another process"):
                run_training(hardnet, small_set, tmp_path / "run", Progress(), conditions=EXACT, resume=True)

    run_training(hardnet, small_set, tmp_path / "run", Second(), conditions=EXACT)


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_term(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    @dataclass(frozen=True)
    class Bad:
        weight: float = 1.0
        calls: ClassVar[int] = 0

        def __call__(self, batch: Described) -> torch.Tensor:
            Bad.calls += torch.is_grad_enabled()  # not where the loss is only tried
            return batch.positive_distances() * (float("nan") if Bad.calls == 4 else 1.0)

    out = tmp_path / "run"
    recipe = replace(hardnet, loss=(Bad(),))
    with pytest.raises(KeypatchError, match=r"not finite at step 4 \(Bad\)"):
        run_training(recipe, small_set, out, Progress(), conditions=EXACT)
    assert [path.name for path in find_checkpoints(out)][-1] == "step-000000003.safetensors"


@pytest.mark.parametrize(
    ("field", "value", "sentence"), [("mining", None, "none was mined"), ("loss", (SpreadOut(pairs="third"),), "third")]
)
def test_a_loss_without_what_it_needs_is_refused_before_anything_is_written(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path, field: str, value: object, sentence: str
) -> None:
    recipe = replace(hardnet, **{field: value})  # type: ignore[arg-type]
    with pytest.raises(KeypatchError, match=sentence):
        run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    assert not (tmp_path / "run").exists()


def test_a_full_disk_ends_with_a_sentence_and_keeps_the_last_good_checkpoint(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from keypatch import files

    out = tmp_path / "run"
    replaced = os.replace

    def full(source: Path, target: Path) -> None:
        if "step-000000003" in str(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        replaced(source, target)

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(KeypatchError, match="no space left on device"):
        run_training(hardnet, small_set, out, Progress(), conditions=EXACT)
    assert load_checkpoint(find_checkpoints(out)[-1]).step == 2
    assert not list((out / "checkpoints").glob("*.partial"))


def test_a_cut_off_checkpoint_is_named(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    out = run_training(hardnet, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    newest = find_checkpoints(out)[-1]
    copy = tmp_path / "cut.safetensors"
    shutil.copyfile(newest, copy)
    copy.write_bytes(copy.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"cut\.safetensors is not a readable"):
        load_checkpoint(copy)


def test_validation_scores_come_ten_times_and_do_not_change_the_run(
    hynet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    from keypatch.patches import Pairs
    from keypatch.training.validation import PairValidation

    index = torch.arange(48).numpy() * 3
    pairs = Pairs("list", first=index.repeat(2), second=(index[:, None] + [1, -2]).reshape(-1) % 144, is_match=None)
    object.__setattr__(pairs, "is_match", small_set.point_id[pairs.first] == small_set.point_id[pairs.second])
    recipe = replace(hynet, pairs=24 * 20)
    scored = run_training(
        recipe, small_set, tmp_path / "a", Progress(), conditions=EXACT, validate=[PairValidation(small_set, pairs)]
    )
    plain = run_training(recipe, small_set, tmp_path / "b", Progress(), conditions=EXACT)
    records = [json.loads(line) for line in (scored / "log.jsonl").read_text().splitlines()]
    scores = [record["validation"] for record in records if record["validation"] is not None]
    assert len(scores) == 10 and all(0 <= score["small"]["fpr95.list"] <= 1 for score in scores)
    assert_identical(scored, plain)


def test_tensorboard_gets_the_same_figures(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    conditions = replace(EXACT, tensorboard=True)
    out = run_training(hardnet, small_set, tmp_path / "run", Progress(), conditions=conditions)
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    logged = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    drawn = {event.step: event.value for event in events.Scalars("loss/total")}
    assert drawn == pytest.approx({record["pairs"]: record["loss"] for record in logged}, rel=1e-6)
