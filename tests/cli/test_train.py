"""`keypatch train`: options reach the run, wrong ones are named, Ctrl-C leaves a checkpoint."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

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
        ("hardnet", ["--resume"], ["no run to resume"]),
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
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert list((out / "checkpoints").glob("*.safetensors"))
    resumed = subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=300, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads((out / "log.jsonl").read_text().splitlines()[-1])["pairs"] == 16000
