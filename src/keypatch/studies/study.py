"""A study: labelled recipes trained on the same data with some seeds and scored, in one folder that can be resumed."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.commands.train import Data, train
from keypatch.errors import Interrupted, KeypatchError, MissingExtra, RecipeError, Taken
from keypatch.files import lock, write_json
from keypatch.networks import choose_device
from keypatch.patches import PatchSet, PatchSource
from keypatch.patches.patch_set import JoinedSets
from keypatch.patches.sources import identity_of
from keypatch.progress import Callback, Progress
from keypatch.provenance import provenance
from keypatch.studies.cost import Cost, Todo, estimate
from keypatch.studies.held_out import HELD_OUT, LEFT, hold_out, keep_held_out
from keypatch.studies.page import write_study_page
from keypatch.studies.rows import STUDY, Milestone, Trial, load_trial, load_trials, read_conditions
from keypatch.studies.scoring import TestData, check_names, check_same_tests, open_tests, open_training, repeated
from keypatch.studies.table import Table, read_table
from keypatch.training import Recipe
from keypatch.training.checkpoints import load_checkpoint, milestone_path
from keypatch.training.conditions import Conditions
from keypatch.training.machine import choose_compile, choose_precision
from keypatch.training.recipe_files import holds_recipe, recipe_to_toml
from keypatch.zoo import load

SHARES = (0.25, 0.5, 0.75, 1.0)  # of the run, at which it is scored
LONGEST_LABEL = 150  # bytes: a file name has room for 255, of which seed, ending and temporary names need some
_OF_PATCHES = ("data_hash", "identity")  # in study.json; compared last, for they follow from other conditions
_NO_FILE_NAME = re.compile(r'[/\\:*?"<>|\x00-\x1f]|^[. ]|[. ]$')


@dataclass(frozen=True)
class Arm:
    """A recipe under a label, which names its rows and their files; budget and batch are the recipe's, seeds are not.

    `varied` is what the label says, values by path of the recipe in alphabetical order (`{"loss.alpha": "2"}`):
    tables and figures use it.

    Raises:
        RecipeError: the label cannot be a file name.
    """

    label: str
    recipe: Recipe
    varied: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.label or _NO_FILE_NAME.search(self.label) or len(self.label.encode()) > LONGEST_LABEL:
            raise RecipeError(
                f'The label "{self.label}" cannot be a file name. Rename the recipe, or choose another label.'
            )


@dataclass(frozen=True)
class StudyPlan:
    """What will run and be scored, checked before hours are spent on it. Of an arm and a seed comes a row."""

    folder: Path
    source: PatchSet | JoinedSets
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    tests: tuple[TestData, ...]
    shares: tuple[float, ...]
    conditions: Conditions
    equal: Mapping[str, Any]  # further conditions that all rows of the folder share

    @property
    def rows_folder(self) -> Path:
        return self.folder / "rows"

    def trials(self) -> list[Arm]:
        """Every arm with every seed: all arms with the first, then all with the next."""
        return [replace(arm, recipe=replace(arm.recipe, seed=seed)) for seed in self.seeds for arm in self.arms]

    def run_folder(self, trial: Arm) -> Path:
        return self.folder / "runs" / f"{trial.label}-{trial.recipe.seed}"

    def row(self, trial: Arm) -> Trial:
        """The row as far as it is written."""
        recipe, text = trial.recipe, recipe_to_toml(trial.recipe)
        digest = sha256(text.encode()).hexdigest()
        new = Trial(trial.label, recipe.seed, digest, recipe_toml=text, varied=dict(trial.varied))
        path = self.rows_folder / f"{new.name}.json"
        if not path.exists():
            return new
        row = load_trial(self.folder, new.name)
        if row.recipe_hash != digest and row.trained != recipe:  # the text changes with every new field
            raise KeypatchError(
                f"{path} was made with another recipe of the same name. Move it and {self.run_folder(trial)} away, "
                "or choose another folder with --out."
            )
        return row

    def is_finished(self, row: Trial) -> bool:
        return not any(row.lacks(share, test.name) for share in self.shares for test in self.tests)

    def common(self) -> dict[str, Any]:
        """What all rows of the folder have in common, as study.json holds it."""
        how = {name: getattr(self.conditions, name) for name in ("device", "precision", "compile", "threads")}
        data_hash = sha256(self.source.point_id.tobytes()).hexdigest()
        sets = self.source.sets if isinstance(self.source, JoinedSets) else (self.source,)
        data = {"data_hash": data_hash, "identity": [identity_of(patches) for patches in sets]}
        return {"data": self.source.name.removesuffix(LEFT), **self.equal, **data, **how}

    def hold(self) -> AbstractContextManager[None]:
        """For what all rows share, which takes a moment to write; other processes with this folder wait."""
        return lock(self.folder / ".study.lock", f"The study {self.folder}", wait=True)

    def begin(self) -> None:
        """Make the folder; of processes started together the first says under which conditions all compute."""
        for folder in (self.rows_folder, self.folder / "runs"):
            folder.mkdir(parents=True, exist_ok=True)
        with self.hold():
            if not (self.folder / "study.json").exists():
                write_json(self.folder / "study.json", {**STUDY.head(), **self.common()})
        check_conditions(self.folder, self.common())


def run_study(
    arms: Sequence[Arm],
    data: Data | Sequence[Data],
    out: str | Path,
    conditions: Conditions = Conditions(),  # noqa: B008 (frozen)
    *,
    seeds: Sequence[int] = (0,),
    tests: Sequence[str | Path] = (),
    hpatches: str | Path | None = None,
    split: str | None = None,
    held_out: float | None = None,
    shares: Sequence[float] = SHARES,
    equal: Mapping[str, Any] | None = None,
    page: Callable[[Path, Table], None] = write_study_page,
    dry: bool = False,
    progress: Progress | Callback | None = None,
) -> Table:
    """Train every arm with every seed, score it at these shares of its run and write a table.

    arms: recipes with their budgets and batches, which may all differ; the same recipe may come twice.
    data: a folder, "embedded", an open PatchSet, or several of these; of HPatches strips the training part of `split`.
    out: gets rows/, runs/, table.md and table.json. What is finished there is not repeated, a stopped run is resumed,
        an arm that fails becomes a row that says so; two processes with one folder share the work. Arms, seeds and
        test sets can be added later; data and conditions of computing must stay the same.
    tests: patch sets with pair lists; hpatches: a folder of strips, scored by rank-1, or with a `split` ("all" for all
        sequences) by verification, matching and retrieval. Only data="embedded" has its own, "embedded-test".
    held_out: this share of the training points is not trained but scored on, as the test set "held-out".
    equal: further conditions that must be the same in the whole folder. page: writes table.md.
    dry: train nothing; the table as it stands, with what is missing and its `cost`, for which a few steps are timed.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the same call resumes.
    """
    progress, folder = Progress.of(progress), Path(out)
    if not seeds or min(seeds) < 0:
        raise KeypatchError(f"Seeds {' '.join(map(str, seeds)) or '(none)'}: give one or more non-negative integers.")
    if name := repeated([f"{arm.label}-{seed}" for arm in arms for seed in seeds]):
        raise RecipeError(
            f'Two rows would be named "{name}", after label and seed. Give each seed once; if two recipes have the '
            'same name, rename one of them: name = "..." in its recipe.toml.'
        )
    source = whole = open_training(data, split)
    sets = whole.sets if isinstance(whole, JoinedSets) else [whole]
    opened = open_tests(tests, hpatches, sets, split) if tests or hpatches or held_out is None else ()
    check_names([test.name for test in opened] + [HELD_OUT] * (held_out is not None))
    equal, held = dict(equal or {}), None
    if held_out is not None:
        source, held = hold_out(whole, held_out)
        equal["held_out"] = held_out
    check_feasible([arm.recipe for arm in arms], source, conditions)
    milestones = tuple(sorted({*shares, 1.0}))
    plan = StudyPlan(folder, source, tuple(arms), tuple(seeds), opened, milestones, conditions, equal)
    check_conditions(folder, plan.common())
    check_same_tests(opened, load_trials(folder))
    trials = plan.trials()
    planned = [plan.row(trial) for trial in trials]  # refuses a row of another recipe before training
    if not dry:
        plan.begin()
    if held is not None:
        validation = keep_held_out(folder / HELD_OUT, held, write=not dry)
        plan = replace(plan, tests=(*opened, TestData(HELD_OUT, validation)))
    if dry:
        cost = _cost(plan, trials, planned, progress)
        return replace(read_table(folder, planned, [test.name for test in plan.tests]), cost=cost)
    check_same_tests(plan.tests, load_trials(folder))  # with the set held out, which a dry study does not write
    table = _write_table(plan, planned, page)
    for number, trial in enumerate(trials, start=1):
        progress.note(f"{trial.label}, seed {trial.recipe.seed} ({number} of {len(trials)})")
        _bring_forward(plan, trial, progress)
        table = _write_table(plan, planned, page)
    if all(row.failed for row in table.unfinished) and not table.lines:
        raise KeypatchError(f"Every recipe failed; {table.unfinished[0].name} said: {table.unfinished[0].failed}")
    return table


def _write_table(plan: StudyPlan, planned: Sequence[Trial], page: Callable[[Path, Table], None]) -> Table:
    with plan.hold():  # from reading the rows on: the last table written has the newest of them
        table = read_table(plan.folder, planned, [test.name for test in plan.tests])
        table.save(plan.folder / "table.json")
        page(plan.folder / "table.md", table)
    return table


def _cost(plan: StudyPlan, trials: Sequence[Arm], rows: Sequence[Trial], progress: Progress) -> Cost:
    missing = list[Todo]()
    for trial, row in zip(trials, rows, strict=True):
        if plan.is_finished(row):
            continue
        trained = _is_at_its_end(plan.run_folder(trial), trial.recipe)
        lacking = [
            test.patches
            for share in plan.shares
            for test in plan.tests
            if not trained or row.lacks(share, test.name)  # trained again, it is scored again
        ]
        missing.append(Todo(trial.label, trial.recipe, trained, sum(lacking)))
    return estimate(missing, load_trials(plan.folder), plan.source, plan.conditions, progress)


def _bring_forward(plan: StudyPlan, trial: Arm, progress: Progress) -> None:
    """Train and score one row, unless it is finished or another process is at it."""
    name = plan.row(trial).name
    with ExitStack() as held:
        try:
            held.enter_context(lock(plan.rows_folder / f".{name}.lock", f"The row {name}"))
        except Taken:
            progress.note(f"{name} is being written by another process. Continuing with the next row.")
            return
        row = plan.row(trial)
        if plan.is_finished(row):
            if row.failed:  # at a test set that is not asked for now
                replace(row, failed="").save(plan.rows_folder)
            return
        try:
            _score(plan, _trained(plan, trial, row, progress), trial, progress)
        except (Interrupted, KeyboardInterrupt) as stop:
            raise Interrupted(f"{plan.folder} has everything finished so far, up to {name}") from stop
        except Exception as error:  # of whatever kind: the fault of one arm must not cost the others their night
            sentence = str(error) if isinstance(error, KeypatchError) else f"{type(error).__name__}: {error}"
            row = plan.row(trial)  # with what was scored before the fault
            origin = row.provenance or provenance().to_json()
            replace(row, failed=sentence, provenance=origin).save(plan.rows_folder)
            progress.note(f"{name} failed: {sentence}")


def _trained(plan: StudyPlan, trial: Arm, row: Trial, progress: Progress) -> Trial:
    """The row of a run at its end, trained up to there if it was not; without scores of another run."""
    folder = plan.run_folder(trial)
    if not _is_at_its_end(folder, trial.recipe):
        resume = folder if (folder / "recipe.toml").exists() else None
        conditions = replace(plan.conditions, keep=plan.shares)
        train(trial.recipe, plan.source, folder, conditions, resume=resume, progress=progress)
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    if row.run and row.provenance == card["provenance"]:
        return replace(row, failed="")
    if row.milestones:
        progress.note(f"{row.name} was trained again: its scores of the earlier run are dropped.")
    used = {name: card[name] for name in ("device", "precision", "threads")}
    return replace(row, failed="", milestones=(), tests={}, seen={}, run=used, provenance=card["provenance"])


def _is_at_its_end(run: Path, recipe: Recipe) -> bool:
    files = [run / "recipe.toml", run / "card.json", milestone_path(run, 1.0)]
    return all(file.exists() for file in files) and holds_recipe(run / "recipe.toml", recipe)


def _score(plan: StudyPlan, row: Trial, trial: Arm, progress: Progress) -> None:
    """Score what is missing, of the milestones that the run kept; the row is written after every test set."""
    for share in plan.shares:
        missing = [test for test in plan.tests if row.lacks(share, test.name)]
        file = milestone_path(plan.run_folder(trial), share)
        if not missing or not file.exists():
            continue
        progress.note(f"Scoring {row.name} at {share:.0%}")
        describer = load(file, plan.conditions.device, scoring_precision(plan.conditions.precision))
        for test in missing:
            result = test.score(describer)
            milestone = row.at(share) or _reached(file, share)
            scored = replace(milestone, scores={**milestone.scores, test.name: dict(result.scores)})
            hashes = {**row.tests, test.name: test.data_hash}
            seen = {test.name: result.contamination.sentence()} if result.contamination else {}
            row = replace(row.with_milestone(scored), tests=hashes, seen={**row.seen, **seen})
            row.save(plan.rows_folder)


def _reached(file: Path, share: float) -> Milestone:
    checkpoint = load_checkpoint(file)
    return Milestone(share, checkpoint.step * checkpoint.recipe.sampler.pairs, checkpoint.seconds)


def check_settings(settings: Sequence[str], options: Mapping[str, str], flag: str = "--set") -> None:
    """RecipeError for "path=value" where the study itself sets the path; `options` says by path what to use instead."""
    for setting in settings:
        path = setting.partition("=")[0].strip()
        if path in options:
            raise RecipeError(f"{flag} {setting}: the study sets {path} itself. Use {options[path]}.")


def check_conditions(folder: Path, conditions: Mapping[str, Any]) -> None:
    """Rows may be added to a study, but only under the conditions of those it has."""
    before = {name: value for name, value in read_conditions(folder).items() if name not in STUDY.head()}
    for name in sorted({**before, **conditions}, key=_OF_PATCHES.__contains__) if before else ():
        there, now = before.get(name), conditions.get(name)
        if there == now or (name == "identity" and there is None):  # of format 2
            continue
        if name in _OF_PATCHES:
            other = f"on other patches called {before['data']}. Rows must be comparable: use the same data"
        elif there is None:
            other = f"without {name}, not with {name} = {now}. Rows must be comparable: leave it out"
        elif now is None:
            other = f"with {name} = {there}, not without it. Rows must be comparable: use the same value"
        else:
            other = f"with {name} = {there}, not {now}. Rows must be comparable: use the same value"
        raise KeypatchError(f"{folder} holds a study {other}, or another folder with --out.")


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


def draw_figure(draw: Callable[[Path, Table], None], path: Path, table: Table, progress: Progress) -> None:
    """The picture of a table, or a note that the package that draws is missing."""
    try:
        draw(path, table)
    except MissingExtra as missing:
        progress.note(str(missing))
