"""Result files: there and back, and what is refused."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks import Comparison, Replicates, Result, load_result
from keypatch.errors import DataError, KeypatchError, MissingExtra
from keypatch.metrics import Curve
from keypatch.provenance import provenance

with io.BytesIO() as file:
    Image.new("L", (2, 2)).save(file, "PNG")
    PNG = file.getvalue()

RESULT = Result(
    benchmark="ubc",
    descriptor="sift",
    settings={"data": "liberty", "rule": "rank"},
    scores={"fpr95.m50": 0.2984, "rank1": float("nan")},
    curves={"roc.m50": Curve(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.9, 1.0]))},
    provenance=provenance(data="12ab"),
    replicates={"fpr95.m50": Replicates(np.array([0.3, 0.2999999994, np.nan, 0.28]), "pairs", 100)},
    pictures={"hardest pairs": PNG},
)


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    RESULT.save(tmp_path / "result.json")
    again = load_result(tmp_path / "result.json")
    assert again.to_json() == RESULT.to_json()
    assert np.isnan(again.scores["rank1"])
    assert again.provenance == RESULT.provenance
    assert again.pictures == {"hardest pairs": PNG}
    assert (again.replicates["fpr95.m50"].units, again.replicates["fpr95.m50"].count) == ("pairs", 100)
    np.testing.assert_array_equal(again.replicates["fpr95.m50"].values, [0.3, 0.3, np.nan, 0.28])
    np.testing.assert_array_equal(again.curves["roc.m50"].y, [0, 0.9, 1])
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_the_file_is_strict_json_with_format_and_number(tmp_path: Path) -> None:
    RESULT.save(tmp_path / "result.json")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    value = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert (value["format"], value["format_number"]) == ("keypatch-result", 2)
    assert value["scores"] == {"fpr95.m50": 0.2984, "rank1": None}
    assert value["replicates"]["fpr95.m50"]["values"] == [0.3, 0.3, None, 0.28]


def test_long_lists_take_one_line_of_the_file(tmp_path: Path) -> None:
    many = replace(RESULT, replicates={"rank1": Replicates(np.linspace(0, 1, 1000) ** 3, "points", 50)})
    many.save(tmp_path / "result.json")
    text = (tmp_path / "result.json").read_text()
    assert len(text) < 15_000 and len(text.splitlines()) < 40
    assert json.loads(text) == many.to_json()


def test_a_file_of_the_first_format_is_read(tmp_path: Path) -> None:
    value = RESULT.to_json() | {"format_number": 1}
    del value["replicates"], value["pictures"]
    (tmp_path / "result.json").write_text(json.dumps(value))
    old = load_result(tmp_path / "result.json")
    assert old.scores["fpr95.m50"] == 0.2984
    assert not old.replicates and not old.pictures and old.interval("fpr95.m50") is None


def test_a_score_has_the_interval_of_its_replicates() -> None:
    replicates = Replicates(np.random.default_rng(0).normal(0.5, 0.1, 1000), "pairs", 400)
    low, high = replace(RESULT, replicates={"rank1": replicates}).interval("rank1") or (0, 0)
    assert (low, high) == pytest.approx((0.3, 0.7), abs=0.02)
    assert RESULT.interval("rank1") is None
    assert Replicates(replicates.values, "sequences", 1).interval() is None  # one unit says nothing about others


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not a result file"),
        ({"format_number": 3}, "reads up to 2.: update"),
        ({"format_number": None}, "no format number"),
        ({"scores": None}, "is not a readable result file"),
        ({"curves": {"roc": {"x": [0]}}}, "is not a readable result file"),
        ({"curves": {"roc": {"x": [0, 1], "y": [1]}}}, 'the curve "roc" does not have a y for every x'),
        ({"provenance": {"place": "here"}}, "is not a readable result file"),
        ({"descriptor": ["sift"]}, "is not a readable result file"),
        ({"pictures": {"pair": "<img>"}}, "is not a readable result file"),
        ({"pictures": {"pair": "R0lGODlhAQABAA=="}}, 'the picture "pair" is not a PNG'),
        ({"replicates": {"rank1": {"units": "pairs", "count": 4}}}, "is not a readable result file"),
        ({"replicates": {"rank1": {"units": "pairs", "count": 4, "values": []}}}, "list of finite numbers"),
        (
            {"replicates": {"rank1": {"units": "pairs", "count": 4, "values": [1, "high"]}}},
            "is not a readable result file",
        ),
        ({"replicates": {"rank1": {"units": "pairs", "count": 4, "values": [1, float("inf")]}}}, "finite numbers"),
        ({"replicates": {"rank1": {"units": "pairs", "count": "4", "values": [1]}}}, "is not a readable result file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**RESULT.to_json(), **change}))
    with pytest.raises(DataError, match=words) as caught:
        load_result(path)
    assert "result.json" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_files_that_are_no_results_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(DataError, match=r"result\.json is not a"):
        load_result(tmp_path / "result.json")


def test_a_missing_file_and_a_place_below_a_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_result(tmp_path / "nothing.json")
    (tmp_path / "file").touch()
    with pytest.raises(KeypatchError, match="file"):
        RESULT.save(tmp_path / "file" / "result.json")


def test_a_result_shows_its_headline_scores_with_their_intervals() -> None:
    numbers = np.random.default_rng(0).normal(0.3, 0.01, 1000)
    result = replace(RESULT, replicates={"fpr95.m50": Replicates(numbers, "pairs", 1000)})
    (title, value, units), (_, rank1, nothing) = result.headline()
    assert (title, units, rank1, nothing) == ("FPR95 % m50", "1,000 pairs", "none", "")
    assert value.startswith("29.84 (2") and value.endswith(")")
    assert repr(result) == f"<Result: ubc of sift, FPR95 % m50 {value}, rank-1 % none>"
    assert f"<tr><td>FPR95 % m50</td><td>{value}</td><td>1,000 pairs</td></tr>" in result._repr_html_()


def test_a_result_gives_plain_values() -> None:
    numbers = np.random.default_rng(0).normal(0.3, 0.01, 1000)
    result = replace(RESULT, replicates={"fpr95.m50": Replicates(numbers, "pairs", 1000)}, notes={"step": 4})
    values = result.to_dict()
    assert values["descriptor"] == "sift" and values["scores"]["fpr95.m50"] == 0.2984 and values["notes"] == {"step": 4}
    assert values["intervals"] == {"fpr95.m50": result.interval("fpr95.m50")}
    json.dumps(values)


def test_notes_are_in_the_file_where_there_are_any(tmp_path: Path) -> None:
    assert "notes" not in RESULT.to_json()
    replace(RESULT, notes={"trained_on": "liberty"}).save(tmp_path / "result.json")
    assert load_result(tmp_path / "result.json").notes == {"trained_on": "liberty"}


def test_the_settings_that_decide_stand_above_the_table_of_a_notebook() -> None:
    settings = {"estimator": "magsac", "threshold": 1.25, "ratio": None, "pairs": 1234, "seeds": [0], "rule": "spread"}
    nested = {"features": {"keypoints": 2048, "detector": "dog", "rule": "strongest"}, "short_side": None}
    flat = replace(RESULT, benchmark="stereo", settings=settings | {"keypoints": 8000})
    planar = replace(RESULT, benchmark="homography", settings=settings | nested)
    decisive = "estimator magsac, threshold 1.25 px, ratio none, keypoints"
    assert flat.conditions() == f"{decisive} 8,000, rule spread, pairs 1,234"
    assert planar.conditions().startswith(f"{decisive} 2,048,")
    page = flat._repr_html_()
    assert page.index(flat.conditions()) < page.index("<thead>")
    assert compare_rows(flat).index(flat.conditions()) < compare_rows(flat).index("<thead>")
    assert replace(RESULT, benchmark="mine").conditions() == ""


def compare_rows(result: Result) -> str:
    return Comparison(result, result, {})._repr_html_()


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("scores", '{"rank1": 1%s}' % ("0" * 400)),
        ("scores", '{"rank1": "x"}'),
        ("settings", '{"a":' * 50_000 + "1" + "}" * 50_000),
        ("replicates", '{"rank1": {"units": "points", "count": 5, "values": [NaN, [1]]}}'),
        ("replicates", '{"rank1": {"units": "points", "count": 5, "values": [-Infinity]}}'),
        ("curves", '{"roc": {"x": [[0]], "y": [[0]]}}'),
        ("curves", '{"roc": {"x": [1%s], "y": [0]}}' % ("0" * 400)),
    ],
    ids=["10**400", "text", "deep", "ragged", "infinite", "table", "10**400 in a curve"],
)  # fmt: skip
def test_odd_values_are_one_sentence(tmp_path: Path, where: str, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**RESULT.to_json(), where: "@"}).replace('"@"', text))
    with pytest.raises(DataError, match=r"result\.json is not a readable (JSON|result) file") as caught:
        load_result(path)
    assert len(str(caught.value)) < 400 + len(str(path)) and "\n" not in str(caught.value)


def test_a_score_that_is_no_number_is_not_defined(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({**RESULT.to_json(), "scores": {"rank1": float("nan")}}))
    assert load_result(tmp_path / "result.json").number("rank1") == "none"


def test_a_result_is_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    drawn = Replicates(np.random.default_rng(0).normal(0.3, 0.01, 1000), "pairs", 1000)
    result = replace(RESULT, replicates={"fpr95.m50": drawn})
    frame = result.to_frame()
    assert list(frame.columns) == ["benchmark", "data", "descriptor", "score", "value", "low", "high", "over"]
    assert dict(zip(frame.score, frame.value.isna(), strict=True)) == {
        name: np.isnan(value) for name, value in result.scores.items()
    }
    row = frame.set_index("score").loc["fpr95.m50"]
    assert (row.value, row.over, row.descriptor) == (0.2984, "1,000 pairs", "sift")
    assert (row.low, row.high) == result.interval("fpr95.m50")
    assert len(pandas.concat([frame, replace(result, descriptor="other").to_frame()]).descriptor.unique()) == 2


def test_a_missing_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'keypatch\[pandas\]', or use to_dict"):
        RESULT.to_frame()
