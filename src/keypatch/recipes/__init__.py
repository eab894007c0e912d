"""The named recipes: values, one file per paper."""

import difflib
from pathlib import Path

from keypatch.errors import RecipeError
from keypatch.recipes.hardnet import HARDNET
from keypatch.recipes.hynet import HYNET
from keypatch.recipes.sosnet import SOSNET
from keypatch.training import Recipe
from keypatch.training.recipe_files import read_recipe

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (HARDNET, HYNET, SOSNET)}


def find_recipe(name: str | Path) -> Recipe:
    """A recipe by its name, or from a recipe.toml (or the run folder it lies in)."""
    if str(name) in RECIPES:
        return RECIPES[str(name)]
    path = Path(name)
    if path.is_dir():
        path = path / "recipe.toml"
    if path.suffix == ".toml":
        return read_recipe(path)
    near = difflib.get_close_matches(str(name), RECIPES, 1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    raise RecipeError(f'There is no recipe "{name}".{hint} Known are {", ".join(RECIPES)}, or a recipe.toml file.')


__all__ = ["HARDNET", "HYNET", "RECIPES", "SOSNET", "find_recipe"]
