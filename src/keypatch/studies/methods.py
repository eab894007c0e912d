"""The methods under equal conditions: recipes trained on the same data, batch, budget and seeds, scored on the way."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from keypatch.errors import Interrupted, KeypatchError, MissingExtra
from keypatch.files import lock
from keypatch.provenance import provenance
from keypatch.studies.methods_figure import draw_curves
from keypatch.studies.methods_page import write_page
from keypatch.studies.methods_plan import (
    SHARES,
    Plan,
    check_conditions,
    check_feasible,
    choose_recipes,
)
from keypatch.studies.methods_rows import Milestone, Row, load_rows
from keypatch.studies.methods_table import Table, read_table
from keypatch.studies.methods_test_data import check_same_tests, open_tests
from keypatch.studies.training import open_source, train
from keypatch.training import Recipe
from keypatch.training.checkpoints import load_checkpoint, milestone_path
from keypatch.training.progress import Reporter, Silent
from keypatch.training.recipe_files import read_recipe
from keypatch.zoo import find


def study_methods(
    data: str | Path | Sequence[str | Path],
    pairs: int,
    out: str | Path = "studies/methods",
    *,
    recipes: Sequence[str | Path | Recipe] = (),
    tests: Sequence[str | Path] = (),
    hpatches: str | Path | None = None,
    seeds: Sequence[int] = (0,),
    batch: int = 256,
    settings: Sequence[str] = (),
    dry: bool = False,
    device: str = "auto",
    precision: str = "auto",
    compile: str = "auto",
    threads: int | None = None,
    reporter: Reporter | None = None,
) -> Table:
    """Train every recipe with every seed for `pairs` pairs, score it at 25, 50, 75 and 100 % and write a table.

    recipes: all of `keypatch list recipes` unless given, but those for images and those that go on with a trained
        network. settings: "loss.margin=1.0", applied to every recipe.
    tests: patch sets with pair lists; hpatches: a folder of strips. Only data="embedded" has its own, "embedded-test".
    out: gets rows/, runs/, table.md, table.json and curves.png. What is finished there is not done again, a stopped run
        is gone on with, a recipe that fails becomes a row that says so; two processes with one folder share the work.
    dry: train nothing; the table as it stands, with what is missing.
    device, precision, compile, threads: how it is computed, the same for all (`Conditions`).

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the same call goes on.
    """
    reporter = reporter or Silent()
    folders = (data,) if isinstance(data, str | Path) else tuple(data)
    source, chosen = open_source(folders), choose_recipes(recipes, settings, batch, pairs, seeds)
    check_feasible(chosen, source, device, precision, compile, threads)
    conditions = {
        "data": source.name,
        "data_hash": sha256(source.point_id.tobytes()).hexdigest(),
        "pairs": pairs,
        "batch": batch,
        "settings": list(settings),
        "device": device,
        "precision": precision,
        "compile": compile,
        "threads": threads,
    }
    plan = Plan(Path(out), folders, chosen, open_tests(tests, hpatches, folders), conditions)
    check_conditions(plan.folder, conditions)
    check_same_tests(plan.tests, load_rows(plan.folder))
    planned = [plan.row(recipe) for recipe in chosen]  # a row of another recipe is told before anything is trained
    if dry:
        return read_table(plan.folder, planned)
    plan.begin()
    table = _write_table(plan.folder, planned)
    for number, recipe in enumerate(chosen, start=1):
        reporter.say(f"{recipe.name}, seed {recipe.seed} ({number} of {len(chosen)})")
        _bring_forward(plan, recipe, reporter)
        table = _write_table(plan.folder, planned)
    _draw(table, plan.folder / "curves.png", reporter)
    if all(row.failed for row in table.unfinished) and not table.lines:
        raise KeypatchError(f"Every recipe failed; {table.unfinished[0].name} said: {table.unfinished[0].failed}")
    return table


def _write_table(folder: Path, planned: Sequence[Row]) -> Table:
    table = read_table(folder, planned)
    table.save(folder / "table.json")
    write_page(folder / "table.md", table)
    return table


def _bring_forward(plan: Plan, recipe: Recipe, reporter: Reporter) -> None:
    """Train and score one row, unless it is finished or another process is at it."""
    name = plan.row(recipe).name
    with ExitStack() as held:
        try:
            held.enter_context(lock(plan.rows_folder / f".{name}.lock", f"The row {name}"))
        except KeypatchError as taken:
            reporter.say(f"{taken} Going on with the next.")
            return
        row = plan.row(recipe)
        if plan.is_finished(row):
            if row.failed:  # at a test set that is not asked for now
                replace(row, failed="").save(plan.rows_folder)
            return
        try:
            _score(plan, _trained(plan, recipe, row, reporter), recipe, reporter)
        except (Interrupted, KeyboardInterrupt) as stop:
            raise Interrupted(f"Stopped at {name}. The same command goes on with it; what is finished stays.") from stop
        except Exception as error:  # of whatever kind: the fault of one recipe must not cost the others their night
            sentence = str(error) if isinstance(error, KeypatchError) else f"{type(error).__name__}: {error}"
            row = plan.row(recipe)  # with what was scored before the fault
            origin = row.provenance or provenance().to_json()
            replace(row, failed=sentence, provenance=origin).save(plan.rows_folder)
            reporter.say(f"{name} failed: {sentence}")


def _trained(plan: Plan, recipe: Recipe, row: Row, reporter: Reporter) -> Row:
    """The row of a run at its end, trained up to there if it was not."""
    folder = plan.run_folder(recipe)
    if not _is_at_its_end(folder, recipe):
        how = {name: plan.conditions[name] for name in ("device", "precision", "compile", "threads")}
        resume = (folder / "recipe.toml").exists()
        train(recipe, plan.data, folder, resume=resume, keep=SHARES, reporter=reporter, **how)
    elif row.run:
        return replace(row, failed="")
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    used = {name: card[name] for name in ("device", "precision", "threads")}
    return replace(row, failed="", run=used, provenance=card["provenance"])


def _is_at_its_end(run: Path, recipe: Recipe) -> bool:
    files = [run / "recipe.toml", run / "card.json", *(milestone_path(run, share) for share in SHARES)]
    return all(file.exists() for file in files) and read_recipe(run / "recipe.toml") == recipe


def _score(plan: Plan, row: Row, recipe: Recipe, reporter: Reporter) -> None:
    """Score what is missing; the row is written after every test set."""
    for share in SHARES:
        missing = [test for test in plan.tests if row.lacks(share, test.name)]
        if not missing:
            continue
        reporter.say(f"Scoring {row.name} at {share:.0%}")
        file = milestone_path(plan.run_folder(recipe), share)
        describer = find(file, plan.conditions["device"], plan.conditions["precision"])
        for test in missing:
            result = test.score(describer)
            milestone = row.at(share) or _reached(file, share)
            scored = replace(milestone, scores={**milestone.scores, test.name: dict(result.scores)})
            hashes = {**row.tests, test.name: result.provenance.hashes["data"]}
            row = replace(row.with_milestone(scored), tests=hashes)
            row.save(plan.rows_folder)


def _reached(file: Path, share: float) -> Milestone:
    checkpoint = load_checkpoint(file)
    return Milestone(share, checkpoint.step * checkpoint.recipe.sampler.pairs, checkpoint.seconds)


def _draw(table: Table, path: Path, reporter: Reporter) -> None:
    try:
        draw_curves(path, table)
    except MissingExtra as missing:
        reporter.say(str(missing))
