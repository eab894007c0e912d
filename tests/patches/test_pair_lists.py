"""Pair lists are found by their shape, read by position, and every wrong line is named."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.errors import DataError
from keypatch.patches import PatchSet
from keypatch.patches.phototour import find_pair_lists, read_pair_list

POINT_ID = np.array([5, 5, 70, 70])


def four_patches(folder: Path) -> PatchSet:
    return PatchSet("four", np.zeros((4, 64, 64), np.uint8), POINT_ID, folder=folder)


def written(folder: Path, text: str, name: str = "m50_4_4_0.txt") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("end", ["", " 0", " 0 17 x"])
def test_columns_beyond_the_sixth_are_ignored(tmp_path: Path, end: str) -> None:
    pairs = read_pair_list(written(tmp_path, f"0 5 0 1 5 0{end}\n3 70 9 0 5 9{end}\n"), 4, POINT_ID)
    assert pairs.name == "m50_4_4_0" and len(pairs) == 2
    assert pairs.first.tolist() == [0, 3] and pairs.second.tolist() == [1, 0]
    assert pairs.is_match.tolist() == [True, False] and pairs.is_match.dtype == bool


WRONG = {
    "empty": ("", r"m50_4_4_0\.txt is empty; every line should hold six integers or more"),
    "too narrow": ("0 5 0 1 5 0\n0 5 0 1 5\n", r'm50_4_4_0\.txt, line 2: expected six .*, found "0 5 0 1 5"'),
    "a word": ("0 5 0 1 5 0\n0 5 0 one 5 0\n", r'line 2: expected six integers .*, found "0 5 0 one 5 0"'),
    "a blank line": ("0 5 0 1 5 0\n\n0 5 0 1 5 0\n", r'line 2: expected six integers .*, found ""'),
    "past the last patch": (
        "0 5 0 1 5 0\n0 5 0 4 5 0\n",
        r"m50_4_4_0\.txt, line 2: there is no patch 4; the set has 4 patches \(0 to 3\)",
    ),
    "past the last patch, first column": ("9 5 0 1 5 0\n", r"line 1: there is no patch 9"),
    "before the first patch": ("-1 5 0 1 5 0\n", r"line 1: there is no patch -1"),
    "another point": (
        "0 5 0 1 5 0\n2 70 0 3 5 0\n",
        r"m50_4_4_0\.txt, line 2: patch 3 shows point 5 here, but point 70 in info\.txt",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_line_is_named(tmp_path: Path, kind: str) -> None:
    text, message = WRONG[kind]
    with pytest.raises(DataError, match=message):
        read_pair_list(written(tmp_path, text), 4, POINT_ID)


def test_point_ids_are_compared_only_where_they_are_given(tmp_path: Path) -> None:
    assert read_pair_list(written(tmp_path, "0 1 0 1 1 0\n"), 4).is_match.tolist() == [True]


def test_a_missing_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.txt cannot be read: no such file"):
        read_pair_list(tmp_path / "absent.txt", 4)


def test_every_list_of_a_folder_is_found_by_its_shape(tmp_path: Path) -> None:
    pair = "0 5 0 1 5 0 0\n"
    for name in ("m50_4_4_0.txt", "hard_4_4_0.txt", "my own list.txt"):
        written(tmp_path, pair, name)
    written(tmp_path, "5 0\n" * 4, "info.txt")
    written(tmp_path, "1 2 3 4 5 6 7\n" * 4, "interest.txt")
    written(tmp_path, "12\n85\n", "doubtful.txt")
    written(tmp_path, "These patches were cut in May 2004 by us.\n", "readme.txt")
    written(tmp_path, "", "nothing.txt")
    written(tmp_path, pair, "pairs.csv")
    found = find_pair_lists(four_patches(tmp_path))
    assert [each.name for each in found] == ["hard_4_4_0", "m50_4_4_0", "my own list"]


def test_a_list_by_its_name_is_never_passed_over(tmp_path: Path) -> None:
    written(tmp_path, "oops\n0 5 0 1 5 0 0\n")
    with pytest.raises(DataError, match="line 1"):
        find_pair_lists(four_patches(tmp_path))
