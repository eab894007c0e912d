"""docs/conventions.md runs as it stands, top to bottom, and prints what it says."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text(encoding="utf-8")
PRINTED = re.compile(r"^print\((?P<what>.*)\)  # (?P<value>[^:\n]*).*$", re.MULTILINE)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page defines; every print of a value becomes a comparison with its comment."""
    pytest.importorskip("kornia")
    defined: dict[str, Any] = {"__name__": "conventions_page", "said": []}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        lines = PRINTED.sub(lambda line: f"said.append(([{line['what']}], {line['value']!r}))", block)
        exec(compile(lines, "docs/conventions.md", "exec"), defined)
    return defined


def test_the_page_prints_what_it_says(names: dict[str, Any]) -> None:
    assert len(names["said"]) == PAGE.count("\nprint(") >= 8
    for values, comment in names["said"]:
        flat = np.concatenate([np.ravel(value) for value in values])
        written = re.sub(r"\([^)]*\)", "", comment)
        np.testing.assert_allclose(flat, [float(number) for number in re.findall(r"-?\d+\.?\d*", written)], atol=1e-6)


def test_the_examples_compute(names: dict[str, Any]) -> None:
    assert names["patches"].shape == (len(names["found"]), 32, 32)
    np.testing.assert_array_equal(names["patches"][-len(names["portion"]) :], names["portion"])
    assert names["right"].xy.tolist() == [[100, 50]]
