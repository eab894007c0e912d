"""The methods under equal conditions: recipes trained on the same data, batch, budget and seeds, scored on the way."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.commands.train import Data, open_source, train
from keypatch.errors import Interrupted, KeypatchError, MissingExtra
from keypatch.files import lock
from keypatch.patches.patch_set import JoinedSets
from keypatch.progress import Callback, Progress
from keypatch.provenance import provenance
from keypatch.studies.methods.figure import draw_curves
from keypatch.studies.methods.page import write_methods_page
from keypatch.studies.methods.plan import (
    SHARES,
    MethodsPlan,
    MethodsSetup,
    check_conditions,
    check_feasible,
    check_same_tests,
    choose_recipes,
    open_tests,
)
from keypatch.studies.methods.table import Milestone, Table, Trial, load_trials, read_table
from keypatch.training import Recipe
from keypatch.training.checkpoints import load_checkpoint, milestone_path
from keypatch.training.conditions import Conditions
from keypatch.training.recipe_files import holds_recipe
from keypatch.zoo import load


def study_methods(
    data: Data | Sequence[Data],
    setup: MethodsSetup,
    out: str | Path = "studies/methods",
    conditions: Conditions = Conditions(),  # noqa: B008 (frozen)
    *,
    recipes: Sequence[str | Path | Recipe] = (),
    tests: Sequence[str | Path] = (),
    hpatches: str | Path | None = None,
    dry: bool = False,
    progress: Progress | Callback | None = None,
) -> Table:
    """Train every recipe with every seed on the same budget, score it at 25, 50, 75 and 100 % and write a table.

    data: a folder, "embedded", an open PatchSet, or several of these.
    setup: what all recipes have in common: budget, batch, seeds, changed fields.
    out: gets rows/, runs/, table.md, table.json and curves.png. What is finished there is not repeated, a stopped run
        is resumed, a recipe that fails becomes a row that says so; two processes with one folder share the work.
    conditions: how it is computed, the same for all.
    recipes: all of `keypatch list recipes` unless given, but those for images and those that continue from a trained
        network.
    tests: patch sets with pair lists; hpatches: a folder of strips. Only data="embedded" has its own, "embedded-test".
    dry: train nothing; the table as it stands, with what is missing.

    >>> kp.study_methods("embedded", kp.MethodsSetup(pairs=50_000), recipes=["hynet", "sdgmnet"])  # doctest: +SKIP

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the same call resumes.
    """
    progress = Progress.of(progress)
    source, chosen = open_source(data), choose_recipes(recipes, setup)
    check_feasible(chosen, source, conditions)
    opened = open_tests(tests, hpatches, source.sets if isinstance(source, JoinedSets) else [source])
    plan = MethodsPlan(Path(out), source, chosen, opened, setup, conditions)
    check_conditions(plan.folder, plan.common())
    check_same_tests(plan.tests, load_trials(plan.folder))
    planned = [plan.row(recipe) for recipe in chosen]  # refuses a row of another recipe before training
    if dry:
        return read_table(plan.folder, planned)
    plan.begin()
    table = _write_table(plan.folder, planned)
    for number, recipe in enumerate(chosen, start=1):
        progress.note(f"{recipe.name}, seed {recipe.seed} ({number} of {len(chosen)})")
        _bring_forward(plan, recipe, progress)
        table = _write_table(plan.folder, planned)
    _draw(table, plan.folder / "curves.png", progress)
    if all(row.failed for row in table.unfinished) and not table.lines:
        raise KeypatchError(f"Every recipe failed; {table.unfinished[0].name} said: {table.unfinished[0].failed}")
    return table


def _write_table(folder: Path, planned: Sequence[Trial]) -> Table:
    table = read_table(folder, planned)
    table.save(folder / "table.json")
    write_methods_page(folder / "table.md", table)
    return table


def _bring_forward(plan: MethodsPlan, recipe: Recipe, progress: Progress) -> None:
    """Train and score one row, unless it is finished or another process is at it."""
    name = plan.row(recipe).name
    with ExitStack() as held:
        try:
            held.enter_context(lock(plan.rows_folder / f".{name}.lock", f"The row {name}"))
        except KeypatchError as taken:
            progress.note(f"{taken} Continuing with the next.")
            return
        row = plan.row(recipe)
        if plan.is_finished(row):
            if row.failed:  # at a test set that is not asked for now
                replace(row, failed="").save(plan.rows_folder)
            return
        try:
            _score(plan, _trained(plan, recipe, row, progress), recipe, progress)
        except (Interrupted, KeyboardInterrupt) as stop:
            raise Interrupted(f"{plan.folder} keeps everything finished so far, up to {name}") from stop
        except Exception as error:  # of whatever kind: the fault of one recipe must not cost the others their night
            sentence = str(error) if isinstance(error, KeypatchError) else f"{type(error).__name__}: {error}"
            row = plan.row(recipe)  # with what was scored before the fault
            origin = row.provenance or provenance().to_json()
            replace(row, failed=sentence, provenance=origin).save(plan.rows_folder)
            progress.note(f"{name} failed: {sentence}")


def _trained(plan: MethodsPlan, recipe: Recipe, row: Trial, progress: Progress) -> Trial:
    """The row of a run at its end, trained up to there if it was not."""
    folder = plan.run_folder(recipe)
    if not _is_at_its_end(folder, recipe):
        resume = folder if (folder / "recipe.toml").exists() else None
        train(recipe, plan.source, folder, replace(plan.conditions, keep=SHARES), resume=resume, progress=progress)
    elif row.run:
        return replace(row, failed="")
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    used = {name: card[name] for name in ("device", "precision", "threads")}
    return replace(row, failed="", run=used, provenance=card["provenance"])


def _is_at_its_end(run: Path, recipe: Recipe) -> bool:
    files = [run / "recipe.toml", run / "card.json", *(milestone_path(run, share) for share in SHARES)]
    return all(file.exists() for file in files) and holds_recipe(run / "recipe.toml", recipe)


def _score(plan: MethodsPlan, row: Trial, recipe: Recipe, progress: Progress) -> None:
    """Score what is missing; the row is written after every test set."""
    for share in SHARES:
        missing = [test for test in plan.tests if row.lacks(share, test.name)]
        if not missing:
            continue
        progress.note(f"Scoring {row.name} at {share:.0%}")
        file = milestone_path(plan.run_folder(recipe), share)
        describer = load(file, plan.conditions.device, scoring_precision(plan.conditions.precision))
        for test in missing:
            result = test.score(describer)
            milestone = row.at(share) or _reached(file, share)
            scored = replace(milestone, scores={**milestone.scores, test.name: dict(result.scores)})
            hashes = {**row.tests, test.name: result.provenance.hashes["data"]}
            seen = {test.name: result.contamination.sentence()} if result.contamination else {}
            row = replace(row.with_milestone(scored), tests=hashes, seen={**row.seen, **seen})
            row.save(plan.rows_folder)


def _reached(file: Path, share: float) -> Milestone:
    checkpoint = load_checkpoint(file)
    return Milestone(share, checkpoint.step * checkpoint.recipe.sampler.pairs, checkpoint.seconds)


def _draw(table: Table, path: Path, progress: Progress) -> None:
    try:
        draw_curves(path, table)
    except MissingExtra as missing:
        progress.note(str(missing))
