"""`keypatch study`; what its commands do is tested with the functions behind them."""

from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from pathlib import Path

import numpy as np

from keypatch.cli.study import compare, methods, paper, sweep, ubc
from keypatch.patches import open_patches
from keypatch.patches.phototour import write_phototour
from keypatch.studies.methods import MethodsSetup, study_methods
from keypatch.studies.papers.catalogue import PLANS
from keypatch.studies.papers.study import PaperSetup, study_paper
from keypatch.studies.sweep import study_sweep
from keypatch.studies.table import PAPERS_LIST
from keypatch.studies.ubc.study import study_ubc
from keypatch.studies.verdicts import study_compare

THIN = ["--batch", 32, "--set", "network.width=4", "--set", "network.dim=16", "--threads", 1, "--compile", "off"]


def words(phototour: Path, out: Path) -> list[object]:
    """Trained on the patches of a set turned, scored on the set."""
    patches, data = open_patches(phototour), out.parent / "turned"
    write_phototour(data, np.ascontiguousarray(patches.patches[:, ::-1]), patches.point_id)
    usual = ["study", "methods", "--data", data, "--test", phototour, "--out", out, "--pairs", 128, *THIN]
    return [*usual, "--recipe", "hardnet", "--recipe", "sosnet"]


def test_the_table_is_printed_and_written(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    shown = keypatch(*words(phototour, tmp_path / "study"), "--seed", 1)
    assert shown.code == 0, shown.err
    assert "small m50 FPR95 %" in shown.out
    assert shown.out.splitlines()[0].split()[0] == "d"
    assert {line.split()[0] for line in shown.out.splitlines()} >= {"hardnet", "sosnet"}
    assert f"Written: {tmp_path / 'study' / 'table.md'}" in shown.out
    assert (tmp_path / "study" / "rows" / "hardnet-1.json").exists()
    assert "sosnet, seed 1 (2 of 2)" in shown.err  # progress goes to stderr, so that stdout can be piped


def test_a_dry_study_names_what_is_missing_and_writes_nothing(
    keypatch: Callable, phototour: Path, tmp_path: Path
) -> None:
    shown = keypatch(*words(phototour, tmp_path / "study"), "--dry")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["hardnet-0", "sosnet-0"]
    assert lines[2].split() == ["to", "do", "runs", "pairs", "pairs/s", "core-hours"]
    assert lines[-1].startswith("2 runs, 256 pairs, about ")
    assert not (tmp_path / "study").exists()


def test_other_conditions_exit_with_2_and_say_what_to_do(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    out.mkdir()
    (out / "study.json").write_text('{"format": "keypatch-study", "format_number": 1, "data": "liberty"}')
    shown = keypatch(*words(phototour, out))
    assert shown.code == 2
    assert "data = liberty, not turned" in shown.err
    assert "--out" in shown.err


def test_study_alone_names_its_studies(keypatch: Callable) -> None:
    assert "methods" in keypatch("study", "--help").out


def test_the_command_takes_the_arguments_of_its_function() -> None:
    renamed = {"recipe": "recipes", "test": "tests", "seed": "seeds"}
    options = {renamed.get(name, name) for name in signature(methods).parameters}
    of_the_function = set(signature(study_methods).parameters) - {"setup", "conditions", "progress"}
    of_the_setup = {field.name for field in fields(MethodsSetup)}
    assert options == of_the_function | of_the_setup | {"device", "precision", "compile", "threads", "cache_gradients"}


def test_a_sweep_is_printed_in_the_order_of_its_values_and_its_arms_are_compared(
    keypatch: Callable, phototour: Path, tmp_path: Path
) -> None:
    usual = words(phototour, tmp_path / "study")
    usual = ["study", "sweep", "hardnet", *usual[2 : usual.index("--batch")], "--set", "sampler.pairs=32", *THIN[2:]]
    shown = keypatch(*usual, "--vary", "loss.margin=2,0.5", "--seeds", "0,1")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["hardnet", "loss.margin=0.5"], ["hardnet", "loss.margin=2"]]
    assert lines[-1].startswith(f"Written: {tmp_path / 'study' / 'table.md'}")
    told = keypatch("study", "compare", tmp_path / "study", "hardnet loss.margin=0.5", "hardnet loss.margin=2")
    assert told.code == 0, told.err
    assert told.out.splitlines()[1].startswith("small m50 FPR95 %")
    assert "Seeds: 0, 1." in told.out and "Verdict: " in told.out
    refused = keypatch(*usual, "--vary", "loss.margn=1,2")
    assert refused.code == 2
    assert 'Did you mean "margin"' in refused.err
    assert keypatch(*usual, "--seeds", "0;1").code == 2


def test_sweep_and_compare_take_the_arguments_of_their_functions() -> None:
    renamed = {"test": "tests", "column": "columns"}
    how = {"device", "precision", "compile", "threads", "cache_gradients", "keep"}
    for command, function, more in ((sweep, study_sweep, how), (compare, study_compare, set())):
        options = {renamed.get(name, name) for name in signature(command).parameters}
        assert options == (set(signature(function).parameters) - {"conditions", "progress"}) | more


def test_the_six_splits_are_printed_in_percent_and_written(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    for name in ("liberty", "notredame", "yosemite"):
        (tmp_path / name).symlink_to(phototour, target_is_directory=True)
    usual = ["study", "ubc", "--data", tmp_path, "--out", tmp_path / "table", "--pair-list", "m50_120_120_0"]
    shown = keypatch(*usual, "--beside", "sift")
    assert shown.code == 0, shown.err
    head, row = (line.split() for line in shown.out.splitlines()[:2])
    assert head[3:] == ["ND->LIB", "YOS->LIB", "LIB->ND", "YOS->ND", "LIB->YOS", "ND->YOS", "Mean"]
    assert row[0] == "sift" and len(row) == 6 and len(set(row[2:])) == 1  # one set under three names
    assert f"Written: {tmp_path / 'table' / 'table.md'}" in shown.out
    refused = keypatch(*usual, "--runs", phototour, phototour, phototour)
    assert refused.code == 2
    assert "is not a training run" in refused.err


def test_the_ubc_command_takes_the_arguments_of_its_function() -> None:
    assert set(signature(ubc).parameters) == set(signature(study_ubc).parameters) - {"progress"}
    assert signature(ubc).parameters["pair_list"].default == PAPERS_LIST


def test_gradients_of_weights_are_printed_and_written(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    words = ["study", "gradients", "hynet-notredame", "--data", phototour, "--pairs", 8, "--out", tmp_path / "study"]
    shown = keypatch(*words, "--seeds", "0,1", "--noise", "0,1")
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[1].split()[:3] == ["hynet-notredame", "0,", "1"]
    assert f"Written: {tmp_path / 'study' / 'gradients.md'}" in shown.out
    wrong = keypatch(*words, "--seeds", "0,x")
    assert wrong.code == 2 and "seeds" in wrong.err
    assert keypatch(*words, "--pairs", 1).code == 2


def test_papers_are_listed_and_a_figure_is_made(keypatch: Callable, tmp_path: Path) -> None:
    listed = keypatch("study", "paper")
    assert listed.code == 0, listed.err
    names = [line.split()[0] for line in listed.out.splitlines()[1:]]
    assert names == list(PLANS)
    made = keypatch("study", "paper", "gor-fig-2", "--out", tmp_path)
    assert made.code == 0, made.err
    assert "GOR, Figure 2" in made.out and f"Written: {tmp_path / 'paper.md'}" in made.out
    wrong = keypatch("study", "paper", "gor-fig-22")
    assert wrong.code == 2 and 'Did you mean "gor-fig-2"' in wrong.err
    bare = keypatch("study", "paper", "hynet-table-3")
    assert bare.code == 2 and "--data" in bare.err and "--pairs" in bare.err


def test_a_dry_plan_shows_its_rows(keypatch: Callable) -> None:
    shown = keypatch("study", "paper", "hynet-table-2", "--dry")
    assert shown.code == 0, shown.err
    assert "not run" in shown.out and "44,953,600" in shown.out and "Written" not in shown.out


def test_the_paper_command_takes_the_arguments_of_its_function() -> None:
    renamed = {"test": "tests", "seed": "seeds"}
    options = {renamed.get(name, name) for name in signature(paper).parameters}
    of_the_function = set(signature(study_paper).parameters) - {"setup", "conditions", "progress"}
    of_the_setup = {field.name for field in fields(PaperSetup)}
    assert options == of_the_function | of_the_setup | {"device", "precision", "compile", "threads", "cache_gradients"}
