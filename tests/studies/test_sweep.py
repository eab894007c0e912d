"""Sweeps: arms and labels from varied fields, one folder for rows that differ in anything, wrong values, stops."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks.contamination import Contamination, seen_patches
from keypatch.errors import DataError, Interrupted, KeypatchError, RecipeError, Taken
from keypatch.files import lock, write_json
from keypatch.patches import open_patches
from keypatch.patches.phototour import find_pair_lists, write_phototour
from keypatch.patches.sources import TrainingSet, remember
from keypatch.recipes import HARDNET, HYNET
from keypatch.studies import study as engine
from keypatch.studies.cost import Pace
from keypatch.studies.held_out import hold_out, keep_held_out
from keypatch.studies.study import Arm, run_study
from keypatch.studies.sweep import Varied, label_of, parse_seeds, study_sweep, sweep_arms
from keypatch.studies.table import Table
from keypatch.studies.verdicts import study_compare
from keypatch.training.conditions import Conditions
from keypatch.training.recipe_files import read_recipe

THIN = ("network.width=4", "network.dim=16", "sampler.pairs=32")
EXACT = Conditions("cpu", "float32", "off", threads=1)
MARGINS = ("loss.margin=0.5,1",)


@pytest.fixture(scope="module")
def train_set(small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The points of the small set, which is scored on, seen the other way round."""
    patches = open_patches(small_set)
    folder = tmp_path_factory.mktemp("sets") / "turned"
    write_phototour(folder, np.ascontiguousarray(patches.patches[:, ::-1]), patches.point_id)
    return folder


@pytest.fixture
def sweep(small_set: Path, train_set: Path, tmp_path: Path) -> Callable[..., Table]:
    """sweep(...) -> its table, of a thin HardNet with two margins and four steps unless told otherwise."""

    def call(data: Any = train_set, **changes: Any) -> Table:
        how = {field.name: changes.pop(field.name) for field in fields(Conditions) if field.name in changes}
        usual = {"out": tmp_path / "study", "vary": MARGINS, "pairs": 128, "settings": THIN, "tests": [small_set]}
        recipes = changes.pop("recipes", ["hardnet"])
        return study_sweep(recipes, data, conditions=replace(EXACT, **how), **{**usual, **changes})

    return call


@dataclass(frozen=True)
class Remembering:
    """Of a describer what is asked about its training."""

    training: tuple[TrainingSet, ...]


def labels(recipes: list[Any], *vary: str, pairs: int | None = 1024, settings: tuple[str, ...] = ()) -> list[str]:
    return [arm.label for arm in sweep_arms(recipes, vary, pairs, (*settings, "sampler.pairs=32"))]


def test_every_value_is_combined_with_every_other_and_every_recipe() -> None:
    assert labels(["hardnet", HYNET], "optimizer.lr=0.1,1", "loss.margin=1,2") == [
        f"{recipe} loss.margin={margin} optimizer.lr={lr}"
        for recipe in ("hardnet", "hynet")
        for lr in ("0.1", "1")
        for margin in ("1", "2")
    ]


def test_labels_do_not_depend_on_how_values_and_order_are_written() -> None:
    assert labels(["hynet"], "loss.alpha=2.0") == labels(["hynet"], "loss.alpha= 2e0 ") == ["hynet loss.alpha=2"]
    assert set(labels(["hynet"], "loss.alpha=1,2", "optimizer.lr=.1")) == set(
        labels(["hynet"], "optimizer.lr=0.1", "loss.alpha=2,1")
    )
    assert labels(["hardnet"], "pairs=1000000", pairs=None) == ["hardnet pairs=1000000"]


def test_the_order_of_paths_does_not_split_a_curve() -> None:
    paths = ("optimizer.lr=0.1", "loss.margin=1")
    [one], [two] = (sweep_arms(["hardnet"], vary, 1024, ["sampler.pairs=32"]) for vary in (paths, paths[::-1]))
    assert list(one.varied.items()) == list(two.varied.items()) == [("loss.margin", "1"), ("optimizer.lr", "0.1")]
    assert one.label == two.label == "hardnet loss.margin=1 optimizer.lr=0.1"


def test_the_fields_are_those_that_the_label_says() -> None:
    one, two = sweep_arms(["hynet"], ["loss.alpha=1,3"], 4096, ["optimizer.lr=0.5"])
    assert [arm.recipe.loss[0].alpha for arm in (one, two)] == [1.0, 3.0]
    assert {arm.recipe.optimizer.lr for arm in (one, two)} == {0.5}
    assert replace(one.recipe, loss=two.recipe.loss) == two.recipe
    assert one.varied == {"loss.alpha": "1"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("augment.shared=[],[flips],[flips, crop]", ("[]", "[flips]", "[flips,crop]")),
        ("schedule.at=[0.1,0.2],[0.5]", ("[0.1,0.2]", "[0.5]")),
        ('mining=none,{type="Hardest", x=1}', ("none", '{type="Hardest", x=1}')),
        ('name2="a,b",c', ('"a,b"', "c")),
    ],
)
def test_commas_inside_brackets_belong_to_a_value(text: str, values: tuple[str, ...]) -> None:
    assert Varied.of(text).values == values


def test_tuples_and_parts_can_be_varied() -> None:
    shared = sweep_arms(["hardnet"], ["augment.shared=[],[flips,crop]"], 1024)
    assert [arm.recipe.augment.shared for arm in shared] == [(), ("flips", "crop")]
    weights = sweep_arms(["adasample"], ["weighting=none,InverseDistance"], 1024)
    assert weights[0].recipe.weighting is None and weights[1].recipe.weighting is not None
    assert [arm.label for arm in shared] == ["hardnet augment.shared=[]", "hardnet augment.shared=[flips,crop]"]


def test_recipes_are_taken_as_published_before_anything_is_varied(sweep: Callable[..., Table], tmp_path: Path) -> None:
    ours, theirs = (
        sweep_arms(["hynet"], ["loss.alpha=1,2"], 1024, ["sampler.pairs=32"], published) for published in (False, True)
    )
    assert [arm.label for arm in theirs] == ["hynet as published loss.alpha=1", "hynet as published loss.alpha=2"]
    assert {arm.recipe.form for arm in theirs} == {"as published"}
    assert {arm.recipe.form for arm in ours} == {"with our detector noise (1)"}
    with pytest.raises(RecipeError, match='"small" is not a recipe from a paper'):
        sweep_arms(["small"], [], 1024, ["sampler.pairs=32"], True)
    sweep(vary=())
    assert "Recipes: with our detector noise (1)." in (tmp_path / "study" / "table.md").read_text()
    sweep(vary=(), published=True)
    page = (tmp_path / "study" / "table.md").read_text()
    assert "| hardnet | with our detector noise (1) |" in page
    assert "| hardnet as published | as published, but with " in page


def test_what_a_file_name_cannot_hold_and_what_is_too_long_still_makes_a_label() -> None:
    assert label_of("hynet", {"a": '{x="C:/y"}'}) == "hynet a={x=-C--y-}"
    long = [label_of("hynet", {"schedule.at": f"[{'0.1,' * 100}{end}]"}) for end in (1, 2)]
    assert max(map(len, long)) < 150 and len(set(long)) == 2
    assert [Arm(label, HYNET).label for label in long] == long


@pytest.mark.parametrize("label", ["", "a/b", "a\\b", "..", ".hidden", "a:b", "line\nbreak", "x" * 200])
def test_a_label_that_cannot_be_a_file_name_is_refused(label: str) -> None:
    with pytest.raises(RecipeError, match="cannot be a file name"):
        Arm(label, HYNET)


@pytest.mark.parametrize(
    ("vary", "changes", "part"),
    [
        (["loss.alpa=1,2"], {"recipes": ["hynet"]}, r'^hynet: --vary loss.alpa=1: .*Did you mean "alpha"'),
        (["loss.alpha=1,2"], {"recipes": ["hynet", "hardnet"]}, r"^hardnet: --vary loss.alpha=1: .*alpha"),
        (["los.margin=1"], {}, r'^hardnet: --vary los.margin=1: .*Did you mean "loss"'),
        (["loss.margin=1,wide"], {}, "^hardnet: --vary loss.margin=wide.* must be a finite number, not 'wide'"),
        (["sampler.pairs=2.5"], {}, "^hardnet: --vary sampler.pairs=2.5 must be an integer"),
        (["loss.margin=1,1.0"], {}, "the value 1 is given twice"),
        (["augment.flips=none,sideways"], {}, "must be one of none, dihedral"),
        (["loss.margin="], {}, "expected PATH=V1,V2"),
        (["loss.margin=1,,2"], {}, "expected PATH=V1,V2"),
        (["loss.margin"], {}, "expected PATH=V1,V2"),
        (["=1"], {}, "expected PATH=V1,V2"),
        (["seed=1,2"], {}, r"^--vary seed=1,2: the study sets seed itself\. Use --seeds\.$"),
        ([], {"settings": ["seed=5"]}, r"^--set seed=5: the study sets seed itself\. Use --seeds\.$"),
        ([], {"settings": ["name = mine"]}, "^--set name = mine: .* Use recipes under their own names"),
        (["loss.margin=1", "loss.margin=2"], {}, "given twice"),
        (["optimizer.lr=1"], {"settings": ["optimizer.lr=2"]}, "contradict"),
        (["pairs=100,200"], {"pairs": 64}, "--pairs 64 contradicts"),
        (["loss.margin=1"], {"pairs": None}, "Give the training budget"),
        (["sampler.pairs=32,64"], {"pairs": 48}, "^hardnet: .*budget of 48 pairs is less than one batch of 64"),
        (["augment.shared=[flips],flips"], {}, "are the same recipe"),
        ([], {"recipes": ["hardnt"]}, 'Did you mean "hardnet"'),
        ([], {"recipes": []}, "No recipe given"),
        ([], {"recipes": ["hardnet", "hardnet"]}, 'Two rows would be named "hardnet-0"'),
    ],
)
def test_wrong_values_are_one_sentence_before_anything_is_written(
    sweep: Callable[..., Table], tmp_path: Path, vary: list[str], changes: dict[str, Any], part: str
) -> None:
    with pytest.raises(RecipeError, match=part):
        sweep(
            vary=vary, **{"settings": () if any(each.startswith("sampler") for each in vary) else THIN[2:], **changes}
        )
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("text", ["", "0,", "0,-1", "a", "1.5"])
def test_seeds_are_integers(text: str) -> None:
    with pytest.raises(KeypatchError, match="--seeds"):
        parse_seeds(text)
    assert parse_seeds("0, 12") == (0, 12)


def test_rows_of_a_folder_differ_in_recipe_batch_budget_and_any_field(
    sweep: Callable[..., Table], tmp_path: Path
) -> None:
    thin = THIN[:2]
    sweep(seeds=(0, 1))
    table = sweep(vary=["sampler.pairs=16,32", "pairs=64,96"], pairs=None, settings=thin, recipes=["sosnet"])
    assert len(table.lines) == 6
    assert {line.label for line in table.lines} >= {
        "hardnet loss.margin=0.5",
        "hardnet loss.margin=1",
        "sosnet pairs=64 sampler.pairs=16",
    }
    run = tmp_path / "study" / "runs" / "sosnet pairs=96 sampler.pairs=16-0" / "recipe.toml"
    assert (read_recipe(run).pairs, read_recipe(run).sampler.pairs) == (96, 16)
    page = (tmp_path / "study" / "table.md").read_text()
    assert "| arm | pairs | batch | d |" in page
    assert page.index("| sosnet pairs=64 sampler.pairs=32 |") < page.index("| sosnet pairs=96 sampler.pairs=16 |")
    entry = next(
        each
        for each in json.loads((tmp_path / "study" / "table.json").read_text())["lines"]
        if each["label"] == "sosnet pairs=96 sampler.pairs=16"
    )
    assert (entry["recipe"], entry["pairs"], entry["batch"]) == ("sosnet", 96, 16)
    assert entry["varied"] == {"pairs": "96", "sampler.pairs": "16"}


def test_one_recipe_under_two_labels_gives_the_same_scores(train_set: Path, small_set: Path, tmp_path: Path) -> None:
    thin = sweep_arms(["hardnet"], [], 128, THIN)[0].recipe
    arms = [Arm("first", thin), Arm("second", thin)]
    table = run_study(arms, train_set, tmp_path, EXACT, tests=[small_set], shares=())
    first, second = table.lines
    assert {first.label, second.label} == {"first", "second"}
    assert first.rows[0].milestones[-1].scores == second.rows[0].milestones[-1].scores


def test_a_label_with_another_recipe_is_refused_in_the_same_folder(sweep: Callable[..., Table]) -> None:
    sweep()
    with pytest.raises(KeypatchError, match="another recipe of the same name"):
        sweep(pairs=256)


def test_data_and_conditions_must_be_the_same_in_a_folder(
    sweep: Callable[..., Table], tmp_path: Path, train_set: Path
) -> None:
    sweep()
    with pytest.raises(KeypatchError, match="threads = 1, not 2"):
        sweep(threads=2)
    with pytest.raises(KeypatchError, match="data = turned, not other"):
        sweep(shutil.copytree(train_set, tmp_path / "other"))
    with pytest.raises(KeypatchError, match=r"without held_out, not with held_out = 0\.25\. .* leave it out, or"):
        sweep(held_out=0.25)


def test_other_pixels_of_the_same_points_are_other_data(
    sweep: Callable[..., Table], tmp_path: Path, train_set: Path
) -> None:
    sweep()
    patches, inverted = open_patches(train_set), tmp_path / "elsewhere" / train_set.name
    write_phototour(inverted, 255 - patches.patches, patches.point_id)
    with pytest.raises(KeypatchError, match=r"holds a study on other patches called turned\..* use the same data, or"):
        sweep(inverted)
    path = tmp_path / "study" / "study.json"
    value = json.loads(path.read_text())
    del value["identity"]
    path.write_text(json.dumps({**value, "format_number": 2}))
    sweep(inverted)  # what a folder of before does not say is not compared
    assert sweep(shutil.copytree(train_set, tmp_path / "copy" / train_set.name)).unfinished == ()


def test_of_processes_started_together_the_second_is_refused_under_other_conditions(
    sweep: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first writes study.json after the second has looked for one."""
    first = {"format": "keypatch-study", "format_number": 3, "data": "another"}
    original = engine.check_conditions

    def check(folder: Path, conditions: Any) -> None:
        original(folder, conditions)
        if not (folder / "study.json").exists():
            write_json(folder / "study.json", first)

    monkeypatch.setattr(engine, "check_conditions", check)
    with pytest.raises(KeypatchError, match="data = another, not turned"):
        sweep(held_out=0.25)
    assert json.loads((tmp_path / "study" / "study.json").read_text()) == first
    assert not (tmp_path / "study" / "held-out").exists()


def test_a_table_is_written_by_one_process_at_a_time(train_set: Path, small_set: Path, tmp_path: Path) -> None:
    """From reading the rows on, so that none writes what it read before another wrote newer ones."""
    pages = list[Table]()

    def page(path: Path, table: Table) -> None:
        with pytest.raises(Taken), lock(path.with_name(".study.lock"), "it"):
            pass
        pages.append(table)

    arms = sweep_arms(["hardnet"], [], 128, THIN)
    table = run_study(arms, train_set, tmp_path, EXACT, tests=[small_set], shares=(), page=page)
    assert pages[-1] == table and len(pages) == 2


def test_runs_are_scored_at_the_end_and_where_they_were_kept(sweep: Callable[..., Table], tmp_path: Path) -> None:
    table = sweep(keep=(0.5,))
    assert [each.share for each in table.lines[0].rows[0].milestones] == [0.5, 1.0]
    before = (tmp_path / "study" / "rows" / "hardnet loss.margin=1-0.json").read_bytes()
    assert sweep(keep=(0.25,)).unfinished == ()  # was not kept, so there is nothing to score
    assert (tmp_path / "study" / "rows" / "hardnet loss.margin=1-0.json").read_bytes() == before


def test_training_data_are_not_test_data(sweep: Callable[..., Table], small_set: Path, tmp_path: Path) -> None:
    for data in (small_set, shutil.copytree(small_set, tmp_path / "copy")):
        with pytest.raises(KeypatchError, match='"small" would be both trained and scored on'):
            sweep(data)
    assert not (tmp_path / "study").exists()


def strips(folder: Path, *sequences: str) -> Path:
    """Sequences of ten points, each with pixels of its own."""
    for number, name in enumerate(sequences):
        column = np.random.default_rng(number).integers(0, 256, (10 * 65, 65), dtype=np.uint8)
        (folder / name).mkdir(parents=True)
        for strip in ("ref", *(f"{level}{k}" for level in "eht" for k in range(1, 6))):
            Image.fromarray(column).save(folder / name / f"{strip}.png")
    return folder


def test_the_three_tasks_are_scored_where_a_split_is_named(
    sweep: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained on one part of a split and scored on the other, in one folder; a renamed copy of the first is refused."""
    monkeypatch.setattr("keypatch.benchmarks.hpatches.lists.PAIRS", 300)
    parts = {"a": {"train": "v_one v_two", "test": "i_three v_four"}, "full": {"test": "v_one v_two i_three v_four"}}
    monkeypatch.setattr("keypatch.patches.hpatches._splits", lambda: parts)
    folder = strips(tmp_path / "strips", "v_one", "v_two", "i_three", "v_four")
    usual = {"hpatches": folder, "tests": [], "vary": (), "settings": (*THIN[:2], "sampler.pairs=8"), "pairs": 32}
    table = sweep(folder, split="a", **usual)
    assert {column.test for column in table.columns} == {"strips-a"}
    assert {"verification.ap", "matching.map", "retrieval.map", "rank1.h"} <= {column.score for column in table.columns}
    assert not any("v_four" in column.score for column in table.columns)
    assert [column.score for column in table.headlines] == ["matching.map"]
    copy = tmp_path / "copy"
    shutil.copytree(folder / "v_one", copy / "v_other")
    for trained, split in ((folder, "full"), (copy, "full")):
        with pytest.raises(KeypatchError, match='"strips-full" would be both trained and scored on'):
            sweep(trained, split=split, out=tmp_path / "other", **usual)
    with pytest.raises(KeypatchError, match="--split a has no effect without strips"):
        sweep(split="a")
    with pytest.raises(DataError, match='no split "d"'):
        sweep(split="d", **usual)


def test_a_part_of_the_points_is_held_out(sweep: Callable[..., Table], tmp_path: Path, train_set: Path) -> None:
    table = sweep(tests=[], held_out=0.25, settings=(*THIN[:2], "sampler.pairs=16"))
    assert {column.test for column in table.columns} == {"held-out"}
    held, whole = open_patches(tmp_path / "study" / "held-out"), open_patches(train_set)
    assert len(np.unique(held.point_id)) == 20
    assert [pairs.name.split("_")[0] for pairs in find_pair_lists(held)] == ["hard", "m50"]
    left, _ = hold_out(whole, 0.25)
    trained = left.point_id[left.classes().members]
    assert left.classes().count == 60
    assert not set(trained) & set(held.point_id)
    with pytest.raises(KeypatchError, match=r"with held_out = 0\.25, not without it\. .* use the same value, or"):
        sweep()
    with pytest.raises(KeypatchError, match=r"held_out = 0\.25, not 0\.5"):
        sweep(held_out=0.5)


def test_points_held_out_are_no_test_of_a_training_on_all_points(
    sweep: Callable[..., Table], tmp_path: Path, train_set: Path
) -> None:
    left, held = hold_out(open_patches(train_set), 0.25)
    place = keep_held_out(tmp_path / "points", held, write=True).folder
    with pytest.raises(KeypatchError, match='"points" would be both trained and scored on'):
        sweep(tests=[place])
    assert not (tmp_path / "study").exists()
    describer = Remembering(remember(open_patches(train_set)))
    assert seen_patches(describer, open_patches(place)) == Contamination(1, 1, ("points",))
    assert seen_patches(Remembering(remember(left)), open_patches(place)) is None  # trained without them


def test_a_test_set_must_not_share_the_name_of_the_points_held_out(
    sweep: Callable[..., Table], tmp_path: Path, small_set: Path
) -> None:
    with pytest.raises(KeypatchError, match='Two test sets are called "held-out"'):
        sweep(tests=[shutil.copytree(small_set, tmp_path / "held-out")], held_out=0.25)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("share", "part"), [(0, "between 0 and 1"), (1.5, "between 0 and 1"), (0.001, "leaves 80 points")]
)
def test_a_share_that_leaves_nothing_is_refused(
    sweep: Callable[..., Table], tmp_path: Path, share: float, part: str
) -> None:
    with pytest.raises(KeypatchError, match=part):
        sweep(held_out=share)
    assert not (tmp_path / "study").exists()


def test_a_dry_sweep_counts_runs_pairs_and_hours_and_writes_nothing(
    sweep: Callable[..., Table], tmp_path: Path
) -> None:
    table = sweep(seeds=(0, 1, 2), dry=True, held_out=0.25)
    assert not (tmp_path / "study").exists()
    assert table.cost is not None
    assert (table.cost.runs, table.cost.pairs) == (6, 768)
    assert [arm.label for arm in table.cost.arms] == ["hardnet loss.margin=0.5", "hardnet loss.margin=1"]
    assert len({arm.rate for arm in table.cost.arms}) == 1  # one pace, timed once
    assert table.cost.hours > 0
    assert table.cost.sentence().startswith("6 runs, 768 pairs, about ")


def test_rows_alone_are_enough_to_go_on(sweep: Callable[..., Table], tmp_path: Path) -> None:
    """What a study keeps in version control: neither runs nor held-out patches."""
    done = sweep(vary=["loss.margin=1"], held_out=0.25)
    for part in ("runs", "held-out"):
        shutil.rmtree(tmp_path / "study" / part)
    cost = sweep(dry=True, held_out=0.25).cost
    assert cost is not None and [arm.label for arm in cost.arms] == ["hardnet loss.margin=0.5"]
    again = sweep(held_out=0.25)
    assert not (tmp_path / "study/runs/hardnet loss.margin=1-0").exists()
    assert [line.rows[0] for line in again.lines if line.label == done.lines[0].label] == [done.lines[0].rows[0]]


def test_the_rates_of_finished_rows_are_taken_for_what_is_left(
    sweep: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = sweep(vary=["loss.margin=1"])
    monkeypatch.setattr("keypatch.studies.cost.train", None)  # nothing is timed
    cost = sweep(seeds=(0, 1), dry=True).cost
    assert cost is not None
    assert [(arm.label, arm.runs) for arm in cost.arms] == [
        ("hardnet loss.margin=0.5", 2),
        ("hardnet loss.margin=1", 1),
    ]
    assert cost.arms[0].rate == done.lines[0].rows[0].rate


def test_a_run_at_its_end_costs_no_training(
    sweep: Callable[..., Table], small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(vary=["loss.margin=1"], seeds=(0, 1))
    shutil.rmtree(tmp_path / "study" / "runs" / "hardnet loss.margin=1-1")
    other = shutil.copytree(small_set, tmp_path / "other")
    monkeypatch.setattr("keypatch.studies.cost.time_describing", lambda *_: Pace(1.0, 1))
    cost = sweep(vary=["loss.margin=1"], seeds=(0, 1), tests=[small_set, other], dry=True).cost
    assert cost is not None
    assert (cost.runs, cost.pairs) == (1, 128)
    assert cost.arms[0].training_hours == pytest.approx(128 / cost.arms[0].rate / 3600)
    assert cost.arms[0].scoring_hours == pytest.approx(
        3 * len(open_patches(small_set)) / 3600
    )  # one on one, one on both


def test_a_dry_sweep_that_is_stopped_names_no_run(
    sweep: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Interrupted("a run keeps a checkpoint")

    monkeypatch.setattr("keypatch.studies.cost.train", stop)
    monkeypatch.setattr("keypatch.studies.cost._TIMED", {})
    with pytest.raises(Interrupted, match="Stopped; nothing was written"):
        sweep(dry=True)
    assert not (tmp_path / "study").exists()


def test_a_row_that_another_process_is_still_scoring_is_not_finished(
    sweep: Callable[..., Table], small_set: Path, tmp_path: Path
) -> None:
    sweep(vary=())
    other = shutil.copytree(small_set, tmp_path / "other")
    with lock(tmp_path / "study" / "rows" / ".hardnet-0.lock", "it"):
        table = sweep(vary=(), tests=[small_set, other])
    assert [line.label for line in table.lines] == ["hardnet"]
    assert [row.name for row in table.unfinished] == ["hardnet-0"]
    assert sweep(vary=(), tests=[small_set, other]).unfinished == ()


def test_arms_of_a_study_are_compared_by_their_labels(sweep: Callable[..., Table], tmp_path: Path) -> None:
    table = sweep(seeds=(0, 1))
    compared = study_compare(tmp_path / "study", "hardnet loss.margin=1", "hardnet loss.margin=0.5")
    [difference] = compared.differences
    scores = {line.label: line.scores(difference.column) for line in table.lines}
    assert difference.gains == pytest.approx(
        np.subtract(scores["hardnet loss.margin=0.5"], scores["hardnet loss.margin=1"])
    )
    with pytest.raises(DataError, match="is not a study"):
        study_compare(tmp_path / "nowhere", "a", "b")


DIES_IN_THE_SECOND_RUN = """
import os, signal, sys
import keypatch as kp
from keypatch.training import loop

halves = []

def die_in_the_second(done, total, unit):
    if done == 160:
        halves.append(done)
    if len(halves) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

loop._LOG_SECONDS = 0.0  # every step is told
data, test, out, vary, *thin = sys.argv[1:]
conditions = kp.Conditions("cpu", "float32", "off", threads=1, checkpoint_seconds=0)
kp.study_sweep(["hardnet"], data, out, conditions, vary=[vary], pairs=320, seeds=(0, 1), settings=thin, tests=[test],
    progress=die_in_the_second)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_killed_sweep_resumes_to_the_same_table(
    sweep: Callable[..., Table], tmp_path: Path, small_set: Path, train_set: Path
) -> None:
    command = [sys.executable, "-c", DIES_IN_THE_SECOND_RUN, train_set, small_set, tmp_path / "study", *MARGINS, *THIN]
    killed = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list((tmp_path / "study" / "rows").glob("*.json"))) == 1
    counted = list[int]()
    table = sweep(seeds=(0, 1), pairs=320, progress=lambda done, total, unit: counted.append(done))
    assert counted[0] == 128, "the checkpoint before the step at which it was killed"
    whole = sweep(seeds=(0, 1), pairs=320, out=tmp_path / "whole")
    assert table.unfinished == ()
    assert scores_of(table) == scores_of(whole)


def scores_of(table: Table) -> dict[str, Any]:
    return {row.name: row.milestones[-1].scores for line in table.lines for row in line.rows}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_two_processes_share_the_rows_of_a_folder(
    sweep: Callable[..., Table], tmp_path: Path, small_set: Path, train_set: Path
) -> None:
    words = ["hardnet", "--vary", *MARGINS, "--seeds", "0,1", "--data", train_set, "--test", small_set, "--pairs", 128]
    words += [word for setting in THIN for word in ("--set", setting)]
    words += ["--device", "cpu", "--precision", "float32", "--compile", "off", "--threads", 1]
    command = [sys.executable, "-m", "keypatch", "study", "sweep", *map(str, words), "--out", str(tmp_path / "study")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    both = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    steps = [json.loads(path.read_text())["milestones"] for path in (tmp_path / "study" / "rows").glob("*.json")]
    assert len(steps) == 4 and all(len(each) == 1 for each in steps)
    trained = sum(line.startswith("128 of 128 pairs") for text in told for line in text.splitlines())
    assert trained == 4, told  # each row once
    assert scores_of(sweep(seeds=(0, 1))) == scores_of(sweep(seeds=(0, 1), out=tmp_path / "alone"))


def test_hardnet_is_what_the_settings_make_of_it() -> None:
    """A guard of the fixtures above: the varied margin is HardNet's own at 1."""
    [arm] = sweep_arms([HARDNET], ["loss.margin=1"], HARDNET.pairs)
    assert arm.recipe == HARDNET
