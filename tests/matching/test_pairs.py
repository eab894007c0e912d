"""Which photos are matched with which."""

from pathlib import Path

import pytest

from keypatch.errors import KeypatchError
from keypatch.matching.pairs import find_pairs

NAMES = ["a.jpg", "b.jpg", "sub/c.jpg", "sub/d.jpg"]


def test_exhaustive_is_each_pair_once() -> None:
    pairs = find_pairs("exhaustive", NAMES)
    assert len(pairs) == 6 == len({frozenset(pair) for pair in pairs})


def test_a_sequence_is_each_photo_with_the_next_ones() -> None:
    assert find_pairs("sequence:2", NAMES) == [
        ("a.jpg", "b.jpg"),
        ("a.jpg", "sub/c.jpg"),
        ("b.jpg", "sub/c.jpg"),
        ("b.jpg", "sub/d.jpg"),
        ("sub/c.jpg", "sub/d.jpg"),
    ]
    assert find_pairs("sequence:99", NAMES) == find_pairs("exhaustive", NAMES)


@pytest.mark.parametrize("rule", ["exhaustive", "sequence:3"])
@pytest.mark.parametrize("names", [[], ["a.jpg"]])
def test_none_and_one_photo_make_no_pair(rule: str, names: list[str]) -> None:
    assert find_pairs(rule, names) == []


def test_a_file_names_a_pair_on_each_line_and_each_counts_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("b.jpg a.jpg\n\nsub/d.jpg\ta.jpg\na.jpg b.jpg\n")
    assert find_pairs(tmp_path / "pairs.txt", NAMES) == [("b.jpg", "a.jpg"), ("sub/d.jpg", "a.jpg")]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a.jpg", ["line 2", "two names"]),
        ("a.jpg b.jpg c.jpg", ["line 2", "two names"]),
        ("a.jpg b.jpeg", ["line 2", '"b.jpeg"', 'Did you mean "b.jpg"']),
        ("a.jpg photos/of/a/trip/b.jpg", ["line 2", 'Did you mean "b.jpg"']),
        ("a.jpg ../../etc/passwd", ["line 2", "not among the photos", "There are, for example, a.jpg, "]),
        ("a.jpg /a.jpg", ["line 2", "not among the photos"]),
        ("a.jpg a.jpg", ["line 2", "itself"]),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, parts: list[str]) -> None:
    (tmp_path / "pairs.txt").write_text(f"a.jpg b.jpg\n{line}\n")
    with pytest.raises(KeypatchError) as error:
        find_pairs(tmp_path / "pairs.txt", NAMES)
    assert all(part in str(error.value) for part in ["pairs.txt", *parts])


@pytest.mark.parametrize("rule", ["sequence:", "sequence:0", "sequence:-1", "sequence:two"])
def test_a_wrong_number_of_neighbours_is_told(rule: str) -> None:
    with pytest.raises(KeypatchError, match="sequence:5"):
        find_pairs(rule, NAMES)


def test_a_misspelt_rule_is_taken_for_a_file_that_is_not_there() -> None:
    with pytest.raises(KeypatchError, match=r"exhaustve.*exhaustive"):
        find_pairs("exhaustve", NAMES)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KeypatchError, match=r"pairs\.txt.*UTF-8"):
        find_pairs(tmp_path / "pairs.txt", NAMES)
