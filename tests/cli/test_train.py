"""`keypatch train`: options reach the run, wrong ones are named, Ctrl-C leaves a checkpoint."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

THIN = ["--set", "sampler.pairs=32", "--set", "network.width=4", "--set", "network.dim=16", "--threads", "1"]


@pytest.mark.usefixtures("shown_progress")
def test_options_reach_the_recipe_of_the_run(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shown = keypatch("train", "hardnet", "--data", phototour, "--out", out, "--pairs", 64, "--seed", 7, *THIN)
    assert shown.code == 0
    assert str(out) in shown.out
    recipe = tomllib.loads((out / "recipe.toml").read_text())
    assert (recipe["pairs"], recipe["seed"], recipe["network"]["width"]) == (64, 7, 4)
    assert "64 of 64 pairs" in shown.err and "loss" in shown.err  # progress goes to stderr, so that stdout can be piped


def test_weights_are_kept_on_the_way(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    words = ["--out", tmp_path / "run", "--pairs", 64, "--keep", 0.5, "--keep", 1, *THIN]
    assert keypatch("train", "hardnet", "--data", phototour, *words).code == 0
    assert {path.name for path in (tmp_path / "run" / "checkpoints").glob("at-*")} == {
        "at-050.safetensors",
        "at-100.safetensors",
    }


def test_the_run_folder_is_named_after_the_recipe(
    keypatch: Callable, phototour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert keypatch("train", "hardnet", "--data", phototour, "--pairs", 32, *THIN).code == 0
    assert (tmp_path / "runs" / "hardnet" / "recipe.toml").exists()


def test_a_second_run_into_the_same_folder_is_refused(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    words = ["train", "hardnet", "--data", phototour, "--out", tmp_path / "run", "--pairs", 32, *THIN]
    assert keypatch(*words).code == 0
    shown = keypatch(*words)
    assert shown.code == 2
    assert "--resume" in shown.err


@pytest.mark.parametrize(
    ("recipe", "words", "parts"),
    [
        ("hynett", [], ["hynett", 'Did you mean "hynet"']),
        ("hardnet", ["--set", "loss.marginn=1"], ["marginn", "margin"]),
        ("hardnet", ["--set", "netwrk.width=4"], ["netwrk", 'Did you mean "network"']),
        ("hardnet", ["--set", "seed=one"], ["seed", "one"]),
        ("hardnet", ["--set", "seed"], ["path=value"]),
        ("hardnet", ["--device", "tpu"], ["tpu", "cpu, cuda or mps"]),
        ("hardnet", ["--precision", "int3"], ["int3", "bfloat16"]),
        ("hardnet", ["--from", "nowhere.safetensors"], ["nowhere.safetensors"]),
        ("hardnet", ["--split", "a"], ["--split a"]),
        ("hardnet", ["--keep", "50"], ["50", "at most 1"]),
        ("missing.toml", [], ["missing.toml"]),
    ],
)
def test_a_wrong_argument_is_named_with_its_remedy(
    keypatch: Callable, phototour: Path, tmp_path: Path, recipe: str, words: list[str], parts: list[str]
) -> None:
    shown = keypatch("train", recipe, "--data", phototour, "--out", tmp_path / "run", "--pairs", 64, *THIN, *words)
    assert shown.code == 2
    assert all(part in shown.err for part in parts), shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--seed", "-1"], "seed is -1; it must be 0 or more"),
        (["--seed", str(2**63 - 1)], "it must be at most 4,294,967,295"),
        (["--threads", "-2"], "threads is -2; it must be 1 or more"),
        (["--set", "network.dim=-4"], "dim is -4; it must be 1 or more"),
        (["--set", "network.dim=0"], "dim is 0; it must be 1 or more"),
        (["--set", "network.dropout=1.5"], "dropout is 1.5; it must be at most 1"),
        (["--set", "sampler.pairs=0"], "sampler.pairs is 0; it must be 1 or more"),
        (["--set", "optimizer.lr=-1"], "lr is -1.0; it must be 0 or more"),
        (["--set", "augment.rotation=-1"], "rotation is -1.0; it must be 0 or more"),
        (["--set", "augment.crop=1"], "crop is 1.0; it must be below 1"),
        (["--set", "loss=" + 5000 * "["], "nested too deeply"),
        (["--set", "network=" + 5000 * "{a="], "nested too deeply"),
    ],
)
def test_a_number_out_of_its_limits_is_refused_before_anything_is_written(
    keypatch: Callable, phototour: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    shown = keypatch("train", "hardnet", "--data", phototour, "--out", tmp_path / "run", "--pairs", 64, *THIN, *words)
    assert shown.code == 2 and sentence in shown.err and shown.err.count("\n") == 1, shown.err
    assert not (tmp_path / "run").exists()


def test_epochs_are_kept_as_published_and_scored_on_several_sets(
    keypatch: Callable, phototour: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(phototour, tmp_path / "other"))
    words = ["--pairs", 64, "--keep-every", 32, "--validation", phototour, "--validation", other, "--as-published"]
    shown = keypatch("train", "hardnet", "--data", phototour, "--out", tmp_path / "run", *words, *THIN)
    assert shown.code == 0, shown.err
    card = json.loads((tmp_path / "run" / "card.json").read_text())
    assert card["trained"].startswith("as published, but with network.")
    assert card["kept"] == [f"checkpoints/pairs-{pairs:012d}.safetensors" for pairs in (32, 64)]
    assert list(card["validation"]) == [phototour.name, "other", "mean of 2 sets"]
    shown = keypatch("train", "small", "--as-published", "--data", phototour, "--out", tmp_path / "no", *THIN)
    assert shown.code == 2 and "not a recipe from a paper" in shown.err and not (tmp_path / "no").exists()


def test_a_run_is_resumed_by_its_folder_alone(
    keypatch: Callable, phototour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, run = Path(shutil.copytree(phototour, tmp_path / "data")), tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    words = ["--pairs", 64, "--keep", 1, "--validation", "data", *THIN]
    assert keypatch("train", "hardnet", "--data", "data", "--out", "run", *words).code == 0
    kept = run / "checkpoints" / "at-100.safetensors"
    whole = load_file(kept)
    kept.unlink()
    for checkpoint in (run / "checkpoints").glob("step-*"):
        checkpoint.unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shown = keypatch("train", "--resume", run)
    assert shown.code == 0 and str(run) in shown.out, shown.err
    again = load_file(kept)
    assert all(torch.equal(whole[name], again[name]) for name in whole)  # --threads 1 and --keep were remembered too
    data.rename(tmp_path / "moved")
    shown = keypatch("train", "--resume", run)
    assert shown.code == 2
    assert f"was trained on {data}, which no longer exists" in shown.err and f"--resume {run} --data" in shown.err
    shown = keypatch("train", "--resume", run, "--data", tmp_path / "moved", "--validation", tmp_path / "moved")
    assert shown.code == 0, shown.err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--resume", "none"], ["There is no run to resume in none"]),
        (["--resume", "run", "--out", "other"], ["--out other has no effect with --resume"]),
        (["--resume", "run", "--pairs", "128"], ["was started with another recipe"]),
        (["--resume", "old"], ["old does not record where its data is", "--data"]),
        (["--data", "embedded"], ["No recipe given", "--resume"]),
        (["hardnet"], ["No training data given", "--data"]),
    ],
)
def test_what_cannot_be_resumed_is_told(
    keypatch: Callable, phototour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], parts: list
) -> None:
    monkeypatch.chdir(tmp_path)
    assert keypatch("train", "hardnet", "--data", phototour, "--out", "run", "--pairs", 32, *THIN).code == 0
    shutil.copytree("run", "old")
    Path("old", "run.json").unlink()
    shown = keypatch("train", *words)
    assert shown.code == 2 and all(part in shown.err for part in parts), shown.err


def test_what_a_killed_run_left_is_removed(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert keypatch("train", "hardnet", "--data", phototour, "--out", run, "--pairs", 32, *THIN).code == 0
    left = [run / "checkpoints" / ".step-000000002.safetensors.1-a.partial", run / ".card.json.1-a.partial"]
    for file in left:
        file.write_bytes(b"half")
    assert keypatch("train", "--resume", run).code == 0
    assert not any(file.exists() for file in left)


def test_a_missing_data_folder_is_named(keypatch: Callable, tmp_path: Path) -> None:
    shown = keypatch("train", "hardnet", "--data", tmp_path / "liberty", "--out", tmp_path / "run")
    assert shown.code == 2
    assert str(tmp_path / "liberty") in shown.err


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else False, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    shown = keypatch("train", "hardnet", "--data", phototour, "--out", tmp_path / "run", "--pairs", 32, *THIN)
    tmp_path.chmod(0o700)
    assert shown.code == 2
    assert str(tmp_path / "run") in shown.err


def test_an_out_path_that_is_a_file_is_named(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    shown = keypatch("train", "hardnet", "--data", phototour, "--out", tmp_path / "run", "--pairs", 32, *THIN)
    assert shown.code == 2
    assert str(tmp_path / "run") in shown.err


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_saves_a_checkpoint_exits_with_130_and_the_run_can_be_resumed(phototour: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["train", "hardnet", "--data", str(phototour), "--out", str(out), "--pairs", "16000", *THIN]
    command = [sys.executable, "-m", "keypatch", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (out / "log.jsonl").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"keypatch train --resume {out} resumes it" in errors
    assert "Traceback" not in errors
    assert list((out / "checkpoints").glob("*.safetensors"))
    again = [*command[:3], "train", "--resume", str(out)]
    resumed = subprocess.run(again, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads((out / "log.jsonl").read_text().splitlines()[-1])["pairs"] == 16000
