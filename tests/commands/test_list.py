"""Names and what they are."""

from pathlib import Path

import pytest

from keypatch.benchmarks.table import BENCHMARKS
from keypatch.commands.list import KINDS, list_names, recipe_text
from keypatch.detection import DETECTORS
from keypatch.errors import KeypatchError
from keypatch.losses import TERMS
from keypatch.networks import NETWORKS
from keypatch.recipes import PAPERS, RECIPES
from keypatch.training.recipe_files import write_recipe
from keypatch.zoo import names


def test_every_table_is_listed_whole() -> None:
    listed = {kind: {entry.name for entry in entries} for kind, entries in list_names().items()}
    assert listed["descriptors"] == {card.name for card in names()}
    assert listed["recipes"] == set(RECIPES)
    assert listed["networks"] == set(NETWORKS)
    assert listed["losses"] == set(TERMS)
    assert listed["benchmarks"] == set(BENCHMARKS)
    assert listed["detectors"] == set(DETECTORS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_says_in_one_line_what_it_is(kind: str) -> None:
    for entry in list_names(kind)[kind]:
        assert entry.about
        assert "\n" not in entry.about


def test_an_unknown_kind_raises() -> None:
    with pytest.raises(KeypatchError, match="descriptors, recipes"):
        list_names("nets")


def test_a_recipe_is_listed_with_its_paper() -> None:
    papers = {entry.name: entry.paper for entry in list_names("recipes")["recipes"]}
    assert papers == {recipe.name: paper for paper, recipes in PAPERS.items() for recipe, _ in recipes}


def test_a_recipe_file_is_shown_too(tmp_path: Path) -> None:
    write_recipe(tmp_path / "mine.toml", RECIPES["hardnet"])
    assert recipe_text(str(tmp_path / "mine.toml")) == recipe_text("hardnet")


def test_neither_a_list_nor_a_recipe_raises() -> None:
    with pytest.raises(KeypatchError, match=r'no list, recipe or benchmark "hardnt"\. Did you mean "hardnet"'):
        recipe_text("hardnt")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("grid", '"grid" is a detector, not a recipe or benchmark. Its settings: step, sigma.'),
        ("SpreadOut", '"SpreadOut" is a loss, not a recipe or benchmark. Its settings: kind, pairs, beta, weight.'),
    ],
)
def test_a_part_says_what_it_is_and_its_settings(name: str, sentence: str) -> None:
    with pytest.raises(KeypatchError) as caught:
        recipe_text(name)
    assert str(caught.value) == sentence
