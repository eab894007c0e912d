"""Rows: written and read back, interpolated in time, refused where they are not rows."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from keypatch.errors import DataError
from keypatch.recipes import HYNET
from keypatch.studies.rows import Milestone, Trial, load_trials
from keypatch.training.recipe_files import write_recipe


def row(recipe: str = "hynet", seed: int = 0) -> Trial:
    milestones = tuple(
        Milestone(share, pairs, seconds, {"castle": {"fpr95.hard": score, "ap.hard": math.nan}})
        for share, pairs, seconds, score in [(0.25, 100, 10.0, 0.4), (0.5, 200, 20.0, 0.2), (1.0, 400, 50.0, 0.1)]
    )
    return Trial(recipe, seed, "ff", milestones, run={"device": "cpu"}, tests={"castle": "00"})


def test_a_row_is_read_as_it_was_written(tmp_path: Path) -> None:
    row().save(tmp_path)
    value = json.loads((tmp_path / "hynet-0.json").read_text())
    assert value["pairs_per_second"] == 8.0
    assert value["milestones"][0]["scores"]["castle"] == {"fpr95.hard": 0.4, "ap.hard": None}
    read = Trial.load(tmp_path / "hynet-0.json")
    assert math.isnan(read.milestones[0].scores["castle"]["ap.hard"])
    assert repr(read) == repr(row())  # nan differs from itself, its text does not


@pytest.mark.parametrize(("seconds", "score"), [(10.0, 0.4), (15.0, 0.3), (35.0, 0.15), (50.0, 0.1), (9.9, math.nan)])
def test_scores_are_interpolated_in_time_and_unknown_before_the_first(seconds: float, score: float) -> None:
    assert row().score_at(seconds, "castle", "fpr95.hard") == pytest.approx(score, nan_ok=True)


def test_a_score_that_was_not_taken_is_unknown_at_any_time() -> None:
    assert math.isnan(row().score_at(20.0, "tower", "fpr95.hard"))


def test_a_row_lacks_the_milestones_and_test_sets_it_was_not_scored_on() -> None:
    assert not row().lacks(0.5, "castle")
    assert row().lacks(0.5, "tower")
    assert not row().lacks(0.75, "castle")  # at its end without it: it was not kept
    assert replace(row(), milestones=row().milestones[:2]).lacks(0.75, "castle")


def test_a_milestone_takes_the_place_of_its_share() -> None:
    changed = row().with_milestone(Milestone(0.75, 300, 35.0)).with_milestone(Milestone(0.25, 100, 11.0))
    assert [(each.share, each.seconds) for each in changed.milestones] == [
        (0.25, 11.0),
        (0.5, 20.0),
        (0.75, 35.0),
        (1.0, 50.0),
    ]


def test_rows_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for each in (row("sosnet"), row("hynet", 1), row("hynet", 0)):
        each.save(tmp_path / "rows")
    assert [each.name for each in load_trials(tmp_path)] == ["hynet-0", "hynet-1", "sosnet-0"]


def test_a_row_with_its_paths_in_another_order_is_read_in_ours(tmp_path: Path) -> None:
    """As rows were written in the order in which the paths were typed."""
    replace(row(), varied={"optimizer.lr": "1", "loss.margin": "2"}).save(tmp_path)
    assert list(Trial.load(tmp_path / "hynet-0.json").varied) == ["loss.margin", "optimizer.lr"]


def test_a_row_of_format_2_calls_its_label_recipe(tmp_path: Path) -> None:
    row().save(tmp_path)
    value = {**json.loads((tmp_path / "hynet-0.json").read_text()), "format_number": 2}
    value["recipe"] = value.pop("label")
    del value["varied"]
    (tmp_path / "hynet-0.json").write_text(json.dumps(value))
    assert repr(Trial.load(tmp_path / "hynet-0.json")) == repr(row())


def test_a_row_of_format_1_gets_its_recipe_from_its_run_folder(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    row().save(tmp_path / "rows")
    file = tmp_path / "rows" / "hynet-0.json"
    value = {**json.loads(file.read_text()), "format_number": 1}
    del value["recipe_toml"]
    file.write_text(json.dumps(value))
    assert load_trials(tmp_path)[0].trained is None
    (tmp_path / "runs" / "hynet-0").mkdir(parents=True)
    write_recipe(tmp_path / "runs" / "hynet-0" / "recipe.toml", HYNET)
    assert load_trials(tmp_path)[0].trained == HYNET


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"format": ', "not a readable JSON file"),
        ("[]", "not a row"),
        ('{"format": "keypatch-result"}', "not a row"),
        ('{"format": "keypatch-study-row", "format_number": 9}', "newer keypatch"),
        ('{"format": "keypatch-study-row", "format_number": 1}', "not a readable row"),
        ('{"format": "keypatch-study-row", "format_number": 1, "milestones": [], "colour": 1}', "not a readable row"),
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match=part) as fault:
        Trial.load(tmp_path / "x.json")
    assert "x.json" in str(fault.value)


def test_a_row_whose_name_leads_out_of_the_study_is_refused(tmp_path: Path) -> None:
    Trial("hynet", 0, "").save(tmp_path)
    text = (tmp_path / "hynet-0.json").read_text()
    (tmp_path / "hynet-0.json").write_text(text.replace('"hynet"', '"../hynet"'))
    with pytest.raises(DataError, match=r"hynet-0\.json: the name '\.\./hynet-0' is not a plain path"):
        Trial.load(tmp_path / "hynet-0.json")
