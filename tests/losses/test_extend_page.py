"""docs/extend.md runs as it stands, top to bottom."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keypatch.benchmarks.table import find_benchmark
from keypatch.errors import KeypatchError
from keypatch.losses import MEASURES, MINING, TERMS
from keypatch.parts import TABLES
from keypatch.patches import PatchSet
from keypatch.recipes import find_recipe
from keypatch.training.recipe_files import recipe_from_toml, recipe_to_toml
from keypatch.zoo import load

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What the page defines, and registers as long as its tests run."""
    torch.manual_seed(0)
    defined: dict[str, Any] = {"__name__": "extend_page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/extend.md", "exec"), defined)
    yield defined
    for kind, name in (("loss", "MyTerm"), ("recipe", "mine"), ("benchmark", "dimming")):
        del TABLES[kind][name]


def test_the_recipes_hold_the_new_term(names: dict[str, Any]) -> None:
    assert [type(term).__name__ for term in names["HYNET_PULLED"].loss] == [
        "HybridTriplet",
        "NormDifference",
        "PullPositives",
    ]
    assert names["angular"].loss[0].measure == names["Angle"]()


def test_the_examples_compute(names: dict[str, Any]) -> None:
    assert names["loss"].isfinite()
    assert set(names["total"].parts) == {"CentredTriplet"} and set(names["states"]["CentredTriplet"]) == {"mean"}
    assert names["values"].shape == (8,)


def test_the_page_names_everything_there_is() -> None:
    assert [name for table in (MEASURES, MINING, TERMS) for name in table if f"`{name}`" not in PAGE] == []
    assert [kind for kind in TABLES if f'`"{kind}"`' not in PAGE] == []


def test_the_parts_of_the_page_are_known_by_their_names(names: dict[str, Any]) -> None:
    assert recipe_from_toml(recipe_to_toml(find_recipe("mine"))) == names["MINE"]
    assert find_benchmark("dimming").line == "patches in poor light: rank-1"
    assert names["criterion"].state_dict()


def test_the_detector_finds_corners_as_a_detector_should(names: dict[str, Any]) -> None:
    image = np.zeros((80, 100), np.uint8)
    image[30:50, 40:70] = 200
    keypoints = names["Corners"]()(image)
    assert {(40, 30), (69, 30), (40, 49), (69, 49)} == {(round(x), round(y)) for x, y in keypoints.xy.tolist()}
    assert len(names["Corners"]()(np.zeros((5, 5), np.uint8))) == 0
    assert names["Corners"]()(np.random.default_rng(0).integers(0, 256, (5, 5), dtype=np.uint8)).response is not None
    with pytest.raises(KeypatchError, match=r"sigma is 0\.0; it must be above 0"):
        names["Corners"](sigma=0.0)
    with pytest.raises(KeypatchError, match="The corner detector needs a grey image"):
        names["Corners"]()(np.zeros((90, 90, 3), np.uint8))


def test_the_benchmark_scores_a_describer(names: dict[str, Any]) -> None:
    patches = np.random.default_rng(0).integers(0, 255, (60, 64, 64), dtype=np.uint8)
    result = names["evaluate_dimming"](load("rootsift"), PatchSet("noise", patches, np.arange(60)), names["Dimming"]())
    assert result.scores["rank1"] > 0.9 and result.interval("rank1") is not None
