"""Recipes as TOML text and back; the dataclasses' annotations define what a file may contain."""

import tomllib
from pathlib import Path

from keypatch.errors import RecipeError
from keypatch.files import Format, write_text
from keypatch.settings import build, to_plain, to_toml
from keypatch.training.recipe import TYPES, Recipe

FORMAT = Format("keypatch-recipe", 1, "recipe")


def recipe_to_toml(recipe: Recipe) -> str:
    """The whole recipe, every default written out."""
    return "\n".join([f"format = {FORMAT.number}", *to_toml(to_plain(recipe, TYPES))]) + "\n"


def recipe_from_toml(text: str, where: str = "recipe.toml") -> Recipe:
    """Raises RecipeError that names the file and the field, DataError for a file of a newer keypatch."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML; of numbers of thousands of digits; of deep nesting
        raise RecipeError(f"{where}: not a TOML file ({error}).") from error
    FORMAT.check_number(values.pop("format", FORMAT.number), where)
    recipe: Recipe = build(Recipe, values, where, TYPES)
    return recipe


def read_recipe(path: Path) -> Recipe:
    try:
        return recipe_from_toml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} cannot be read as a recipe ({error}).") from error


def write_recipe(path: Path, recipe: Recipe) -> None:
    write_text(path, recipe_to_toml(recipe))
