"""What five papers claim, each against its own control with all else equal: the runs of docs/results/claims.md.

python bench/claims.py --data $DATA/nd-train --test $DATA/nd-test --test $DATA/castle-test \
    --hpatches $DATA/oxford-hpatches --out studies/claims --dry
python bench/claims.py --commands --out studies/claims

The learning rate of each arm is chosen on points held out from the training set, then all arms are trained with every
seed. Without --dry it does so: what is finished is not repeated, so stop it at any time and run it again. --commands
prints the same as sweeps.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keypatch.cli.main import answer
from keypatch.progress import ProgressBar
from keypatch.studies.figure import draw_differences
from keypatch.studies.page import cell
from keypatch.studies.study import Arm, run_study
from keypatch.studies.sweep import parse_seeds, sweep_arms
from keypatch.studies.table import Line, Table, heading, read_table
from keypatch.studies.verdicts import Compared, compare_lines
from keypatch.training.conditions import Conditions

PLAIN = ("sampler.pairs=256", "augment.detector_noise=0")
TUNING_PAIRS, PAIRS, HELD_OUT = 60_000, 150_000, 0.1
RATE = "optimizer.lr"
WAIT = 30  # seconds between two looks at rows of other processes


@dataclass(frozen=True)
class Tuned:
    """A recipe with fields set, whose learning rate is chosen of three, and then perhaps its margin."""

    recipe: str
    rates: str
    fixed: tuple[str, ...] = ()
    margins: str = ""

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
class Runs:
    """All trainings, in two folders."""

    data: str
    tests: Sequence[str]
    hpatches: str | None
    out: Path
    conditions: Conditions
    seeds: tuple[int, ...]

    def tune(self, dry: bool, progress: ProgressBar) -> Table:
        """Rates, and with the best of them margins."""
        arms = [arm for tuned in every_arm() for arm in rate_arms(tuned)]
        if dry:
            return self._tuning(
                [*arms, *(arm for tuned in every_arm() for arm in margin_arms(tuned, None))], dry, progress
            )
        table = settled(lambda: self._tuning(arms, dry, progress))
        margins = [arm for tuned in every_arm() for arm in margin_arms(tuned, table)]
        return settled(lambda: self._tuning(margins, dry, progress))

    def _tuning(self, arms: Sequence[Arm], dry: bool, progress: ProgressBar) -> Table:
        return run_study(
            arms,
            self.data,
            self.out / "tuning",
            self.conditions,
            held_out=HELD_OUT,
            shares=(),
            dry=dry,
            progress=progress,
        )

    def compare(self, chosen: Mapping[Tuned, Arm], dry: bool, progress: ProgressBar) -> Table:
        """All arms with all seeds, and some with noise."""
        noisy = [noisy_arm(chosen[tuned]) for tuned in NOISY]
        plain = [*chosen.values()]
        if not dry:
            settled(lambda: self._runs(plain, self.seeds, dry, progress))
            return settled(lambda: self._runs(noisy, self.seeds[:1], dry, progress))
        for arms, seeds in ((plain, self.seeds), (noisy, self.seeds[:1])):
            table = self._runs(arms, seeds, dry, progress)
            print(f"{self.out / 'runs150k'}: {table.cost.sentence() if table.cost else ''}")
        return table

    def _runs(self, arms: Sequence[Arm], seeds: Sequence[int], dry: bool, progress: ProgressBar) -> Table:
        return run_study(
            arms,
            self.data,
            self.out / "runs150k",
            self.conditions,
            seeds=seeds,
            tests=self.tests,
            hpatches=self.hpatches,
            split="all" if self.hpatches else None,
            shares=(),
            dry=dry,
            progress=progress,
        )


def settled(run: Callable[[], Table]) -> Table:
    """The table once rows that other processes are at have ended too; one that was killed leaves them to this one."""
    while not is_finished(table := run()):
        time.sleep(WAIT)
    return table


def rate_arms(tuned: Tuned) -> list[Arm]:
    return sweep_arms([tuned.recipe], tuned.vary(f"{RATE}={tuned.rates}"), TUNING_PAIRS, PLAIN)


def is_finished(table: Table) -> bool:
    """Whether all rows are there, those of rates that are too high to train among them."""
    return bool(table.lines) and all(row.failed for row in table.unfinished)


def best(arms: Sequence[Arm], table: Table) -> Arm:
    """Of arms the one with the least error on the points held out; one that failed is none."""
    lines: dict[str, Line] = {line.label: line for line in table.lines}
    finished = [arm for arm in arms if arm.label in lines]
    if not finished:
        raise SystemExit(f"{arms[0].recipe.name} was trained with none of its rates: see table.md of the tuning.")
    return min(finished, key=lambda arm: table.error(lines[arm.label]))


def margin_arms(tuned: Tuned, table: Table | None) -> list[Arm]:
    """Other margins with the best rate, the middle one without a table; none where the margin is not tuned."""
    if not tuned.margins:
        return []
    arm = best(rate_arms(tuned), table) if table else rate_arms(tuned)[1]
    return sweep_arms([tuned.recipe], tuned.vary(f"{RATE}={arm.varied[RATE]}", tuned.margins), TUNING_PAIRS, PLAIN)


def choose(tuned: Tuned, table: Table | None) -> Arm:
    """What is trained with every seed; without a table the middle rate, which costs as much."""
    arms = rate_arms(tuned)
    arm = best([best(arms, table), *margin_arms(tuned, table)], table) if table else arms[1]
    vary = [f"{path}={value}" for path, value in arm.varied.items()]
    return sweep_arms([tuned.recipe], vary, PAIRS, PLAIN)[0]


def noisy_arm(arm: Arm) -> Arm:
    vary = [*(f"{path}={value}" for path, value in arm.varied.items()), "augment.detector_noise=1"]
    return sweep_arms([arm.recipe.name], vary, PAIRS, PLAIN[:1])[0]


def compare_claims(table: Table, chosen: Mapping[Tuned, str], tests: Sequence[str]) -> Iterator[tuple[str, Compared]]:
    """Every claim with its controls, on the hard list of each test set."""
    columns = [f"{test} hard FPR95 %" for test in tests]
    for claim, pairs in CLAIMS.items():
        for method, control in pairs:
            yield claim, compare_lines(table, chosen[method], chosen[control], columns)


def markdown(compared: Sequence[tuple[str, Compared]]) -> str:
    """The table of claims: gains in points of FPR95, with their intervals."""
    columns = [each.column for each in compared[0][1].differences]
    head = ["claim", "method", "control", *(f"gain, {heading(column)}" for column in columns), "verdict"]
    rows = [
        [
            claim,
            f"`{each.method}`",
            f"`{each.control}`",
            *(
                f"{cell(one.column, [one.mean])} ({' to '.join(cell(one.column, [end]) for end in one.interval)})"
                for one in each.differences
            ),
            each.verdict,
        ]
        for claim, each in compared
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def commands(chosen: Sequence[Arm] | None) -> str:
    """The same trainings as a loop of sweeps: the tuning, and once that is done the runs with every seed."""
    common = f"{' '.join(f'--set {setting}' for setting in PLAIN)} --threads 1 --data $DATA/nd-train"
    if chosen is None:
        rest = f"{common} --pairs {TUNING_PAIRS} \\\n    --held-out {HELD_OUT} --out studies/claims/tuning"
        sweeps = [(tuned.recipe, tuple(tuned.vary(f"{RATE}={tuned.rates}"))) for tuned in every_arm()]
    else:
        tests = "--test $DATA/nd-test --test $DATA/castle-test --hpatches $DATA/oxford-hpatches --split all"
        rest = f"{common} --pairs {PAIRS} --seeds 0,1,2 \\\n    {tests} --out studies/claims/runs150k"
        sweeps = [(arm.recipe.name, tuple(f"{path}={value}" for path, value in arm.varied.items())) for arm in chosen]
    lines = list[str]()
    for vary in dict.fromkeys(vary for _, vary in sweeps):
        recipes = " ".join(recipe for recipe, own in sweeps if own == vary)
        lines.append(f'"{recipes} {" ".join(f"--vary {each}" for each in vary)}"')
    return " \\\n    ".join(["for sweep in", *lines]) + f"; do\n  keypatch study sweep $sweep {rest}\ndone"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the training set")
    parser.add_argument("--test", action="append", default=[], help="a test set with a hard list; may be repeated")
    parser.add_argument("--hpatches", help="a folder of strips")
    parser.add_argument("--out", type=Path, default=Path("studies/claims"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="only say what it will cost")
    parser.add_argument("--commands", action="store_true", help="only print the sweeps, as far as they are known")
    given = parser.parse_args()
    if given.commands:
        tuning = read_table(given.out / "tuning")
        known = tuning if is_finished(tuning) else None
        print(commands([choose(tuned, known) for tuned in every_arm()] if known else None))
        return
    if not given.data or not given.test:
        parser.error("name the training set with --data, and test sets with --test")
    conditions, seeds = Conditions(threads=given.threads), parse_seeds(given.seeds)
    runs = Runs(given.data, given.test, given.hpatches, given.out, conditions, seeds)
    with ProgressBar() as progress:
        tuning = runs.tune(given.dry, progress)
        chosen = {tuned: choose(tuned, tuning if is_finished(tuning) else None) for tuned in every_arm()}
        if given.dry and tuning.cost:
            print(f"{given.out / 'tuning'}: {tuning.cost.sentence()}")
        table = runs.compare(chosen, given.dry, progress)
    if not given.dry:
        labels = {tuned: arm.label for tuned, arm in chosen.items()}
        compared = list(compare_claims(table, labels, [Path(test).resolve().name for test in given.test]))
        print(markdown(compared))
        draw_differences(given.out / "claims.png", [each for _, each in compared])


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
