"""What a study of methods will run: its rows, test sets and conditions, checked before hours are spent on them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from keypatch.benchmarks import Result, evaluate_rank1, evaluate_ubc
from keypatch.describers import Describer
from keypatch.errors import DataError, KeypatchError, RecipeError
from keypatch.files import write_json
from keypatch.networks import choose_device
from keypatch.patches import PatchSet, PatchSource, open_patches
from keypatch.patches.hpatches import find_sequences
from keypatch.patches.pair_lists import find_pairs
from keypatch.recipes import RECIPES, find_recipe
from keypatch.studies.methods_rows import Row
from keypatch.training import Recipe
from keypatch.training.machine import choose_compile, choose_precision
from keypatch.training.recipe_files import recipe_to_toml
from keypatch.training.settings import apply_settings

SHARES = (0.25, 0.5, 0.75, 1.0)  # of the run, at which it is scored
FORMAT = "keypatch-study"
FORMAT_NUMBER = 1


@dataclass(frozen=True)
class TestData:
    """A set that every row is scored on: patches with pair lists, or a folder of HPatches strips."""

    __test__ = False  # not a class of tests, whatever its name makes pytest think

    name: str
    data: PatchSet | Path

    def score(self, describer: Describer) -> Result:
        if isinstance(self.data, PatchSet):
            return evaluate_ubc(describer, self.data)
        return evaluate_rank1(describer, self.data)


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
        new = Row(recipe.name, recipe.seed, sha256(recipe_to_toml(recipe).encode()).hexdigest())
        path = self.rows_folder / f"{new.name}.json"
        if not path.exists():
            return new
        row = Row.load(path)
        if row.recipe_hash != new.recipe_hash:
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


def check_feasible(recipes: Sequence[Recipe], source: PatchSource, device: str, precision: str, compile: str) -> None:
    """Raise what would stop every row; what stops only some recipes is told in their rows."""
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
    """The rows: every recipe with every seed, all that start from nothing if none is named."""
    every = [name for name, recipe in RECIPES.items() if not recipe.needs_weights]
    chosen = [recipe if isinstance(recipe, Recipe) else find_recipe(recipe) for recipe in recipes or every]
    rows = []
    for recipe in chosen:
        if Path(recipe.name).name != recipe.name:
            raise RecipeError(f'The recipe "{recipe.name}" would name files by its name; rename it.')
        try:
            changed = replace(apply_settings(recipe, [f"sampler.pairs={batch}", *settings]), pairs=pairs)
        except RecipeError as error:
            raise RecipeError(f"{recipe.name}: {error}") from None
        rows += [replace(changed, seed=seed) for seed in seeds]
    _refuse_twice([f"{row.name}-{row.seed}" for row in rows], "recipe and seed")
    return tuple(rows)


def open_tests(tests: Sequence[str | Path], hpatches: str | Path | None) -> tuple[TestData, ...]:
    """The test sets, looked into far enough to know that they can be scored; the embedded one if none is named."""
    opened = []
    for place in tests or ([] if hpatches else ["embedded-test"]):
        patches = open_patches(place)
        if not patches.folder or not find_pairs(patches.folder, len(patches), patches.point_id):
            raise DataError(f"{place} has no list of pairs to score; strips of HPatches are given with --hpatches.")
        opened.append(TestData(patches.name, patches))
    if hpatches:
        find_sequences(Path(hpatches))
        opened.append(TestData(Path(hpatches).resolve().name, Path(hpatches)))
    _refuse_twice([test.name for test in opened], "test set")
    return tuple(opened)


def _refuse_twice(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise KeypatchError(f'The {what} "{name}" is given twice; their rows and scores would be one.')
