"""Recipes as TOML text and back; the dataclasses' annotations define what a file may contain."""

import tomllib
from pathlib import Path
from typing import Any

from keypatch.files import Format, read_text, reading, write_text
from keypatch.networks import NetworkSpec
from keypatch.settings import Types, build, checked, to_plain, to_toml
from keypatch.training.recipe import TYPES, Recipe

FORMAT = Format("keypatch-recipe", 1, "recipe")


def recipe_to_toml(recipe: Recipe) -> str:
    """The whole recipe, every default written out."""
    return "\n".join([f"format = {FORMAT.number}", *to_toml(to_plain(recipe, TYPES))]) + "\n"


def recipe_from_toml(text: str, where: str = "recipe.toml", types: Types = TYPES) -> Recipe:
    """Raises RecipeError that names the file and the field, DataError for a file of a newer keypatch."""
    with reading(where, FORMAT.title):
        recipe: Recipe = build(Recipe, _values(text, where), where, types)
        return recipe


def network_from_toml(text: str, where: str = "recipe.toml") -> NetworkSpec:
    """The network alone: weights are of use whatever else their recipe names."""
    with reading(where, FORMAT.title):
        spec: NetworkSpec = checked(_values(text, where).get("network"), NetworkSpec, f"{where}: network", TYPES)
        return spec


def _values(text: str, where: str) -> dict[str, Any]:
    values = tomllib.loads(text)
    FORMAT.check_number(values.pop("format", FORMAT.number), where)
    return values


def read_recipe(path: Path, types: Types = TYPES) -> Recipe:
    return recipe_from_toml(read_text(path), str(path), types)


def holds_recipe(path: Path, recipe: Recipe) -> bool:
    """Whether the file holds this recipe: its text or, as fields come and go, what it reads as."""
    return read_text(path) == recipe_to_toml(recipe) or read_recipe(path) == recipe


def write_recipe(path: Path, recipe: Recipe) -> None:
    write_text(path, recipe_to_toml(recipe))
