"""`inspect` tells every kind of file apart, and names what is wrong instead of raising."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from keypatch.benchmarks.evaluation import evaluate
from keypatch.commands.inspect.inspection import inspect
from keypatch.errors import DataError
from keypatch.networks import TFeat, save_weights
from keypatch.training.recipe_files import recipe_to_toml
from keypatch.zoo import names


@pytest.fixture
def copy(small_set: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_set, tmp_path / "copy"))


def test_a_patch_set_is_counted(small_set: Path) -> None:
    found = inspect(small_set)
    assert found.kind == "patch set (PhotoTour layout)"
    assert found.problems == ()
    assert found.facts["patches"] == "320 of 64x64 pixels"
    assert found.facts["points"] == "80, 4.0 patches each (at most 4)"
    assert found.facts["m50_160_160_0.txt"] == "80 matching and 80 other pairs"
    assert found.facts["about"] == "noise in blocks"


def test_images_in_class_folders_are_counted(tmp_path: Path) -> None:
    for name, count in {"Greek/alpha": 3, "Greek/beta": 2, "Latin/a": 1}.items():
        (tmp_path / name).mkdir(parents=True)
        for k in range(count):
            Image.fromarray(np.full((9, 9), 40 * k, np.uint8)).save(tmp_path / name / f"{k}.png")
    found = inspect(tmp_path)
    assert (found.kind, found.problems) == ("images in class folders", ())
    assert found.facts["classes"] == "3, 2.0 images each (1 to 3)"
    assert found.facts["images"] == "6, read as grey squares of 64x64 pixels"
    assert found.facts["left out"].startswith("1 classes")
    (tmp_path / "Greek" / "beta" / "0.png").write_bytes(b"no")
    harmed = inspect(tmp_path)
    assert "beta/0.png is not an image" in harmed.problems[0] and harmed.facts["classes"] == found.facts["classes"]


def _cut_info(folder: Path) -> None:
    (folder / "info.txt").write_text("0 0\n0 0\n1 0\n1,")


def _shrink_sheet(folder: Path) -> None:
    Image.fromarray(np.zeros((64, 64), np.uint8)).save(folder / "patches0000.bmp")


def _remove_info(folder: Path) -> None:
    (folder / "info.txt").unlink()


def _break_pairs(folder: Path) -> None:
    (folder / "m50_160_160_0.txt").write_text("0 0 0 999 0 0 0\n")


@pytest.mark.parametrize(
    ("harm", "parts"),
    [
        (_cut_info, ["info.txt", "line 4", "1,"]),
        (_shrink_sheet, ["patches0000.bmp"]),
        (_remove_info, ["info.txt", "missing"]),
        (_break_pairs, ["m50_160_160_0.txt", "line 1", "999"]),
    ],
)
def test_a_harmed_patch_set_is_still_one_and_the_harm_is_named(
    copy: Path, harm: Callable[[Path], None], parts: list[str]
) -> None:
    harm(copy)
    found = inspect(copy)
    assert found.kind == "patch set (PhotoTour layout)"
    assert len(found.problems) == 1
    assert all(part in found.problems[0] for part in parts)


def test_what_was_found_before_a_fault_is_kept(copy: Path) -> None:
    _break_pairs(copy)
    assert inspect(copy).facts["patches"] == "320 of 64x64 pixels"


def test_points_with_one_patch_are_counted(copy: Path) -> None:
    lines = (copy / "info.txt").read_text().splitlines()
    (copy / "info.txt").write_text("\n".join([*lines[:-1], "999 0"]) + "\n")
    (copy / "m50_160_160_0.txt").unlink()
    found = inspect(copy)
    assert "1 points with a single patch" in found.facts["left out"]
    assert "cannot" not in found.facts["pair lists"]
    assert found.problems == ()


def test_strips_are_counted_and_a_missing_one_is_named(tmp_path: Path) -> None:
    column = Image.fromarray(np.zeros((5 * 65, 65), np.uint8))
    (tmp_path / "v_boat").mkdir()
    for strip in ("ref", *(f"{level}{k}" for level in "eht" for k in range(1, 6))):
        column.save(tmp_path / "v_boat" / f"{strip}.png")
    found = inspect(tmp_path)
    assert found.kind == "patch strips (HPatches layout)"
    assert found.facts["patches"] == "80 of 65x65 pixels"
    (tmp_path / "v_boat" / "h3.png").unlink()
    assert "h3.png" in inspect(tmp_path).problems[0]


def test_a_run_and_its_parts(run_folder: Path) -> None:
    found = inspect(run_folder)
    assert found.kind == "training run"
    assert found.problems == ()
    assert "64 pairs" in found.facts["trained"]
    assert "finished" in found.facts["trained"]
    assert inspect(found.facts["newest weights"]).kind == "checkpoint of a training run"
    assert inspect(run_folder / "recipe.toml").facts["recipe"] == "hardnet"


def test_a_run_without_checkpoint_has_a_problem(run_folder: Path, tmp_path: Path) -> None:
    shutil.copy(run_folder / "recipe.toml", tmp_path)
    assert "--resume" in inspect(tmp_path).problems[0]


def test_a_cut_checkpoint_is_named(run_folder: Path, tmp_path: Path) -> None:
    whole = Path(inspect(run_folder).facts["newest weights"])
    (tmp_path / "cut.safetensors").write_bytes(whole.read_bytes()[:1000])
    found = inspect(tmp_path / "cut.safetensors")
    assert "cut.safetensors" in found.problems[0]


def test_weights_tell_network_and_card(tmp_path: Path) -> None:
    spec = TFeat()
    save_weights(tmp_path / "w.safetensors", spec.build(), spec, {"trained_on": "liberty"})
    found = inspect(tmp_path / "w.safetensors")
    assert found.kind == "weights"
    assert found.facts["trained_on"] == "liberty"
    assert found.facts["descriptors"].startswith("128 numbers")


def test_a_torch_file_without_known_names_is_told_so(tmp_path: Path) -> None:
    torch.save({"weight": torch.zeros(3)}, tmp_path / "other.pth")
    found = inspect(tmp_path / "other.pth")
    assert found.kind == "published weights"
    assert "tensor names" in found.problems[0]


def test_a_result_shows_its_scores(small_set: Path, tmp_path: Path) -> None:
    result = evaluate("sift", "ubc", small_set, tmp_path / "sift.json")
    found = inspect(tmp_path / "sift.json")
    assert found.kind == "result"
    assert found.facts["descriptor"] == "sift"
    assert found.facts["rank1"] == f"{100 * result.scores['rank1']:.2f} %"
    assert found.facts["spread.dm2"] == f"{result.scores['spread.dm2']:.4f}"


def test_a_result_of_a_newer_format_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(json.dumps({"format": "keypatch-result", "format_number": 99}))
    assert "99" in inspect(tmp_path / "new.json").problems[0]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("notes.txt", "hello", "file of an unknown kind"),
        ("list.json", "[1, 2]", "JSON file of an unknown kind"),
        ("cut.json", '{"format": ', "unreadable file"),
        ("bad.toml", "network = ", "recipe"),
    ],
)
def test_any_other_file_has_a_kind_and_a_problem(tmp_path: Path, name: str, content: str, kind: str) -> None:
    (tmp_path / name).write_text(content)
    found = inspect(tmp_path / name)
    assert found.kind == kind
    assert len(found.problems) == 1
    assert name in found.problems[0]


def test_a_folder_of_something_else_is_told_what_it_is_not(tmp_path: Path) -> None:
    (tmp_path / "holiday.mov").touch()
    found = inspect(tmp_path)
    assert found.kind == "folder of an unknown kind"
    assert all(word in found.problems[0] for word in ("PhotoTour", "HPatches", "recipe.toml", "no photos"))


def test_nothing_at_the_path_raises(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        inspect(tmp_path / "nowhere")


def test_a_recipe_of_the_package_is_a_recipe_file_too(tmp_path: Path) -> None:
    from keypatch.recipes import HYNET

    (tmp_path / "mine.toml").write_text(recipe_to_toml(HYNET))
    assert inspect(tmp_path / "mine.toml").problems == ()


def test_a_shipped_descriptor_shows_its_card() -> None:
    card = next(card for card in names() if card.network)
    found = inspect(card.name)
    assert found.kind == "shipped descriptor"
    assert found.problems == ()
    assert (found.facts["about"], found.facts["trained on"], found.facts["terms"]) == (
        card.about,
        card.trained_on,
        card.terms,
    )
    score = next(iter(card.scores))
    assert found.facts[score] == f"{100 * card.scores[score]:.2f} %"
    assert "bytes" in found.facts["weights"]


def test_sift_is_made_by_hand() -> None:
    found = inspect("sift")
    assert found.kind == "hand-crafted descriptor"
    assert found.facts["descriptors"] == "128 numbers"
    assert found.problems == ()


def test_shipped_weights_that_are_not_those_of_the_card_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    card = next(card for card in names() if card.network)
    monkeypatch.setattr("keypatch.commands.inspect.inspection.names", lambda: [replace(card, weights_hash="00")])
    found = inspect(card.name)
    assert found.facts["about"] == card.about
    assert "not the file its card describes" in found.problems[0]


def test_a_path_is_never_a_name_and_a_near_name_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sift").write_text("mine")
    assert inspect(Path("sift")).kind == "file of an unknown kind"
    with pytest.raises(DataError, match='Did you mean "rootsift"'):
        inspect("rotsift")
