"""The methods under equal conditions: recipes trained on the same data, batch, budget and seeds, scored on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from keypatch.commands.train import Data
from keypatch.errors import KeypatchError, RecipeError
from keypatch.networks import EmbeddingNet
from keypatch.progress import Callback, Progress
from keypatch.recipes import PUBLISHED, RECIPES, as_published, find_recipe
from keypatch.settings import apply_settings, option
from keypatch.studies.figure import draw_curves
from keypatch.studies.page import write_methods_page
from keypatch.studies.study import Arm, check_settings, draw_figure, run_study
from keypatch.studies.table import Table
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.recipe import TYPES

OPTIONS = {"pairs": "--pairs", "seed": "--seed", "sampler.pairs": "--batch"}  # what to use instead of --set


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
    published: bool = option(
        False, "Train the recipes as printed in the papers, without our choices and detector noise."
    )

    def __post_init__(self) -> None:
        if not self.seeds or min(self.seeds) < 0:
            raise KeypatchError(f"--seed {' '.join(map(str, self.seeds))}: give one or more non-negative integers.")
        check_settings(self.settings, OPTIONS)


def study_methods(
    data: Data | Sequence[Data],
    setup: MethodsSetup,
    out: str | Path = "studies/methods",
    conditions: Conditions = Conditions(),  # noqa: B008 (frozen)
    *,
    recipes: Sequence[str | Path | Recipe] = (),
    tests: Sequence[str | Path] = (),
    hpatches: str | Path | None = None,
    split: str | None = None,
    dry: bool = False,
    progress: Progress | Callback | None = None,
) -> Table:
    """Train every recipe with every seed on the same budget, score it at 25, 50, 75 and 100 % and write a table.

    data: a folder, "embedded", an open PatchSet, or several of these.
    setup: what all recipes have in common: budget, batch, seeds, changed fields, as published or not.
    out: gets rows/, runs/, table.md, table.json and curves.png. What is finished there is not repeated, an interrupted
        run is resumed, a recipe that fails becomes a row that says so; two processes with one folder share the work.
    conditions: how the runs are computed, the same for all.
    recipes: by default all of `keypatch list recipes`, except those for images and those that start from a trained
        network.
    tests: patch sets with pair lists; hpatches: a folder of strips, scored by rank-1, or with a `split` by the three
        tasks of HPatches. Only data="embedded" has its own, "embedded-test".
    dry: train nothing; return the current table with what is missing and its `cost`, estimated by timing a few steps.

    >>> kp.study_methods("embedded", kp.MethodsSetup(pairs=50_000), recipes=["hynet", "sdgmnet"])  # doctest: +SKIP

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the same call resumes.
    """
    progress = Progress.of(progress)
    table = run_study(
        [Arm(recipe.name, recipe) for recipe in choose_recipes(recipes, setup)],
        data,
        out,
        conditions,
        seeds=setup.seeds,
        tests=tests,
        hpatches=hpatches,
        split=split,
        equal={
            "pairs": setup.pairs,
            "batch": setup.batch,
            "settings": list(setup.settings),
            **({"published": True} if setup.published else {}),  # folders of before do not say it
        },
        page=write_methods_page,
        dry=dry,
        progress=progress,
    )
    if not dry:
        draw_figure(draw_curves, Path(out) / "curves.png", table, progress)
    return table


def choose_recipes(recipes: Sequence[str | Path | Recipe], setup: MethodsSetup) -> list[Recipe]:
    """With the study's batch and budget; if none is named, all for patches that start from nothing."""
    every = [
        recipe
        for recipe in RECIPES.values()
        if not recipe.needs_weights and not isinstance(recipe.network, EmbeddingNet)
        if recipe.name in PUBLISHED or not setup.published
    ]
    chosen = [recipe if isinstance(recipe, Recipe) else find_recipe(recipe) for recipe in recipes or every]
    changed = []
    for recipe in map(as_published, chosen) if setup.published else chosen:
        try:
            whole = apply_settings(recipe, [*setup.settings, f"sampler.pairs={setup.batch}"], TYPES)
            changed.append(replace(whole, pairs=setup.pairs))
        except RecipeError as error:
            raise RecipeError(f"{recipe.name}: {error}") from None
    return changed
