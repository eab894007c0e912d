"""`keypatch study methods`; what it does is tested with the function behind it."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path

from keypatch.cli.study import methods
from keypatch.studies.methods import study_methods

THIN = ["--batch", 32, "--set", "network.width=4", "--set", "network.dim=16", "--threads", 1, "--compile", "off"]


def words(phototour: Path, out: Path) -> list[object]:
    usual = ["study", "methods", "--data", phototour, "--test", phototour, "--out", out, "--pairs", 128, *THIN]
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
    assert [line.split(":")[0] for line in shown.out.splitlines()] == ["hardnet-0", "sosnet-0"]
    assert not (tmp_path / "study").exists()


def test_other_conditions_exit_with_2_and_say_what_to_do(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    out.mkdir()
    (out / "study.json").write_text('{"format": "keypatch-study", "format_number": 1, "data": "liberty"}')
    shown = keypatch(*words(phototour, out))
    assert shown.code == 2
    assert "data = liberty, not small" in shown.err
    assert "--out" in shown.err


def test_study_alone_names_its_studies(keypatch: Callable) -> None:
    assert "methods" in keypatch("study", "--help").out


def test_the_command_takes_the_arguments_of_its_function() -> None:
    renamed = {"recipe": "recipes", "test": "tests", "seed": "seeds"}
    options = {renamed.get(name, name) for name in signature(methods).parameters}
    assert options == set(signature(study_methods).parameters) - {"reporter"}
