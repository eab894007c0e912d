"""A table or figure of a paper made here: its rows trained and scored as a study, printed values beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from keypatch.benchmarks import Result
from keypatch.benchmarks.hpatches.strips import EVERY
from keypatch.commands.train import Data
from keypatch.errors import KeypatchError, RecipeError
from keypatch.patches.patch_set import JoinedSets, PatchSet
from keypatch.progress import Callback, Progress
from keypatch.recipes import PUBLISHED, as_published
from keypatch.settings import CheckedFields, apply_settings, option
from keypatch.studies.cost import ArmCost
from keypatch.studies.methods import OPTIONS
from keypatch.studies.page import write_study_page
from keypatch.studies.papers import ours as scores
from keypatch.studies.papers import photos as on_photos
from keypatch.studies.papers import weights
from keypatch.studies.papers.catalogue import find_plan
from keypatch.studies.papers.drawing import Panel
from keypatch.studies.papers.functions import FUNCTIONS
from keypatch.studies.papers.images import embeddings
from keypatch.studies.papers.ours import NOT_RUN, Grid, Made, Ours, TrainedSet, kept_result
from keypatch.studies.papers.page import PaperPage
from keypatch.studies.papers.photos import Photos
from keypatch.studies.papers.plan import Plan, Row, slug
from keypatch.studies.rows import Scores, Trial, load_trials
from keypatch.studies.scoring import TestData, open_tests, open_training
from keypatch.studies.study import SHARES, Arm, check_settings, run_study
from keypatch.studies.table import Table
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.recipe import TYPES
from keypatch.zoo import load

TENTHS = tuple(tenth / 10 for tenth in range(1, 11))  # of a run, at which curves along it are scored
ON_PHOTOS = ("models", "poses", "matches")
# Where nothing but the end is shown, nothing else is scored.
SHARES_OF = {"run": TENTHS, "gradients": TENTHS, "splits": (1.0,), "bars": (1.0,), "roc": (1.0,), "pr": (1.0,)}
SHARES_OF |= dict.fromkeys(("similarity", "angles", "statistics", *ON_PHOTOS), (1.0,))


@dataclass(frozen=True)
class PaperSetup(CheckedFields):
    """How the rows of a plan are trained.

    >>> kp.PaperSetup(pairs=60_000, batch=256).published
    True
    """

    pairs: int | None = option(None, "Training budget of every row, in pairs.", least=1)
    batch: int | None = option(
        None, "Pairs per batch, unless the plan varies batches; none takes each recipe's own.", least=1
    )
    seeds: tuple[int, ...] = option((0,), "Random seed; may be repeated. Every row is trained once per seed.")
    settings: tuple[str, ...] = option((), "Set a field of every recipe.")
    published: bool = option(True, "Train the recipes as printed, without detector noise; otherwise our versions.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self.settings, OPTIONS)


def study_paper(
    name: str,
    data: Data | Sequence[Data] = (),
    setup: PaperSetup = PaperSetup(),  # noqa: B008 (frozen)
    out: str | Path | None = None,
    conditions: Conditions = Conditions(),  # noqa: B008 (frozen)
    *,
    tests: Sequence[str | Path] = (),
    hpatches: str | Path | None = None,
    split: str | None = None,
    scenes: Sequence[str | Path] = (),
    poses: str | Path | None = None,
    planes: str | Path | None = None,
    study: str | Path | None = None,
    dry: bool = False,
    progress: Progress | Callback | None = None,
) -> PaperPage:
    """Make a table or figure from a paper: train its rows, score them, and write them beside the printed values.

    name: one listed by `keypatch study paper`, such as "hynet-table-3". Plots of functions need no data.
    data: the training data, as for `study_methods`. Where the paper trains on each of several sets (the six splits of
        PhotoTour), one network is trained on each and scored on the others and on `tests`.
    setup: budget, batch, seeds, changed fields, and whether recipes are as published.
    out: the folder, by default studies/papers/NAME; gets paper.md, paper.json, figure.png and the study of its rows.
    tests, hpatches, split: what is scored on; strips by the three tasks, on all sequences unless a split is named.
    scenes, poses, planes: photographs to test models, poses and matches on, as for `evaluate` with sfm, stereo and
        homography.
    study: a study folder whose runs are used, and to which missing ones are added; by default `out`.
    dry: train nothing; return the plan, and its cost if data and budget are given.

    >>> kp.study_paper("gor-fig-2")  # doctest: +SKIP

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the same call resumes.
    """
    plan, progress = find_plan(name), Progress.of(progress)
    places = [data] if isinstance(data, str | Path | PatchSet) else list(data)
    folder = Path(out) if out is not None else Path("studies/papers") / plan.name
    photos = Photos(tuple(scenes), poses, planes)
    _check(plan, places, setup, dry or not photos.given(plan.form))
    work = _Work(plan, folder, Path(study) if study else folder, setup, conditions, tests, hpatches, split, progress)
    if dry:
        return work.preview(places)
    page = work.page(places, photos)
    page.save(folder, progress)
    return page


def _check(plan: Plan, places: Sequence[Data], setup: PaperSetup, dry: bool) -> None:
    if plan.form == "function" and places:
        raise KeypatchError(f"{plan.name} is drawn from the loss functions alone. Leave out --data.")
    if dry or not plan.trained or (plan.name in FUNCTIONS and not places):
        return
    if not places or setup.pairs is None:
        published = max(row.recipe.pairs for row in plan.trained if row.recipe)
        raise KeypatchError(
            f"{plan.name} trains {len(plan.trained)} row{'s' * (len(plan.trained) > 1)}: name the data with --data and "
            f"the budget with --pairs (the paper uses up to {published:,} pairs per row). --dry shows the plan."
        )


@dataclass(frozen=True)
class _Work:
    """What is made, with which rows and where."""

    plan: Plan
    folder: Path
    study: Path
    setup: PaperSetup
    conditions: Conditions
    tests: Sequence[str | Path]
    hpatches: str | Path | None
    split: str | None
    progress: Progress

    @property
    def strips(self) -> dict[str, Any]:
        """How strips are scored: by the three tasks."""
        return {"hpatches": self.hpatches, "split": self.split or EVERY} if self.hpatches else {}

    def recipe(self, row: Row) -> Recipe:
        """The recipe of a row with the budget, batch and fields of the setup."""
        assert row.recipe is not None
        recipe, batch = row.recipe, None if self.plan.varies_batch else self.setup.batch
        settings = ([f"sampler.pairs={batch}"] if batch is not None else []) + list(self.setup.settings)
        if self.setup.published and recipe.name in PUBLISHED:
            recipe = as_published(recipe)
        elif self.setup.published:
            recipe = apply_settings(recipe, ["augment.detector_noise=0"], TYPES)
        try:
            recipe = apply_settings(recipe, settings, TYPES)
            return recipe if self.setup.pairs is None else replace(recipe, pairs=self.setup.pairs)
        except RecipeError as error:
            raise RecipeError(f"{row.label}: {error}") from None

    def groups(self, places: Sequence[Data]) -> list[tuple[list[Data], list[str | Path], Path]]:
        """What is trained on together, what it is scored on, and the folder of its study."""
        if not self.plan.each or len(places) < 2:
            return [(list(places), list(self.tests), self.study)]
        found = list[tuple[list[Data], list[str | Path], Path]]()
        for place in places:
            if isinstance(place, PatchSet):
                raise KeypatchError(
                    f"{self.plan.name} trains on each set separately: give folders, not loaded patch sets."
                )
            others = [other for other in places if other is not place and not isinstance(other, PatchSet)]
            found.append(([place], [*others, *self.tests], self.study / Path(place).name))
        return found

    def arms(self, folder: Path) -> dict[str, Arm]:
        """By the label of the row; a run of the study with the same recipe is taken under the name it has there."""
        known = load_trials(folder)
        arms: dict[str, Arm] = {}
        taken = {trial.label: trial.trained for trial in known}
        for row in self.plan.trained:
            recipe = self.recipe(row)
            if same := _same_recipe(known, recipe):
                arms[row.label] = same
                continue
            label = row.key
            if taken.setdefault(label, recipe) != recipe:
                label = f"{row.key}-{slug(row.label)}"
            arms[row.label] = Arm(label, recipe)
        return arms

    def run(self, group: tuple[list[Data], list[str | Path], Path], dry: bool = False) -> tuple[Table, dict[str, Arm]]:
        data, tests, folder = group
        arms = self.arms(folder)
        once = list({arm.label: arm for arm in arms.values()}.values())
        table = run_study(
            once,
            data,
            folder,
            self.conditions,
            seeds=self.setup.seeds,
            tests=tests,
            shares=TENTHS if self.plan.best else SHARES_OF.get(self.plan.form, SHARES),
            page=write_study_page,
            dry=dry,
            progress=self.progress,
            **self.strips,
        )
        return table, arms

    def page(self, places: Sequence[Data], photos: Photos) -> PaperPage:
        if self.plan.form == "images":
            parts = (self.plan, self.recipe, places, self.tests, self.study, self.conditions, self.progress)
            made = embeddings(*parts)
            trained_on = [place.name if isinstance(place, PatchSet) else Path(place).name for place in places]
            return PaperPage(self.plan, made, self._conditions(trained_on), made.notes)
        sets, unfinished = [], list[tuple[str, str]]()
        trains = bool(places) and bool(self.plan.trained) and photos.given(self.plan.form)
        for group in self.groups(places) if trains else ():
            table, arms = self.run(group)
            sets.append(self._trained(group, table, arms))
            mine = {arm.label for arm in arms.values()}
            unfinished += [
                (row.name, row.failed or "not finished yet") for row in table.unfinished if row.label in mine
            ]
        ours = Ours(self.plan, tuple(sets), self._by_hand(sets))
        made = self._make(ours, photos)
        trained_on = [trained.name for trained in sets]
        return PaperPage(
            self.plan, made, self._conditions(trained_on), (*made.notes, *_remarks(ours)), tuple(unfinished)
        )

    def _trained(
        self, group: tuple[list[Data], list[str | Path], Path], table: Table, arms: Mapping[str, Arm]
    ) -> TrainedSet:
        data, tests, folder = group
        source = open_training(data, self.split)
        parts = source.sets if isinstance(source, JoinedSets) else [source]
        opened = open_tests(tests, self.hpatches, parts, self.strips.get("split"))
        by_label: dict[str, tuple[Trial, ...]] = {line.label: line.rows for line in table.lines}
        for trial in table.unfinished:
            by_label.setdefault(trial.label, (trial,))
        trials = {label: by_label.get(arm.label, ()) for label, arm in arms.items()}
        seeds = set(self.setup.seeds)
        chosen = {label: tuple(each for each in rows if each.seed in seeds) for label, rows in trials.items()}
        return TrainedSet(source.name, folder, source, opened, chosen)

    def _by_hand(self, sets: Sequence[TrainedSet]) -> dict[str, dict[str, Scores]]:
        """Describers made by hand on every test set; kept in results/."""
        found: dict[str, dict[str, Scores]] = {}
        tests = {test.name: test for trained in sets for test in trained.tests}
        if self.plan.form in ON_PHOTOS:
            return found
        for row in self.plan.rows:
            if row.describer:
                found[row.label] = {name: self._scored(row.describer, test) for name, test in tests.items()}
        return found

    def _scored(self, describer: str, test: TestData) -> Scores:
        path = self.folder / "results" / f"{describer}-{slug(test.name)}.json"
        loaded = load(describer, self.conditions.device)

        def score() -> Result:
            self.progress.note(f"Scoring {describer} on {test.name}")
            return test.score(loaded)

        return kept_result(path, loaded, test.data_hash, score).scores

    def _make(self, ours: Ours, photos: Photos) -> Made:
        form, conditions = self.plan.form, self.conditions
        if form == "function":
            panels = FUNCTIONS[self.plan.name]()
            return Made(panels=tuple(panels), columns=4 if len(panels) > 4 else 3)
        if form == "models":
            return on_photos.models(ours, photos, self.folder, conditions, self.progress)
        if form == "poses":
            return on_photos.poses(ours, photos, self.folder, conditions, self.progress)
        if form == "gradients":
            return weights.gradient_figures(ours, self.folder, conditions, self.progress)
        if form == "matches":
            return on_photos.plane_matches(ours, photos, conditions, self.progress)
        if form in _OF_WEIGHTS:
            return _OF_WEIGHTS[form](ours, conditions)
        if form == "angles":
            maker = weights.modulation if self.plan.paper == "SDGMNet" else weights.angle_distributions
            return maker(ours, conditions)
        pictures: dict[str, Callable[[Ours], list[Panel]]] = {
            "sweep": scores.picture_of_sweep,
            "run": scores.picture_of_run,
            "bars": scores.picture_of_tasks,
        }
        panels = pictures.get(form, scores.picture_of_scores)(ours)
        if self.plan.name == "sdgmnet-fig-6a":
            more = on_photos.stereo_sweep(ours, photos, self.folder, conditions, self.progress)
            return Made((scores.score_table(ours), *more.grids), (*panels, *more.panels), notes=more.notes)
        separate = sum(panel.title == scores.PRINTED for panel in panels)
        return Made((scores.score_table(ours),), tuple(panels), columns=separate if 2 * separate == len(panels) else 3)

    def _conditions(self, trained_on: Sequence[object]) -> dict[str, Any]:
        if not trained_on:
            return {}
        recipes = [self.recipe(row) for row in self.plan.trained]
        batches = sorted({recipe.sampler.pairs for recipe in recipes})
        return {
            "recipes": "; ".join(dict.fromkeys(recipe.form for recipe in recipes)),
            "trained on": ", ".join(map(str, trained_on)),
            "pairs": f"{self.setup.pairs:,}",
            "batch": ", ".join(map(str, batches)),
            "seeds": ", ".join(map(str, self.setup.seeds)),
            **({"set": ", ".join(self.setup.settings)} if self.setup.settings else {}),
        }

    def preview(self, places: Sequence[Data]) -> PaperPage:
        """The plan, and what is still to be trained with its cost."""
        costs: dict[str, list[ArmCost]] = {}
        sentences = []
        if places and self.setup.pairs is not None and self.plan.trained and self.plan.form != "images":
            for group in self.groups(places):
                table, arms = self.run(group, dry=True)
                if table.cost is not None:
                    sentences.append(f"{', '.join(str(each) for each in group[0])}: {table.cost.sentence()}")
                    by_label = {cost.label: cost for cost in table.cost.arms}
                    for label, arm in arms.items():
                        costs.setdefault(label, []).extend([by_label[arm.label]] if arm.label in by_label else [])
        grid = Grid("Rows", ("", "recipe", "batch", "pairs", "core-hours", "printed in"), tuple(self._lines(costs)))
        return PaperPage(self.plan, Made((grid,) if self.plan.rows else ()), {}, (*sentences, *_why(self.plan)))

    def _lines(self, costs: Mapping[str, list[ArmCost]]) -> list[tuple[str, ...]]:
        lines = list[tuple[str, ...]]()
        for row in self.plan.rows:
            if row.recipe is None:
                lines.append((row.label, row.describer or NOT_RUN, "", "", "", row.printed.partition(":")[0]))
                continue
            recipe = self.recipe(row)
            hours = f"{sum(cost.hours for cost in costs[row.label]):.2f}" if row.label in costs else ""
            batch, pairs = str(recipe.sampler.pairs), f"{recipe.pairs:,}"
            lines.append((row.label, recipe.name, batch, pairs, hours, row.printed.partition(":")[0]))
        return lines


_OF_WEIGHTS: dict[str, Callable[[Ours, Conditions], Made]] = {
    "roc": weights.roc_curves,
    "pr": weights.precision_recall,
    "similarity": weights.similarity_histograms,
    "statistics": weights.statistics_table,
}


def _same_recipe(known: Sequence[Trial], recipe: Recipe) -> Arm | None:
    """The arm of a study whose recipe is this one, whatever it is called there and however it was asked for."""
    plain = replace(recipe, name="", seed=0, published=False)
    for trial in known:
        trained = trial.trained
        if trained is not None and replace(trained, name="", seed=0, published=False) == plain:
            return Arm(trial.label, trained, trial.varied)
    return None


def _remarks(ours: Ours) -> list[str]:
    """What a reader must know: rows not run, a score of another kind than the paper's, test images trained on."""
    remarks = _why(ours.plan)
    of_scores = ours.plan.form in ("splits", "scores", "sweep", "bars", "run")
    if of_scores and ours.sets and not scores.has_papers_score(ours):
        wanted = "strips with --hpatches" if ours.plan.scores != ("fpr95",) else "pair lists with --test"
        remarks.append(f"The paper's score needs {wanted}: not run. Shown is the usual score of the test sets given.")
    seen = {
        f"{test}: {sentence}"
        for trained in ours.sets
        for trials in trained.trials.values()
        for trial in trials
        for test, sentence in trial.seen.items()
    }
    return [*remarks, *sorted(seen)]


def _why(plan: Plan) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for row in plan.rows:
        if row.why:
            reasons.setdefault(row.why, []).append(row.label)
    return [f"Not run: {', '.join(labels)} ({why})." for why, labels in reasons.items()]
