"""`keypatch evaluate`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keypatch.metrics import FPR_RULES


def test_scores_are_printed_in_percent_and_written(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    shown = keypatch("evaluate", "rootsift", "--data", phototour, "--out", out)
    assert shown.code == 0
    assert str(out) in shown.out
    result = json.loads(out.read_text())
    assert result["descriptor"] == "rootsift"
    row = next(line for line in shown.out.splitlines() if line.startswith("m50_120_120_0"))
    assert row.split()[1] == f"{100 * result['scores']['fpr95.m50_120_120_0']:.2f}"


def test_the_spread_is_printed_as_a_plain_number(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    shown = keypatch("evaluate", "rootsift", "--data", phototour, "--out", tmp_path / "result.json")
    scores = json.loads((tmp_path / "result.json").read_text())["scores"]
    header, row = shown.out.splitlines()[1:3]
    assert header.split()[-2:] == ["M1", "d*M2"]
    assert row.split()[-2:] == [f"{scores['spread.m1']:.4f}", f"{scores['spread.dm2']:.4f}"]


def test_hpatches_has_a_column_per_level_and_a_row_per_sequence(keypatch: Callable, strips: Path) -> None:
    shown = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips)
    assert shown.code == 0
    assert [line.split()[0] for line in shown.out.splitlines()[2:]] == ["all", "i", "v", "i_light", "v_view"]


def test_only_the_chosen_sequence_is_scored(keypatch: Callable, strips: Path) -> None:
    shown = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips, "--sequence", "view")
    assert "v_view" in shown.out
    assert "i_light" not in shown.out


def test_help_names_every_rule(keypatch: Callable) -> None:
    shown = keypatch("evaluate", "--help").out
    assert all(rule in shown for rule in FPR_RULES)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rotsift"], ["rotsift", 'Did you mean "rootsift"']),
        (["sift", "--on", "brown"], ["brown", "ubc, hpatches"]),
        (["sift", "--rule", "rnak"], ["rnak", "rank"]),
        (["sift", "--sequence", "boat"], ["--sequence", "--on hpatches"]),
        (["sift", "--device", "tpu", "--out", "no/such/folder/r.json"], ["no/such/folder"]),
    ],
)
def test_a_wrong_argument_is_named_with_its_remedy(
    keypatch: Callable, phototour: Path, words: list[str], parts: list[str]
) -> None:
    shown = keypatch("evaluate", *words, "--data", phototour)
    assert shown.code == 2
    assert all(part in shown.err for part in parts)
    assert "Traceback" not in shown.err


def test_a_missing_folder_is_named(keypatch: Callable, tmp_path: Path) -> None:
    shown = keypatch("evaluate", "sift", "--data", tmp_path / "liberty")
    assert shown.code == 2
    assert str(tmp_path / "liberty") in shown.err


def test_rule_and_hpatches_do_not_go_together(keypatch: Callable, strips: Path) -> None:
    shown = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips, "--rule", "hynet")
    assert shown.code == 2
    assert "--rule belongs to --on ubc" in shown.err


def test_classes_of_images_have_a_column_per_k_and_a_row_of_deviations(keypatch: Callable, phototour: Path) -> None:
    shown = keypatch("evaluate", "rootsift", "--on", "embedding", "--data", phototour)
    assert shown.code == 0
    titles, *rows = shown.out.splitlines()[1:]
    assert " ".join(titles.split()) == "R@1 % R@10 % R@100 % NMI % F1 % M1 d*M2"
    assert [row.split()[0] for row in rows] == ["all", "sd"] and len(rows[1].split()) == 3
