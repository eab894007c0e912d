"""What a study of methods will run: its rows and conditions, checked before hours are spent on them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from keypatch.errors import DataError, KeypatchError, RecipeError
from keypatch.files import write_json
from keypatch.networks import EmbeddingNet, choose_device
from keypatch.patches import PatchSource
from keypatch.recipes import RECIPES, find_recipe
from keypatch.studies.methods_rows import Row, load_row
from keypatch.studies.methods_test_data import TestData, refuse_twice
from keypatch.training import Recipe
from keypatch.training.machine import choose_compile, choose_precision
from keypatch.training.recipe_files import recipe_to_toml
from keypatch.training.settings import apply_settings

SHARES = (0.25, 0.5, 0.75, 1.0)  # of the run, at which it is scored
FORMAT = "keypatch-study"
FORMAT_NUMBER = 1
OPTIONS = {"pairs": "--pairs", "seed": "--seed", "sampler.pairs": "--batch"}  # of what every recipe has in common


@dataclass(frozen=True)
class Plan:
    """`recipes` are the rows to be: a recipe with the study's batch, budget and a seed each."""

    folder: Path
    data: tuple[str | Path, ...]
    recipes: tuple[Recipe, ...]
    tests: tuple[TestData, ...]
    conditions: Mapping[str, Any]  # what all rows of the folder have in common

    @property
    def rows_folder(self) -> Path:
        return self.folder / "rows"

    def run_folder(self, recipe: Recipe) -> Path:
        return self.folder / "runs" / f"{recipe.name}-{recipe.seed}"

    def row(self, recipe: Recipe) -> Row:
        """The row as far as it is written."""
        text = recipe_to_toml(recipe)
        new = Row(recipe.name, recipe.seed, sha256(text.encode()).hexdigest(), recipe_toml=text)
        path = self.rows_folder / f"{new.name}.json"
        if not path.exists():
            return new
        row = load_row(self.folder, new.name)
        if row.recipe_hash != new.recipe_hash and row.trained != recipe:  # the text changes with every new field
            raise KeypatchError(
                f"{path} was made with another recipe of the same name. Move it and {self.run_folder(recipe)} away, "
                "or choose another folder with --out."
            )
        return row

    def is_finished(self, row: Row) -> bool:
        return not any(row.lacks(share, test.name) for share in SHARES for test in self.tests)

    def begin(self) -> None:
        for folder in (self.rows_folder, self.folder / "runs"):
            folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "study.json").exists():
            conditions = {"format": FORMAT, "format_number": FORMAT_NUMBER, **self.conditions}
            write_json(self.folder / "study.json", conditions)


def read_conditions(folder: Path) -> dict[str, Any]:
    """The conditions of the study in a folder; empty where there is none."""
    path = folder / "study.json"
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not a JSON file ({error}). Choose another folder with --out.") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT or value.get("format_number") != FORMAT_NUMBER:
        raise DataError(f"{path} is not a study that this version of keypatch reads. Choose another --out.")
    return value


def check_conditions(folder: Path, conditions: Mapping[str, Any]) -> None:
    """Rows may be added to a study, but only under the conditions of those it has."""
    before = read_conditions(folder)
    for name, value in conditions.items():
        if before and before.get(name) != value:
            raise KeypatchError(
                f"{folder} holds a study with {name} = {before.get(name)}, not {value}. Rows are compared under equal "
                "conditions: give the same, or another folder with --out."
            )


def check_feasible(
    recipes: Sequence[Recipe], source: PatchSource, device: str, precision: str, compile: str, threads: int | None
) -> None:
    """Raise what would stop every row; what stops only some recipes is told in their rows."""
    if threads is not None and threads < 1:
        raise KeypatchError(f"--threads {threads}: give 1 or more, or leave it out.")
    place = choose_device(device)
    choose_precision(precision, place)
    choose_compile(compile, place, per_patch=False)
    refused = []
    for recipe in recipes:
        try:
            recipe.sampler.check(source.classes())
        except KeypatchError as error:
            refused.append(error)
    if refused and len(refused) == len(recipes):
        raise refused[0]


def choose_recipes(
    recipes: Sequence[str | Path | Recipe], settings: Sequence[str], batch: int, pairs: int, seeds: Sequence[int]
) -> tuple[Recipe, ...]:
    """The rows: every recipe with every seed; if none is named, all for patches that start from nothing."""
    if not seeds or min(seeds) < 0:
        raise KeypatchError(f"--seed {' '.join(map(str, seeds))}: give one or several whole numbers from 0 on.")
    for setting in settings:
        path = setting.partition("=")[0].strip()
        if path in OPTIONS:
            raise RecipeError(f"--set {setting}: this is the same for every recipe of a study; use {OPTIONS[path]}.")
    every = [
        recipe
        for recipe in RECIPES.values()
        if not recipe.needs_weights and not isinstance(recipe.network, EmbeddingNet)
    ]
    chosen = [recipe if isinstance(recipe, Recipe) else find_recipe(recipe) for recipe in recipes or every]
    rows = []
    for recipe in chosen:
        if Path(recipe.name).name != recipe.name:
            raise RecipeError(f'The recipe "{recipe.name}" would name files by its name; rename it.')
        try:
            changed = replace(apply_settings(recipe, [*settings, f"sampler.pairs={batch}"]), pairs=pairs)
        except RecipeError as error:
            raise RecipeError(f"{recipe.name}: {error}") from None
        rows += [replace(changed, seed=seed) for seed in seeds]
    refuse_twice([f"{row.name}-{row.seed}" for row in rows], "recipe and seed")
    return tuple(rows)
