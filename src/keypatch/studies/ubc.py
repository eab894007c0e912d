"""The six train/test splits of PhotoTour in one table with its mean, as the papers print it, from three runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from keypatch.benchmarks.result import Result
from keypatch.benchmarks.ubc import evaluate_ubc
from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.files import safe_name
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.pair_lists import find_pairs
from keypatch.studies.methods_test_data import TestData
from keypatch.studies.ubc_rows import SETS, UNTRAINED, Row, Split, load_rows, result_file
from keypatch.studies.ubc_runs import TrainedRun, open_runs
from keypatch.studies.ubc_table import UbcTable
from keypatch.training.progress import Reporter, Silent
from keypatch.zoo import find
from keypatch.zoo.cards import HANDMADE

PAIR_LIST = "m50_100000_100000_0"  # the test list of every paper


@dataclass(frozen=True)
class Job:
    """A descriptor to score on the sets that it was not trained on."""

    row: str
    source: str | Path  # a name of the zoo, or a checkpoint
    trained_on: str
    step: int = 0
    is_last: bool = True  # of its run; earlier checkpoints get no intervals and no pictures

    def __str__(self) -> str:
        return self.row if self.trained_on == UNTRAINED else f"{self.row}, {self.trained_on}, step {self.step:,}"


def study_ubc(
    runs: Sequence[str | Path],
    data: str | Path,
    out: str | Path = "studies/ubc",
    *,
    name: str | None = None,
    beside: Sequence[str] = (),
    pair_list: str = PAIR_LIST,
    device: str = "auto",
    precision: str = "auto",
    reporter: Reporter | None = None,
) -> UbcTable:
    """Score three runs, one trained on each of liberty, notredame and yosemite, on the sets they were not trained on.

    runs: three run folders of one recipe; which set a run saw is known by its hash, or said as "liberty=FOLDER". None
        for descriptors made by hand alone. Every checkpoint that they kept is scored, the last ones first.
    data: the folder that holds the three sets. pair_list: the list that makes the table; every list is scored.
    name: of the row, the recipe's unless given. beside: descriptors made by hand, sift and rootsift.
    out: gets results/, table.md and table.json with all rows of the folder; what was scored is not scored again.

    Raises:
        Interrupted: Ctrl-C; the same call goes on.
    """
    reporter, folder = reporter or Silent(), Path(out)
    sets = _open_sets(Path(data), pair_list)
    jobs = _plan(runs, name, beside, sets)
    tests = [TestData(each, patches) for each, patches in sets.items()]
    for row in load_rows(folder):
        _check_same_data(row, tests, folder)
        _check_same_checkpoints(row, jobs, folder)
    for number, job in enumerate(jobs, start=1):
        reporter.say(f"{job} ({number} of {len(jobs)})")
        try:
            _score(job, find(job.source, device, precision), tests, folder)
        except KeyboardInterrupt as stop:
            raise Interrupted(f"Stopped at {job}. The same command goes on; what was scored stays.") from stop
        table = UbcTable(tuple(load_rows(folder)), pair_list)
        table.save(folder)
    return table


def _open_sets(data: Path, pair_list: str) -> dict[str, PatchSet]:
    sets = {}
    for name in SETS:
        patches = replace(open_patches(data / name), name=name)  # a link's own name is not that of the set
        lists = [pairs.name for pairs in find_pairs(data / name, len(patches), patches.point_id)]
        if pair_list not in lists:
            raise DataError(
                f"{data / name} has no list {pair_list}.txt to score; its lists: {', '.join(lists) or 'none'}. Copy it "
                "there, or name another that all three sets have with --pair-list."
            )
        sets[name] = patches
    return sets


def _plan(
    runs: Sequence[str | Path], name: str | None, beside: Sequence[str], sets: Mapping[str, PatchSet]
) -> list[Job]:
    """What is to be scored, the last checkpoints first: their table is there before the search for the best."""
    handmade = [card.name for card in HANDMADE]
    unknown = next((each for each in beside if each not in handmade), None)
    if unknown is not None:
        raise KeypatchError(f"--beside {unknown}: only {' and '.join(handmade)} can stand beside runs.")
    trained = open_runs(runs, sets) if runs else []
    if not trained and not beside:
        raise KeypatchError("Nothing to score: give three runs with --runs, or sift or rootsift with --beside.")
    jobs = [Job(each, each, UNTRAINED) for each in dict.fromkeys(beside)]
    if trained:
        row = safe_name(name or trained[0].recipe.name, "--name")
        if row in handmade or Path(row).name != row:
            raise KeypatchError(f'"{row}" cannot name a row, as it names its folder. Choose a plain name with --name.')
        by_age = zip_longest(*(_newest_first(run, row) for run in trained))
        jobs = [*(job for alike in by_age for job in alike if job), *jobs]
    return jobs


def _newest_first(run: TrainedRun, row: str) -> list[Job]:
    last = max(run.checkpoints)
    jobs = [Job(row, file, run.trained_on, step, step == last) for step, file in run.checkpoints.items()]
    return jobs[::-1]


def _check_same_data(row: Row, tests: Sequence[TestData], folder: Path) -> None:
    """A column is one test set, so its name must mean the same data in all rows."""
    for split, by_step in row.results.items():
        for test in tests:
            if split.test == test.name and any(
                result.provenance.hashes.get("data") != test.data_hash for result in by_step.values()
            ):
                raise KeypatchError(
                    f"{folder} holds results of {row.name} on another {test.name}: its patches or pairs differ. Choose "
                    "another folder with --out."
                )


def _check_same_checkpoints(row: Row, jobs: Sequence[Job], folder: Path) -> None:
    """A row is three runs, so it must not hold what none of these runs can have given."""
    known = {(job.trained_on, job.step) for job in jobs if job.row == row.name}
    for split, by_step in row.results.items():
        for step in by_step:
            if known and (split.train, step) not in known:
                raise KeypatchError(
                    f"{result_file(folder, row.name, split, step)} is of a checkpoint that these runs do not have. "
                    f"Choose another name with --name, or move {folder / 'results' / row.name} away."
                )


def _score(job: Job, describer: Describer, tests: Sequence[TestData], folder: Path) -> None:
    weights = describer.weights_hash if isinstance(describer, HasWeights) else None
    for test in tests:
        if test.name == job.trained_on:
            continue
        path = result_file(folder, job.row, Split(job.trained_on, test.name), job.step)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            result = evaluate_ubc(describer, test.data) if job.is_last else test.score(describer)
            told = {**result.settings, "trained_on": job.trained_on, "step": job.step}
            replace(result, descriptor=job.row, settings=told).save(path)
        elif Result.load(path).provenance.hashes.get("weights") != weights:
            raise KeypatchError(
                f"{path} was made with other weights under the same name. Choose another name with --name, or move "
                f"{path.parent} away."
            )
