"""Epochs: which weights are kept, what a log says of the scores after each, last and best apart."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import keypatch
from keypatch.benchmarks import evaluate_hpatches
from keypatch.commands.validation import open_validations
from keypatch.errors import DataError, Interrupted
from keypatch.networks import PatchNetwork
from keypatch.patches import PatchSet
from keypatch.patches.hpatches import STRIPS
from keypatch.progress import Progress
from keypatch.training import Recipe
from keypatch.training.checkpoints import find_kept, load_checkpoint
from keypatch.training.conditions import Conditions
from keypatch.training.epochs import Epoch, Epochs, read_epochs
from keypatch.training.loop import run_training
from keypatch.training.run_folder import read_log, read_origin

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=60.0)


class Falling:
    """0.9, 0.8, ...: a set that every epoch does better on."""

    def __init__(self, name: str, score: str = "fpr95.hard", step: float = -0.1) -> None:
        self.name, self.score, self.step, self.value = name, score, step, 1.0

    def __call__(self, network: PatchNetwork) -> float:
        self.value += self.step
        return self.value


def test_weights_are_kept_whenever_an_epoch_ends(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    recipe = replace(hardnet, pairs=16 * 10)
    conditions = replace(EXACT, keep_every=40, keep=(0.5,))  # after steps 3, 5, 8 and 10
    run = run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=conditions)
    names = ["at-050", *(f"pairs-{pairs:012d}" for pairs in (48, 80, 128, 160))]
    assert [path.stem for path in find_kept(run)] == names
    assert json.loads((run / "card.json").read_text())["kept"] == [f"checkpoints/{name}.safetensors" for name in names]
    kept = load_checkpoint(find_kept(run)[1])
    assert kept.step == 3 and kept.network and not kept.optimizer
    assert keypatch.load(find_kept(run)[1]).dim == 16
    assert "5: at-050" in keypatch.inspect(run).facts["kept weights"]


def test_sets_are_scored_after_every_epoch_and_last_and_best_are_apart(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    recipe, rising = replace(hardnet, pairs=16 * 25), Falling("strips", "matching.map", 0.01)
    sets = [Falling("one", step=-0.01), Falling("two", "fpr95.m50", step=0.01), rising]
    sets.append(Falling("more strips", "matching.map", 0.03))
    run = run_training(
        recipe, small_set, tmp_path / "run", Progress(), conditions=replace(EXACT, keep_every=32), validate=sets
    )
    one, two, strips, _, mean, of_strips = read_epochs(read_log(run))
    assert [epoch.pairs for epoch in one.epochs] == [*range(32, 400, 32), 400]  # the end of the run too
    assert one.last == one.best == Epoch(400, pytest.approx(0.87))
    assert two.last.value == pytest.approx(1.13) and two.best == Epoch(32, pytest.approx(1.01))
    assert strips.best.pairs == 400 and mean.of == "mean of 2 sets" and mean.score == "fpr95"
    assert all(epoch.value == pytest.approx(1.0) for epoch in mean.epochs)
    card = json.loads((run / "card.json").read_text())["validation"]
    assert card["two"]["fpr95.m50"]["last"]["pairs"] == 400 and card["two"]["fpr95.m50"]["best"]["pairs"] == 32
    assert card["one"]["fpr95.hard"]["mean of the 10 best"] == pytest.approx(0.87 + 0.045)
    assert card["mean of 2 sets"].keys() == {"fpr95", "matching.map"}  # neither takes the place of the other
    assert card["mean of 2 sets"]["matching.map"]["last"] == {"pairs": 400, "value": pytest.approx(1.26)}
    assert (of_strips.of, of_strips.score) == ("mean of 2 sets", "matching.map")


def test_two_lists_of_one_set_have_no_mean_of_sets_and_both_are_in_the_card(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    lists = [Falling("one", "fpr95.easy"), Falling("one", "fpr95.hard", step=-0.05)]
    run = run_training(hardnet, small_set, tmp_path / "run", Progress(), conditions=EXACT, validate=lists)
    assert [(each.of, each.score) for each in read_epochs(read_log(run))] == [
        ("one", "fpr95.easy"),
        ("one", "fpr95.hard"),
    ]
    card = json.loads((run / "card.json").read_text())["validation"]
    assert card["one"].keys() == {"fpr95.easy", "fpr95.hard"}
    assert card["one"]["fpr95.easy"]["last"]["value"] < card["one"]["fpr95.hard"]["last"]["value"]


def test_a_resumed_run_knows_its_epochs_before(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    class Stop(Progress):
        def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
            if done >= 48:
                raise KeyboardInterrupt

    conditions = replace(EXACT, keep_every=16, checkpoint_seconds=0.0)
    with pytest.raises(Interrupted):
        run_training(hardnet, small_set, tmp_path, Stop(), conditions=conditions, validate=[Falling("one")])
    run_training(
        hardnet, small_set, tmp_path, Progress(), conditions=conditions, resume=True, validate=[Falling("one")]
    )
    assert [epoch.pairs for epoch in read_epochs(read_log(tmp_path))[0].epochs] == list(range(16, 97, 16))
    assert len(find_kept(tmp_path)) == 6


def test_the_mean_of_the_best_epochs() -> None:
    values = [0.5, 0.1, 0.4, 0.2, 0.3]
    errors, shares = (
        Epochs("a", score, tuple(Epoch(n, value) for n, value in enumerate(values)))
        for score in ("fpr95.hard", "matching.map")
    )
    assert errors.mean_of_best(2) == pytest.approx(0.15) and shares.mean_of_best(2) == pytest.approx(0.45)
    assert errors.mean_of_best(5) is None  # nothing to choose from
    assert (errors.best.value, shares.best.value, errors.last.value) == (0.1, 0.5, 0.3)


def test_older_logs_and_damaged_ones_are_read() -> None:
    records = [
        {"pairs": 10, "validation": 12.5},
        {"pairs": 20, "validation": None},
        {"pairs": "20", "validation": {"a": {"fpr95": 0.1}}},
        {"validation": {"a": 3, "b": {"fpr95": "x"}}},
        {"pairs": 30, "validation": 10.0},
    ]
    [only] = read_epochs(records)
    assert only.of == "the validation set" and only.epochs == (Epoch(10, 0.125), Epoch(30, 0.1))


@pytest.fixture
def strip_folder(small_set: PatchSet, tmp_path: Path) -> Path:
    """Two sequences of 20 points."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(("i_one", "v_two")):
        folder = tmp_path / "strips" / name
        folder.mkdir(parents=True)
        points = small_set.patches[60 * number : 60 * number + 60 : 3].astype(np.float64)
        for strip in STRIPS:
            noisy = np.clip(points + rng.normal(0, 60, points.shape), 0, 255).astype(np.uint8)
            column = np.concatenate([np.pad(patch, (0, 1), "edge") for patch in noisy])  # 65x65
            Image.fromarray(column).save(folder / f"{strip}.png")
    return tmp_path / "strips"


def test_strips_are_scored_as_the_benchmark_scores_them(small_folder: Path, strip_folder: Path, tmp_path: Path) -> None:
    run = keypatch.train(
        "hardnet",
        small_folder,
        tmp_path / "run",
        replace(EXACT, keep_every=32),
        settings=["network.width=4", "network.dim=16", "sampler.pairs=16"],
        pairs=64,
        validation=["embedded-test", strip_folder],
    )
    assert read_origin(run).validation == ("embedded-test", str(strip_folder))
    pairs, strips = read_epochs(read_log(run))
    assert [epoch.pairs for epoch in strips.epochs] == [epoch.pairs for epoch in pairs.epochs] == [32, 64]
    wanted = evaluate_hpatches(keypatch.load(run, precision="float32"), strip_folder).scores["matching.map"]
    assert strips.score == "matching.map" and strips.last.value == pytest.approx(wanted, abs=1e-6)


def test_two_sets_of_one_name_are_refused() -> None:
    with pytest.raises(DataError, match='Two validation sets are called "embedded-test"'):
        open_validations(["embedded-test", "embedded-test"])


def test_a_run_of_an_older_version_has_one_validation_set_or_none(tmp_path: Path) -> None:
    for written, read in (("/data/a", ("/data/a",)), (None, ())):
        text = {"format": "keypatch-run", "format_number": 1, "validation": written}
        (tmp_path / "run.json").write_text(json.dumps(text))
        assert read_origin(tmp_path).validation == read
