"""The six train/test splits of PhotoTour in one table with its mean, as the papers print it, from three runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from keypatch.benchmarks import evaluate_ubc, load_result
from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import DataError, KeypatchError
from keypatch.files import safe_name
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.phototour import find_pair_lists
from keypatch.progress import Callback, Progress, interruptible
from keypatch.studies.scoring import TestData
from keypatch.studies.table import PAPERS_LIST
from keypatch.studies.ubc.page import write_ubc_page
from keypatch.studies.ubc.table import SETS, UNTRAINED, TrainTest, UbcRow, UbcTable, load_ubc_rows, result_file
from keypatch.training import Recipe
from keypatch.training.checkpoints import Checkpoint, find_kept, load_checkpoint, newest_checkpoint
from keypatch.zoo import load
from keypatch.zoo.cards import HANDMADE


@dataclass(frozen=True)
class ScoringJob:
    """A descriptor to score on the sets that it was not trained on."""

    row: str
    source: str | Path  # a name of the zoo, or a checkpoint
    trained_on: str
    step: int = 0
    is_last: bool = True  # of its run; earlier checkpoints get no intervals and no pictures

    def __str__(self) -> str:
        return self.row if self.trained_on == UNTRAINED else f"{self.row}, {self.trained_on}, step {self.step:,}"


@dataclass(frozen=True)
class TrainedRun:
    """A run at its end; `checkpoints` are its weight files by step, oldest first, each step once."""

    folder: Path
    trained_on: str
    recipe: Recipe
    checkpoints: Mapping[int, Path]


def study_ubc(
    runs: Sequence[str | Path],
    data: str | Path,
    out: str | Path = "studies/ubc",
    *,
    name: str | None = None,
    beside: Sequence[str] = (),
    pair_list: str = PAPERS_LIST,
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> UbcTable:
    """Score three runs, one trained on each of liberty, notredame and yosemite, on the sets they were not trained on.

    runs: three run folders of one recipe; the training set of a run is known by its hash, or given as
        "liberty=FOLDER". None for hand-crafted descriptors only. Every kept checkpoint is scored, the last ones first.
    data: the folder that holds the three sets. pair_list: the list that makes the table; every list is scored.
    name: of the row, by default the recipe's. beside: hand-crafted descriptors, sift and rootsift.
    out: gets results/, table.md and table.json with all rows of the folder; existing scores are not computed again.

    >>> kp.study_ubc(["runs/liberty", "runs/notredame", "runs/yosemite"], "phototour")  # doctest: +SKIP

    Raises:
        Interrupted: Ctrl-C; the same call resumes.
    """
    progress, folder = Progress.of(progress), Path(out)
    sets = _open_sets(Path(data), pair_list)
    jobs = _plan(runs, name, beside, sets)
    tests = [TestData(each, patches) for each, patches in sets.items()]
    for row in load_ubc_rows(folder):
        _check_row(row, tests, jobs, folder)
    for number, job in enumerate(jobs, start=1):
        progress.note(f"{job} ({number} of {len(jobs)})")
        with interruptible(f"{folder} has what was scored so far, up to {job}"):
            _score(job, load(job.source, device, scoring_precision(precision)), tests, folder)
        table = UbcTable(tuple(load_ubc_rows(folder)), pair_list)
        table.save(folder / "table.json")
        write_ubc_page(folder / "table.md", table.rows, pair_list)
    return table


def _open_sets(data: Path, pair_list: str) -> dict[str, PatchSet]:
    sets = {}
    for name in SETS:
        patches = replace(open_patches(data / name), name=name)  # not the name of a link to it
        lists = [pairs.name for pairs in find_pair_lists(patches)]
        if pair_list not in lists:
            raise DataError(
                f"{data / name} has no list {pair_list}.txt to score; its lists: {', '.join(lists) or 'none'}. Copy it "
                "there, or name another that all three sets have with --pair-list."
            )
        sets[name] = patches
    return sets


def _plan(
    runs: Sequence[str | Path], name: str | None, beside: Sequence[str], sets: Mapping[str, PatchSet]
) -> list[ScoringJob]:
    """What is to be scored, the last checkpoints first: their table is there before the search for the best."""
    handmade = [card.name for card in HANDMADE]
    unknown = next((each for each in beside if each not in handmade), None)
    if unknown is not None:
        raise KeypatchError(f"--beside {unknown}: choose {' or '.join(handmade)}.")
    trained = open_runs(runs, sets) if runs else []
    if not trained and not beside:
        raise KeypatchError("Nothing to score: give three runs with --runs, or sift or rootsift with --beside.")
    jobs = [ScoringJob(each, each, UNTRAINED) for each in dict.fromkeys(beside)]
    if trained:
        row = safe_name(name or trained[0].recipe.name, "--name")
        if row in handmade or Path(row).name != row:
            raise KeypatchError(f'"{row}" cannot name a row and its folder. Choose a plain name with --name.')
        of_runs = (
            [
                ScoringJob(row, file, run.trained_on, step, step == max(run.checkpoints))
                for step, file in sorted(run.checkpoints.items(), reverse=True)
            ]
            for run in trained
        )
        jobs = [*(job for alike in zip_longest(*of_runs) for job in alike if job), *jobs]
    return jobs


def _check_row(row: UbcRow, tests: Sequence[TestData], jobs: Sequence[ScoringJob], folder: Path) -> None:
    """A column is one test set, so its name must mean the same data in all rows.

    A row is three runs, so it must not hold what none of these runs can have given.
    """
    known = {(job.trained_on, job.step) for job in jobs if job.row == row.name}
    hashes = {test.name: test.data_hash for test in tests}
    for split, by_step in row.results.items():
        for step, result in by_step.items():
            if split.test in hashes and result.provenance.hashes.get("data") != hashes[split.test]:
                raise KeypatchError(
                    f"{folder} holds results of {row.name} on a different {split.test}: its patches or pairs differ. "
                    "Choose another folder with --out."
                )
            if known and (split.train, step) not in known:
                raise KeypatchError(
                    f"{result_file(folder, row.name, split, step)} is from a checkpoint that these runs did not keep. "
                    f"Choose another name with --name, or move {folder / 'results' / row.name} away."
                )


def _score(job: ScoringJob, describer: Describer, tests: Sequence[TestData], folder: Path) -> None:
    weights = describer.weights_hash if isinstance(describer, HasWeights) else None
    for test in tests:
        if test.name == job.trained_on:
            continue
        path = result_file(folder, job.row, TrainTest(job.trained_on, test.name), job.step)
        if not path.exists():
            result = evaluate_ubc(describer, test.data) if job.is_last else test.score(describer)
            notes = {"trained_on": job.trained_on, "step": job.step}
            replace(result, descriptor=job.row, notes=notes).save(path)
        elif load_result(path).provenance.hashes.get("weights") != weights:
            raise KeypatchError(
                f"{path} was made with other weights under the same name. Choose another name with --name, or move "
                f"{path.parent} away."
            )


def open_runs(places: Sequence[str | Path], sets: Mapping[str, PatchSet]) -> list[TrainedRun]:
    """The runs in the order of the sets they were trained on; a place is a run folder, or NAME=FOLDER.

    Raises:
        KeypatchError: they are not three runs of one recipe, seed and budget apart, one for each set.
    """
    if len(places) != len(SETS):
        raise KeypatchError(f"The six splits need three runs, one trained on each of {_sets()}, not {len(places)}.")
    runs = [_open_run(place, sets) for place in places]
    for name in SETS:
        trained = [run for run in runs if run.trained_on == name]
        if len(trained) != 1:
            which = " and ".join(str(run.folder) for run in trained) or "none of them"
            raise KeypatchError(f"One run for each of {_sets()} is needed; trained on {name}: {which}.")
        first = runs[0]
        own = replace(trained[0].recipe, seed=first.recipe.seed, pairs=first.recipe.pairs)
        if own != first.recipe:
            raise KeypatchError(
                f"{trained[0].folder} was trained with a different recipe from {first.folder}; a table row is one "
                "recipe. Compare their recipe.toml."
            )
    return sorted(runs, key=lambda run: list(SETS).index(run.trained_on))


def _open_run(place: str | Path, sets: Mapping[str, PatchSet]) -> TrainedRun:
    name, _, rest = str(place).partition("=")
    folder = Path(rest if rest and name in SETS else place).expanduser()
    if not (folder / "recipe.toml").exists():
        raise DataError(f"{folder} is not a training run: there is no recipe.toml. Give run folders with --runs.")
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        raise DataError(f"{folder}: the run has no checkpoint yet. Train it to its end.")
    end = load_checkpoint(checkpoints[max(checkpoints)], groups=())
    if end.step < end.recipe.steps:
        raise DataError(
            f"{folder} is not finished ({end.step / end.recipe.steps:.0%} trained). Resume it: keypatch train "
            f"--resume {folder}"
        )
    trained_on = _trained_on(folder, end, sets, name if rest and name in SETS else None)
    return TrainedRun(folder, trained_on, end.recipe, checkpoints)


def _checkpoints(folder: Path) -> dict[int, Path]:
    """What the run was told to keep, and the newest; what is kept under two names is taken once.

    The checkpoint before the newest depends on the speed of the machine.
    """
    files = filter(None, [*find_kept(folder), newest_checkpoint(folder)])
    by_step = {load_checkpoint(file, groups=()).step: file for file in files}
    return dict(sorted(by_step.items()))


def _trained_on(folder: Path, end: Checkpoint, sets: Mapping[str, PatchSet], stated: str | None) -> str:
    """The set whose point ids the run was trained on; the stated one where none, or several, could be it."""
    data_hash = end.provenance.get("hashes", {}).get("data")
    known = [name for name, patches in sets.items() if sha256(patches.point_id.tobytes()).hexdigest() == data_hash]
    if stated is not None and known and stated not in known:
        raise KeypatchError(f"{stated}={folder}: the run was trained on {' or '.join(known)}. Leave out {stated}=.")
    if stated is None and len(known) != 1:
        raise KeypatchError(
            f"{folder} was trained on none of {_sets()} in this folder. If it was trained on another "
            f"copy, say which with {next(iter(SETS))}={folder}."
        )
    return stated or known[0]


def _sets() -> str:
    *others, last = SETS
    return f"{', '.join(others)} and {last}"
