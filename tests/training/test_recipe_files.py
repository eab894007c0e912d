from dataclasses import replace
from pathlib import Path

import pytest

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses import Triplet
from keypatch.recipes import HARDNET, HYNET, RECIPES, find_recipe
from keypatch.settings import apply_settings
from keypatch.training import AdamW, Cosine, Recipe, Steps
from keypatch.training.recipe import TYPES
from keypatch.training.recipe_files import read_recipe, recipe_from_toml, recipe_to_toml, write_recipe


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_recipe_goes_to_toml_and_back(recipe: Recipe, tmp_path: Path) -> None:
    write_recipe(tmp_path / "recipe.toml", recipe)
    assert read_recipe(tmp_path / "recipe.toml") == recipe
    assert find_recipe(tmp_path) == find_recipe(tmp_path / "recipe.toml") == recipe


def test_changed_parts_survive_the_file() -> None:
    recipe = replace(HYNET, schedule=Steps(at=(0.5, 0.75)), optimizer=AdamW(), name='odd "name"', average=0.998)
    assert recipe_from_toml(recipe_to_toml(recipe)) == recipe


@pytest.mark.parametrize(
    ("line", "new", "message"),
    [
        ("seed = 0", "seed = true", "seed must be an integer, not True"),
        ("seed = 0", 'seed = "one"', "seed must be an integer"),
        ("seed = 0", "sead = 0", 'no field "sead".*Did you mean "seed"'),
        ("margin = 1.0", "margin = nan", "margin must be a finite number"),
        ('type = "SGD"', 'type = "os.system"', 'no "os.system". Choose one of SGD, Adam, AdamW'),
        ('reduction = "mean"', 'reduction = "max"', "must be one of mean, sum"),
        ("format = 1", "format = 2", "newer"),
        ("seed = 0", "seed = ", "not a readable recipe"),
    ],
)
def test_a_wrong_file_is_told_apart(line: str, new: str, message: str) -> None:
    text = recipe_to_toml(HARDNET)
    assert line in text
    with pytest.raises(KeypatchError, match=message):
        recipe_from_toml(text.replace(line, new))


def test_a_missing_field_and_a_missing_file_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="network"):
        recipe_from_toml('name = "x"')
    with pytest.raises(KeypatchError, match="cannot be read"):
        read_recipe(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("loss.margin=1.5", replace(HYNET, loss=(replace(HYNET.loss[0], margin=1.5), HYNET.loss[1]))),
        ("loss.HybridTriplet.alpha=3", replace(HYNET, loss=(replace(HYNET.loss[0], alpha=3.0), HYNET.loss[1]))),
        ("loss.1.weight=0.5", replace(HYNET, loss=(HYNET.loss[0], replace(HYNET.loss[1], weight=0.5)))),
        ("loss=Triplet", replace(HYNET, loss=(Triplet(),))),
        ("optimizer=AdamW", replace(HYNET, optimizer=AdamW())),
        ("schedule=Cosine", replace(HYNET, schedule=Cosine())),
        ("augment.detector_noise=0", replace(HYNET, augment=replace(HYNET.augment, detector_noise=0.0))),
        ('mining.blocks=["rows"]', replace(HYNET, mining=replace(HYNET.mining, blocks=("rows",)))),
        (
            "network.preprocessing.size=64",
            replace(HYNET, network=replace(HYNET.network, preprocessing=replace(HYNET.network.preprocessing, size=64))),
        ),
        ("name=other", replace(HYNET, name="other")),
    ],
)
def test_a_setting_replaces_one_field(setting: str, value: Recipe) -> None:
    assert apply_settings(HYNET, [setting], TYPES) == value


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("loss.marginn=1.0", r'no part has "marginn".*HybridTriplet \(.*margin.*Did you mean "margin"'),
        ("loss.weight=1.0", 'several parts have "weight"'),
        ("network.dropot=0.1", 'HyNet has no field "dropot".*Did you mean "dropout"'),
        ("optimizer.lr=fast", "must be a finite number, not 'fast'"),
        ("optimizer.lr", "expected path=value"),
        ("optimizer.lr.more=1", "has no fields"),
        ("optimizer=Lion", "Choose one of SGD, Adam, AdamW"),
        ("pairs=10", "less than one batch"),
        ("average=1", "it must be below 1"),
    ],
)
def test_a_wrong_setting_lists_what_there_is(setting: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        apply_settings(HYNET, [setting], TYPES)


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(RecipeError, match='Did you mean "hardnet"') as caught:
        find_recipe("hardnett")
    assert len(str(caught.value)) < 120 and "`keypatch list recipes` shows all" in str(caught.value)
