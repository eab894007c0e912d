"""`examples/first-steps.ipynb`: a valid notebook with its outputs kept, which runs as it stands."""

import json
import re
from pathlib import Path
from typing import Any

import notebooks
import pytest

PATH = Path(__file__).parent.parent / "examples" / "first-steps.ipynb"


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def test_it_is_a_small_notebook_of_the_current_format(notebook: dict[str, Any]) -> None:
    assert PATH.stat().st_size < 1_000_000
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
    counts = [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_it_shows_pictures_and_tables(notebook: dict[str, Any]) -> None:
    shown = [
        kind for cell in notebook["cells"] for output in cell.get("outputs", []) for kind in output.get("data", {})
    ]
    assert shown.count("image/png") == 2 and shown.count("text/html") == 2


def test_it_runs_and_shows_what_is_kept_but_for_the_numbers(notebook: dict[str, Any]) -> None:
    again = notebooks.run_cells(notebook["cells"])
    assert [_said(cell) for cell in again] == [_said(cell) for cell in notebook["cells"]]


def _said(cell: dict[str, Any]) -> list[Any]:
    """What a cell shows: kinds and words. Numbers differ in their last digits between processors."""
    said = list[Any]()
    for output in cell.get("outputs", []):
        words = "".join(output["text"] if "text" in output else output["data"]["text/plain"])
        said.append((sorted(output.get("data", ())), re.sub(r"[-+ \[\](),.\de]*\d[-+ \[\](),.\de]*", "#", words)))
    return said
