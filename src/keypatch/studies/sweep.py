"""A sweep: recipes with some fields varied, every value with every other, as the arms of one study."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path

from keypatch.commands.train import Data
from keypatch.errors import KeypatchError, RecipeError
from keypatch.progress import Callback, Progress
from keypatch.recipes import as_published, find_recipe
from keypatch.settings import Change, apply_changes, field_names
from keypatch.studies.figure import draw_sweep
from keypatch.studies.study import LONGEST_LABEL, Arm, check_settings, draw_figure, run_study
from keypatch.studies.table import Table
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.recipe import TYPES

FIGURE = "figure.png"
OPTIONS = {"seed": "--seeds", "name": "recipes under their own names"}  # what to use instead of --vary and --set
_UNFIT = re.compile(r'[/\\:*?"<>|]')  # for a file name
_BRACKETS = {"[": 1, "{": 1, "]": -1, "}": -1}


def study_sweep(
    recipes: Sequence[str | Path | Recipe],
    data: Data | Sequence[Data],
    out: str | Path = "studies/sweep",
    conditions: Conditions = Conditions(),  # noqa: B008 (frozen)
    *,
    vary: Sequence[str] = (),
    pairs: int | None = None,
    seeds: Sequence[int] = (0,),
    settings: Sequence[str] = (),
    published: bool = False,
    tests: Sequence[str | Path] = (),
    hpatches: str | Path | None = None,
    split: str | None = None,
    held_out: float | None = None,
    dry: bool = False,
    progress: Progress | Callback | None = None,
) -> Table:
    """Train every recipe with every combination of varied values and every seed, score them, write a table and figure.

    recipes: names, recipe.toml files or values. vary: "loss.alpha=1,2,3", also of tuples: "augment.shared=[],[flips]".
    data: a folder, "embedded", an open PatchSet, or several of these.
    out: gets rows/, runs/, table.md, table.json and figure.png. What is finished there is not repeated; other recipes,
        values and seeds can be added later, as long as the data and the conditions are the same.
    conditions: how the runs are computed; they are scored at the end, and at the fractions in `keep`.
    pairs: the budget of every run; without it, `pairs` must be varied or set.
    settings: change fields of all recipes, "sampler.pairs=256".
    published: start from the recipes as printed in their papers (`as_published`); their labels say so.
    tests: patch sets with pair lists; hpatches: a folder of strips, scored by rank-1, or with a `split` ("all" for all
        sequences) by verification, matching and retrieval. Only data="embedded" has its own, "embedded-test".
    held_out: hold out this share of the training points and score on it, as the test set "held-out".
    dry: train nothing; return the current table with what is missing and its `cost`, estimated by timing a few steps.

    >>> kp.study_sweep(["hynet"], "embedded", vary=["loss.alpha=1,2,4"], pairs=50_000)  # doctest: +SKIP

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the same call resumes.
    """
    progress = Progress.of(progress)
    table = run_study(
        sweep_arms(recipes, vary, pairs, settings, published),
        data,
        out,
        conditions,
        seeds=seeds,
        tests=tests,
        hpatches=hpatches,
        split=split,
        held_out=held_out,
        shares=conditions.keep,
        dry=dry,
        progress=progress,
    )
    if not dry:
        draw_figure(draw_sweep, Path(out) / FIGURE, table, progress)
    return table


def parse_seeds(text: str) -> tuple[int, ...]:
    """Of "0,1,2"."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise KeypatchError(f"--seeds {text}: give non-negative integers separated by commas, such as 0,1,2.")
    return tuple(map(int, parts))


@dataclass(frozen=True)
class Varied:
    """A path of the recipe and the values it takes, as texts."""

    path: str
    values: tuple[str, ...]

    @staticmethod
    def of(text: str) -> "Varied":
        """Of "PATH=V1,V2,..."; commas inside brackets or quotation marks belong to a value."""
        path, equals, rest = (part.strip() for part in text.partition("="))
        values = tuple(shown_value(value) for value in _split_values(rest))
        if not path or not equals or not all(values):
            raise RecipeError(f"--vary {text}: expected PATH=V1,V2,..., such as optimizer.lr=0.01,0.1.")
        check_settings([text], OPTIONS, "--vary")
        for value in values:
            if values.count(value) > 1:
                raise RecipeError(f"--vary {text}: the value {value} is given twice. Give each once.")
        return Varied(path, values)


def sweep_arms(
    recipes: Sequence[str | Path | Recipe],
    vary: Sequence[str],
    pairs: int | None = None,
    settings: Sequence[str] = (),
    published: bool = False,
) -> list[Arm]:
    """Every recipe with every combination of values, labelled by them: "hynet loss.alpha=2".

    Raises:
        RecipeError: a recipe lacks a field, a value does not fit it, or two arms would be the same.
    """
    varied = [Varied.of(text) for text in vary]
    check_settings(settings, OPTIONS)
    paths = [each.path for each in varied]
    if not recipes:
        raise RecipeError("No recipe given. Name one or more of `keypatch list recipes`.")
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise RecipeError(f"--vary {twice} is given twice. Name all its values in one: --vary {twice}=V1,V2.")
    fixed = [setting.partition("=")[0].strip() for setting in settings]
    if both := next((path for path in paths if path in fixed), None):
        raise RecipeError(f"--vary {both} and --set {both} contradict each other. Leave one of them out.")
    if "pairs" in (*paths, *fixed) and pairs is not None:
        raise RecipeError(f"--pairs {pairs} contradicts the other budget given. Leave one of them out.")
    if pairs is None and "pairs" not in (*paths, *fixed):
        raise RecipeError("Give the training budget: --pairs N, or --vary pairs=N1,N2.")
    arms = list[Arm]()
    found = [each if isinstance(each, Recipe) else find_recipe(each) for each in recipes]
    for recipe in map(as_published, found) if published else found:
        of_recipe = list[Arm]()
        for values in product(*(each.values for each in varied)):
            arm = _arm(recipe, dict(zip(paths, values, strict=True)), pairs, settings)
            if same := next((other for other in of_recipe if other.recipe == arm.recipe), None):
                raise RecipeError(f'"{same.label}" and "{arm.label}" are the same recipe. Name each value once.')
            of_recipe.append(arm)
        arms += of_recipe
    return arms


def _arm(recipe: Recipe, values: dict[str, str], pairs: int | None, settings: Sequence[str]) -> Arm:
    fields = field_names(recipe)
    changes = [Change.of(setting, fields) for setting in settings]
    for path, value in values.items():
        change = Change.of(f"{path}={value}", fields)
        changes.append(replace(change, where=f"--vary {path}={value}"))
    if pairs is not None:
        changes.append(Change(("pairs",), str(pairs), f"--pairs {pairs}"))
    try:
        changed = apply_changes(recipe, changes, TYPES)
    except RecipeError as error:
        raise RecipeError(f"{recipe.name}: {error}") from None
    label = label_of(f"{recipe.name} as published" if recipe.published else recipe.name, values)
    return Arm(label, changed, dict(sorted(values.items())))


def label_of(recipe: str, varied: dict[str, str]) -> str:
    """ "hynet loss.alpha=2", fit for a file name: paths in alphabetical order, however they were given."""
    parts = (f"{path}={value}" for path, value in sorted(varied.items()))
    label = _UNFIT.sub("-", " ".join([recipe, *parts]))
    if len(label.encode()) <= LONGEST_LABEL:
        return label
    return f"{label[: LONGEST_LABEL // 2]} {sha256(label.encode()).hexdigest()[:12]}"


def shown_value(text: str) -> str:
    """A value as labels show it: numbers and tuples in one form, whether written 2, 2.0 or 2e0."""
    try:
        number = float(text)
    except ValueError:
        return re.sub(r"\s*,\s*", ",", text) if text.startswith("[") else text
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def _split_values(text: str) -> list[str]:
    """At the commas that stand in no brackets and no quotation marks."""
    values, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else _BRACKETS.get(letter, 0)
        if letter == "," and not depth and not quoted:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]
