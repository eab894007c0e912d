"""`keypatch list`."""

from collections.abc import Callable

import pytest

from keypatch.benchmarks.table import BENCHMARKS
from keypatch.commands.list import KINDS
from keypatch.detection import DETECTOR_TYPES
from keypatch.recipes import PAPERS, RECIPES
from keypatch.settings import list_settings
from keypatch.training.recipe_files import recipe_from_toml


def test_all_kinds_are_listed(keypatch: Callable) -> None:
    shown = keypatch("list")
    assert shown.code == 0
    assert all(kind in shown.out for kind in KINDS)
    assert all(name in shown.out for name in ("rootsift", "hynet", "L2Net", "HybridTriplet", "hpatches"))


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_is_listed_alone(keypatch: Callable, kind: str) -> None:
    shown = keypatch("list", kind)
    assert shown.out.splitlines()[0].strip() == kind
    assert not any(other in shown.out.splitlines() for other in KINDS if other != kind)


def test_recipes_stand_under_their_papers_one_line_each(keypatch: Callable) -> None:
    lines = [line.rstrip() for line in keypatch("list", "recipes").out.splitlines() if line.strip()]
    expected = ["recipes"]
    for paper, recipes in PAPERS.items():
        expected += [paper, *(recipe.name for recipe, _ in recipes)]
    assert [line if line in PAPERS else line.split()[0] for line in lines] == expected
    assert all(line in expected or line.startswith("  ") for line in lines if line not in PAPERS)
    columns = {line.index(about) for line in lines for paper in PAPERS.values() for _, about in paper if about in line}
    assert len(columns) == 1


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_printed_as_a_recipe_file(keypatch: Callable, name: str) -> None:
    shown = keypatch("list", name)
    assert shown.code == 0
    assert recipe_from_toml(shown.out) == RECIPES[name]


def test_every_benchmark_has_one_line(keypatch: Callable) -> None:
    lines = keypatch("list", "benchmarks").out.splitlines()
    assert [line.split(maxsplit=1)[1].strip() for line in lines[1:] if line] == [b.line for b in BENCHMARKS.values()]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_is_printed_with_its_settings(keypatch: Callable, name: str) -> None:
    shown = keypatch("list", name)
    assert shown.code == 0
    assert shown.out.startswith(f"{name}: {BENCHMARKS[name].line}")
    rows = {line.split()[0]: line for line in shown.out.splitlines() if line}
    for setting in list_settings(BENCHMARKS[name].settings(), DETECTOR_TYPES):
        assert setting.default in rows[setting.path] and setting.about in rows[setting.path]


def test_a_narrow_terminal_wraps_the_lines(keypatch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in ([], ["stereo"]):
        shown = keypatch("list", *words).out
        assert max(map(len, shown.splitlines())) <= 60 and "\N{HORIZONTAL ELLIPSIS}" not in shown


@pytest.mark.parametrize("name", ["hynet-notredame", "rootsift"])
def test_a_descriptor_is_left_to_inspect(keypatch: Callable, name: str) -> None:
    shown = keypatch("list", name)
    assert shown.code == 2
    assert f"`keypatch inspect {name}`" in shown.err
    assert keypatch("inspect", name).code == 0


@pytest.mark.parametrize(
    ("wrong", "near"), [("recipies", "recipes"), ("hinet", "hynet"), ("losess", "losses"), ("stereos", "stereo")]
)
def test_another_name_is_told_the_nearest_and_the_lists(keypatch: Callable, wrong: str, near: str) -> None:
    shown = keypatch("list", wrong)
    assert shown.code == 2
    assert f'"{wrong}"' in shown.err
    assert f'Did you mean "{near}"?' in shown.err
    assert all(kind in shown.err for kind in KINDS)
