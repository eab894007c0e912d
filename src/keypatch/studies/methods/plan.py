"""What a study of methods will run and score on, checked before hours are spent on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from keypatch.benchmarks import Result, evaluate_rank1, evaluate_ubc
from keypatch.benchmarks.hpatches.strips import EVERY, find_strips, hash_of_strips
from keypatch.benchmarks.ubc import Ubc, hash_patches
from keypatch.cache import without_cache
from keypatch.describers import Describer
from keypatch.errors import DataError, KeypatchError, RecipeError
from keypatch.files import write_json
from keypatch.networks import EmbeddingNet, choose_device
from keypatch.patches import PatchSet, PatchSource, open_patches
from keypatch.patches.hpatches import find_sequences
from keypatch.patches.patch_set import JoinedSets
from keypatch.patches.phototour import find_pair_lists
from keypatch.patches.sources import identity_of
from keypatch.recipes import RECIPES, find_recipe
from keypatch.settings import apply_settings, option
from keypatch.studies.methods.table import STUDY, Trial, load_trial, read_conditions
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.machine import choose_compile, choose_precision
from keypatch.training.recipe import TYPES
from keypatch.training.recipe_files import recipe_to_toml

SHARES = (0.25, 0.5, 0.75, 1.0)  # of the run, at which it is scored
OPTIONS = {"pairs": "--pairs", "seed": "--seed", "sampler.pairs": "--batch"}  # what the setup says, not --set
EMBEDDED_TEST = "embedded-test"
SCORES_ONLY = Ubc(intervals=False, pictures=False)


@dataclass(frozen=True)
class MethodsSetup:
    """What all recipes of a study have in common.

    >>> kp.MethodsSetup(pairs=50_000, seeds=(0, 1)).batch
    256
    """

    pairs: int = option(about="Training budget of every recipe, in pairs.")
    batch: int = option(256, "Pairs per batch, for every recipe.")
    seeds: tuple[int, ...] = option((0,), "Random seed; may be repeated. Every recipe is trained once per seed.")
    settings: tuple[str, ...] = option((), "Set a field of every recipe.")

    def __post_init__(self) -> None:
        if not self.seeds or min(self.seeds) < 0:
            raise KeypatchError(f"--seed {' '.join(map(str, self.seeds))}: give one or more integers of 0 or more.")
        for setting in self.settings:
            path = setting.partition("=")[0].strip()
            if path in OPTIONS:
                raise RecipeError(f"--set {setting}: this is the same for all recipes of a study. Use {OPTIONS[path]}.")


@dataclass(frozen=True)
class TestData:
    """A set that every row is scored on: patches with pair lists, or a folder of HPatches strips."""

    __test__ = False  # not a class of tests, whatever its name makes pytest think

    name: str
    data: PatchSet | Path

    def score(self, describer: Describer) -> Result:
        if isinstance(self.data, PatchSet):
            with without_cache():  # every checkpoint is described once
                return evaluate_ubc(describer, self.data, SCORES_ONLY)
        return evaluate_rank1(describer, self.data)

    @cached_property
    def data_hash(self) -> str:
        """The hash that results on this set carry, without describing anything."""
        if isinstance(self.data, PatchSet):
            return hash_patches(self.data, find_pair_lists(self.data))
        return hash_of_strips(find_strips(self.data, EVERY)).hexdigest()

    def is_of(self, patches: PatchSet) -> bool:
        """Whether these are the patches of that set: its folder, or a copy of it."""
        place = patches.folder.resolve() if patches.folder else None
        if isinstance(self.data, Path):
            return self.data.resolve() == place
        same_place = self.data.folder is not None and self.data.folder.resolve() == place
        return same_place or identity_of(self.data) == identity_of(patches)


def open_tests(
    tests: Sequence[str | Path], hpatches: str | Path | None, trained_on: Sequence[PatchSet]
) -> tuple[TestData, ...]:
    """The test sets, looked into far enough to know that they can be scored and that none of them is trained on.

    If none is named, the embedded one for a training on the embedded data.
    """
    if not tests and not hpatches:
        if [patches.name for patches in trained_on] != ["embedded"]:
            raise KeypatchError(
                "Name the test data with --test or --hpatches; only a study on --data embedded has a test set of "
                "its own."
            )
        tests = [EMBEDDED_TEST]
    opened = []
    for place in tests:
        patches = open_patches(place)
        if not find_pair_lists(patches):
            raise DataError(f"{place} has no pair list to score. For HPatches strips, use --hpatches.")
        opened.append(TestData(patches.name, patches))
    if hpatches:
        find_sequences(Path(hpatches))
        opened.append(TestData(Path(hpatches).resolve().name, Path(hpatches)))
    if name := _repeated([test.name for test in opened]):
        raise KeypatchError(f'The test set "{name}" is given twice, so scores would share a column. Rename one.')
    for test in opened:
        if any(test.is_of(patches) for patches in trained_on):
            raise KeypatchError(
                f'"{test.name}" would be both trained and scored on. Score on other data, with --test or --hpatches.'
            )
    return tuple(opened)


def check_same_tests(tests: Sequence[TestData], rows: Sequence[Trial]) -> None:
    """Scores stand in one column by the name of their test set, so a name must mean the same data in all rows."""
    for test in tests:
        for row in rows:
            if test.name in row.tests and row.tests[test.name] != test.data_hash:
                raise KeypatchError(
                    f'The test set "{test.name}" is not the one that {row.name} was scored on: its patches or pairs '
                    "differ. Give its folder another name, or choose another folder for the study with --out."
                )


def _repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


@dataclass(frozen=True)
class MethodsPlan:
    """`recipes` are the rows to be: a recipe with the study's batch, budget and a seed each."""

    folder: Path
    source: PatchSet | JoinedSets
    recipes: tuple[Recipe, ...]
    tests: tuple[TestData, ...]
    setup: MethodsSetup
    conditions: Conditions

    @property
    def rows_folder(self) -> Path:
        return self.folder / "rows"

    def run_folder(self, recipe: Recipe) -> Path:
        return self.folder / "runs" / f"{recipe.name}-{recipe.seed}"

    def row(self, recipe: Recipe) -> Trial:
        """The row as far as it is written."""
        text = recipe_to_toml(recipe)
        new = Trial(recipe.name, recipe.seed, sha256(text.encode()).hexdigest(), recipe_toml=text)
        path = self.rows_folder / f"{new.name}.json"
        if not path.exists():
            return new
        row = load_trial(self.folder, new.name)
        if row.recipe_hash != new.recipe_hash and row.trained != recipe:  # the text changes with every new field
            raise KeypatchError(
                f"{path} was made with another recipe of the same name. Move it and {self.run_folder(recipe)} away, "
                "or choose another folder with --out."
            )
        return row

    def is_finished(self, row: Trial) -> bool:
        return not any(row.lacks(share, test.name) for share in SHARES for test in self.tests)

    def common(self) -> dict[str, Any]:
        """What all rows of the folder have in common, as study.json holds it."""
        how = {name: getattr(self.conditions, name) for name in ("device", "precision", "compile", "threads")}
        return {
            "data": self.source.name,
            "data_hash": sha256(self.source.point_id.tobytes()).hexdigest(),
            "pairs": self.setup.pairs,
            "batch": self.setup.batch,
            "settings": list(self.setup.settings),
            **how,
        }

    def begin(self) -> None:
        for folder in (self.rows_folder, self.folder / "runs"):
            folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "study.json").exists():
            write_json(self.folder / "study.json", {**STUDY.head(), **self.common()})


def check_conditions(folder: Path, conditions: Mapping[str, Any]) -> None:
    """Rows may be added to a study, but only under the conditions of those it has."""
    before = read_conditions(folder)
    for name, value in conditions.items():
        if before and before.get(name) != value:
            raise KeypatchError(
                f"{folder} holds a study with {name} = {before.get(name)}, not {value}. Rows must be comparable: "
                "use the same value, or another folder with --out."
            )


def check_feasible(recipes: Sequence[Recipe], source: PatchSource, conditions: Conditions) -> None:
    """Raise what would stop every row; what stops only some recipes stands in their rows."""
    place = choose_device(conditions.device)
    choose_precision(conditions.precision, place)
    choose_compile(conditions.compile, place, per_patch=False)
    refused = []
    for recipe in recipes:
        try:
            recipe.sampler.check(source.classes())
        except KeypatchError as error:
            refused.append(error)
    if refused and len(refused) == len(recipes):
        raise refused[0]


def choose_recipes(recipes: Sequence[str | Path | Recipe], setup: MethodsSetup) -> tuple[Recipe, ...]:
    """The rows: every recipe with every seed; if none is named, all for patches that start from nothing."""
    every = [
        recipe
        for recipe in RECIPES.values()
        if not recipe.needs_weights and not isinstance(recipe.network, EmbeddingNet)
    ]
    chosen = [recipe if isinstance(recipe, Recipe) else find_recipe(recipe) for recipe in recipes or every]
    rows = []
    for recipe in chosen:
        if Path(recipe.name).name != recipe.name:
            raise RecipeError(f'The name of the recipe "{recipe.name}" cannot be a file name. Rename the recipe.')
        try:
            changed = apply_settings(recipe, [*setup.settings, f"sampler.pairs={setup.batch}"], TYPES)
            rows += [replace(changed, pairs=setup.pairs, seed=seed) for seed in setup.seeds]
        except RecipeError as error:
            raise RecipeError(f"{recipe.name}: {error}") from None
    if name := _repeated([f"{row.name}-{row.seed}" for row in rows]):
        raise RecipeError(
            f'Two rows would be "{name}", named by recipe and seed. Give each seed once; if two recipes have one name, '
            'rename one of them: name = "..." in its recipe.toml.'
        )
    return tuple(rows)
