"""The runs behind the page of claims: each control differs from its method in what is claimed, and in nothing else."""

from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path

import claims
import pytest

from keypatch.files import lock
from keypatch.studies.rows import Milestone, Trial
from keypatch.studies.table import Table, make_table
from keypatch.training.conditions import Conditions

PAIRS = [(claim, *pair) for claim, pairs in claims.CLAIMS.items() for pair in pairs]
DIFFER = {  # by control: a field of the recipe, a term of the loss that one side has alone, or a field of a term
    "adasample sampler.lam=0": {"sampler"},
    "adasample sampler.lam=0 weighting=none": {"sampler", "weighting"},
    "hynet_s": {"HybridTriplet", "Triplet"},
    "hynet_d": {"HybridTriplet", "Triplet"},
    "hynet_no_norm": {"NormDifference"},
    "hynet_bn": {"network"},
    "sdgm_hnfrn mining.start=0.125": {"GradientModulation", "ActiveGap"},
    "sdgm_raw loss.self_weight=theta": {"GradientModulation.self_weight"},
    "sdgm_raw loss.m=0 loss.psm=false": {"GradientModulation.m", "GradientModulation.psm"},
    "sdgm_raw loss.power_adjust=false": {"GradientModulation.power_adjust"},
    "triplet": {"SpreadOut"},
    "npair": {"SpreadOut"},
    "hardnet_gor loss.SpreadOut.weight=0": {"SpreadOut.weight"},
    "scale_aware_sub": {"MixedContext", "ScaleAware"},
    "scale_aware loss.gamma=0": {"MixedContext.gamma"},
    "scale_aware loss.gamma=1": {"MixedContext.gamma"},
}


def different(ours: object, theirs: object) -> set[str]:
    return {field.name for field in fields(ours) if getattr(ours, field.name) != getattr(theirs, field.name)}


@pytest.mark.parametrize(("method", "control"), [pair[1:] for pair in PAIRS], ids=str)
def test_a_control_differs_in_what_is_claimed_alone(method: claims.Tuned, control: claims.Tuned) -> None:
    ours, theirs = (claims.rate_arms(tuned)[0].recipe for tuned in (method, control))
    terms, others = ({type(term).__name__: term for term in recipe.loss} for recipe in (ours, theirs))
    assert (len(terms), len(others)) == (len(ours.loss), len(theirs.loss))
    in_loss = {f"{name}.{field}" for name in terms.keys() & others for field in different(terms[name], others[name])}
    found = (different(ours, theirs) - {"name", "loss"}) | (terms.keys() ^ others.keys()) | in_loss
    assert found == DIFFER[str(control)]
    assert (ours.sampler.pairs, ours.augment.detector_noise) == (256, 0)
    if "sampler" in found:
        assert replace(ours.sampler, lam=0) == theirs.sampler
    if "network" in found:
        assert replace(ours.network, normalization="batch") == theirs.network


def test_controls_of_the_hybrid_measure_have_its_two_parts() -> None:
    s, d = (claims.rate_arms(tuned)[0].recipe.loss[0].measure for tuned in (claims.HYNET_S, claims.HYNET_D))
    assert (type(s).__name__, type(d).__name__) == ("InnerProduct", "Euclidean")


def test_every_arm_is_trained_once_and_methods_have_three_rates() -> None:
    arms = [arm for tuned in claims.every_arm() for arm in claims.rate_arms(tuned)]
    assert len({arm.label for arm in arms}) == len(arms) == 3 * len(claims.every_arm())
    assert {arm.recipe.pairs for arm in arms} == {claims.TUNING_PAIRS}
    assert all(tuned in claims.every_arm() for tuned in claims.NOISY)


def held_out(label: str, error: float) -> Trial:
    return Trial(label, 0, "", (Milestone(1.0, 1, 1.0, {"held-out": {"fpr95.hard_8_8_0": error}}),))


def failed(label: str, seed: int = 0) -> Trial:
    return Trial(label, seed, "", failed="The loss is not finite.")


def planted(*errors: tuple[str, float], diverged: tuple[str, ...] = ()) -> Table:
    return make_table([*(held_out(*each) for each in errors), *map(failed, diverged)], {})


NOTHING = planted()


def tuned_rows() -> list[Trial]:
    """Of all rates, the middle one best, and of the other margins, which are worse."""
    rates = {arm.label: 0.2 for tuned in claims.every_arm() for arm in claims.rate_arms(tuned)}
    rates |= {claims.rate_arms(tuned)[1].label: 0.1 for tuned in claims.every_arm()}
    margins = [arm.label for tuned in claims.every_arm() for arm in claims.margin_arms(tuned, NOTHING)]
    return [held_out(label, error) for label, error in {**rates, **dict.fromkeys(margins, 0.3)}.items()]


def test_the_best_rate_and_then_the_best_margin_are_taken() -> None:
    rates = [arm.label for arm in claims.rate_arms(claims.HYNET_D)]
    table = planted((rates[0], 0.3), (rates[2], 0.2), diverged=(rates[1],))
    margins = [arm.label for arm in claims.margin_arms(claims.HYNET_D, table)]
    assert margins == [f"hynet_d loss.Triplet.margin={margin} optimizer.lr=0.01" for margin in ("1", "1.4")]
    known = ((rates[2], 0.1), (rates[0], 0.3))
    worse = planted(*known, (margins[0], 0.2), (margins[1], 0.3), diverged=(rates[1],))
    assert claims.choose(claims.HYNET_D, worse).label == rates[2]
    better = planted(*known, (margins[0], 0.2), (margins[1], 0.05), diverged=(rates[1],))
    chosen = claims.choose(claims.HYNET_D, better)
    assert (chosen.label, chosen.recipe.pairs) == (margins[1], claims.PAIRS)
    assert claims.noisy_arm(chosen).recipe == replace(
        chosen.recipe, augment=replace(chosen.recipe.augment, detector_noise=1.0)
    )
    assert claims.is_tuned(claims.HYNET_D, better) and not claims.is_tuned(claims.HYNET_D, table)


def test_until_all_rates_are_known_the_middle_one_is_planned() -> None:
    rates = [arm.label for arm in claims.rate_arms(claims.HYNET_D)]
    assert claims.choose(claims.HYNET_D, planted((rates[0], 0.1), (rates[2], 0.2))).label == rates[1]
    assert claims.choose(claims.HYNET_D, planted(diverged=tuple(rates))) is None
    assert claims.margin_arms(claims.HYNET_D, planted(diverged=tuple(rates))) == []


def runs_in(folder: Path) -> claims.Runs:
    return claims.Runs("castle", ["castle-test"], None, folder, Conditions(threads=2), (0, 4))


def write_rows(folder: Path, rows: list[Trial]) -> None:
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    for row in rows:
        row.save(folder / "rows")


def test_a_dry_run_counts_margins_with_the_best_rates_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = [arm.label for arm in claims.rate_arms(claims.HYNET_S)]
    write_rows(tmp_path / "tuning", [held_out(label, error) for label, error in zip(rates, (3, 2, 1), strict=True)])
    planned = list[str]()
    monkeypatch.setattr(claims, "run_study", lambda arms, *_, **__: planned.extend(arm.label for arm in arms))
    runs_in(tmp_path).tune(True, None)
    assert [label.split("lr=")[1] for label in planned if "margin" in label] == ["0.01", "0.01", "0.003", "0.003"]


def test_the_sweeps_are_printed_as_far_as_they_are_known(tmp_path: Path) -> None:
    runs, rows = runs_in(tmp_path), tuned_rows()
    margins = '"hynet_s --vary optimizer.lr=0.003 --vary loss.Triplet.margin=0.7,1.1"'
    first = claims.commands(runs, make_table(rows[:1], {}))
    assert first.count("for sweep in") == 1 and margins not in first and "150000" not in first
    assert "--threads 2 --data castle" in first and f"--out {tmp_path}/tuning" in first
    rates = claims.commands(runs, make_table([row for row in rows if "margin" not in row.label], {}))
    assert rates.count("for sweep in") == 2 and margins in rates
    every = claims.commands(runs, make_table(rows, {}))
    assert every.count("for sweep in") == 4 and "--seeds 0,4 --test castle-test" in every
    assert "--vary augment.detector_noise=1" in every.split("--seeds 0,4")[1]


def test_a_waiting_process_trains_what_was_left_and_nothing_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverged, elsewhere, left = claims.rate_arms(claims.HYNET)
    stage = claims.Stage(tmp_path, (diverged, elsewhere, left), (0,), ("held-out",))
    write_rows(tmp_path, [])
    asked = list[tuple[claims.Arm, ...]]()
    other = ExitStack()  # another process, which is at a row and gives up at the second look
    other.enter_context(lock(tmp_path / "rows" / f".{elsewhere.label}-0.lock", "another process"))

    def run(stage: claims.Stage) -> Table:
        asked.append(stage.arms)
        write_rows(tmp_path, [held_out(left.label, 0.1) if len(asked) > 1 else failed(diverged.label)])
        return stage.read()

    def wait(seconds: int) -> None:
        assert len(asked) < 5, "it waits for ever"
        if len(asked) > 1:
            write_rows(tmp_path, [failed(elsewhere.label)])
            other.close()

    monkeypatch.setattr(claims.time, "sleep", wait)
    table = claims.settle(stage, run)
    assert asked == [(diverged, elsewhere, left), (left,)]
    assert [line.label for line in table.lines] == [left.label]


def scored(tuned: claims.Tuned, seed: int, error: float) -> Trial:
    scores = {"castle-test": {"fpr95.hard_6_6_0": error}, "nd-test": {"fpr95.hard_8_8_0": error}}
    return Trial(claims.choose(tuned, NOTHING).label, seed, "", (Milestone(1.0, 1, 1.0, scores),))


def table_of_claims(rows: list[Trial], tuning: Table) -> list[str]:
    columns = claims.columns_of(["elsewhere/castle-test", "nd-test"])
    return claims.markdown([*claims.judge_claims(make_table(rows, {}), tuning, columns)], columns).splitlines()


def test_the_table_of_claims_has_a_row_per_control_with_gains_seeds_and_a_verdict() -> None:
    rows = [
        scored(tuned, seed, 0.02 + 0.001 * seed if tuned == claims.HYNET else 0.05 + 0.002 * seed)
        for tuned in claims.every_arm()
        for seed in range(3)
    ]
    lines = table_of_claims(rows, make_table(tuned_rows(), {}))
    assert len(lines) == 2 + len(PAIRS)
    assert lines[0].count("|") == 8 and "| seeds | gain, castle-test hard FPR95 % |" in lines[0]
    assert next(line for line in lines if "`hynet_no_norm" in line).endswith(
        "| 3 | 3.10 (2.85 to 3.35) | 3.10 (2.85 to 3.35) | seen |"
    )
    assert next(line for line in lines if "| `scale_aware_sub" in line).endswith("not told apart |")


def test_what_failed_or_is_not_trained_yet_costs_no_other_claim_its_row() -> None:
    label = {tuned: claims.choose(tuned, NOTHING).label for tuned in claims.every_arm()}
    rows = [scored(claims.HYNET, seed, 0.02 + 0.001 * seed) for seed in range(3)]
    rows += [scored(claims.HYNET_NO_NORM, seed, 0.05) for seed in (0, 2)] + [failed(label[claims.HYNET_NO_NORM], 1)]
    rows += [scored(claims.HYNET_BN, 0, 0.05), failed(label[claims.HYNET_S]), Trial(label[claims.HYNET_D], 0, "")]
    tuning = [row for row in tuned_rows() if not row.label.startswith(("npair", "triplet"))]
    tuning += [failed(arm.label) for arm in claims.rate_arms(claims.NPAIR)]
    lines = table_of_claims(rows, make_table(tuning, {}))
    ends = {
        "hynet_no_norm": "| 2 | 2.90 (1.63 to 4.17) | 2.90 (1.63 to 4.17) | seen |",
        "hynet_bn": "| 1 | 3.00 | 3.00 | no verdict: fewer than two seeds |",
        "hynet_s": f'| - | - | - | no verdict: "{label[claims.HYNET_S]}" failed with seed 0: The loss is not finite. |',
        "hynet_d": f'no verdict: "{label[claims.HYNET_D]}" is not finished. Run the study to its end. |',
        "triplet": 'no verdict: "triplet" is not tuned yet. |',
        "npair": 'no verdict: "npair" failed with each of its rates: The loss is not finite. |',
    }
    for control, end in ends.items():
        [line] = [line for line in lines if line.split(" | ")[2].strip("`").split()[0] == control]
        assert line.endswith(end)
    assert len(lines) == 2 + len(PAIRS)


def test_the_table_is_made_of_the_folders_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(tmp_path / "tuning", tuned_rows())
    write_rows(tmp_path / "runs150k", [scored(claims.HYNET, 0, 0.02), scored(claims.HYNET_BN, 0, 0.05)])
    before = sorted(tmp_path.rglob("*"))
    tests = ["--test", "no/castle-test", "--test", "no/nd-test"]
    monkeypatch.setattr(claims.sys, "argv", ["claims.py", "--table", *tests, "--out", str(tmp_path)])
    claims.main()
    assert "| 1 | 3.00 | 3.00 | no verdict: fewer than two seeds |" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before
