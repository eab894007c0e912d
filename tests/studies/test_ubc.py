"""The six splits end to end: three tiny runs, three tiny sets, one table."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks.comparison import compare
from keypatch.benchmarks.result import Result, load_result
from keypatch.benchmarks.ubc import evaluate_ubc
from keypatch.commands.train import train
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.reports.protocols import Source, group
from keypatch.studies.scoring import SCORES_ONLY
from keypatch.studies.ubc.study import study_ubc
from keypatch.studies.ubc.table import UbcTable, load_ubc_rows
from keypatch.training.conditions import Conditions
from keypatch.zoo import load

POINTS = {"liberty": 40, "notredame": 44, "yosemite": 48}
VIEWS = 4
PAIRS = "m50_80_80_0"
COLUMNS = ["ND->LIB", "YOS->LIB", "LIB->ND", "YOS->ND", "LIB->YOS", "ND->YOS"]
EXACT: dict[str, Any] = {"device": "cpu", "precision": "float32"}
THIN = ("sampler.pairs=16", "network.width=4", "network.dim=16")


@pytest.fixture(scope="module", autouse=True)
def cache_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYPATCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def write_set(folder: Path, points: int, seed: int) -> None:
    """One sheet of noisy views in PhotoTour layout, with a list of 40 matching and 40 other pairs."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (points, 8, 8)).repeat(8, axis=1).repeat(8, axis=2)
    cells = np.zeros((256, 64, 64))
    cells[: points * VIEWS] = coarse.repeat(VIEWS, axis=0) + rng.normal(0, 180, (points * VIEWS, 64, 64))
    sheet = cells.reshape(16, 16, 64, 64).transpose(0, 2, 1, 3).reshape(1024, 1024)
    Image.fromarray(sheet.clip(0, 255).astype(np.uint8)).save(folder / "patches0000.bmp")
    (folder / "info.txt").write_text("".join(f"{i // VIEWS} 0\n" for i in range(points * VIEWS)))
    pairs = [(VIEWS * p, p, VIEWS * q + 1, q) for p in range(40) for q in (p, (p + 7) % 40)]
    (folder / f"{PAIRS}.txt").write_text("".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in pairs))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phototour")
    for seed, (name, points) in enumerate(POINTS.items()):
        write_set(folder / name, points, seed)
    return folder


def train_thin(data: Path | list[Path], out: Path, **changes: Any) -> Path:
    conditions = Conditions(**EXACT, compile="off", threads=1, keep=changes.pop("keep", ()))
    return train("hardnet", data, out, conditions, **{"settings": THIN, "pairs": 64, **changes})


def scores_of(descriptor: str | Path, folder: Path, kind: str = "fpr95") -> float:
    return evaluate_ubc(load(descriptor, **EXACT), folder, SCORES_ONLY).scores[f"{kind}.{PAIRS}"]


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Thin HardNets after four steps, with the weights after two; folders whose names say nothing."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: train_thin(data / name, folder / f"run-{len(name)}", keep=(0.5, 1.0)) for name in POINTS}


@pytest.fixture(scope="module")
def scored(data: Path, runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study of the three runs."""
    folder = tmp_path_factory.mktemp("studies") / "scored"
    study_ubc(list(runs.values()), data, folder, pair_list=PAIRS, **EXACT)
    return folder


@pytest.fixture
def finished(scored: Path, tmp_path: Path) -> Path:
    """A copy of it where `study` writes."""
    return shutil.copytree(scored, tmp_path / "study")


@pytest.fixture
def study(data: Path, runs: dict[str, Path], tmp_path: Path) -> Callable[..., UbcTable]:
    """study(...) -> the table of the three runs, unless told otherwise."""

    def call(*places: str | Path, **changes: Any) -> UbcTable:
        usual = {"data": data, "out": tmp_path / "study", "pair_list": PAIRS}
        return study_ubc(places or list(runs.values()), **{**usual, **EXACT, **changes})

    return call


def cells(page: str, title: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by their first cell."""
    lines = page.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0] or "head": row[1:] for row in rows if not set("".join(row)) <= set("-: ")}


def test_six_splits_become_a_row_in_the_papers_order(scored: Path, data: Path, runs: dict[str, Path]) -> None:
    page = (scored / "table.md").read_text()
    shown = cells(page, "FPR95 in %, last checkpoint")
    assert shown["head"] == [*COLUMNS, "Mean"]
    short = {"LIB": "liberty", "ND": "notredame", "YOS": "yosemite"}
    for kind, title in (("fpr95", "FPR95 in %"), ("ap", "Average precision in %")):
        names = [[short[name] for name in column.split("->")] for column in COLUMNS]
        expected = [100 * scores_of(runs[train_on], data / test_on, kind) for train_on, test_on in names]
        assert len(set(expected)) > 3  # numbers that would be told apart if they were mixed up
        found = [float(cell) for cell in cells(page, f"{title}, last checkpoint")["hardnet"]]
        assert found == pytest.approx([*expected, np.mean(expected)], abs=0.0051)  # two decimals
    assert "SDGMNet" in cells(page, "Published FPR95 in %") and "SDGMNet" not in shown


def test_the_best_checkpoint_stands_apart_and_is_chosen_for_each_run_on_its_two_test_sets(
    scored: Path, runs: dict[str, Path], data: Path
) -> None:
    expected = {}
    for name, run in runs.items():
        others = [other for other in POINTS if other != name]
        kept = (run / "checkpoints" / "at-050.safetensors", run)
        by_weights = [[scores_of(weights, data / other) for other in others] for weights in kept]
        expected[name] = min(by_weights, key=lambda scores: float(np.mean(scores)))
    last, best = json.loads((scored / "table.json").read_text())["rows"]
    assert (last["checkpoint"], best["checkpoint"]) == ("last", "best on the test sets")
    assert best["checkpoints_scored"] == {"liberty": 2, "notredame": 2, "yosemite": 2}
    assert [best["fpr95"][c]["score"] for c in ("LIB->ND", "LIB->YOS")] == pytest.approx(expected["liberty"])
    assert [best["fpr95"][c]["score"] for c in ("ND->LIB", "ND->YOS")] == pytest.approx(expected["notredame"])
    assert [best["fpr95"][c]["score"] for c in ("YOS->LIB", "YOS->ND")] == pytest.approx(expected["yosemite"])
    assert last["steps"] == {"liberty": 4, "notredame": 4, "yosemite": 4}
    assert best["fpr95"]["mean"]["score"] <= last["fpr95"]["mean"]["score"]
    assert best["fpr95"]["mean"]["interval"] is None  # it was chosen on these pairs
    page = (scored / "table.md").read_text()
    assert "as HyNet's and SDGMNet's code select" in page
    assert "hardnet: 2 on liberty, 2 on notredame, 2 on yosemite" in page


def test_intervals_hold_the_scores_of_the_last_checkpoints(scored: Path) -> None:
    last = json.loads((scored / "table.json").read_text())["rows"][0]
    for kind in ("fpr95", "ap"):
        for column in [*COLUMNS, "mean"]:
            low, high = last[kind][column]["interval"]
            assert low <= last[kind][column]["score"] <= high
        widths = [np.diff(last[kind][column]["interval"])[0] for column in COLUMNS]
        assert 0 < np.diff(last[kind]["mean"]["interval"])[0] < max(widths)


def test_descriptors_made_by_hand_have_three_numbers(data: Path, tmp_path: Path, finished: Path) -> None:
    alone = tmp_path / "alone"
    study_ubc([], data, alone, beside=["rootsift", "sift"], pair_list=PAIRS)
    page = (alone / "table.md").read_text()
    assert "best checkpoint" not in page
    shown = cells(page, "FPR95 in %, last checkpoint")
    for name in ("sift", "rootsift"):
        results = [scores_of(name, data / test) for test in POINTS]
        percent = [f"{100 * score:.2f}" for score in results]
        assert shown[name][:6] == [percent[0], "", percent[1], "", percent[2], ""]
        assert float(shown[name][6]) == pytest.approx(100 * np.mean(results), abs=0.0051)
    study_ubc([], data, finished, beside=["sift"], pair_list=PAIRS)  # it joins the runs
    joined = cells((finished / "table.md").read_text(), "FPR95 in %, last checkpoint")
    assert list(joined) == ["head", "hardnet", "sift"]
    assert joined["sift"] == shown["sift"]


def test_what_was_scored_is_not_scored_again(
    study: Callable[..., UbcTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[str] = []

    def counted(describer: Any, patches: Any, *rest: Any) -> Result:
        scored.append(patches.name)
        if len(scored) == 5:
            raise KeyboardInterrupt
        return evaluate_ubc(describer, patches, *rest)

    for place in ("ubc.study", "scoring"):
        monkeypatch.setattr(f"keypatch.studies.{place}.evaluate_ubc", counted)
    with pytest.raises(Interrupted, match="has what was scored so far, up to hardnet, yosemite, step 4; run the same"):
        study()
    page = (tmp_path / "study" / "table.md").read_text()  # what is there is shown
    shown = cells(page, "FPR95 in %, last checkpoint")["hardnet"]
    assert [cell == "-" for cell in shown] == [False, True, False, True, False, False, True]
    study()
    assert len(scored) == 5 + 8
    whole = (tmp_path / "study" / "table.json").read_bytes()
    study()
    assert len(scored) == 13
    assert (tmp_path / "study" / "table.json").read_bytes() == whole


def test_results_say_what_they_are_of(scored: Path) -> None:
    names = sorted(path.name for path in (scored / "results" / "hardnet").iterdir())
    assert len(names) == 12 and names[0] == "liberty-notredame-step-2.json"
    early, last = (
        load_result(scored / "results" / "hardnet" / f"liberty-notredame-step-{step}.json") for step in (2, 4)
    )
    assert (early.descriptor, early.settings["data"]) == ("hardnet", "notredame")
    assert early.notes == {"trained_on": "liberty", "step": 2}
    assert last.replicates and last.pictures and not early.replicates


def test_results_of_two_runs_on_one_set_are_compared_and_stand_in_one_table(scored: Path) -> None:
    places = [scored / "results" / "hardnet" / f"{train}-notredame-step-4.json" for train in ("liberty", "yosemite")]
    one, two = map(load_result, places)
    assert list(compare(one, two).differences)
    (table,) = group([Source(result, path.name) for result, path in zip((one, two), places, strict=True)])
    assert sorted(entry.label for entry in table.entries) == [
        f"hardnet (trained on {train})" for train in ("liberty", "yosemite")
    ]


def test_results_of_0_1_with_their_training_among_the_settings_are_read(finished: Path) -> None:
    path = finished / "results" / "hardnet" / "liberty-notredame-step-4.json"
    value = json.loads(path.read_text())
    value["settings"] |= value.pop("notes")
    path.write_text(json.dumps(value))
    result = load_result(path)
    assert result.notes == {"trained_on": "liberty", "step": 4} and "step" not in result.settings
    assert len(load_ubc_rows(finished)[0].last()) == 6


def test_a_set_behind_a_link_keeps_the_name_of_its_column(
    study: Callable[..., UbcTable], data: Path, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    for name in POINTS:
        shutil.copytree(data / name, tmp_path / f"copy of {name}")
        (tmp_path / "links" / name).symlink_to(tmp_path / f"copy of {name}", target_is_directory=True)
    study(data=tmp_path / "links")
    assert "-" not in cells((tmp_path / "study" / "table.md").read_text(), "FPR95 in %, last checkpoint")["hardnet"]


def test_other_weights_under_a_known_name_are_refused(
    study: Callable[..., UbcTable], data: Path, runs: dict[str, Path], tmp_path: Path, finished: Path
) -> None:
    before = (finished / "table.json").read_bytes()
    other = train_thin(data / "liberty", tmp_path / "other", settings=(*THIN, "seed=1"), keep=(0.5, 1.0))
    places = [other, runs["notredame"], runs["yosemite"]]
    with pytest.raises(KeypatchError, match=r"liberty-notredame-step-4\.json was made with other weights.*--name"):
        study(*places)
    assert (finished / "table.json").read_bytes() == before
    table = study(*places, name="other seed")
    assert [row.name for row in table.rows] == ["hardnet", "other seed"]


def test_results_of_a_longer_run_are_not_mixed_with_those_of_a_shorter_one(
    study: Callable[..., UbcTable], data: Path, runs: dict[str, Path], tmp_path: Path, finished: Path
) -> None:
    shorter = train_thin(data / "liberty", tmp_path / "shorter", pairs=48)
    with pytest.raises(KeypatchError, match=r"step-2\.json is from a checkpoint that these runs did not keep.*--name"):
        study(shorter, runs["notredame"], runs["yosemite"])


def test_rows_on_other_data_are_refused(
    study: Callable[..., UbcTable], data: Path, tmp_path: Path, finished: Path
) -> None:
    changed = shutil.copytree(data, tmp_path / "changed")
    (changed / "yosemite" / "hard_2_2_0.txt").write_text("0 0 0 1 0 0 0\n0 0 0 4 1 0 0\n")
    with pytest.raises(KeypatchError, match=r"holds results of hardnet on a different yosemite.*--out"):
        study(data=changed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pair_list": "m50_100000_100000_0"}, r"liberty has no list m50_1.*; its lists: m50_80_80_0\..*--pair-list"),
        ({"pair_list": "info"}, r"liberty has no list info\.txt to score"),
        ({"beside": ["hynet-notredame"]}, r"--beside hynet-notredame: choose sift or rootsift"),
        ({"name": "a/b"}, r'"a/b" cannot name a row.*--name'),
        ({"name": ".."}, r"--name: the name '\.\.' is not a plain path"),
        ({"name": "sift"}, r'"sift" cannot name a row'),
        ({"data": Path("absent")}, r"There is no folder absent"),
    ],
)
def test_wrong_options_are_told_before_anything_is_scored(
    study: Callable[..., UbcTable], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(KeypatchError, match=message):
        study(**changes)
    assert not (tmp_path / "study").exists()


def test_nothing_to_score_is_told(data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="three runs with --runs, or sift or rootsift with --beside"):
        study_ubc([], data, tmp_path / "study", pair_list=PAIRS)


def test_a_run_is_known_by_its_data_and_wrong_ones_are_told(
    study: Callable[..., UbcTable], data: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    liberty, notredame, yosemite = runs.values()
    with pytest.raises(KeypatchError, match=r"three runs, one trained on each .*, not 2"):
        study(liberty, notredame)
    with pytest.raises(KeypatchError, match=r"trained on liberty: .*run-7 and .*run-7\."):
        study(liberty, liberty, notredame)
    joined = train_thin([data / "liberty", data / "notredame"], tmp_path / "joined")
    with pytest.raises(KeypatchError, match=r"joined was trained on none of .*say which with liberty=.*joined"):
        study(joined, notredame, yosemite)
    with pytest.raises(KeypatchError, match=r"the run was trained on yosemite\. Leave out liberty="):
        study(f"liberty={yosemite}", notredame, liberty)
    other = train_thin(data / "liberty", tmp_path / "wider", settings=("sampler.pairs=16", "network.width=8"))
    with pytest.raises(KeypatchError, match="was trained with a different recipe from"):
        study(notredame, yosemite, other)
    with pytest.raises(DataError, match=r"is not a training run: there is no recipe\.toml"):
        study(data, notredame, yosemite)
    assert not (tmp_path / "study").exists()


def test_of_checkpoints_saved_by_the_clock_only_the_newest_is_scored(
    study: Callable[..., UbcTable], data: Path, tmp_path: Path
) -> None:
    always = Conditions(**EXACT, compile="off", threads=1, checkpoint_seconds=0.0, keep=(0.5,))
    runs = [train("hardnet", data / name, tmp_path / name, always, settings=THIN, pairs=64) for name in POINTS]
    assert {path.stem for path in (runs[0] / "checkpoints").glob("step-*")} == {"step-000000003", "step-000000004"}
    (row,) = study(*runs).rows
    assert {tuple(sorted(by_step)) for by_step in row.results.values()} == {(2, 4)}


def test_a_run_on_another_copy_can_be_named(
    study: Callable[..., UbcTable], data: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(data / "liberty", tmp_path / "larger")
    info = (copy / "info.txt").read_text()
    (copy / "info.txt").write_text(info + "900 0\n900 0\n")
    elsewhere = train_thin(copy, tmp_path / "elsewhere")
    table = study(f"liberty={elsewhere}", runs["notredame"], runs["yosemite"])
    assert len(table.rows[0].last()) == 6


def test_a_run_before_its_end_is_told(study: Callable[..., UbcTable], runs: dict[str, Path], tmp_path: Path) -> None:
    half = shutil.copytree(runs["liberty"], tmp_path / "half")
    for file in (half / "checkpoints").glob("*"):
        if file.name != "at-050.safetensors":
            file.unlink()
    with pytest.raises(DataError, match=r"half is not finished \(50% trained\).*--resume"):
        study(half, runs["notredame"], runs["yosemite"])
    (half / "checkpoints" / "at-050.safetensors").unlink()
    with pytest.raises(DataError, match="has no checkpoint yet"):
        study(half, runs["notredame"], runs["yosemite"])


def test_files_of_others_among_the_results_are_told(study: Callable[..., UbcTable], finished: Path) -> None:
    path = finished / "results" / "hardnet" / "liberty-notredame-step-4.json"
    value = json.loads(path.read_text())
    del value["notes"]["trained_on"]
    path.write_text(json.dumps(value))
    with pytest.raises(DataError, match=r"step-4\.json is not a result of this study"):
        study()
