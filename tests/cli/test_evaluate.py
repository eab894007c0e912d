"""`keypatch evaluate`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keypatch.benchmarks.table import BENCHMARKS


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))


def row_of(shown: str, title: str) -> list[str]:
    return next(line for line in shown.splitlines() if line.startswith(title)).removeprefix(title).split()


def test_headline_scores_are_printed_in_percent_with_their_interval(
    keypatch: Callable, phototour: Path, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    shown = keypatch("evaluate", "rootsift", "--data", phototour, "--out", out)
    assert shown.code == 0 and shown.err == ""
    assert shown.out.splitlines()[:2] == ["rootsift on ubc, small", "Settings: rule rank"]
    assert str(out) in shown.out
    result = json.loads(out.read_text())
    assert result["descriptor"] == "rootsift"
    score, interval, *units = row_of(shown.out, "FPR95 % m50_120_120_0")
    assert score == f"{100 * result['scores']['fpr95.m50_120_120_0']:.2f}"
    low, high = map(float, interval.strip("()").split("-"))
    assert low <= float(score) <= high
    assert units == ["120", "pairs"]
    assert row_of(shown.out, "rank-1 %")[-2:] == ["60", "points"]


def test_details_follow_and_the_spread_is_a_plain_number(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    shown = keypatch("evaluate", "rootsift", "--data", phototour, "--out", tmp_path / "result.json")
    scores = json.loads((tmp_path / "result.json").read_text())["scores"]
    titles = next(line for line in shown.out.splitlines() if "M1" in line)
    assert titles.split() == ["AP", "%", "AUC", "%", "M1", "d*M2"]
    assert row_of(shown.out, "all") == [f"{scores['spread.m1']:.4f}", f"{scores['spread.dm2']:.4f}"]
    assert row_of(shown.out, "m50_120_120_0")[0] == f"{100 * scores['ap.m50_120_120_0']:.2f}"


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_narrow_terminal_cuts_nothing_off(
    keypatch: Callable, phototour: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    wide = keypatch("evaluate", "rootsift", "--data", phototour).out
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = keypatch("evaluate", "rootsift", "--data", phototour).out
    assert max(map(len, narrow.splitlines())) <= width
    assert set(wide.split()) <= set(narrow.split())


def test_hpatches_has_its_tasks_above_and_its_sequences_below(keypatch: Callable, strips: Path) -> None:
    shown = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips)
    assert shown.code == 0
    first = [line.split()[0] for line in shown.out.splitlines() if line and not line.startswith(" ")]
    assert first[:6] == ["sift", "Settings:", "verification", "verification", "matching", "retrieval"]
    assert first[6:] == ["all", "i", "v", "i_light", "v_view", *first[-1:]]
    titles = next(line for line in shown.out.splitlines() if "rank-1" in line)
    levels = ("easy", "hard", "tough")
    assert " ".join(titles.split()) == " ".join(
        [f"matching mAP {level} %" for level in levels] + [f"rank-1 {level} %" for level in levels]
    )


def test_the_last_line_says_where_the_scores_are_that_are_not_shown(
    keypatch: Callable, strips: Path, tmp_path: Path
) -> None:
    shown = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips)
    out = tmp_path / "r.json"
    written = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips, "--out", out)
    count = len(json.loads(out.read_text())["scores"])
    table = shown.out.splitlines()[:-1]
    numbers = sum(len(line.split()) - 1 for line in table[-5:]) + 4  # the headline has four
    assert shown.out.splitlines()[-1] == f"Showing {numbers} of {count} scores; --out FILE saves all of them."
    assert written.out.splitlines() == [*table, f"Written: {out}, with all {count} scores"]


def test_only_the_chosen_sequence_is_scored(keypatch: Callable, strips: Path) -> None:
    shown = keypatch("evaluate", "sift", "--on", "hpatches", "--data", strips, "--set", "sequences=view")
    assert "v_view" in shown.out
    assert "i_light" not in shown.out


def test_a_setting_reaches_the_result(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    words = ["--set", "rule=hynet", "--set", "pictures=false"]
    assert keypatch("evaluate", "sift", "--data", phototour, *words, "--out", out).code == 0
    result = json.loads(out.read_text())
    assert result["settings"]["rule"] == "hynet" and result["pictures"] == {}


def test_help_says_where_every_benchmark_is_named(keypatch: Callable) -> None:
    assert "`keypatch list benchmarks`" in " ".join(keypatch("evaluate", "--help").out.replace("│", " ").split())
    shown = keypatch("list", "benchmarks").out
    assert all(name in shown for name in BENCHMARKS)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rotsift"], ["rotsift", 'Did you mean "rootsift"']),
        (["sift", "--on", "brown"], ["brown", ", ".join(BENCHMARKS)]),
        (["sift", "--set", "rule=rnak"], ["rnak", "rank, optimistic"]),
        (["sift", "--set", "sequences=boat"], ['Ubc has no field "sequences"', "rule"]),
        (["sift", "--on", "hpatches", "--set", "rule=hynet"], ['Hpatches has no field "rule"', "sequences"]),
        (["sift", "--rule", "hynet"], ["No such option", "--rule"]),
        (["features.h5"], ["features.h5 is a feature file", "homography"]),
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


def test_descriptors_are_kept_unless_it_is_forbidden(keypatch: Callable, phototour: Path, tmp_path: Path) -> None:
    keypatch("evaluate", "sift", "--data", phototour, "--no-cache")
    assert not list((tmp_path / "cache").rglob("*.npy"))
    keypatch("evaluate", "sift", "--data", phototour)
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 1


@pytest.mark.filterwarnings("default")
def test_a_cache_that_cannot_be_written_is_one_sentence(
    keypatch: Callable, phototour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    shown = keypatch("evaluate", "sift", "--data", phototour)
    assert shown.code == 0 and "FPR95 %" in shown.out
    assert shown.err.startswith("keypatch: Descriptors cannot be cached in ") and len(shown.err.splitlines()) == 1


def test_classes_of_images_have_a_column_per_k_and_a_row_of_deviations(keypatch: Callable, phototour: Path) -> None:
    shown = keypatch("evaluate", "rootsift", "--on", "embedding", "--data", phototour)
    assert shown.code == 0
    titles = next(line for line in shown.out.splitlines() if "Recall@10 %" in line)
    assert " ".join(titles.split()) == "Recall@10 % Recall@100 % NMI % F1 % M1 d*M2"
    assert len(row_of(shown.out, "sd")) == 2
    assert row_of(shown.out, "Recall@1 %")[-1] == "images"
