"""docs/extend.md runs as it stands, top to bottom."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from keypatch.losses import MEASURES, MINING, TERMS

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page defines."""
    torch.manual_seed(0)
    defined: dict[str, Any] = {"__name__": "extend_page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/extend.md", "exec"), defined)
    return defined


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
    for table in (MEASURES, MINING, TERMS):
        assert all(f"`{name}`" in PAGE for name in table)
