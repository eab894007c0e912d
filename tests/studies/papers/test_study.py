"""Plans made to their end on tiny data: ours beside what is printed, rows that cannot be run say so."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.errors import KeypatchError, RecipeError
from keypatch.files import read_json
from keypatch.patches import open_patches
from keypatch.patches.hpatches import STRIPS
from keypatch.patches.phototour import find_pair_lists, write_phototour
from keypatch.recipes import as_published
from keypatch.recipes.scale_aware import SCALE_AWARE
from keypatch.settings import apply_settings
from keypatch.studies.papers import photos, weights
from keypatch.studies.papers.catalogue import PLANS
from keypatch.studies.papers.ours import NOT_RUN
from keypatch.studies.papers.page import PaperPage
from keypatch.studies.papers.study import PaperSetup, study_paper
from keypatch.studies.study import Arm, run_study
from keypatch.training.conditions import Conditions
from keypatch.training.recipe import TYPES

EXACT = Conditions("cpu", "float32", "off", threads=1)
TINY = PaperSetup(pairs=32, batch=16)
QUICK = ("scale-aware-fig-8", "sdgmnet-table-2")  # in the default suite
SLOW = pytest.mark.slow
ON_PHOTOS = {"models", "poses", "matches"}
TRAINED = [name for name, plan in PLANS.items() if plan.trained and plan.form not in ON_PHOTOS]


@pytest.fixture(scope="module")
def sets(small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sets with pair lists, of other patches: the small one mirrored, and turned."""
    patches, folders = open_patches(small_set), []
    for name, axis in (("mirrored", 2), ("turned", 1)):
        folder = tmp_path_factory.mktemp("sets") / name
        lists = find_pair_lists(patches)
        write_phototour(folder, np.ascontiguousarray(np.flip(patches.patches, axis)), patches.point_id, pairs=lists)
        folders.append(folder)
    return folders


@pytest.fixture(scope="module")
def strips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sequences of six points, harder levels with more noise."""
    folder, rng = tmp_path_factory.mktemp("strips"), np.random.default_rng(0)
    for sequence in ("i_one", "v_two"):
        (folder / sequence).mkdir()
        true = np.kron(rng.integers(0, 256, (6 * 13, 13)), np.ones((5, 5)))
        for name in STRIPS:
            noise = {"r": 0, "e": 10, "h": 25, "t": 50}[name[0]] * rng.normal(size=true.shape)
            Image.fromarray(np.clip(true + noise, 0, 255).astype(np.uint8)).save(folder / sequence / f"{name}.png")
    return folder


@pytest.fixture(autouse=True)
def few_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "BATCHES", 2)


def make(name: str, data: Any, out: Path, setup: PaperSetup = TINY, **more: Any) -> PaperPage:
    return study_paper(name, data, setup, out, EXACT, **more)


def whole(page: PaperPage, folder: Path) -> None:
    """The page was made to its end: no row failed, every cell is a number, "not run" or empty, there is a picture."""
    assert not page.unfinished
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "paper.md").read_text(encoding="utf-8")
    assert "failed" not in text and "nan" not in text.split()
    assert "as published" in text or "our choices" in text
    assert read_json(folder / "paper.json")["tables"]


def cells_of_ours(page: PaperPage) -> list[str]:
    """Without printed values: those of the columns, or rows, that say ours, or everything where nothing is printed."""
    grids = page.made.grids
    told = [head.startswith("ours") for grid in grids for row in grid.rows for head in grid.head]
    cells = [cell for grid in grids for row in grid.rows for cell in row]
    if not any(told):
        rows = [row for grid in grids for row in grid.rows]
        return [cell for row in rows if not any(each.startswith("printed") for each in row) for cell in row[1:]]
    return [cell for cell, ours in zip(cells, told, strict=True) if ours]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in TRAINED]
)
def test_a_plan_runs_to_its_end(name: str, sets: list[Path], small_set: Path, strips: Path, tmp_path: Path) -> None:
    plan = PLANS[name]
    thin = ("network.width=4", "network.dim=16")
    setup = replace(TINY, pairs=1024, settings=thin) if plan.varies_batch else TINY
    data: Any = [sets[0], sets[1]] if plan.each else sets[0]
    data = "embedded" if plan.varies_batch else data  # batches of 1,024 points
    more: dict[str, Any] = {} if data == "embedded" else {"tests": [small_set, *sets[1:]] if plan.mean else [small_set]}
    if any(score.split(".")[0] in ("verification", "matching", "retrieval") for score in plan.scores):
        more["hpatches"] = strips
    page = make(name, data, tmp_path, setup, **more)
    whole(page, tmp_path)
    assert any(cell[:1].isdigit() for cell in cells_of_ours(page))
    if len(more.get("tests", ())) > 1:
        assert "ours, mean" in page.made.grids[0].head


def test_ours_stands_beside_what_is_printed_and_not_run_where_it_cannot(
    sets: list[Path], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PLANS["adasample-table-1"]
    few = tuple(row for row in plan.rows if row.label in ("SIFT", "GeoDesc", "HardNet+"))
    monkeypatch.setitem(PLANS, plan.name, replace(plan, rows=few))
    page = make(plan.name, sets, tmp_path, tests=[small_set])
    (grid,) = page.made.grids
    cells = {row[0]: dict(zip(grid.head, row, strict=True)) for row in grid.rows}
    ours = [head for head in grid.head if head.startswith("ours")]
    assert {cells["GeoDesc"][head] for head in ours} == {NOT_RUN}
    assert all(float(cells[label][head]) >= 0 for label in ("SIFT", "HardNet+") for head in ours)
    assert cells["HardNet+"]["printed, notredame > liberty"] == "1.49"
    assert cells["HardNet+"]["printed, mean"] == "1.51"
    assert cells["SIFT"]["printed, yosemite > liberty"] == cells["SIFT"]["printed, notredame > liberty"] == "29.84"
    assert any("Not run: GeoDesc" in note for note in page.notes)
    # each set is trained on by itself, and never scored on
    assert ours[-1] == "ours, mean"
    assert {head.removeprefix("ours, ").partition(":")[0] for head in ours[:-1]} == {
        "mirrored > turned",
        f"mirrored > {small_set.name}",
        "turned > mirrored",
        f"turned > {small_set.name}",
    }


def test_the_papers_score_that_no_test_set_gives_is_not_run(
    sets: list[Path], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PLANS["hynet-table-3"]
    monkeypatch.setitem(PLANS, plan.name, replace(plan, rows=plan.rows[-1:]))
    page = make(plan.name, sets[0], tmp_path, tests=[small_set])
    (grid,) = page.made.grids
    cells = dict(zip(grid.head, grid.rows[0], strict=True))
    assert cells["ours, matching mAP %"] == NOT_RUN and cells["printed, matching mAP %"] == "53.97"
    assert any("needs strips with --hpatches" in note for note in page.notes)
    assert page.conditions["recipes"] == "as published"


def test_runs_of_a_study_are_used_again_under_the_names_they_have(
    sets: list[Path], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PLANS["scale-aware-gamma"]
    monkeypatch.setitem(PLANS, plan.name, replace(plan, rows=plan.rows[2:3]))
    made = make(plan.name, sets[0], tmp_path / "first", tests=[small_set])
    row = next((tmp_path / "first" / "rows").glob("*.json"))
    before = row.stat().st_mtime_ns
    fig = PLANS["scale-aware-fig-8"]
    again = make(fig.name, sets[0], tmp_path / "second", tests=[small_set], study=tmp_path / "first")
    assert row.stat().st_mtime_ns == before and len(list((tmp_path / "first" / "rows").glob("*.json"))) == 1
    assert not (tmp_path / "second" / "runs").exists() and (tmp_path / "second" / "paper.md").exists()
    assert made.made.grids and again.made.grids


def test_a_run_with_another_name_and_an_equal_recipe_is_used(
    sets: list[Path], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a sweep without noise leaves it, whose recipe is not marked as published."""
    plan = PLANS["scale-aware-gamma"]
    monkeypatch.setitem(PLANS, plan.name, replace(plan, rows=plan.rows[2:3]))
    recipe = apply_settings(as_published(SCALE_AWARE), ["sampler.pairs=16", "pairs=32"], TYPES)
    arm = Arm("mine", replace(recipe, name="mine", published=False))
    run_study([arm], sets[0], tmp_path / "study", EXACT, tests=[small_set], shares=(1.0,))
    page = make(plan.name, sets[0], tmp_path / "page", tests=[small_set], study=tmp_path / "study")
    assert [file.name for file in (tmp_path / "study" / "rows").glob("*.json")] == ["mine-0.json"]
    assert not page.unfinished and "ours, small: m50 FPR95 %" in page.made.grids[0].head


def test_dry_shows_the_plan_with_its_cost_and_trains_nothing(
    sets: list[Path], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = make("hynet-table-2", (), tmp_path, PaperSetup(), dry=True)
    rows = {row[0]: row for row in page.made.grids[0].rows}
    assert rows["SuperPoint"][1] == NOT_RUN and rows["DoG+HyNet"][1:4] == ("hynet", "512", "44,953,600")
    plan = PLANS["scale-aware-gamma"]
    monkeypatch.setitem(PLANS, plan.name, replace(plan, rows=plan.rows[:1]))
    page = make(plan.name, sets[0], tmp_path / "none", tests=[small_set], dry=True)
    assert "1 run, 32 pairs" in page.notes[0] and not (tmp_path / "none").exists()


def test_models_poses_and_matches_without_photographs_show_what_is_printed(
    sets: list[Path], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, label, printed in (
        ("adasample-table-3", "GeoDesc", "5.00"),
        ("sdgmnet-table-3", "SDGMNet", "65.70"),
    ):
        plan = PLANS[name]
        monkeypatch.setitem(PLANS, name, replace(plan, rows=tuple(row for row in plan.rows if row.label == label)))
        page = make(name, sets[0], tmp_path / name, tests=[small_set])
        assert not (tmp_path / name / "runs").exists()  # nothing is trained that could not be tried
        (row,) = page.made.grids[0].rows
        assert printed in row and NOT_RUN in row and not any("ours" in cell for cell in row)
        assert any("not run" in note for note in page.notes)


@pytest.mark.slow
def test_matches_of_planes_are_drawn_for_every_descriptor(
    sets: list[Path], small_set: Path, tmp_path: Path, shared: Path
) -> None:
    planes = tmp_path / "planes"
    shutil.copytree(shared / "data" / "oxford" / "leuven", planes / "leuven")
    page = make("sdgmnet-fig-5", sets[0], tmp_path / "out", tests=[small_set], planes=planes)
    (grid,) = page.made.grids
    assert grid.head == ("", "HN-FRN", "HyNet", "SDGMNet") and " of " in grid.rows[0][1]
    assert (tmp_path / "out" / "figure.png").exists()


@pytest.mark.slow
def test_models_are_made_of_photographs(sets: list[Path], small_set: Path, tmp_path: Path, shared: Path) -> None:
    pytest.importorskip("pycolmap")
    scene = shared / "data" / "photos" / "et" / "images"
    page = make("adasample-table-3", sets[0], tmp_path, tests=[small_set], scenes=[scene])
    first, *others = page.made.grids
    sift = dict(zip(first.head, first.rows[0], strict=True))
    assert sift[""] == "SIFT" and float(sift["ours, points"].replace(",", "")) > 0
    assert [grid.title for grid in others] == [
        "fountain",
        "herzjesu",
        "south-building",
        "madrid_metropolis",
        "gendarmenmarkt",
    ]
    assert (tmp_path / "results").exists()


@pytest.fixture
def posed(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five photos of entry-P10 with their cameras, to be described by 300 and 500 keypoints."""
    monkeypatch.setattr(photos, "BUDGETS", {"2k": 300, "8k": 500})
    for part in ("images", "cameras"):
        (tmp_path / "posed/entry" / part).mkdir(parents=True)
        for file in sorted((shared / "data/strecha/entry-P10" / part).iterdir())[:5]:
            shutil.copy(file, tmp_path / "posed/entry" / part)
    return tmp_path / "posed"


@pytest.mark.slow
def test_poses_are_scored_in_both_tasks_with_both_budgets(
    sets: list[Path], small_set: Path, posed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pycolmap")
    plan = PLANS["sdgmnet-table-3"]
    monkeypatch.setitem(PLANS, "sdgmnet-table-3", replace(plan, rows=(plan.rows[0], plan.rows[-1])))
    page = make("sdgmnet-table-3", sets[0], tmp_path / "out", tests=[small_set], poses=posed)
    whole(page, tmp_path / "out")
    (grid,) = page.made.grids
    assert all(0 <= float(cell) <= 100 for row in grid.rows for cell in row[1:6])
    assert len(list((tmp_path / "out/results").glob("*.json"))) == 8


@pytest.mark.slow
def test_poses_are_scored_along_the_margins(
    sets: list[Path], small_set: Path, posed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PLANS["sdgmnet-fig-6a"]
    monkeypatch.setitem(PLANS, "sdgmnet-fig-6a", replace(plan, rows=plan.rows[:2]))
    page = make("sdgmnet-fig-6a", sets[0], tmp_path / "out", tests=[small_set], poses=posed)
    (grid,) = [each for each in page.made.grids if each.title.startswith("Stereo")]
    assert len(grid.rows) == 2 and all(0 <= float(row[1]) <= 100 for row in grid.rows)


def test_wrong_input_is_refused_in_a_sentence(sets: list[Path], tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="hynet-table-3 trains 8 rows: name the data with --data"):
        make("hynet-table-3", (), tmp_path)
    with pytest.raises(KeypatchError, match="the budget with --pairs"):
        make("hynet-table-3", sets[0], tmp_path, PaperSetup())
    with pytest.raises(KeypatchError, match="the budget with --pairs"):
        make("sdgmnet-fig-2", sets[0], tmp_path, PaperSetup())  # not the 200 million pairs of its recipe
    with pytest.raises(RecipeError, match="Use --pairs"):
        PaperSetup(settings=("pairs=10",))
    with pytest.raises(KeypatchError, match="both trained and scored on"):
        make("hynet-table-3", sets[0], tmp_path, tests=[sets[0]])
    with pytest.raises(RecipeError, match="no field"):
        make("hynet-table-3", sets[0], tmp_path, replace(TINY, settings=("loss.alhpa=1",)), tests=[sets[1]])
