"""GOR's figure 7: whole images embedded, with and without the regularization, by the dimension."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from keypatch.benchmarks import Result, evaluate_embedding
from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.commands.train import Data, train
from keypatch.errors import KeypatchError
from keypatch.patches import PatchSet
from keypatch.patches.layouts import EMBEDDED, find_layout
from keypatch.progress import Progress
from keypatch.recipes.embedding import EMBEDDING_LIFTED, EMBEDDING_LIFTED_GOR
from keypatch.studies.papers.drawing import Line, Panel
from keypatch.studies.papers.ours import Grid, Made, hash_below, kept_result, text_of
from keypatch.studies.papers.plan import Plan, Row
from keypatch.training import Recipe
from keypatch.training.checkpoints import milestone_path
from keypatch.training.conditions import Conditions
from keypatch.zoo import load

KS = (1, 10, 100, 1000)
_GREY = {"embedding_images": EMBEDDING_LIFTED, "embedding_images_gor": EMBEDDING_LIFTED_GOR}


def for_grey(row: Row) -> Row:
    """The row on the small network for grey patches, in place of the one for images in colour."""
    assert row.recipe is not None
    small = _GREY[row.recipe.name]
    return replace(row, recipe=replace(small, network=replace(small.network, dim=row.recipe.network.dim)))


def is_grey(data: Data) -> bool:
    """Whether these are patches, not whole images."""
    if isinstance(data, PatchSet) or str(data) in EMBEDDED:
        return True
    path = Path(data)
    return path.is_dir() and find_layout(path) != "images"


def embeddings(
    plan: Plan,
    recipe_of: Callable[[Row], Recipe],
    data: Sequence[Data],
    tests: Sequence[str | Path],
    folder: Path,
    conditions: Conditions,
    progress: Progress,
) -> Made:
    """F1 and NMI against the dimension, and Recall@K of the largest common one; runs and results are kept."""
    grey = any(is_grey(place) for place in data)
    if not tests and [str(place) for place in data] != ["embedded"]:
        raise KeypatchError(f"{plan.name} needs images of other classes to score on. Name them with --test.")
    test = tests[0] if tests else "embedded-test"
    test_hash = "" if str(test) in EMBEDDED else hash_below(test)
    found: dict[str, Result] = {}
    for row in plan.trained:
        progress.note(f"{row.label}")
        recipe = recipe_of(for_grey(row) if grey else row)
        found[row.label] = _scored(row, recipe, data, test, test_hash, folder, conditions, progress)
    notes = ["Our network is small and starts from scratch; the paper's is GoogLeNet, trained on ImageNet: not run."]
    if grey:
        notes.append("On grey patches, whose points are the classes, not on whole images.")
    return Made((_table(plan, found),), tuple(_panels(plan, found)), notes=tuple(notes))


def _scored(
    row: Row,
    recipe: Recipe,
    data: Sequence[Data],
    test: str | Path,
    test_hash: str,
    folder: Path,
    conditions: Conditions,
    bar: Progress,
) -> Result:
    run, path = folder / "runs" / row.key, folder / "results" / f"{row.key}.json"
    end = milestone_path(run, 1.0)
    resume = run if (run / "recipe.toml").exists() else None  # of a finished run this only checks recipe and data
    train(recipe, list(data), run, replace(conditions, keep=(1.0,)), resume=resume, progress=bar)
    describer = load(end, conditions.device, scoring_precision(conditions.precision))
    return kept_result(path, describer, test_hash, lambda: evaluate_embedding(describer, test, progress=bar))


def _table(plan: Plan, found: dict[str, Result]) -> Grid:
    names = [*plan.scores, "spread.dm2"]
    rows = tuple(
        (row.label, *(text_of(name, found[row.label].scores.get(name, math.nan)) for name in names))
        for row in plan.trained
    )
    return Grid("", ("", *(f"ours, {name} %" if name != "spread.dm2" else "ours, d*M2" for name in names)), rows)


def _panels(plan: Plan, found: dict[str, Result]) -> list[Panel]:
    series = list(dict.fromkeys(row.series for row in plan.trained))
    panels = []
    for name, title in (("f1", "(a) F1 of clusters"), ("nmi", "(b) NMI of clusters")):
        lines = []
        for each in series:
            rows = [row for row in plan.trained if row.series == each]
            y = [100 * found[row.label].scores[name] for row in rows]
            lines.append(Line(each, [row.x or 0.0 for row in rows], y, "sweep"))
        panels.append(Panel(title, "dimension d", f"{name.upper()} (%, higher is better)", tuple(lines), log_x=True))
    dim = max((row.x or 0.0) for row in plan.trained if (row.x or 0.0) <= 512)
    lines = []
    for row in plan.trained:
        if row.x == dim:
            recalls = {
                k: 100 * found[row.label].scores[f"recall@{k}"] for k in KS if f"recall@{k}" in found[row.label].scores
            }
            lines.append(Line(row.series, [float(k) for k in recalls], list(recalls.values()), "sweep"))
    panels.append(Panel(f"(c) retrieval, d = {dim:g}", "K", "Recall@K (%)", tuple(lines), log_x=True))
    return panels
