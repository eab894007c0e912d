"""What five papers claim, each against its own control with all else equal: the runs of docs/results/claims.md.

python bench/claims.py --data $DATA/nd-train --test $DATA/nd-test --test $DATA/castle-test \
    --hpatches $DATA/oxford-hpatches --out studies/claims --dry
python bench/claims.py --test $DATA/nd-test --test $DATA/castle-test --out studies/claims --table
python bench/claims.py --commands --out studies/claims

The learning rate of each arm is chosen on points held out from the training set, then all arms are trained with every
seed. Without --dry it does so: what is finished is not repeated, so stop it at any time and run it again. --table
prints the verdicts of what is finished so far, also while other processes train; --commands prints the same trainings
as sweeps.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from keypatch.cli.main import answer
from keypatch.errors import KeypatchError
from keypatch.files import lock
from keypatch.progress import ProgressBar
from keypatch.studies import held_out
from keypatch.studies.figure import draw_differences
from keypatch.studies.page import cell, grid
from keypatch.studies.rows import Trial
from keypatch.studies.scoring import open_tests
from keypatch.studies.study import Arm, run_study
from keypatch.studies.sweep import parse_seeds, sweep_arms
from keypatch.studies.table import Table, read_table
from keypatch.studies.verdicts import Compared, compare_lines
from keypatch.training.conditions import Conditions

PLAIN = ("sampler.pairs=256", "augment.detector_noise=0")
PLACES = "$DATA/nd-train", ["$DATA/nd-test", "$DATA/castle-test"], "$DATA/oxford-hpatches"  # for --commands
TUNING, RUNS = "tuning", "runs150k"  # folders
TUNING_PAIRS, PAIRS, HELD_OUT = 60_000, 150_000, 0.1
SPLIT = "all"  # of the strips
RATE = "optimizer.lr"
WAIT = 30  # seconds between two looks at rows of other processes


@dataclass(frozen=True)
class Tuned:
    """A recipe with fields set, whose learning rate is chosen of three, and then perhaps its margin."""

    recipe: str
    rates: str
    fixed: tuple[str, ...] = ()
    margins: str = ""

    def __str__(self) -> str:
        return " ".join([self.recipe, *self.fixed])

    def vary(self, *more: str) -> list[str]:
        return [*self.fixed, *more]


# Three learning rates each: published ones for SGD at 1 and 0.1 in the middle; the 10 of batches of 1,024 pairs and
# Adam's 0.01 at the end, for smaller ones suit 256 pairs.
_TEN, _ONE, _TENTH, _ADAM = "1,3,10", "0.3,1,3", "0.03,0.1,0.3", "0.001,0.003,0.01"
_START = "mining.start=0.125"  # of sdgm_raw; sdgm_hnfrn has 0

ADASAMPLE = Tuned("adasample", _TEN)
UNIFORM = Tuned("adasample", _TEN, ("sampler.lam=0",))
UNWEIGHTED = Tuned("adasample", _TEN, ("sampler.lam=0", "weighting=none"))
HARDNET_STAR = Tuned("hardnet_star", _TEN)
HYNET = Tuned("hynet", _ADAM)
HYNET_S = Tuned("hynet_s", _ADAM, margins="loss.Triplet.margin=0.7,1.1")
HYNET_D = Tuned("hynet_d", _ADAM, margins="loss.Triplet.margin=1,1.4")
HYNET_NO_NORM = Tuned("hynet_no_norm", _ADAM)
HYNET_BN = Tuned("hynet_bn", _ADAM)
SDGM_RAW = Tuned("sdgm_raw", _ONE)
SDGM_HNFRN = Tuned("sdgm_hnfrn", _ONE, (_START,))
NO_FOCUS = Tuned("sdgm_raw", _ONE, ("loss.self_weight=theta",))
NO_MARGIN = Tuned("sdgm_raw", _ONE, ("loss.m=0", "loss.psm=false"))
NO_POWER = Tuned("sdgm_raw", _ONE, ("loss.power_adjust=false",))
SDGMNET = Tuned("sdgmnet", _ONE)
GOR_TRIPLET, TRIPLET = Tuned("gor_triplet", _TENTH), Tuned("triplet", _TENTH)
GOR_NPAIR, NPAIR = Tuned("gor_npair", _TENTH), Tuned("npair", _TENTH)
HARDNET_GOR = Tuned("hardnet_gor", _TEN)
WITHOUT_GOR = Tuned("hardnet_gor", _TEN, ("loss.SpreadOut.weight=0",))
SCALE_AWARE, DIFFERENCE = Tuned("scale_aware", _TEN), Tuned("scale_aware_sub", _TEN)
SIAMESE, OWN_CONTEXT = (Tuned("scale_aware", _TEN, (f"loss.gamma={gamma}",)) for gamma in (0, 1))

CLAIMS: dict[str, tuple[tuple[Tuned, Tuned], ...]] = {  # a method and its control
    "AdaSample: choosing positives by distance helps": ((ADASAMPLE, UNIFORM), (ADASAMPLE, UNWEIGHTED)),
    "HyNet: the hybrid measure beats similarity and distance alone": ((HYNET, HYNET_S), (HYNET, HYNET_D)),
    "HyNet: the norm term helps": ((HYNET, HYNET_NO_NORM),),
    "HyNet: FRN and TLU beat batch normalization and ReLU": ((HYNET, HYNET_BN),),
    "SDGMNet: modulation beats its baseline": ((SDGM_RAW, SDGM_HNFRN),),
    "SDGMNet: auto-focus helps": ((SDGM_RAW, NO_FOCUS),),
    "SDGMNet: the probabilistic margin helps": ((SDGM_RAW, NO_MARGIN),),
    "SDGMNet: power adjustment helps": ((SDGM_RAW, NO_POWER),),
    "GOR: the spread-out term helps": ((GOR_TRIPLET, TRIPLET), (GOR_NPAIR, NPAIR), (HARDNET_GOR, WITHOUT_GOR)),
    "Scale-aware: the scaled loss beats the plain difference": ((SCALE_AWARE, DIFFERENCE),),
    "Scale-aware: mixed context helps": ((SCALE_AWARE, SIAMESE), (SCALE_AWARE, OWN_CONTEXT)),
}
BESIDE = (HARDNET_STAR, SDGMNET)
# Of each paper the first line, again with detector noise, one seed.
NOISY = (
    ADASAMPLE,
    UNIFORM,
    HYNET,
    HYNET_S,
    HYNET_D,
    SDGM_RAW,
    SDGM_HNFRN,
    GOR_TRIPLET,
    TRIPLET,
    SCALE_AWARE,
    DIFFERENCE,
)


def every_arm() -> tuple[Tuned, ...]:
    """Methods before controls, each once: a stop leaves whole claims behind."""
    pairs = [pair for claim in CLAIMS.values() for pair in claim]
    return tuple(dict.fromkeys([*(tuned for pair in pairs for tuned in pair), *BESIDE]))


@dataclass(frozen=True)
class Stage:
    """Trainings in one folder, and the names of the test sets that they are scored on."""

    folder: Path
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    tests: tuple[str, ...]

    @property
    def rows(self) -> dict[str, tuple[Arm, int]]:
        """Arm and seed by the name of their row."""
        return {Trial(arm.label, seed, "").name: (arm, seed) for seed in self.seeds for arm in self.arms}

    def read(self) -> Table:
        """What the folder holds; of these trainings also what has not begun."""
        planned = [Trial(arm.label, seed, "") for arm, seed in self.rows.values()]
        return read_table(self.folder, planned, self.tests)

    def is_taken(self, row: str) -> bool:
        """Whether a process is at a row."""
        try:
            with lock(self.folder / "rows" / f".{row}.lock", row):
                return False
        except KeypatchError:
            return True


@dataclass(frozen=True)
class Runs:
    """All trainings, in two folders."""

    data: str
    tests: Sequence[str]
    hpatches: str | None
    out: Path
    conditions: Conditions
    seeds: tuple[int, ...]

    def tuning(self, arms: Sequence[Arm]) -> Stage:
        return Stage(self.out / TUNING, tuple(arms), (0,), (held_out.HELD_OUT,))

    def comparison(self, arms: Sequence[Arm], seeds: tuple[int, ...]) -> Stage:
        tests = open_tests(self.tests, self.hpatches, [], SPLIT if self.hpatches else None)
        return Stage(self.out / RUNS, tuple(arms), seeds, tuple(test.name for test in tests))

    def tune(self, dry: bool, progress: ProgressBar) -> Table:
        """Rates, and with the best of them margins."""
        rates = [arm for tuned in every_arm() for arm in rate_arms(tuned)]
        if dry:
            margins = [arm for tuned in every_arm() for arm in margin_arms(tuned, self.tuning(rates).read())]
            return self._tune(self.tuning([*rates, *margins]), dry, progress)
        table = settle(self.tuning(rates), lambda stage: self._tune(stage, dry, progress))
        margins = [arm for tuned in every_arm() for arm in margin_arms(tuned, table)]
        return settle(self.tuning(margins), lambda stage: self._tune(stage, dry, progress))

    def _tune(self, stage: Stage, dry: bool, progress: ProgressBar) -> Table:
        return run_study(
            stage.arms,
            self.data,
            stage.folder,
            self.conditions,
            seeds=stage.seeds,
            held_out=HELD_OUT,
            shares=(),
            dry=dry,
            progress=progress,
        )

    def read(self, tuning: Table) -> Table:
        """What is finished of all arms with all seeds; needs no data."""
        return Stage(self.out / RUNS, tuple(choose_all(tuning).values()), self.seeds, ()).read()

    def compare(self, chosen: Mapping[Tuned, Arm], dry: bool, progress: ProgressBar) -> Table:
        """All arms with all seeds, and some with noise."""
        noisy = [noisy_arm(chosen[tuned]) for tuned in NOISY if tuned in chosen]
        stages = self.comparison([*chosen.values()], self.seeds), self.comparison(noisy, self.seeds[:1])
        for stage in stages:
            if dry:
                table = self._train(stage, dry, progress)
                print(f"{stage.folder}: {table.cost.sentence() if table.cost else ''}")
            else:
                table = settle(stage, lambda each: self._train(each, dry, progress))
        return table

    def _train(self, stage: Stage, dry: bool, progress: ProgressBar) -> Table:
        return run_study(
            stage.arms,
            self.data,
            stage.folder,
            self.conditions,
            seeds=stage.seeds,
            tests=self.tests,
            hpatches=self.hpatches,
            split=SPLIT if self.hpatches else None,
            shares=(),
            dry=dry,
            progress=progress,
        )


def settle(stage: Stage, run: Callable[[Stage], Table]) -> Table:
    """The table once rows that other processes are at have ended too; one that was killed leaves them to this one.

    A study trains failed rows again, so all of it is run once only, and then no more than rows that were left.
    """
    run(stage)
    rows = stage.rows
    while True:
        taken = {name for name in rows if stage.is_taken(name)}  # before reading: a row that is free now has its end
        table = stage.read()
        unfinished = {row.name: row for row in table.unfinished if row.name in rows}
        waiting = [name for name, row in unfinished.items() if name in taken or not row.failed]
        if not waiting:
            return table
        for arm, seed in (rows[name] for name in waiting if name not in taken):
            run(replace(stage, arms=(arm,), seeds=(seed,)))
        time.sleep(WAIT)


def rate_arms(tuned: Tuned) -> list[Arm]:
    return sweep_arms([tuned.recipe], tuned.vary(f"{RATE}={tuned.rates}"), TUNING_PAIRS, PLAIN)


def are_known(arms: Sequence[Arm], tuning: Table) -> bool:
    """Whether the tuning has all of them, those of rates that are too high to train among them."""
    ended = {line.label for line in tuning.lines} | {row.label for row in tuning.unfinished if row.failed}
    return all(arm.label in ended for arm in arms)


def best(arms: Sequence[Arm], tuning: Table) -> Arm | None:
    """Of arms the one with the least error on the points held out; None where all failed."""
    errors = {line.label: tuning.error(line) for line in tuning.lines}
    return min((arm for arm in arms if arm.label in errors), key=lambda arm: errors[arm.label], default=None)


def best_rate(tuned: Tuned, tuning: Table) -> Arm | None:
    """None where all failed; the middle one, which costs as much, until all are known."""
    arms = rate_arms(tuned)
    return best(arms, tuning) if are_known(arms, tuning) else arms[1]


def margin_sweep(tuned: Tuned, tuning: Table) -> list[str]:
    """What varies when other margins are trained with the best rate; empty where there is nothing to train."""
    arm = best_rate(tuned, tuning)
    return tuned.vary(f"{RATE}={arm.varied[RATE]}", tuned.margins) if arm and tuned.margins else []


def margin_arms(tuned: Tuned, tuning: Table) -> list[Arm]:
    vary = margin_sweep(tuned, tuning)
    return sweep_arms([tuned.recipe], vary, TUNING_PAIRS, PLAIN) if vary else []


def is_tuned(tuned: Tuned, tuning: Table) -> bool:
    return are_known([*rate_arms(tuned), *margin_arms(tuned, tuning)], tuning)


def choose(tuned: Tuned, tuning: Table) -> Arm | None:
    """What is trained with every seed, as far as the tuning knows; None where all rates failed."""
    rate = best_rate(tuned, tuning)
    if rate is None:
        return None
    arm = best([rate, *margin_arms(tuned, tuning)], tuning) or rate
    return sweep_arms([tuned.recipe], varied(arm), PAIRS, PLAIN)[0]


def varied(arm: Arm) -> list[str]:
    return [f"{path}={value}" for path, value in arm.varied.items()]


def choose_all(tuning: Table) -> dict[Tuned, Arm]:
    """Without those whose rates all failed."""
    return {tuned: arm for tuned in every_arm() if (arm := choose(tuned, tuning))}


def noisy_arm(arm: Arm) -> Arm:
    return sweep_arms([arm.recipe.name], [*varied(arm), "augment.detector_noise=1"], PAIRS, PLAIN[:1])[0]


@dataclass(frozen=True)
class Judged:
    """A claim with one of its controls, and why they cannot be compared where they cannot."""

    claim: str
    method: str
    control: str
    compared: Compared | None
    fault: str = ""

    @property
    def verdict(self) -> str:
        return self.compared.verdict if self.compared else f"no verdict: {self.fault}"


def judge_claims(table: Table, tuning: Table, columns: Sequence[str]) -> Iterator[Judged]:
    """Every claim with its controls, as far as both are trained."""
    for claim, pairs in CLAIMS.items():
        for pair in pairs:
            faults = [fault for tuned in pair if (fault := why_untuned(tuned, tuning))]
            arms = [None if why_untuned(tuned, tuning) else choose(tuned, tuning) for tuned in pair]
            method, control = (arm.label if arm else str(tuned) for arm, tuned in zip(arms, pair, strict=True))
            if faults:
                yield Judged(claim, method, control, None, faults[0])
                continue
            try:
                yield Judged(claim, method, control, compare_lines(table, method, control, columns))
            except KeypatchError as error:
                yield Judged(claim, method, control, None, str(error))


def why_untuned(tuned: Tuned, tuning: Table) -> str:
    """Why there is nothing to train with every seed; empty where there is."""
    if not is_tuned(tuned, tuning):
        return f'"{tuned}" is not tuned yet.'
    if choose(tuned, tuning):
        return ""
    labels = [arm.label for arm in rate_arms(tuned)]
    return f'"{tuned}" failed with each of its rates: ' + next(
        row.failed for row in tuning.unfinished if row.label in labels
    )


def columns_of(tests: Sequence[str]) -> list[str]:
    """What decides: the hard list of each test set."""
    return [f"{Path(test).resolve().name} hard FPR95 %" for test in tests]


def markdown(judged: Sequence[Judged], columns: Sequence[str]) -> str:
    """The table of claims: gains in points of FPR95, with their intervals over the seeds that both arms have."""

    def gains(compared: Compared | None) -> list[str]:
        if compared is None:
            return ["-" for _ in ("seeds", *columns)]
        texts = [str(len(compared.differences[0].seeds))]
        for each in compared.differences:
            mean, low, high = (cell(each.column, [value]) for value in (each.mean, *each.interval))
            texts.append(mean if low == "-" else f"{mean} ({low} to {high})")
        return texts

    head = ["claim", "method", "control", "seeds", *(f"gain, {column}" for column in columns), "verdict"]
    return grid(
        head,
        [[each.claim, f"`{each.method}`", f"`{each.control}`", *gains(each.compared), each.verdict] for each in judged],
    )


def commands(runs: Runs, tuning: Table) -> str:
    """The same trainings as loops of sweeps, as far as they are known: rates, margins, and runs with every seed."""
    rates = [(tuned.recipe, tuned.vary(f"{RATE}={tuned.rates}")) for tuned in every_arm()]
    margins = [
        (tuned.recipe, margin_sweep(tuned, tuning)) for tuned in every_arm() if are_known(rate_arms(tuned), tuning)
    ]
    held = f"--held-out {HELD_OUT} --out {runs.out / TUNING}"
    loops = [loop(sweeps, runs, PLAIN, TUNING_PAIRS, held) for sweeps in (rates, [each for each in margins if each[1]])]
    if all(is_tuned(tuned, tuning) for tuned in every_arm()):
        chosen = choose_all(tuning)
        noisy = [noisy_arm(chosen[tuned]) for tuned in NOISY if tuned in chosen]
        tests = [*(f"--test {test}" for test in runs.tests)]
        tests += [f"--hpatches {runs.hpatches} --split {SPLIT}"] if runs.hpatches else []
        rest = f"{' '.join(tests)} --out {runs.out / RUNS}"
        for arms, settings, seeds in ((chosen.values(), PLAIN, runs.seeds), (noisy, PLAIN[:1], runs.seeds[:1])):
            sweeps = [(arm.recipe.name, varied(arm)) for arm in arms]
            loops.append(loop(sweeps, runs, settings, PAIRS, f"--seeds {','.join(map(str, seeds))} {rest}"))
    return "\n".join(filter(None, loops))


def loop(
    sweeps: Sequence[tuple[str, Sequence[str]]], runs: Runs, settings: Sequence[str], pairs: int, rest: str
) -> str:
    """A loop of the shell over sweeps, recipes that vary the same in one; empty where there are none."""
    if not sweeps:
        return ""
    lines = list[str]()
    for vary in dict.fromkeys(tuple(own) for _, own in sweeps):
        recipes = " ".join(recipe for recipe, own in sweeps if tuple(own) == vary)
        lines.append(f'"{recipes} {" ".join(f"--vary {each}" for each in vary)}"')
    common = f"{' '.join(f'--set {setting}' for setting in settings)} --threads {runs.conditions.threads}"
    sweep = f"keypatch study sweep $sweep {common} --data {runs.data} --pairs {pairs} \\\n    {rest}"
    return " \\\n    ".join(["for sweep in", *lines]) + f"; do\n  {sweep}\ndone"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the training set")
    parser.add_argument("--test", action="append", default=[], help="a test set with a hard list; may be repeated")
    parser.add_argument("--hpatches", help="a folder of strips")
    parser.add_argument("--out", type=Path, default=Path("studies/claims"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=1)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--dry", action="store_true", help="only say what it will cost")
    only.add_argument("--table", action="store_true", help="only print the verdicts of what is finished so far")
    only.add_argument("--commands", action="store_true", help="only print the sweeps, as far as they are known")
    given = parser.parse_args()
    if given.commands and not (given.data or given.test or given.hpatches):
        given.data, given.test, given.hpatches = PLACES
    if not given.test:
        parser.error("name the test sets with --test")
    if not given.data and not given.table:
        parser.error("name the training set with --data")
    conditions, seeds = Conditions(threads=given.threads), parse_seeds(given.seeds)
    runs = Runs(given.data, given.test, given.hpatches, given.out, conditions, seeds)
    columns = columns_of(given.test)
    if given.commands or given.table:
        tuning = read_table(given.out / TUNING)
        if given.commands:
            print(commands(runs, tuning))
        else:
            print(markdown([*judge_claims(runs.read(tuning), tuning, columns)], columns))
        return
    with ProgressBar() as progress:
        tuning = runs.tune(given.dry, progress)
        if given.dry and tuning.cost:
            print(f"{given.out / TUNING}: {tuning.cost.sentence()}")
        table = runs.compare(choose_all(tuning), given.dry, progress)
    if not given.dry:
        judged = [*judge_claims(table, tuning, columns)]
        print(markdown(judged, columns))
        if compared := [each.compared for each in judged if each.compared]:
            draw_differences(given.out / "claims.png", compared)


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
