"""What a run keeps besides its weights, across a resume: states, learning rates, milestones; and what it logs of it."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from keypatch.errors import Interrupted
from keypatch.losses import AntiNoise, GradientModulation, NPair
from keypatch.networks import EmbeddingNet
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.sampling import AdaptivePairs, RandomPairs
from keypatch.training import SGD, Linear, Recipe
from keypatch.training.checkpoints import (
    Checkpoint,
    find_checkpoints,
    find_kept,
    load_checkpoint,
    load_run_weights,
    milestone_path,
)
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=0.0)


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


def stopped(recipe: Recipe, source: PatchSet, out: Path, step: int, conditions: Conditions = EXACT) -> Path:
    with pytest.raises(Interrupted):
        run_training(recipe, source, out, StopAfter(step), conditions=conditions)
    return out


def newest(folder: Path) -> Checkpoint:
    return load_checkpoint(find_checkpoints(folder)[-1])


def assert_identical(a: Path, b: Path) -> None:
    first, second = newest(a), newest(b)
    for group in ("network", "optimizer", "average", "loss_state", "sampler_state"):
        one, other = getattr(first, group), getattr(second, group)
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def records(folder: Path) -> list[dict[str, Any]]:
    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=no_constant) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_fine_tuning_resumes_with_its_own_statistics(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    """24 steps, of which those behind step 18 fine-tune."""
    loss = (GradientModulation(finetune=0.25, rate=0.3),)
    recipe = replace(hynet, sampler=RandomPairs(12), mining=AntiNoise(), loss=loss, pairs=12 * 24)
    whole = run_training(recipe, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    for step in (18, 21):
        cut = stopped(recipe, small_set, tmp_path / f"cut-{step}", step)
        assert ("GradientModulation/finetuning" in newest(cut).loss_state) == (step == 21)
        run_training(recipe, small_set, cut, Progress(), conditions=EXACT, resume=True)
        assert_identical(whole, cut)
    logged = [record["statistics"] for record in records(whole)]
    assert [k for k, now in enumerate(logged, start=1) if "GradientModulation/finetuning" in now] == list(range(19, 25))
    assert [record["statistics"] for record in records(cut)] == logged
    saved = {name: float(value) for name, value in newest(whole).loss_state.items()}
    assert logged[-1] == saved and {"GradientModulation/mean_r", "GradientModulation/power_positive"} <= saved.keys()
    # the first batch of the fine-tuning starts anew: nothing of what was before is in the powers
    assert logged[18]["GradientModulation/power_negative"] > 1.5 * logged[17]["GradientModulation/power_negative"]


@pytest.mark.parametrize("candidates", ["all", "memory"])
def test_adaptive_pairs_resume_with_their_average_and_their_memory(
    candidates: str, hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    sampler = AdaptivePairs(16, warm=0.0, candidates=candidates)  # type: ignore[arg-type]  # with no warm-up it chooses
    recipe = replace(hardnet, sampler=sampler)
    whole = run_training(recipe, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    cut = stopped(recipe, small_set, tmp_path / "cut", 3)
    run_training(recipe, small_set, cut, Progress(), conditions=EXACT, resume=True)
    assert_identical(whole, cut)
    logged = [record["statistics"] for record in records(whole)]
    assert [record["statistics"] for record in records(cut)] == logged
    names = {"loss", "same_source", "exponent", "effective_candidates", "candidate_distance", "chosen_distance"}
    assert all(now.keys() == {f"sampler/{name}" for name in names} for now in logged)  # a memory is not logged
    assert len({now["sampler/loss"] for now in logged}) == 6 and all(0 < now["sampler/loss"] < 11 for now in logged)
    assert ("memory" in newest(whole).sampler_state) == (candidates == "memory")


def test_a_run_without_mining_logs_no_negatives(hardnet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    mined = run_training(hardnet, small_set, tmp_path / "mined", Progress(), conditions=EXACT)
    assert all(0 < record["negative"] < 2 for record in records(mined))
    recipe = replace(hardnet, mining=None, loss=(NPair(),))
    out = run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    assert [record["negative"] for record in records(out)] == [None] * 6
    assert all(record["statistics"] == {} and 0 < record["positive"] < 2 for record in records(out))


@pytest.fixture
def embedding(hardnet: Recipe) -> Recipe:
    """Plain gradient descent, ten times as fast in the last layer."""
    still = SGD(lr=0.1, momentum=0.0, weight_decay=0.0)
    return replace(hardnet, network=EmbeddingNet(dim=8, width=2), optimizer=still, last_layer=10.0)


def test_the_first_step_moves_the_last_layer_ten_times_as_far(
    embedding: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    recipe = replace(embedding, pairs=16)
    torch.manual_seed(recipe.seed)
    start = dict(recipe.network.build().named_parameters())
    ten = newest(run_training(recipe, small_set, tmp_path / "ten", Progress(), conditions=EXACT)).network
    one = newest(
        run_training(replace(recipe, last_layer=1.0), small_set, tmp_path / "one", Progress(), conditions=EXACT)
    ).network
    for name, before in start.items():
        moved, wanted = ten[name] - before, one[name] - before
        factor = 10 if name.startswith("layers.linear.") else 1
        assert wanted.abs().max() > 1e-4
        assert torch.allclose(moved, factor * wanted, rtol=1e-3, atol=1e-6)  # differences of float32


def test_both_rates_follow_the_schedule_across_a_resume(
    embedding: Recipe, small_set: PatchSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[dict[str, float]] = []
    step = torch.optim.SGD.step

    def recorded(self: torch.optim.SGD, *arguments: Any) -> Any:
        rest, last = self.param_groups
        rates.append({"rest": rest["lr"], "last": last["lr"]})
        return step(self, *arguments)

    recipe = replace(embedding, schedule=Linear(), optimizer=replace(embedding.optimizer, momentum=0.9))
    whole = run_training(recipe, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    monkeypatch.setattr(torch.optim.SGD, "step", recorded)
    cut = stopped(recipe, small_set, tmp_path / "cut", 2)
    assert len(rates) == 2
    run_training(recipe, small_set, cut, Progress(), conditions=EXACT, resume=True)
    assert_identical(whole, cut)
    for k, rate in enumerate(rates):
        assert rate == pytest.approx({"rest": 0.1 * (1 - k / 6), "last": 1 - k / 6})
    assert [record["lr"] for record in records(cut)] == [rate["rest"] for rate in rates] and len(rates) == 6


def test_milestones_hold_the_weights_of_their_step_and_stay(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    recipe, keeping = replace(hynet, pairs=24 * 8), replace(EXACT, keep=(0.25, 0.5, 1.0))
    plain = run_training(recipe, small_set, tmp_path / "plain", Progress(), conditions=EXACT)
    assert not list((plain / "checkpoints").glob("at-*"))
    out = stopped(recipe, small_set, tmp_path / "run", 3, keeping)
    run_training(recipe, small_set, out, Progress(), conditions=keeping, resume=True)
    assert_identical(plain, out)
    kept = {path.stem: path for path in (out / "checkpoints").glob("at-*.safetensors")}
    assert set(kept) == {"at-025", "at-050", "at-100"} and len(find_checkpoints(out)) == 2
    stops = {
        "at-025": stopped(recipe, small_set, tmp_path / "two", 2),
        "at-050": stopped(recipe, small_set, tmp_path / "four", 4),
        "at-100": plain,
    }
    for name, folder in stops.items():
        spec, network = load_run_weights(kept[name])
        wanted = load_run_weights(folder)[1].state_dict()  # the moving average, as of every run that has one
        assert spec == recipe.network and load_checkpoint(kept[name]).step == newest(folder).step
        assert all(torch.equal(tensor, wanted[entry]) for entry, tensor in network.state_dict().items())


def test_milestones_closer_than_a_percent_are_files_of_their_own(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    shares = (0.001, 0.002, 0.005, 0.07, 0.29, 0.295, 0.995, 1.0)  # 100 * 0.07 and 100 * 0.29 are not quite integers
    names = ["at-000.1", "at-000.2", "at-000.5", "at-007", "at-029", "at-029.5", "at-099.5", "at-100"]
    assert [milestone_path(tmp_path, share).stem for share in shares] == names
    recipe = replace(hardnet, pairs=16 * 200)
    conditions = replace(EXACT, keep=(0.295, 0.29, 0.995, 1.0), checkpoint_seconds=60.0)
    run = run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=conditions)
    assert [path.stem for path in find_kept(run)] == ["at-029", "at-029.5", "at-099.5", "at-100"]  # oldest first
    assert [load_checkpoint(path, groups=()).step for path in find_kept(run)] == [58, 59, 199, 200]


@pytest.mark.parametrize("candidates", ["all", "memory"])
def test_a_run_from_weights_that_is_stopped_before_its_first_step_resumes_from_them(
    candidates: str, hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    torch.manual_seed(7)  # not the recipe's seed
    weights = hardnet.network.build().state_dict()
    sampler = AdaptivePairs(16, warm=0.0, candidates=candidates)  # type: ignore[arg-type]
    recipe = replace(hardnet, sampler=sampler, average=0.9)
    whole = run_training(recipe, small_set, tmp_path / "whole", conditions=EXACT, weights=weights)
    with pytest.raises(Interrupted):
        run_training(recipe, small_set, tmp_path / "cut", StopAfter(0), conditions=EXACT, weights=weights)
    kept = load_run_weights(tmp_path / "cut")[1].state_dict()
    assert newest(tmp_path / "cut").step == 0 and all(torch.equal(kept[name], weights[name]) for name in weights)
    run_training(recipe, small_set, tmp_path / "cut", conditions=EXACT, resume=True)
    assert_identical(whole, tmp_path / "cut")
