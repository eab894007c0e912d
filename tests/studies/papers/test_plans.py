"""The catalogue: every table and figure has a plan, whose printed values are those of published.csv."""

from dataclasses import replace
from pathlib import Path

import pytest

from keypatch.errors import KeypatchError
from keypatch.recipes import PUBLISHED, RECIPES, as_published
from keypatch.reports.published import published_figures
from keypatch.studies.papers.catalogue import PLANS, find_plan
from keypatch.studies.papers.functions import FUNCTIONS
from keypatch.studies.papers.ours import printed_value
from keypatch.studies.papers.plan import Plan, Row, slug

NAMES = (
    *(f"adasample-{each}" for each in ("table-1", "table-2", "table-3", "fig-1", "fig-2a", "fig-2b", "fig-4")),
    *(f"hynet-{each}" for each in ("table-1", "table-2", "table-3", "fig-1", "fig-2", "fig-4")),
    *(f"hynet-fig-5{each}" for each in "abc"),
    *(f"gor-{each}" for each in ("table-1", "fig-2", "fig-4", "fig-5", "fig-6a", "fig-6b", "fig-7")),
    *(f"sdgmnet-table-{each}" for each in range(1, 6)),
    *(f"sdgmnet-fig-{each}" for each in ("2", "4", "5", "6a", "6b", "6c", "6d")),
    *(f"scale-aware-{each}" for each in ("fig-4", "fig-8", "delta", "gamma")),
)
EACH = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def test_every_table_and_figure_has_a_plan() -> None:
    assert tuple(PLANS) == NAMES


@EACH
def test_a_plan_can_be_made(plan: Plan) -> None:
    assert (plan.form == "function") == (not plan.rows)
    assert plan.form != "function" or plan.name in FUNCTIONS
    assert len({row.label for row in plan.rows}) == len(plan.rows)
    for row in plan.rows:
        assert (row.recipe is not None) + bool(row.describer) + bool(row.why) == 1, row.label


@EACH
def test_printed_values_are_those_of_the_table_that_is_named(plan: Plan) -> None:
    for row in plan.rows:
        assert bool(row.figures) == bool(row.printed), f"{row.label}: nothing is printed at {row.printed!r}"
    for where in (plan.lines or {}).values():
        assert Row("", printed=where).figures


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("adasample-table-2", {"AdaSample, Table 2"}),
        ("adasample-table-3", {"AdaSample, Table 3"}),
        ("hynet-table-2", {"HyNet, Table 2"}),
        ("hynet-table-3", {"HyNet, Table 3"}),
        ("sdgmnet-table-2", {"SDGMNet, Table II"}),
        ("sdgmnet-table-3", {"SDGMNet, Table III"}),
        ("sdgmnet-table-4", {"SDGMNet, Table IV"}),
        ("sdgmnet-table-5", {"SDGMNet, Table V"}),
    ],
)
def test_a_table_shows_all_that_its_paper_prints(name: str, sources: set[str]) -> None:
    shown = [each for row in PLANS[name].rows for each in row.figures]
    assert {each.source for each in shown} == sources
    assert len(shown) == sum(each.source in sources for each in published_figures())


@pytest.mark.parametrize("paper", ["AdaSample", "HyNet", "GOR", "SDGMNet"])
def test_the_tables_of_phototour_have_every_row_of_their_paper(paper: str) -> None:
    plan = PLANS[f"{paper.lower()}-table-1"]
    printed = {each.method for each in published_figures() if each.source == plan.source}
    shown = {each.method for row in plan.rows for each in row.figures if each.source == plan.source}
    assert shown == printed


@EACH
def test_what_a_plan_varies_is_still_varied_as_published(plan: Plan) -> None:
    """The papers' own choices must not overwrite the fields of a row, nor make two rows one."""
    forms = {}
    for row in plan.trained:
        recipe = row.recipe
        assert recipe is not None
        forms[row.label] = as_published(recipe) if recipe.name in PUBLISHED else recipe
        base = RECIPES[recipe.name]
        if base != recipe and recipe.name in PUBLISHED:
            assert replace(forms[row.label], seed=1) != replace(as_published(base), seed=1), row.label
    twins = {("SE 1024", "HNM 1024"), ("alpha=0.9", "m=0.6")}  # the same run in both sweeps
    labels = list(forms)
    for first in labels:
        for second in labels[labels.index(first) + 1 :]:
            assert (forms[first] != forms[second]) or (first, second) in twins, (first, second)


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(KeypatchError, match=r'"hynet-tabel-3"\. Did you mean "hynet-table-3"'):
        find_plan("hynet-tabel-3")
    assert find_plan("HyNet-Table-3").place == "Table 3"


def test_labels_become_file_names() -> None:
    assert slug("AdaSample+*") == "adasample-plus-star"
    assert slug("&AF+PA") == "and-af-plus-pa"


@pytest.mark.parametrize(
    ("page", "paper"),
    [
        ("adasample", "AdaSample"),
        ("hynet", "HyNet"),
        ("gor", "GOR"),
        ("sdgmnet", "SDGMNet"),
        ("scale-aware", "scale-aware"),
    ],
)
def test_the_page_of_a_paper_has_the_command_of_each_table_and_figure(page: str, paper: str) -> None:
    text = (Path(__file__).parents[3] / "docs" / "methods" / f"{page}.md").read_text(encoding="utf-8")
    plans = [plan for plan in PLANS.values() if plan.paper == paper]
    rows = [line for line in text.splitlines() if "`keypatch study paper " in line]
    assert len(rows) == len(plans)
    for plan, row in zip(plans, rows, strict=True):
        assert f"`keypatch study paper {plan.name}" in row
        assert plan.place in row
        assert all(row_.label in row for row_ in plan.rows if row_.why)


def test_the_lines_of_a_single_split_are_of_that_split() -> None:
    """GOR's figure 6 is trained on Notre Dame and tested on Liberty: 5.47, where the six splits have a mean of 4.69."""
    plan = PLANS["gor-fig-6a"]
    (line,) = (plan.lines or {}).values()
    score = "fpr95.m50_100000_100000_0"
    assert printed_value(Row("", printed=line), score, plan.split) == 5.47
    assert printed_value(Row("", printed=line), score) == 4.69


def test_a_batch_for_all_rows_leaves_a_plan_alone_that_varies_batches() -> None:
    assert [plan.name for plan in PLANS.values() if plan.varies_batch] == ["sdgmnet-table-5"]
