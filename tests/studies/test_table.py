"""The table of a study from rows made up by hand: order, ranks, equal minutes, the page and the figure."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from keypatch.errors import MissingExtra
from keypatch.recipes import RECIPES
from keypatch.reports.published import published_recipes
from keypatch.studies.figure import (
    BEST,
    COLOURS,
    STYLES,
    curves_of,
    draw_curves,
    draw_differences,
    draw_sweep,
    drawn_lines,
    find_axis,
)
from keypatch.studies.page import (
    WITHOUT_FIGURE,
    cell,
    main_columns,
    write_methods_page,
    write_study_page,
)
from keypatch.studies.rows import Milestone, Trial
from keypatch.studies.table import Column, Table, heading, lines_in_order, make_table, mean_over_seeds, ranks
from keypatch.studies.verdicts import compare_lines
from keypatch.training.recipe_files import recipe_to_toml

PUBLISHED = published_recipes()
CONDITIONS = {"data": "castle", "pairs": 4000, "batch": 32, "settings": ["optimizer.lr=1.0"]}
HARD = Column("castle", "fpr95.hard_60_60_0")


def row(recipe: str, seed: int, error: float, seconds: float) -> Trial:
    """Errors fall from 4 to 1 times `error` over the run."""
    milestones = tuple(
        Milestone(
            share,
            int(4000 * share),
            seconds * share,
            {
                "castle": {
                    "fpr95.m50_60_60_0": 0.0,
                    "fpr95.hard_60_60_0": error * times,
                    "ap.hard_60_60_0": 1 - error,
                    "rank1": 0.9,
                    "spread.m1": 0.01,
                    "spread.dm2": 1.5,
                },
                "oxford": {"rank1.e": 0.8, "rank1.h": 0.7, "rank1.t": 0.6, "rank1.e.v": 0.75, "rank1.e.v_boat": 0.5},
            },
        )
        for share, times in ((0.25, 4), (0.5, 3), (0.75, 2), (1.0, 1))
    )
    run = {"device": "cpu", "precision": "float32", "threads": 1}
    machine, text = {"machine": "Linux x86_64, a processor"}, recipe_to_toml(RECIPES[recipe])
    return Trial(recipe, seed, "ff", milestones, run=run, provenance=machine, recipe_toml=text)


@pytest.fixture
def table() -> Table:
    """HyNet is better and five times slower than HardNet; AdaSample lies between; one recipe failed."""
    rows = [
        row("hardnet", 0, 0.10, 60.0),
        row("hardnet", 1, 0.14, 80.0),
        row("hynet", 0, 0.04, 300.0),
        row("hynet", 1, 0.06, 300.0),
        row("adasample", 0, 0.08, 100.0),
        row("scale_aware", 0, 0.20, 100.0),
        Trial("sosnet", 0, "ff", failed="The loss | is not finite."),
        Trial("sosnet", 1, "ff"),
    ]
    return make_table(rows, CONDITIONS)


def test_recipes_are_ordered_by_the_mean_over_seeds_and_rows_without_an_end_stand_apart(table: Table) -> None:
    assert [line.label for line in table.lines] == ["hynet", "adasample", "hardnet", "scale_aware"]
    assert [mean_over_seeds(line.scores(HARD)) for line in table.lines] == pytest.approx([0.05, 0.08, 0.12, 0.2])
    assert [unfinished.name for unfinished in table.unfinished] == ["sosnet-0", "sosnet-1"]


def test_the_hard_list_and_the_hard_strips_are_what_is_compared(table: Table) -> None:
    assert table.headlines == (HARD, Column("oxford", "rank1.h"))


@pytest.mark.parametrize(
    ("scores", "headline"),
    [
        (["fpr95.m50_1000_1000_0", "fpr95.m50_100000_100000_0"], "fpr95.m50_100000_100000_0"),
        (["fpr95.b", "fpr95.a", "rank1"], "fpr95.b"),
        (["rank1.e", "rank1.h", "rank1.t"], "rank1.h"),
    ],
)
def test_without_a_hard_list_the_papers_list_or_the_first_is_compared(scores: list[str], headline: str) -> None:
    made = make_table([Trial("hynet", 0, "", (Milestone(1.0, 1, 1.0, {"x": dict.fromkeys(scores, 0.5)}),))], CONDITIONS)
    assert made.headlines == (Column("x", headline),)


def test_strips_alone_order_by_rank_1() -> None:
    rows = [
        Trial(name, 0, "", (Milestone(1.0, 1, 1.0, {"oxford": {"rank1.h": share}}),))
        for name, share in (("a", 0.2), ("b", 0.9), ("c", math.nan))
    ]
    assert [line.label for line in make_table(rows, CONDITIONS).lines] == ["b", "a", "c"]


def test_scores_of_one_sequence_are_no_columns() -> None:
    scores = dict.fromkeys(("rank1.e", "rank1.e.v", "rank1.e.v_boat", "rank1.e.boat", "rank1.e.a.b"), 0.5)
    made = make_table([Trial("hynet", 0, "", (Milestone(1.0, 1, 1.0, {"oxford": scores}),))], CONDITIONS)
    assert [column.score for column in made.columns] == ["rank1.e", "rank1.e.v"]


def test_a_fault_at_a_new_test_set_leaves_the_older_scores_in_the_table(table: Table, tmp_path: Path) -> None:
    rows = [each for line in table.lines for each in line.rows]
    faulty = make_table([replace(each, failed="No castle.") for each in rows], CONDITIONS)
    assert faulty.lines[0].scores(HARD) == [0.04, 0.06]
    write_methods_page(tmp_path / "table.md", faulty)
    page = (tmp_path / "table.md").read_text()
    assert "| hynet-0 | failed: No castle. Earlier scores stay in the table. |" in page


def test_a_test_set_that_only_some_were_scored_on_moves_nobody(table: Table) -> None:
    rows = [each for line in table.lines for each in line.rows]
    new = [
        replace(
            each, milestones=tuple(replace(m, scores={**m.scores, "new": {"fpr95.x": 0.5}}) for m in each.milestones)
        )
        for each in rows
        if each.label == "hynet"
    ]
    mixed = make_table([*new, *(each for each in rows if each.label != "hynet")], CONDITIONS)
    assert Column("new", "fpr95.x") in mixed.headlines
    assert mixed.order == (HARD,)
    assert [line.label for line in mixed.lines] == [line.label for line in table.lines]
    assert [mixed.error(line) for line in mixed.lines] == [table.error(line) for line in table.lines]


def test_at_equal_minutes_the_shortest_run_is_at_its_end_and_others_are_on_their_way(table: Table) -> None:
    assert table.equal_seconds == 60.0
    after = {line.label: line.scores_after(60.0, HARD) for line in table.lines}
    assert after["hardnet"] == pytest.approx([0.10, 0.14 * 2])  # the second seed is at 75 %
    assert after["adasample"] == pytest.approx([0.08 * 2.6])  # at 60 %: between three times and twice its end
    assert after["hynet"] == pytest.approx([math.nan, math.nan], nan_ok=True)  # at 20 %, before the first milestone


def test_ranks_are_among_the_recipes_with_a_figure(table: Table) -> None:
    assert ranks(table) == {"hynet": (1, 1), "adasample": (2, 2), "hardnet": (3, 3)}


def test_a_recipe_without_a_score_has_no_rank_and_moves_nobody() -> None:
    rows = [row("hynet", 0, math.nan, 1.0), row("hardnet", 0, 0.1, 1.0), row("sosnet", 0, 0.2, 1.0)]
    assert ranks(make_table(rows, CONDITIONS)) == {"hardnet": (2, 1), "sosnet": (1, 2)}


def test_the_published_figures_are_the_means_that_the_papers_print_or_imply() -> None:
    without_mean = {  # rows of SDGMNet's table
        "sdgmnet": [0.88, 1.41, 0.34, 0.46, 0.82, 0.69],
        "cdf": [1.21, 2.01, 0.39, 0.68, 1.51, 1.29],
        "sdgm_hnfrn": [1.26, 1.76, 0.41, 0.58, 1.16, 1.05],
    }
    for recipe, six in without_mean.items():
        assert PUBLISHED[recipe].mean == round(sum(six) / 6, 2)
    order = sorted(PUBLISHED, key=lambda recipe: PUBLISHED[recipe].mean)
    assert order == list(PUBLISHED)
    assert {*PUBLISHED, *WITHOUT_FIGURE} <= set(RECIPES)
    assert all("Table" in published.source for published in PUBLISHED.values())


def test_the_saved_table_has_every_score_by_seed(table: Table, tmp_path: Path) -> None:
    table.save(tmp_path / "table.json")
    value = json.loads((tmp_path / "table.json").read_text())
    first = value["lines"][0]
    assert first["dim"] == 128
    assert (first["recipe"], first["seeds"], first["paper_rank"], first["our_rank"]) == ("hynet", [0, 1], 1, 1)
    hard = first["scores"]["castle"]["fpr95.hard_60_60_0"]
    assert hard["seeds"] == [0.04, 0.06]
    assert hard["mean"] == pytest.approx(0.05)
    assert hard["mean_at_equal_seconds"] is None
    assert value["equal_seconds"] == 60.0
    assert value["unfinished"][0] == {"label": "sosnet", "seed": 0, "failed": "The loss | is not finite."}


def test_the_page_shows_order_minutes_places_and_failures(table: Table, tmp_path: Path) -> None:
    write_methods_page(tmp_path / "table.md", table)
    page = (tmp_path / "table.md").read_text()
    assert "4,000 pairs in batches of 32, with optimizer.lr=1.0" in page
    assert "Best first by castle hard FPR95 %." in page
    assert "| hynet | 128 | 5.00 (4.00, 6.00) | 90.00 (90.00, 90.00) |" in page
    assert "| hynet | - (-, -) |" in page  # at equal minutes
    assert f"| adasample | 1.16 | 2 | 2 | {PUBLISHED['adasample'].citation} |" in page
    assert "| scale_aware | - | - | - |" in page
    assert "| sosnet-0 | failed: The loss \\| is not finite. |" in page
    assert "| sosnet-1 | not finished" in page
    assert "do not compare" not in page
    assert "do not rank" not in page


def test_the_page_says_what_the_embedded_test_set_is_not(tmp_path: Path) -> None:
    scores = {"embedded-test": {"fpr95.hard": 0.1}}
    embedded = replace(row("hynet", 0, 0.1, 1.0), milestones=(Milestone(1.0, 1, 1.0, scores),))
    write_methods_page(tmp_path / "table.md", make_table([embedded], CONDITIONS))
    assert "they do not rank methods" in (tmp_path / "table.md").read_text()


def test_what_several_lists_are_ordered_by_is_their_mean(tmp_path: Path) -> None:
    scores = {"castle": {"fpr95.hard": 0.1}, "tower": {"fpr95.hard": 0.3}, "oxford": {"rank1.h": 0.5}}
    both = replace(row("hynet", 0, 0.1, 1.0), milestones=(Milestone(1.0, 1, 1.0, scores),))
    table = make_table([both], CONDITIONS)
    assert table.error(table.lines[0]) == pytest.approx(0.2)
    write_methods_page(tmp_path / "table.md", table)
    sentence = "Best first by the mean of castle hard FPR95 % and tower hard FPR95 %."
    assert sentence in (tmp_path / "table.md").read_text()


def test_every_table_of_the_page_is_square(table: Table, tmp_path: Path) -> None:
    write_methods_page(tmp_path / "table.md", table)
    for section in (tmp_path / "table.md").read_text().split("\n## ")[1:]:
        lines = [line.replace("\\|", "") for line in section.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1, section


def test_rows_of_two_machines_are_said_not_to_compare_in_minutes(table: Table, tmp_path: Path) -> None:
    other = replace(row("sosnet", 0, 0.1, 10.0), provenance={"machine": "another"})
    write_methods_page(tmp_path / "table.md", make_table([other, *table.lines[0].rows], CONDITIONS))
    assert "minutes do not compare" in (tmp_path / "table.md").read_text()


def test_a_page_without_any_result_is_still_a_page(tmp_path: Path) -> None:
    write_methods_page(tmp_path / "table.md", make_table([Trial("hynet", 0, "ff")], CONDITIONS))
    assert "| hynet-0 | not finished" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (HARD, "castle hard FPR95 %"),
        (Column("castle", "rank1"), "castle rank-1 %"),
        (Column("castle", "spread.dm2"), "castle d*M2"),
        (Column("oxford", "rank1.t"), "oxford rank-1 tough %"),
    ],
)
def test_headings_read_as_people_say_them(column: Column, text: str) -> None:
    assert heading(column) == text


def test_a_cell_is_the_mean_and_the_seeds_and_a_moment_is_no_percentage() -> None:
    assert cell(HARD, [0.01, 0.02]) == "1.50 (1.00, 2.00)"
    assert cell(HARD, [0.01]) == "1.00"
    assert cell(HARD, [0.01, math.nan]) == "- (1.00, -)"
    assert cell(Column("castle", "spread.dm2"), [1.5]) == "1.50"
    assert cell(Column("castle", "spread.m1"), [0.0123]) == "0.012"


def test_what_is_shown_first_is_a_choice_of_the_columns(table: Table) -> None:
    assert [column.score for column in main_columns(table)] == [
        "fpr95.hard_60_60_0",
        "rank1",
        "spread.dm2",
        "rank1.e",
        "rank1.h",
        "rank1.t",
    ]


def test_the_figure_is_a_picture_with_a_row_of_panels_per_test_set(table: Table, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_curves(tmp_path / "curves.png", table)
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (1430, 990)  # 11 x 7.62 inches at 130 dots


def test_of_many_recipes_the_best_and_the_published_are_drawn_each_in_its_own_style() -> None:
    many = make_table([row(recipe, 0, k / 100, 60.0) for k, recipe in enumerate(RECIPES)], CONDITIONS)
    drawn = [line.label for line in drawn_lines(many)]
    assert drawn[:BEST] == list(RECIPES)[:BEST]
    assert set(drawn) == {*drawn[:BEST], *PUBLISHED}
    assert BEST + len(PUBLISHED) <= COLOURS * len(STYLES)
    few = make_table([row(recipe, 0, 0.1, 60.0) for recipe in ("npair", "lifted")], CONDITIONS)
    assert drawn_lines(few) == list(few.lines)


def test_without_matplotlib_the_extra_is_named(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"keypatch\[plot\]"):
        draw_curves(tmp_path / "curves.png", table)


def varied(recipe: str, error: float, seeds: int = 2, **values: str) -> list[Trial]:
    """Rows of an arm whose label names these values; "_" in a path stands for its dot."""
    paths = {path.replace("_", "."): value for path, value in values.items()}
    label = " ".join([recipe, *(f"{path}={value}" for path, value in paths.items())])
    return [replace(row(recipe, seed, error + 0.01 * seed, 60.0), label=label, varied=paths) for seed in range(seeds)]


def sweep_of(*arms: list[Trial]) -> Table:
    return make_table([each for arm in arms for each in arm], CONDITIONS)


TWO_PATHS = [
    varied("hynet", 0.1 * float(alpha) + float(lr), loss_alpha=alpha, optimizer_lr=lr)
    for alpha in ("10", "2")
    for lr in ("0.01", "0.001")
]


def test_a_sweep_is_drawn_over_its_first_numbers_one_curve_for_each_value_of_the_other() -> None:
    lines = sweep_of(*TWO_PATHS).lines
    assert find_axis(lines) == "loss.alpha"
    curves = curves_of(lines, "loss.alpha")
    assert set(curves) == {"hynet optimizer.lr=0.01", "hynet optimizer.lr=0.001"}
    assert [line.varied["loss.alpha"] for line in curves["hynet optimizer.lr=0.01"]] == ["2", "10"]


def test_a_recipe_and_the_same_as_published_are_two_curves() -> None:
    rows = [each for lr in ("0.01", "0.001") for each in varied("hynet", float(lr), optimizer_lr=lr)]
    renamed = [replace(each, label=each.label.replace("hynet", "hynet as published")) for each in rows]
    curves = curves_of(make_table([*rows, *renamed], CONDITIONS).lines, "optimizer.lr")
    assert {name: len(curve) for name, curve in curves.items()} == {"hynet": 2, "hynet as published": 2}


@pytest.mark.parametrize(
    ("arms", "axis"),
    [
        ([varied("hynet", 0.1, augment_flips=flips) for flips in ("none", "hynet")], None),  # words
        ([varied("hynet", 0.1, augment_flips="none", loss_alpha=alpha) for alpha in ("1", "2")], "loss.alpha"),
        ([varied("hynet", 0.1, optimizer_lr="0.1"), varied("hardnet", 0.1, optimizer_lr="1")], None),  # no curve
        ([varied("hynet", 0.1), varied("hardnet", 0.1)], None),
    ],
)
def test_words_and_lone_values_make_no_curve(arms: list[list[Trial]], axis: str | None) -> None:
    assert find_axis(sweep_of(*arms).lines) == axis


@pytest.mark.parametrize(
    ("arms", "size"),
    [
        ([*TWO_PATHS, varied("hardnet", 0.1)], (1430, 548)),  # two panels of curves, and a level line
        ([varied("hynet", 0.1, augment_flips=flips) for flips in ("none", "hynet")], (1560, 208)),
    ],
)
def test_the_figure_of_a_sweep_has_a_panel_per_test_set(
    arms: list[list[Trial]], size: tuple[int, int], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    draw_sweep(tmp_path / "figure.png", sweep_of(*arms))
    with Image.open(tmp_path / "figure.png") as picture:
        assert picture.size == size


def test_gains_over_controls_are_drawn_to_the_right_and_in_the_colours_of_the_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn = list[tuple[list[float], list[float], str]]()

    def plot(panel: object, xs: list[float], ys: list[float], stroke: str, color: str) -> None:
        drawn.append((xs, ys, color))

    monkeypatch.setattr(axes, "plot", plot)
    errors = {"hynet": 0.1, "hardnet": 0.2, "sosnet": 0.05}
    rows = [replace(row(name, seed, error, 60.0), seed=seed) for name, error in errors.items() for seed in (0, 1)]
    table = make_table([*rows, row("npair", 0, 0.1, 60.0)], CONDITIONS)
    pairs = [("hynet", "hardnet"), ("hynet", "sosnet"), ("hynet", "npair")]  # the last without an interval
    draw_differences(tmp_path / "claims.png", [compare_lines(table, *pair) for pair in pairs])
    better, worse, alone = (drawn[3 * place : 3 * place + 3] for place in range(3))  # interval, seeds, mean
    assert [xs for xs, _, _ in better] == [pytest.approx(xs) for xs in ([10, 10], [10, 10], [10])]
    assert [xs for xs, _, _ in worse] == [pytest.approx(xs) for xs in ([-5, -5], [-5, -5], [-5])]
    assert [xs for xs, _, _ in alone] == [pytest.approx(xs, nan_ok=True) for xs in ([math.nan] * 2, [0], [0])]
    for place, (three, colour) in enumerate(zip((better, worse, alone), ("C2", "C3", "0.5"), strict=True)):
        assert all(set(ys) == {place} and color == colour for _, ys, color in three)  # green, red, grey


def test_the_page_of_a_sweep_has_its_arms_in_the_order_of_their_values(tmp_path: Path) -> None:
    table = sweep_of(*TWO_PATHS)
    assert [line.varied["loss.alpha"] for line in lines_in_order(table)] == ["2", "2", "10", "10"]
    write_study_page(tmp_path / "table.md", table)
    page = (tmp_path / "table.md").read_text()
    assert "4 arms trained on castle, each for 44,953,600 pairs in batches of 512." in page
    assert "Recipes: with our detector noise (1). Seeds: 0, 1." in page
    assert page.index("| hynet loss.alpha=2 optimizer.lr=0.001 |") < page.index("| hynet loss.alpha=10")
    assert "published" not in page


def test_many_scores_of_a_test_set_stand_below_each_other(tmp_path: Path) -> None:
    scores = {f"matching.map.{name}": 0.5 for name in map(str, range(20))}
    many = replace(row("hynet", 0, 0.1, 1.0), milestones=(Milestone(1.0, 1, 1.0, {"oxford": scores}),))
    write_study_page(tmp_path / "table.md", make_table([many], CONDITIONS))
    assert "| score | hynet |" in (tmp_path / "table.md").read_text()
