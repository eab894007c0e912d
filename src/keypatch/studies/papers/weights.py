"""What figures read from trained weights and logs: curves of test lists, angles of pairs, running statistics."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from keypatch.benchmarks import Result, evaluate_ubc
from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.errors import KeypatchError
from keypatch.losses import Described, Hardest, Mining
from keypatch.losses.gradient_modulation import angles
from keypatch.networks import choose_device, prepare
from keypatch.patches import PatchSet, PatchSource
from keypatch.progress import Progress
from keypatch.sampling import RandomPairs
from keypatch.studies.gradients.study import GradientsSetup, study_gradients
from keypatch.studies.gradients.table import HEADS, spread, table_of
from keypatch.studies.papers.drawing import Floats, Line, Panel
from keypatch.studies.papers.functions import hynet_slopes, sdgmnet_figure_2
from keypatch.studies.papers.ours import Grid, Made, Ours, TrainedSet, headline_places, score_table
from keypatch.studies.papers.plan import Row
from keypatch.studies.scoring import SCORES_ONLY
from keypatch.studies.ubc.table import SETS
from keypatch.training.checkpoints import milestone_path
from keypatch.training.conditions import Conditions
from keypatch.training.recipe_files import read_recipe
from keypatch.training.run_folder import LOG, read_log
from keypatch.training.statistics import SHARES, TABLE_II, table_ii
from keypatch.zoo import load
from keypatch.zoo.loading import load_network

BATCHES, BATCH = 20, 256  # whose angles are measured
_PAPERS_BATCH = 1024


def scored_lists(ours: Ours, conditions: Conditions) -> Iterator[tuple[TrainedSet, Row, str, str, Result]]:
    """The first seed of every row on the usual list of each test set: its set, row, test, list and result."""
    for place in headline_places(ours):
        trained = next(each for each in ours.sets if each.name == place.trained_on)
        test = next(each for each in trained.tests if each.name == place.column.test)
        if not isinstance(test.data, PatchSet):
            continue
        for row in ours.plan.trained:
            for run in trained.runs(row)[:1]:
                precision = scoring_precision(conditions.precision)
                describer = load(milestone_path(run, 1.0), conditions.device, precision)
                result = evaluate_ubc(describer, test.data, SCORES_ONLY)
                yield trained, row, test.name, place.column.score.partition(".")[2], result


def roc_curves(ours: Ours, conditions: Conditions) -> Made:
    """GOR's figure 4: a panel for each test set."""
    panels: dict[str, list[Line]] = {}
    for trained, row, test, pairs, result in scored_lists(ours, conditions):
        curve, score = result.curves[f"roc.{pairs}"], result.scores[f"fpr95.{pairs}"]
        title = f"trained on {trained.name}, tested on {test}: {pairs.split('_')[0]}"
        panels.setdefault(title, []).append(Line(f"{row.label}, FPR95 {100 * score:.2f} %", curve.x, curve.y))
    made = tuple(
        Panel(title, "false-positive rate", "true-positive rate", tuple(lines), y_limits=(0.8, 1.005), limits=(0, 0.3))
        for title, lines in panels.items()
    )
    return Made((score_table(ours),), made)


def precision_recall(ours: Ours, conditions: Conditions) -> Made:
    """Scale-aware figure 8: a panel for each training set, a curve for each test set."""
    panels: dict[str, list[Line]] = {}
    for trained, _, test, pairs, result in scored_lists(ours, conditions):
        curve, score = result.curves[f"pr.{pairs}"], result.scores[f"ap.{pairs}"]
        label = f"{test} {pairs.split('_')[0]}, AP {100 * score:.2f} %"
        panels.setdefault(f"trained on {trained.name}", []).append(Line(label, curve.x, curve.y))
    made = tuple(Panel(title, "recall", "precision", tuple(lines)) for title, lines in panels.items())
    return Made((score_table(ours),), made)


def similarity_histograms(ours: Ours, conditions: Conditions) -> Made:
    """GOR's figure 5: a panel for each row and test set, and how much the two histograms overlap."""
    panels, rows = [], []
    for trained, row, test, pairs, result in scored_lists(ours, conditions):
        same, other = (result.curves[f"similarity.{kind}.{pairs}"] for kind in ("matching", "nonmatching"))
        shared = float(np.minimum(same.y, other.y).sum() * (same.x[1] - same.x[0]))
        lines = (Line("matching", same.x, same.y, "filled"), Line("non-matching", other.x, other.y, "filled"))
        title = f"{row.label}, {test} {pairs.split('_')[0]}: overlap {shared:.3f}"
        panels.append(Panel(title, "cosine similarity", "density", lines, limits=(-0.6, 1.0)))
        m1, m2 = (f"{result.scores[f'spread.{name}']:.3f}" for name in ("m1", "dm2"))
        rows.append((row.label, trained.name, f"{test} {pairs.split('_')[0]}", f"{shared:.3f}", m1, m2))
    overlap = Grid("Overlap and moments", ("", "trained on", "tested on", "overlap", "M1", "d*M2"), tuple(rows))
    return Made((score_table(ours), overlap), tuple(panels), columns=2)


def measure_angles(run: Path, source: PatchSource, mining: Mining, device: str, *, training: bool = False) -> Floats:
    """theta+ and theta- (2, n) in radians of random batches of the training set.

    `training`: with dropout and the moments of the batch, as the loss sees them; augmentation is left out.
    """
    network = load_network(milestone_path(run, 1.0))[1].to(choose_device(device)).train(training)
    place = next(network.parameters()).device
    classes = source.classes()
    batch = min(BATCH, classes.count)
    found = []
    with torch.no_grad():
        for step in range(BATCHES):
            drawn = RandomPairs(batch).draw(classes, 0, step)
            patches = torch.from_numpy(source.take(drawn.indices))  # (n, 2, side, side)
            raw = network(prepare(patches.transpose(0, 1).flatten(0, 1), network.preprocessing).to(place))
            found.append(angles(Described.of_pairs(raw[:batch], raw[batch:], mining)).cpu().double().numpy())
    return np.concatenate(found, axis=1)


def angle_distributions(ours: Ours, conditions: Conditions) -> Made:
    """HyNet's figure 2: the angles of pairs, negatives mined as HardNet does for all rows, and the slopes at them."""
    lines, rows = [], []
    for trained in ours.sets:
        for number, row in enumerate(ours.plan.trained):
            for run in trained.runs(row)[:1]:
                measured = measure_angles(run, trained.source, Hardest(), conditions.device)
                for kind, theta, look in zip(("positives", "negatives"), measured, ("line", "filled"), strict=True):
                    density, edges = np.histogram(theta, 80, (0, math.pi), density=True)
                    middle = (edges[1:] + edges[:-1]) / 2
                    lines.append(Line(f"{row.label}, {kind}", middle, density, look, colour=number))  # type: ignore[arg-type]
                    inside = f"{100 * np.mean(theta < math.pi / 2):.2f}"
                    rows.append((row.label, kind, f"{theta.mean():.3f}", f"{theta.std():.3f}", inside))
    slopes = hynet_slopes()
    if not lines:
        return Made(panels=(slopes,), notes=("(a), the angles of pairs, needs --data and --pairs: not run.",))
    title = "(a) angles of positives and hardest negatives"
    head = ("", "pairs", "mean (rad)", "deviation (rad)", "below pi/2 (%)")
    return Made(
        (Grid("Angles", head, tuple(rows)), score_table(ours)),
        (Panel(title, "angle theta (rad)", "density", tuple(lines), limits=(0, math.pi)), slopes),
        columns=2,
    )


def modulation(ours: Ours, conditions: Conditions) -> Made:
    """SDGMNet's figure 2, from the statistics of a run, or as printed where there is none."""
    for trained in ours.sets:
        row = ours.plan.trained[0]
        for run in trained.runs(row)[:1]:
            values = read_modulation(run)[-1]["statistics"]
            state = {
                name.removeprefix("GradientModulation/"): torch.tensor(value, dtype=torch.float64)
                for name, value in values.items()
                if name.startswith("GradientModulation/")
            }
            mining = (row.recipe and row.recipe.mining) or Hardest()
            theta = measure_angles(run, trained.source, mining, conditions.device, training=True)
            seen = {"positive": theta[0], "negative": theta[1], "r": theta[0] - theta[1]}
            return Made((score_table(ours),), tuple(sdgmnet_figure_2(state, seen)), columns=2)
    return Made(panels=tuple(sdgmnet_figure_2()), columns=2, notes=("The distributions of angles: not run.",))


def read_modulation(run: Path) -> list[dict[str, Any]]:
    """The records of a run's log that hold SDGMNet's statistics."""
    found = [record for record in read_log(run) if TABLE_II.keys() <= record.get("statistics", {}).keys()]
    if not found:
        raise KeypatchError(f"{run / LOG} has no GradientModulation statistics.")
    return found


def statistics_table(ours: Ours, conditions: Conditions) -> Made:
    """SDGMNet's Table II: the statistics at five moments, ours and printed."""
    printed = {
        (each.score.partition("/")[2], each.data, each.trained_on): each.value for each in ours.plan.rows[0].figures
    }
    moments = [f"epoch {round(200 * share)} of 200" for share in SHARES]
    rows, panels = [], []
    runs = {each.name: run for each in ours.sets for run in each.runs(ours.plan.rows[0])[:1]}
    logs = {name: _for_papers_batch(run) for name, run in runs.items()}
    tables = {name: table_ii(log) for name, log in logs.items()}
    for key, title in TABLE_II.items():
        name = key.partition("/")[2]
        for trained_on, table in tables.items():
            values = next(row.values for row in table.rows if row.symbol == title) if table else ()
            rows.append((title, f"ours, {trained_on}", *(f"{value:.4g}" for value in values)))
        for trained_on in SETS:
            rows.append((title, f"printed, {trained_on}", *(printed[name, moment, trained_on] for moment in moments)))
        lines = [
            Line(
                f"ours, {each}",
                [record["step"] / log[-1]["step"] for record in log],
                [record["statistics"][key] for record in log],
            )
            for each, log in logs.items()
        ]
        lines += [
            Line(
                f"printed, {each}",
                SHARES,
                [float(printed[name, moment, each]) for moment in moments],
                "printed",
                colour=number + len(logs),
            )
            for number, each in enumerate(SETS)
        ]
        unit = "" if name.startswith("power") else " (rad)"
        panels.append(Panel(title, "share of the run", f"{title}{unit}", tuple(lines)))
    head = ("", "", *(f"{100 * share:g} %" for share in SHARES))
    return Made((Grid("Statistics at shares of the run", head, tuple(rows)),), tuple(panels), columns=4)


def gradient_figures(ours: Ours, folder: Path, conditions: Conditions, progress: Progress) -> Made:
    """AdaSample's figure 2: probabilities by distance and by gradient at the end, or their correlation on the way."""
    runs = {row.label: run for trained in ours.sets for row in ours.plan.trained for run in trained.runs(row)[:1]}
    tests = [test.data for trained in ours.sets for test in trained.tests if isinstance(test.data, PatchSet)]
    if not tests:
        raise KeypatchError(f"{ours.plan.name} measures pairs of a patch set. Name one with --test.")
    setup = GradientsSetup(pairs=min(256, tests[0].classes().count))
    found = study_gradients(
        list(runs.values()), tests[0], folder / "gradients", setup, device=conditions.device, progress=progress
    )
    names = {run.name: label for label, run in runs.items()}
    if ours.plan.place.endswith("(b)"):
        lines = []
        for run in found.runs():
            measured = found.checkpoints(run)
            for kind, of in (("positive", "theta+^2 alone"), ("full", "whole hinge")):
                y = [spread(each, kind).mean for each in measured.values()]
                lines.append(Line(f"{names[run]}, {of}", [float(pairs or 0) for pairs in measured], y, "sweep"))
        level = {"the text: above 0.8": 0.8}
        panels = [Panel("", "pairs trained on", "Pearson's correlation", tuple(lines), level)]
    else:
        panels = []
        for run in found.runs():
            last = list(found.checkpoints(run).values())[-1][0]
            x = np.array(last.angles) / (np.sum(last.angles) or 1.0)
            for norms, of in ((last.positive_norms, "theta+^2 alone"), (last.full_norms, "whole hinge")):
                line = Line(of, x, np.array(norms) / (np.sum(norms) or 1.0), "points")
                equal = Line("equal", [0, float(x.max())], [0, float(x.max())], colour="0.5")
                panels.append(Panel(f"{names[run]}: {of}", "probability by distance", "by gradient", (line, equal)))
    table = Grid("Correlations", HEADS, tuple((names.get(row[0], row[0]), *row[1:]) for row in table_of(found)))
    return Made((table,), tuple(panels), columns=2)


def _for_papers_batch(run: Path) -> list[dict[str, Any]]:
    """The log's records of the modulation, powers as in batches of the paper's size."""
    batch = read_recipe(run / "recipe.toml").sampler.pairs
    found = []
    for record in read_modulation(run):
        values = record["statistics"]
        powers = {name: values[name] * _PAPERS_BATCH / batch for name in TABLE_II if "/power" in name}
        found.append({**record, "statistics": {**values, **powers}})
    return found
