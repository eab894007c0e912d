"""`train` by names: several sets, weights to start from, a validation set."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from keypatch.commands.inspect.inspection import inspect
from keypatch.commands.train import open_source, train
from keypatch.commands.validation import find_trained_on, open_validations
from keypatch.errors import DataError, KeypatchError, RecipeError
from keypatch.losses import Distillation
from keypatch.patches import open_patches
from keypatch.patches.hpatches import STRIPS
from keypatch.patches.sources import remember
from keypatch.progress import Progress
from keypatch.recipes import find_recipe
from keypatch.training.checkpoints import load_run_weights
from keypatch.training.loop import Conditions
from keypatch.training.run_folder import read_origin
from keypatch.zoo.loading import load_training

THIN = ("sampler.pairs=32", "network.width=4", "network.dim=16")


class Told(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, message: str) -> None:
        self.said.append(message)


def test_two_sets_train_as_one_with_their_points_apart(small_set: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(small_set, tmp_path / "other"))
    joined = open_source([small_set, other])
    assert joined.classes().count == 2 * open_source(small_set).classes().count
    out = train("hardnet", [small_set, other], tmp_path / "run", settings=(*THIN, "sampler.pairs=128"), pairs=256)
    assert json.loads((out / "card.json").read_text())["points"] == 160


def test_open_sets_are_trained_on_and_a_callback_counts_the_pairs(small_set: Path, tmp_path: Path) -> None:
    counted: list[tuple[int, int, str]] = []

    def count(*state: Any) -> None:
        counted.append(state)

    patches, one = open_patches(small_set), Conditions("cpu", "float32", "off", threads=1)
    runs = [
        train("hardnet", data, tmp_path / name, one, settings=THIN, pairs=64, progress=count)
        for name, data in (("folder", small_set), ("open", patches), ("list", [patches]))
    ]
    weights = [load_run_weights(run)[1].state_dict() for run in runs]
    assert all(torch.equal(weights[0][name], other[name]) for other in weights[1:] for name in weights[0])
    assert counted[-1] == (64, 64, "pairs")
    both = train("hardnet", [patches, replace(patches, folder=None)], tmp_path / "two", one, settings=THIN, pairs=32)
    assert json.loads((both / "card.json").read_text())["points"] == 160


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside", "..", "C:outside"])
def test_the_name_of_a_recipe_never_leads_out_of_runs(
    small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("keypatch.commands.train.run_training", lambda *given, **how: given[2])
    with pytest.raises(DataError, match=r"The recipe: the name '.*' is not a plain path below a folder"):
        train(replace(find_recipe("hardnet"), name=name), small_set, settings=THIN, pairs=64)
    assert train(replace(find_recipe("hardnet"), name="mine"), small_set, settings=THIN, pairs=64) == Path("runs/mine")


def test_a_point_with_one_patch_is_left_out_and_said_once(small_set: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small_set, tmp_path / "copy"))
    lines = (copy / "info.txt").read_text().splitlines()
    (copy / "info.txt").write_text("\n".join(["999 0", *lines[1:]]) + "\n")
    (copy / "m50_160_160_0.txt").unlink()
    told = Told()
    train("hardnet", copy, tmp_path / "run", settings=THIN, pairs=32, progress=told)
    assert [line for line in told.said if "single patch" in line] == [
        "copy: 1 points with a single patch are not used for training."
    ]


def test_weights_to_start_from(run_folder: Path, small_set: Path, tmp_path: Path) -> None:
    still = (*THIN, "optimizer.lr=0.0", "optimizer.weight_decay=0.0")
    out = train("hardnet", small_set, tmp_path / "run", settings=still, pairs=32, start_from=run_folder)
    before, after = (load_run_weights(folder)[1].layers.conv1.weight for folder in (run_folder, out))
    assert torch.equal(before, after)


@pytest.mark.parametrize("setting", ["network.width=8", "network.preprocessing.value_range=255.0"])
def test_weights_of_another_network_are_refused(
    setting: str, run_folder: Path, small_set: Path, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match="holds a different network"):
        train("hardnet", small_set, tmp_path / "run", settings=(*THIN, setting), pairs=32, start_from=run_folder)


def test_a_teacher_adds_its_term_is_remembered_and_found_again(
    run_folder: Path, small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by a relative path, the teacher is found from another working folder too."""
    monkeypatch.chdir(run_folder.parent)
    settings = (*THIN, "loss.Distillation.weight=0.5")
    patches = open_patches(small_set)
    other = replace(patches, name="other", point_id=patches.point_id + 1)
    out = train("hardnet", other, tmp_path / "run", settings=settings, pairs=64, teacher=run_folder.name)
    assert find_recipe(out).loss == (*find_recipe("hardnet").loss, Distillation(weight=0.5))
    assert read_origin(out).teacher == str(run_folder)
    assert json.loads((out / "card.json").read_text())["teacher"] == run_folder.name
    assert inspect(out).facts["teacher"] == str(run_folder)
    assert {each.name for each in load_training(out)} == {each.name for each in load_training(run_folder)} | {"other"}
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(out / "checkpoints")
    assert train(resume=out, data=other) == out


def test_teachers_that_do_not_fit_are_sentences(small_set: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match=r"have 128 dimensions, the student's 16.*network\.dim=128"):
        train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=32, teacher="hynet-notredame")
    with pytest.raises(RecipeError, match="rootsift describes patches 12 sigmas wide"):
        train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=32, teacher="rootsift")
    with pytest.raises(KeypatchError, match='no descriptor, run folder or weight file "nobody"'):
        train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=32, teacher="nobody")
    assert not (tmp_path / "run").exists()


def test_the_validation_set_is_scored(small_set: Path, tmp_path: Path) -> None:
    out = train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=64, validation=small_set)
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    [(score, value)] = last["validation"][small_set.name].items()
    assert score.startswith("fpr95.") and 0 <= value <= 1


def test_a_validation_set_that_is_trained_on_is_scored_and_said(
    small_set: Path, run_folder: Path, tmp_path: Path
) -> None:
    def notes(data: Path, **given: Any) -> list[str]:
        told = Told()
        out = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        train("hardnet", data, out, settings=THIN, pairs=32, progress=told, **given)
        assert json.loads((out / "log.jsonl").read_text().splitlines()[-1])["validation"]
        return told.said

    copy = Path(shutil.copytree(small_set, tmp_path / "copy"))
    other = Path(shutil.copytree(small_set, tmp_path / "other"))
    Image.fromarray(255 - np.asarray(Image.open(other / "patches0000.bmp"))).save(other / "patches0000.bmp")
    sentence = "{} is trained on: as a validation set it says nothing about other data."
    assert notes(small_set, validation=small_set) == [sentence.format(small_set.name)]
    assert notes(copy, validation=[small_set, other]) == [sentence.format(small_set.name)]
    assert notes(small_set, validation=other) == []
    assert notes(other, validation=small_set, start_from=run_folder) == [sentence.format(small_set.name)]


def test_strips_that_share_a_sequence_with_the_training_are_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    strips = tmp_path / "strips"
    for name in ("i_one", "v_two", "v_three"):
        (strips / name).mkdir(parents=True)
        first = rng.integers(0, 256, (20 * 65, 65), np.uint8)
        for strip in STRIPS:
            Image.fromarray(first).save(strips / name / f"{strip}.png")
    part = tmp_path / "part"
    shutil.copytree(strips / "i_one", part / "i_one")
    shutil.copytree(strips / "v_two", part / "v_two")
    training = remember(open_patches(part))
    assert list(find_trained_on(open_validations([str(strips)]), training)) == [
        "strips is trained on (2 of its 3 images): as a validation set it says nothing about other data."
    ]
    shutil.rmtree(strips / "i_one")
    shutil.rmtree(strips / "v_two")
    assert list(find_trained_on(open_validations([str(strips)]), training)) == []


def test_no_data_and_a_validation_set_without_lists_are_sentences(small_set: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small_set, tmp_path / "copy"))
    (copy / "m50_160_160_0.txt").unlink()
    with pytest.raises(DataError, match="no pair list to validate on"):
        train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=64, validation=copy)
    with pytest.raises(DataError, match="No training data given"):
        train("hardnet", [], tmp_path / "run")
