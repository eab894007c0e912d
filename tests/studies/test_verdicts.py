"""Verdicts on planted numbers: the interval over seeds, and the rule."""

import math
import subprocess
import sys

import pytest

from keypatch.errors import KeypatchError
from keypatch.studies.rows import Milestone, Trial
from keypatch.studies.table import Table, make_table
from keypatch.studies.verdicts import compare_lines, decide, t_interval

CASTLE, TOWER = "fpr95.hard_60_60_0", "fpr95.hard_80_80_0"


def row(label: str, seed: int, castle: float, tower: float) -> Trial:
    scores = {"castle": {CASTLE: castle, "spread.dm2": 1.0}, "tower": {TOWER: tower, "rank1": 1 - tower}}
    return Trial(label, seed, "", (Milestone(1.0, 100, 1.0, scores),))


def study(*rows: tuple[str, int, float, float]) -> Table:
    return make_table([row(*each) for each in rows], {})


CONTROL = [("plain", 0, 0.10, 0.20), ("plain", 1, 0.12, 0.22), ("plain", 2, 0.11, 0.24)]


def beside_control(castle: list[float], tower: list[float]) -> Table:
    """An arm whose errors differ by these from the control's."""
    rows = [("claimed", s, c + castle[s], t + tower[s]) for (_, s, c, t) in CONTROL]
    return study(*CONTROL, *rows)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.0, 2.0, 3.0], 2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)),  # t of 2 degrees of freedom
        ([0.0, 2.0], 1 - 12.706205, 1 + 12.706205),
        ([3.0, 3.0, 3.0], 3.0, 3.0),
        ([1.0], math.nan, math.nan),
        ([], math.nan, math.nan),
    ],
)
def test_the_interval_is_students(values: list[float], low: float, high: float) -> None:
    assert t_interval(values) == pytest.approx((low, high), nan_ok=True)


@pytest.mark.parametrize(
    ("castle", "tower", "verdict"),
    [
        ([-0.02, -0.021, -0.019], [-0.03, -0.031, -0.029], "seen"),
        ([0.02, 0.021, 0.019], [0.03, 0.031, 0.029], "contradicted at this budget"),
        ([-0.02, -0.021, -0.019], [0.03, 0.031, 0.029], "not told apart"),  # one way here, the other there
        ([-0.02, -0.021, -0.019], [-0.03, -0.001, 0.01], "not told apart"),
        ([-0.02, 0.021, -0.019], [-0.03, 0.001, 0.01], "not told apart"),
        ([0.0, 0.0, 0.0], [-0.03, -0.031, -0.029], "not told apart"),  # no difference at all
    ],
)
def test_the_rule_wants_both_intervals_on_one_side_of_zero(
    castle: list[float], tower: list[float], verdict: str
) -> None:
    assert compare_lines(beside_control(castle, tower), "claimed", "plain").verdict == verdict


def test_a_gain_is_positive_where_the_method_is_better_whichever_way_the_score_goes() -> None:
    table = beside_control([-0.02, -0.02, -0.02], [-0.03, -0.03, -0.03])
    lower, higher = compare_lines(table, "claimed", "plain", ["castle hard FPR95 %", "tower rank1"]).differences
    assert lower.gains == pytest.approx([0.02] * 3) and higher.gains == pytest.approx([0.03] * 3)
    assert (lower.mean, lower.seeds) == (pytest.approx(0.02), (0, 1, 2))


def test_seeds_are_paired_by_number_and_those_of_one_arm_alone_do_not_count() -> None:
    table = study(*CONTROL, ("claimed", 2, 0.10, 0.20), ("claimed", 1, 0.10, 0.20), ("claimed", 7, 0.9, 0.9))
    [castle, _] = compare_lines(table, "claimed", "plain").differences
    assert castle.seeds == (1, 2)
    assert castle.gains == pytest.approx((0.02, 0.01))


def test_one_seed_gives_no_verdict() -> None:
    table = study(CONTROL[0], ("claimed", 0, 0.01, 0.01))
    assert compare_lines(table, "claimed", "plain").verdict == "no verdict: fewer than two seeds"
    assert decide([]) == "no verdict: fewer than two seeds"


@pytest.mark.parametrize(
    ("method", "control", "columns", "part"),
    [
        ("claimd", "plain", [], 'no arm "claimd".*Did you mean "claimed"'),
        ("claimed", "claimed", [], "compared with itself"),
        ("claimed", "alone", [], "share no seed"),
        (
            "claimed",
            "plain",
            ["castle hard FPR96 %"],
            'no column "castle hard FPR96 %".*Did you mean "castle hard FPR95',
        ),
        ("claimed", "plain", ["castle d*M2"], "cannot decide a comparison"),
        ("claimed", "waiting", [], '"waiting" is not finished'),
        ("claimed", "broken", [], '"broken" failed with seed 3: The loss is not finite.'),
    ],
)
def test_what_cannot_be_compared_is_refused(method: str, control: str, columns: list[str], part: str) -> None:
    rows = [row(*each) for each in (*CONTROL, ("claimed", 0, 0.1, 0.1), ("alone", 5, 0.1, 0.1))]
    unfinished = [Trial("waiting", 0, ""), Trial("broken", 3, "", failed="The loss is not finite.")]
    table = make_table([*rows, *unfinished], {})
    with pytest.raises(KeypatchError, match=part):
        compare_lines(table, method, control, columns)


def lacking_tower(label: str, seed: int) -> Trial:
    return Trial(label, seed, "", (Milestone(1.0, 1, 1.0, {"castle": {CASTLE: 0.1}}),))


def test_a_score_that_one_arm_lacks_is_not_compared() -> None:
    table = make_table([*(row(*each) for each in CONTROL), lacking_tower("claimed", 0)], {})
    with pytest.raises(KeypatchError, match='"claimed" has no tower hard FPR95 % with seed 0'):
        compare_lines(table, "claimed", "plain", ["tower hard FPR95 %"])


def test_by_default_no_test_set_of_either_arm_is_left_out() -> None:
    rows = [row(*each) for each in CONTROL]
    claimed = [row("claimed", 0, 0.1, 0.1), row("claimed", 1, 0.1, 0.1)]
    [castle, tower] = compare_lines(
        make_table([*rows, *claimed, lacking_tower("unrelated", 0)], {}), "claimed", "plain"
    ).differences
    assert (castle.column.test, tower.column.test) == ("castle", "tower")
    for pair in (("unrelated", "plain"), ("plain", "unrelated")):
        with pytest.raises(KeypatchError, match='"unrelated" has no tower hard FPR95 % with seed 0'):
            compare_lines(make_table([*rows, lacking_tower("unrelated", 0)], {}), *pair)


def test_by_default_a_test_set_of_other_arms_alone_is_not_asked_for() -> None:
    rows = [row(*each) for each in CONTROL]
    both = [lacking_tower(label, seed) for label in ("one", "other") for seed in (0, 1)]
    [difference] = compare_lines(make_table([*rows, *both], {}), "one", "other").differences
    assert difference.column.test == "castle"


def test_without_lists_of_pairs_strips_decide() -> None:
    rows = [
        Trial(label, 0, "", (Milestone(1.0, 1, 1.0, {"oxford": {"rank1.h": share}}),))
        for label, share in (("one", 0.7), ("other", 0.6))
    ]
    [difference] = compare_lines(make_table([*rows, *(row(*each) for each in CONTROL)], {}), "one", "other").differences
    assert difference.gains == pytest.approx([0.1])


def test_verdicts_and_figures_need_no_page() -> None:
    code = (
        "import sys, keypatch.studies.figure, keypatch.studies.verdicts; print('keypatch.studies.page' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
