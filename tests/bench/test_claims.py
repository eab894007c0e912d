"""The runs behind the page of claims: each control differs from its method in what is claimed, and in nothing else."""

from dataclasses import fields, replace

import claims
import pytest

from keypatch.studies.rows import Milestone, Trial
from keypatch.studies.table import Table, make_table

PAIRS = [(claim, *pair) for claim, pairs in claims.CLAIMS.items() for pair in pairs]
DIFFER = {  # fields that the claims are about
    "AdaSample: choosing positives by distance helps": {"sampler", "weighting"},
    "HyNet: FRN and TLU beat batch normalization and ReLU": {"network"},
}


@pytest.mark.parametrize(("claim", "method", "control"), PAIRS)
def test_a_control_differs_in_what_is_claimed_alone(claim: str, method: claims.Tuned, control: claims.Tuned) -> None:
    ours, theirs = (claims.rate_arms(tuned)[0].recipe for tuned in (method, control))
    different = {field.name for field in fields(ours) if getattr(ours, field.name) != getattr(theirs, field.name)}
    assert different and different - {"name"} <= DIFFER.get(claim, {"loss"})
    assert (ours.sampler.pairs, ours.augment.detector_noise) == (256, 0)
    if "sampler" in different:
        assert replace(ours.sampler, lam=0) == theirs.sampler
    if "network" in different:
        assert replace(ours.network, normalization="batch") == theirs.network


def test_the_terms_that_controls_lack_are_those_of_the_claims() -> None:
    def loss(tuned: claims.Tuned) -> tuple[object, ...]:
        return claims.rate_arms(tuned)[0].recipe.loss

    assert loss(claims.HYNET)[:1] == loss(claims.HYNET_NO_NORM)
    assert loss(claims.HYNET)[1:] == loss(claims.HYNET_S)[1:] == loss(claims.HYNET_D)[1:]
    assert loss(claims.GOR_TRIPLET)[:1] == loss(claims.TRIPLET)
    assert loss(claims.GOR_NPAIR)[:1] == loss(claims.NPAIR)
    assert loss(claims.HARDNET_GOR)[:1] == loss(claims.WITHOUT_GOR)[:1]
    assert loss(claims.WITHOUT_GOR)[1].weight == 0  # type: ignore[attr-defined]


def test_every_arm_is_trained_once_and_methods_have_three_rates() -> None:
    arms = [arm for tuned in claims.every_arm() for arm in claims.rate_arms(tuned)]
    assert len({arm.label for arm in arms}) == len(arms) == 3 * len(claims.every_arm())
    assert {arm.recipe.pairs for arm in arms} == {claims.TUNING_PAIRS}
    assert all(tuned in claims.every_arm() for tuned in claims.NOISY)


def planted(*errors: tuple[str, float]) -> Table:
    rows = [
        Trial(label, 0, "", (Milestone(1.0, 1, 1.0, {"held-out": {"fpr95.hard_8_8_0": error}}),))
        for label, error in errors
    ]
    return make_table(rows, {})


def test_the_best_rate_and_then_the_best_margin_are_taken() -> None:
    rates = [arm.label for arm in claims.rate_arms(claims.HYNET_D)]
    table = planted((rates[0], 0.3), (rates[1], 0.1), (rates[2], 0.2))
    margins = [arm.label for arm in claims.margin_arms(claims.HYNET_D, table)]
    assert margins == [f"hynet_d loss.Triplet.margin={margin} optimizer.lr=0.003" for margin in ("1", "1.4")]
    worse = planted((rates[1], 0.1), (margins[0], 0.2), (margins[1], 0.3))
    assert claims.choose(claims.HYNET_D, worse).label == rates[1]
    better = planted((rates[1], 0.1), (margins[0], 0.2), (margins[1], 0.05))
    chosen = claims.choose(claims.HYNET_D, better)
    assert (chosen.label, chosen.recipe.pairs) == (margins[1], claims.PAIRS)
    assert claims.noisy_arm(chosen).recipe == replace(
        chosen.recipe, augment=replace(chosen.recipe.augment, detector_noise=1.0)
    )


def test_the_table_of_claims_has_a_row_per_control_with_gains_and_a_verdict() -> None:
    rows = []
    for tuned in claims.every_arm():
        for seed in range(3):
            error = 0.02 + 0.001 * seed if tuned == claims.HYNET else 0.05 + 0.002 * seed
            scores = {"castle-test": {"fpr95.hard_6_6_0": error}, "nd-test": {"fpr95.hard_8_8_0": error}}
            rows.append(Trial(claims.choose(tuned, None).label, seed, "", (Milestone(1.0, 1, 1.0, scores),)))
    labels = {tuned: claims.choose(tuned, None).label for tuned in claims.every_arm()}
    lines = claims.markdown(
        list(claims.compare_claims(make_table(rows, {}), labels, ["castle-test", "nd-test"]))
    ).splitlines()
    assert len(lines) == 2 + len(PAIRS)
    assert lines[0].count("|") == 7 and "gain, castle-test hard FPR95 %" in lines[0]
    assert next(line for line in lines if "`hynet_no_norm" in line).endswith(
        "| 3.10 (2.85 to 3.35) | 3.10 (2.85 to 3.35) | seen |"
    )
    assert next(line for line in lines if "| `scale_aware_sub" in line).endswith("not told apart |")
