"""`train` by names: several sets, weights to start from, a validation set."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from keypatch.errors import DataError, RecipeError
from keypatch.studies.training import open_source, train
from keypatch.training.checkpoints import load_run_weights
from keypatch.training.progress import Silent

THIN = ("sampler.pairs=32", "network.width=4", "network.dim=16")


class Told(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_two_sets_train_as_one_with_their_points_apart(small_set: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(small_set, tmp_path / "other"))
    joined = open_source([small_set, other])
    assert joined.classes().count == 2 * open_source(small_set).classes().count
    out = train("hardnet", [small_set, other], tmp_path / "run", settings=(*THIN, "sampler.pairs=128"), pairs=256)
    assert json.loads((out / "card.json").read_text())["points"] == 160


def test_a_point_with_one_patch_is_left_out_and_said_once(small_set: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small_set, tmp_path / "copy"))
    lines = (copy / "info.txt").read_text().splitlines()
    (copy / "info.txt").write_text("\n".join(["999 0", *lines[1:]]) + "\n")
    (copy / "m50_160_160_0.txt").unlink()
    told = Told()
    train("hardnet", copy, tmp_path / "run", settings=THIN, pairs=32, reporter=told)
    assert [line for line in told.said if "single patch" in line] == [
        "copy: 1 points have a single patch and are left out of the training."
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
    with pytest.raises(RecipeError, match="holds another network"):
        train("hardnet", small_set, tmp_path / "run", settings=(*THIN, setting), pairs=32, start_from=run_folder)


def test_the_validation_set_is_scored(small_set: Path, tmp_path: Path) -> None:
    out = train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=64, validation=small_set)
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    assert 0 <= last["validation"] <= 100


def test_no_data_and_a_validation_set_without_lists_are_sentences(small_set: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small_set, tmp_path / "copy"))
    (copy / "m50_160_160_0.txt").unlink()
    with pytest.raises(DataError, match="no pair list to validate on"):
        train("hardnet", small_set, tmp_path / "run", settings=THIN, pairs=64, validation=copy)
    with pytest.raises(DataError, match="No training data given"):
        train("hardnet", [], tmp_path / "run")
