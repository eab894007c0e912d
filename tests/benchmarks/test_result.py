"""Result files: there and back, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keypatch.benchmarks import Result
from keypatch.errors import DataError, KeypatchError
from keypatch.metrics import Curve
from keypatch.provenance import provenance

RESULT = Result(
    benchmark="ubc",
    descriptor="sift",
    settings={"data": "liberty", "rule": "rank"},
    scores={"fpr95.m50": 0.2984, "rank1": float("nan")},
    curves={"roc.m50": Curve(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.9, 1.0]))},
    provenance=provenance(data="12ab"),
)


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    RESULT.save(tmp_path / "result.json")
    again = Result.load(tmp_path / "result.json")
    assert again.to_json() == RESULT.to_json()
    assert np.isnan(again.scores["rank1"])
    assert again.provenance == RESULT.provenance
    np.testing.assert_array_equal(again.curves["roc.m50"].y, [0, 0.9, 1])
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_the_file_is_strict_json_with_format_and_number(tmp_path: Path) -> None:
    RESULT.save(tmp_path / "result.json")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    value = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert (value["format"], value["format_number"]) == ("keypatch-result", 1)
    assert value["scores"] == {"fpr95.m50": 0.2984, "rank1": None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not a result file"),
        ({"format_number": 2}, "reads up to 1. Upgrade"),
        ({"format_number": "1"}, "reads up to 1"),
        ({"scores": None}, "incomplete or damaged"),
        ({"curves": {"roc": {"x": [0]}}}, "incomplete or damaged"),
        ({"provenance": {"place": "here"}}, "incomplete or damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**RESULT.to_json(), **change}))
    with pytest.raises(DataError, match=words) as caught:
        Result.load(path)
    assert "result.json" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_files_that_are_no_results_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(DataError, match=r"result\.json is not a"):
        Result.load(tmp_path / "result.json")


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Result.load(tmp_path / "nothing.json")
    with pytest.raises(KeypatchError, match="cannot be written"):
        RESULT.save(tmp_path / "nowhere" / "result.json")
