"""Real processes under torchrun: they compute what one process computes, and what becomes of a run when one dies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from keypatch.commands.train import train
from keypatch.errors import Interrupted, RecipeError
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.recipes import RECIPES
from keypatch.training import Recipe
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training
from keypatch.training.ranks import Ranks

HERE = Path(__file__).parent
EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=0.0)
NAMED = ("hardnet", "sosnet", "hynet", "sdgmnet", "adasample", "gor_triplet", "cdf", "doap")
CASES = (
    *NAMED,
    "hardnet:pairs=5",
    "hardnet:head",
    "adasample_memory",
    "hardnet:cached",
    "hynet:cached",
    "l2net:cached",
    "adasample:taught",
)
SAME = 1e-9  # relative; float64 in another order of sums gives about 1e-12


def torchrun(script: str, *words: str, options: Sequence[str] = ()) -> "subprocess.Popen[str]":
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    place = [str(HERE / script)] if script.endswith(".py") else ["-m", script]
    command = [*launch, *place, *words]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def said_by(process: "subprocess.Popen[str]", patience: float = 300) -> list[str]:
    """What the process and its ranks print, but for torchrun's own lines; nothing of it stays behind."""
    try:
        text, _ = process.communicate(timeout=patience)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return text.splitlines()


def sentences(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.startswith("keypatch: ")]


def compare(cases: Sequence[str], folder: Path) -> dict[str, dict[str, float]]:
    process = torchrun("compare_ranks.py", str(folder / "found.json"), *cases)
    lines = said_by(process, 1200)
    assert process.returncode == 0, "\n".join(lines)
    found = json.loads((folder / "found.json").read_text())
    assert found["ranks"] == 2
    cases_found: dict[str, dict[str, float]] = found["cases"]
    return cases_found


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """All cases in two processes that are started once."""
    return compare([*CASES, "hardnet:local", "hardnet:float32", "hynet:float32"], tmp_path_factory.mktemp("compared"))


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_compute_what_one_process_computes(case: str, compared: dict[str, dict[str, float]]) -> None:
    """Losses, gradients, states and weights over three steps, 6 and 5 pairs on a rank (3 and 2 of 5)."""
    assert max(compared[case].values()) < SAME


def test_in_float32_they_agree_to_its_rounding(compared: dict[str, dict[str, float]]) -> None:
    """The loss of one step. Its gradient jumps where rounding decides on which side of a ReLU a number is."""
    assert compared["hynet:float32"]["loss"] < 1e-5
    assert compared["hardnet:float32"]["loss"] < 1e-5


def test_mining_on_each_rank_alone_would_be_noticed(compared: dict[str, dict[str, float]]) -> None:
    assert compared["hardnet:local"]["gradient"] > 1e-3
    assert compared["hardnet:local"]["loss"] > 1e-3


@pytest.mark.slow
def test_every_other_recipe_is_the_same_on_two_ranks_and_with_cached_gradients(tmp_path: Path) -> None:
    others = [name for name in RECIPES if name not in NAMED]
    found = compare([*others, *(f"{name}:cached" for name in RECIPES)], tmp_path)
    assert {case: value for case, value in found.items() if not max(value.values()) < SAME} == {}


WORDS = ("--set", "sampler.pairs=15", "--set", "network.width=4", "--set", "optimizer.lr=0.1", "--pairs", "150")
HOW = ("--precision", "float32", "--compile", "off", "--threads", "1", "--checkpoint-seconds", "0")


class StopAt(Progress):
    def __init__(self, pairs: int) -> None:
        self.pairs = pairs

    def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
        if done == self.pairs:
            signal.raise_signal(signal.SIGTERM)


def test_a_killed_rank_loses_nothing_and_any_number_of_ranks_resumes(
    small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ranks, one killed; resumed by one process, stopped; resumed by two, one killed, which torchrun resumes."""
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)
    out = tmp_path / "run"
    process = torchrun(
        "dying_rank.py", "1", "4", "0", "train", "hardnet", "--data", str(small_folder), "--out", str(out), *WORDS, *HOW
    )
    lines = said_by(process, 60 + 60)  # to import torch and train; within a minute of the kill
    assert process.returncode != 0
    (told,) = sentences(lines)
    assert "Another process of this training has ended" in told and f"keypatch train --resume {out}" in told
    assert load_checkpoint(find_checkpoints(out)[-1]).step == 3  # the fourth step was not finished

    with pytest.raises(Interrupted):
        train(resume=out, conditions=EXACT, progress=StopAt(5 * 15))
    assert load_checkpoint(find_checkpoints(out)[-1]).step == 5

    process = torchrun("dying_rank.py", "0", "2", "0", "train", "--resume", str(out), options=("--max-restarts", "1"))
    lines = said_by(process)
    assert process.returncode == 0, "\n".join(lines)
    assert [line for line in lines if line.startswith("Written")] == [f"Written: {out}"]  # by one rank
    assert json.loads((out / "card.json").read_text())["ranks"] == 2

    settings = [word for word in WORDS if "=" in word]
    whole = train("hardnet", small_folder, tmp_path / "whole", EXACT, settings=settings, pairs=150)
    last, wanted = (load_checkpoint(find_checkpoints(run)[-1]) for run in (out, whole))
    assert last.step == wanted.step == 10
    for name, tensor in wanted.network.items():  # float32 in another order of sums, over ten steps
        assert torch.allclose(last.network[name].double(), tensor.double(), rtol=0, atol=2e-3), name


@pytest.mark.slow
def test_torchrun_resumes_a_new_run_by_itself_but_no_other_one(small_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("train", "hardnet", "--data", str(small_folder), "--out", str(out), *WORDS, *HOW)
    process = torchrun("dying_rank.py", "1", "4", "0", *words, options=("--max-restarts", "1"))
    lines = said_by(process)
    assert process.returncode == 0, "\n".join(lines)
    assert load_checkpoint(find_checkpoints(out)[-1]).step == 10
    process = torchrun("keypatch", *words, options=("--max-restarts", "1"))  # it starts both again, in vain
    told = sentences(said_by(process))
    assert process.returncode != 0
    assert len(told) == 2 and all("already holds a run" in sentence for sentence in told)  # once in each attempt


@pytest.mark.slow
def test_a_rank_that_is_silent_ends_the_others_within_a_minute(small_folder: Path, tmp_path: Path) -> None:
    """Stopped, not killed: its connections stay open, as those of a machine without power do."""
    words = ("train", "hardnet", "--data", str(small_folder), "--out", str(tmp_path / "run"), *WORDS[:-1], "15000000")
    process = torchrun("keypatch", *words, *HOW)
    while not find_checkpoints(tmp_path / "run"):
        time.sleep(0.2)
    (silent,) = [pid for pid in children(process.pid) if "RANK=1" in environment_of(pid)]
    os.kill(silent, signal.SIGSTOP)
    stopped = time.monotonic()
    try:
        lines = said_by(process, 120)
    finally:
        with suppress(ProcessLookupError):  # torchrun has killed it
            os.kill(silent, signal.SIGKILL)
    assert time.monotonic() - stopped < 60 + 35  # torchrun itself gives the silent one 30 seconds to end
    (told,) = sentences(lines)
    assert "Rank 1 of this training has not responded for 30 seconds" in told


@pytest.mark.slow
def test_ctrl_c_stops_all_ranks_with_one_checkpoint_and_one_sentence(small_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("train", "hardnet", "--data", str(small_folder), "--out", str(out), *WORDS[:-1], "15000000", *HOW)
    process = torchrun("keypatch", *words)
    while not find_checkpoints(out):
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: torchrun and its ranks
    told = sentences(said_by(process, 60))
    assert len(told) == 1 and f"{out} keeps a checkpoint after" in told[0]


def children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def environment_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")


@pytest.mark.parametrize(("pairs", "size"), [(5, 2), (8, 3), (3, 3), (1024, 7)])
def test_shares_are_consecutive_and_differ_by_one_pair_at_most(pairs: int, size: int) -> None:
    shares = [Ranks(rank, size).share(pairs) for rank in range(size)]
    assert [row for share in shares for row in share] == list(range(pairs))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1 and min(map(len, shares)) > 0


def test_a_batch_smaller_than_the_ranks_is_refused_before_anything_is_written(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match="16 pairs cannot be split among 17 ranks"):
        run_training(hardnet, small_set, tmp_path / "run", conditions=EXACT, ranks=Ranks(0, 17))
    assert not (tmp_path / "run").exists()
