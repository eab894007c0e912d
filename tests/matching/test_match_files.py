"""Match files of others, read; and ours, read as hloc reads them."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.errors import DataError, KeypatchError
from keypatch.matching.match_files import MatchReader, read_matches, require_distinct_keys, write_matches
from keypatch.matching.matches import Matches

A, B = "set/a.jpg", "b c.jpg"


def write_hloc(path: Path, key: str, partners: Any, scores: Any = None) -> Path:
    """As hloc does: int16 and float16."""
    with h5py.File(path, "a") as file:
        group = file.create_group(key)
        group["matches0"] = np.asarray(partners, np.int16)
        if scores is not None:
            group["matching_scores0"] = np.asarray(scores, np.float16)
    return path


@pytest.mark.parametrize("key", ["set-a.jpg/b c.jpg", "set-a.jpg_b c.jpg"])
def test_both_separators_of_hloc_are_read(tmp_path: Path, key: str) -> None:
    path = write_hloc(tmp_path / "m.h5", key, [2, -1, 0], [0.5, 0, 0.75])
    matches = read_matches(path, A, B)
    assert matches.indices.tolist() == [[0, 2], [2, 0]]
    assert matches.scores.tolist() == [0.5, 0.75]
    assert not matches.verified


@pytest.mark.parametrize("key", ["b c.jpg/set-a.jpg", "b c.jpg_set-a.jpg"])
def test_a_pair_stored_the_other_way_round_is_turned(tmp_path: Path, key: str) -> None:
    path = write_hloc(tmp_path / "m.h5", key, [-1, 0, 3], [0, 0.5, 0.75])
    assert read_matches(path, A, B).indices.tolist() == [[0, 1], [3, 2]]


def test_of_both_orders_the_one_asked_for_wins(tmp_path: Path) -> None:
    path = write_hloc(tmp_path / "m.h5", "b c.jpg/set-a.jpg", [4])
    write_hloc(path, "set-a.jpg/b c.jpg", [1])
    assert read_matches(path, A, B).indices.tolist() == [[0, 1]]


@pytest.mark.parametrize("names", [(A, B), (B, A)])
def test_matches_of_another_number_of_keypoints_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    path = write_hloc(tmp_path / "m.h5", "set-a.jpg/b c.jpg", [2, -1, 0])
    with MatchReader(path) as reader:
        assert len(reader.read(*names, {A: 3, B: 9})) == 2
        with pytest.raises(DataError, match=r"for 3 keypoints of set/a\.jpg, which has 4.*different runs"):
            reader.read(*names, {A: 4, B: 9})


def test_scores_may_be_missing(tmp_path: Path) -> None:
    path = write_hloc(tmp_path / "m.h5", "set-a.jpg/b c.jpg", [5, 6])
    assert read_matches(path, A, B).scores.tolist() == [1, 1]


@pytest.mark.parametrize("partners", [[], [-1], [-1, -1]])
def test_a_pair_without_matches_is_no_missing_pair(tmp_path: Path, partners: list[int]) -> None:
    path = write_hloc(tmp_path / "m.h5", "set-a.jpg/b c.jpg", partners, np.zeros(len(partners)))
    assert len(read_matches(path, A, B)) == 0


def test_what_is_written_is_int32_and_keeps_numbers_that_int16_loses(tmp_path: Path) -> None:
    matches = Matches([[0, 40_000], [2, 7]], [0.5, 0.9], True, "F", np.diag([1.0, 2, 3]))  # type: ignore[arg-type]
    with h5py.File(tmp_path / "m.h5", "w") as file:
        write_matches(file.create_group("a/b"), matches, 4, 10, 2)
    with h5py.File(tmp_path / "m.h5") as file:  # as hloc: matches0, -1 for none
        assert file["a/b/matches0"].dtype == np.int32
        assert file["a/b/matches0"][()].tolist() == [40_000, -1, 7, -1]
        assert file["a/b/matching_scores0"][()].tolist() == pytest.approx([0.5, 0, 0.9, 0])
    found = read_matches(tmp_path / "m.h5", "a", "b")
    assert found.indices.tolist() == matches.indices.tolist()
    assert found.verified and found.model == "F" and np.array_equal(found.matrix, np.diag([1, 2, 3]))  # type: ignore[arg-type]


def test_a_missing_pair_is_named(tmp_path: Path) -> None:
    path = write_hloc(tmp_path / "m.h5", "set-a.jpg/b c.jpg", [1])
    with pytest.raises(DataError, match=r'"set/a\.jpg" and "../x"'):
        read_matches(path, A, "../x")


@pytest.mark.parametrize(
    ("datasets", "part"),
    [
        ({"matches0": np.zeros((3, 2), np.int16)}, "whole numbers"),
        ({"matches0": np.zeros(3)}, "whole numbers"),
        ({"matches0": np.array([b"a", b"b"])}, "numbers"),
        ({"matches0": np.array([2**40])}, "1099511627776"),
        ({"matches0": np.zeros(3, np.int16), "matching_scores0": np.zeros(2)}, "score"),
        ({"matches0": np.zeros(1, np.int16), "matching_scores0": np.array([np.nan])}, "score"),
    ],
)
def test_wrong_arrays_are_told_in_a_sentence(tmp_path: Path, datasets: dict[str, Any], part: str) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for name, array in datasets.items():
            file[f"a/b/{name}"] = array
    with pytest.raises(KeypatchError, match=part):
        read_matches(tmp_path / "m.h5", "a", "b")


@pytest.mark.parametrize("matrix", [np.eye(2), np.ones(9), np.full((3, 3), np.nan), "text"])
def test_a_matrix_of_another_shape_is_told(tmp_path: Path, matrix: Any) -> None:
    path = write_hloc(tmp_path / "m.h5", "a/b", [1])
    with h5py.File(path, "a") as file:
        file["a/b"].attrs.update({"model": "F", "matrix": matrix})
    with pytest.raises(DataError, match="matrix of /a/b is not a finite 3 x 3 matrix"):
        read_matches(path, "a", "b")


@pytest.mark.parametrize(
    "head",
    [
        {"format_number": "abc"},
        {"format_number": [1, 2]},
        {"format": [1.0, 2.0]},
        {"settings": "{"},
        {"settings": "[1]"},
        {"settings": 5},
    ],
)
def test_a_damaged_head_is_told_in_a_sentence(tmp_path: Path, head: dict[str, Any]) -> None:
    path = write_hloc(tmp_path / "m.h5", "a/b", [1])
    with h5py.File(path, "a") as file:
        file.attrs.update({"format": "keypatch-matches", "format_number": 1, **head})
    with pytest.raises(DataError, match=r"m\.h5, attribute .* is not a readable"):
        MatchReader(path)


@pytest.mark.parametrize("count", ["many", [1, 2], np.inf, h5py.Empty("f")])
def test_a_damaged_count_of_candidates_is_told_in_a_sentence(tmp_path: Path, count: Any) -> None:
    path = write_hloc(tmp_path / "m.h5", "a/b", [1, -1])
    with h5py.File(path, "a") as file:
        file["a/b"].attrs["candidates"] = count
    with (
        MatchReader(path) as reader,
        pytest.raises(DataError, match=r'm\.h5, attribute "candidates" is not a readable value'),
    ):
        reader.totals()


def test_links_to_other_files_are_refused(tmp_path: Path) -> None:
    write_hloc(tmp_path / "other.h5", "a/b", [1])
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a"] = h5py.ExternalLink("other.h5", "/a")
        file["c/d/matches0"] = h5py.ExternalLink("other.h5", "/a/b/matches0")
        file["e/f/matches0"] = [0]
    for pair in (("a", "b"), ("c", "d")):
        with pytest.raises(DataError, match=r'm\.h5: "(a|matches0)" is a link'):
            read_matches(tmp_path / "m.h5", *pair)


def test_other_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(DataError, match=r"text\.h5"):
        MatchReader(tmp_path / "text.h5")
    with pytest.raises(DataError, match=r"no match file .*gone\.h5"):
        MatchReader(tmp_path / "gone.h5")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs["format"] = "keypatch-features"
    with pytest.raises(DataError, match=r"f\.h5 is not a match file .its format is keypatch-features"):
        MatchReader(tmp_path / "f.h5")
    with h5py.File(tmp_path / "hloc.h5", "w") as file:
        file["a.jpg/keypoints"] = [[0.0, 0.0]]
    with pytest.raises(DataError, match=r'hloc\.h5 is not a match file: it has no array "matches0"'):
        MatchReader(tmp_path / "hloc.h5")
    with h5py.File(tmp_path / "new.h5", "w") as file:
        file.attrs.update({"format": "keypatch-matches", "format_number": 99})
    with pytest.raises(DataError, match="newer"):
        MatchReader(tmp_path / "new.h5")


def test_names_that_would_share_a_key_are_refused() -> None:
    require_distinct_keys(["x/y.jpg", "x/z.jpg", "x_y.jpg"])
    with pytest.raises(DataError, match=r'"x/y\.jpg" and "x-y\.jpg"'):
        require_distinct_keys(["x/y.jpg", "x-y.jpg"])
