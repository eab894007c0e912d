"""The lists: read from the public files, drawn again as they were published, drawn for other sets; wrong files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks.hpatches.lists import (
    Tasks,
    draw_public_candidates,
    draw_public_pairs,
    draw_tasks,
    find_listed,
    find_split,
    read_tasks,
    redraw_public_tasks,
)
from keypatch.errors import DataError
from keypatch.patches.hpatches import split_sequences

NAMES = ["i_ajuntament", "i_fog", "i_zion", "v_abstract", "v_courses", "v_yuri"]
COUNTS = [140, 96, 220, 180, 64, 251]


def test_the_files_are_read_row_by_row(mini: Any) -> None:
    tasks = read_tasks(mini.tasks, "mini", NAMES, COUNTS)
    assert tasks.positives[:2].tolist() == [[4, 1, 58, 4, 4, 58], [4, 3, 54, 4, 2, 54]]
    assert tasks.intra[0].tolist() == [4, 1, 58, 4, 4, 13] and tasks.inter[1].tolist() == [4, 3, 54, 5, 2, 218]
    assert tasks.queries[0].tolist() == [3, 172] and tasks.distractors[1].tolist() == [5, 105]
    assert [len(t) for t in (tasks.positives, tasks.queries, tasks.distractors)] == [4000, 160, 791]
    np.testing.assert_array_equal(read_tasks(mini.tasks, "all", NAMES, COUNTS).inter, tasks.inter)


def replace_line(number: int, text: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[:number], text, *lines[number + 1 :]]


PAIRS = "verif_pos_split-mini.csv"
QUERIES, DISTRACTORS = "retr_queries_split-mini.csv", "retr_distractors_split-mini.csv"
WRONG = {
    "sequence of another split": (
        PAIRS,
        replace_line(3, "i_dome,1,3,i_dome,2,3"),
        "pos_split-mini.csv .* string 'i_dome' .* another split",
    ),
    "row beyond": (
        PAIRS,
        replace_line(2, "v_courses,1,64,v_courses,2,64"),
        'line 3: ".*,64,.*" names an image or a row that does not exist',
    ),
    "negative row": (QUERIES, replace_line(2, "v_courses,-1"), 'line 3: "v_courses,-1" names'),
    "image beyond": (PAIRS, replace_line(1, "v_yuri,6,1,v_yuri,2,1"), 'line 2: "v_yuri,6,1,v_yuri,2,1" names an image'),
    "no number": (DISTRACTORS, replace_line(1, "v_yuri,one"), "string 'one'"),
    "columns missing": (PAIRS, replace_line(7, "v_yuri,1"), "columns changed from 6 to 2 at row 7"),
    "blank line": (PAIRS, replace_line(7, ""), "does not have the columns s1,t1,idx1"),
    "head of another file": (PAIRS, lambda lines: ["s,idx", *lines[1:]], 'line 1: expected "s1,t1,idx1,s2,t2,idx2"'),
    "empty": (PAIRS, lambda lines: [], "line 1: expected"),
    "head alone": (QUERIES, lambda lines: lines[:1], "queries_split-mini.csv has no rows"),
    "another point": (PAIRS, replace_line(5, "v_yuri,1,3,v_yuri,2,4"), "line 6: .* should show the same point"),
    "the same point": (
        "verif_neg_intra_split-mini.csv",
        replace_line(5, "v_yuri,1,3,v_yuri,2,3"),
        "line 6: .* should be different points of one sequence",
    ),
    "lengths": (PAIRS, lambda lines: lines[:-1], "different numbers of rows: verif_pos.* 3,999"),
    "repeated": (DISTRACTORS, lambda lines: [*lines[:9], lines[4], *lines[9:]], "list a patch twice"),
    "query as distractor": (DISTRACTORS, replace_line(1, "v_abstract,172"), "list a patch twice"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_list_is_named_with_its_line(copied: Any, case: str) -> None:
    name, damage, words = WRONG[case]
    path = copied.tasks / name
    path.write_text("\n".join(damage(path.read_text().splitlines())) + "\n")
    with pytest.raises(DataError, match=words):
        read_tasks(copied.tasks, "mini", NAMES, COUNTS)


def test_missing_lists_are_named(copied: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"verif_pos_split-a\.csv cannot be read: no such file"):
        read_tasks(copied.tasks, "a", NAMES, COUNTS)
    (copied.tasks / QUERIES).unlink()
    with pytest.raises(DataError, match=QUERIES):
        read_tasks(copied.tasks, "mini", NAMES, COUNTS)
    (copied.tasks / "verif_pos_split-b.csv").write_text("")
    with pytest.raises(DataError, match="the lists of the splits b, mini; choose one"):
        read_tasks(copied.tasks, "all", NAMES, COUNTS)
    with pytest.raises(DataError, match=r"no verif_pos_split-NAME\.csv"):
        read_tasks(copied.descriptors["mini"], "all", NAMES, COUNTS)
    with pytest.raises(DataError, match="There is no folder"):
        read_tasks(tmp_path / "nowhere", "a", NAMES, COUNTS)


def test_the_lists_name_their_sequences(copied: Any) -> None:
    assert find_listed(copied.tasks) == set(NAMES)
    path = copied.tasks / "verif_neg_inter_split-mini.csv"
    path.write_text(path.read_text() + "v_yuri,1,1,v_other,2,1\n")
    assert find_listed(copied.tasks) == {*NAMES, "v_other"}


def test_splits_beside_the_lists_come_first(copied: Any) -> None:
    assert find_split("mini", "train", copied.tasks) == ("i_crownday", "v_graffiti")
    assert find_split("a", "test", copied.tasks) == find_split("a", "test", None) == split_sequences("a", "test")
    path = copied.tasks / "splits" / "splits.json"
    path.write_text(json.dumps({"mini": {"name": "mini", "test": ["i_fog"]}}))
    with pytest.raises(DataError, match=r'"mini" .* has no training part'):
        find_split("mini", "train", copied.tasks)
    for wrong, words in (
        ("[1, 2]", "not a readable table of splits"),
        ("{", "not a readable"),
        ('{"mini": 5}', "not a readable"),
        ('{"mini": ["test"]}', "not a readable"),
        ('{"mini": {"train": ["x"]}}', '"mini" of .* has no test part'),
        ('{"x": {"test": ["../y"]}}', "plain"),
        (
            '{"mini": {"test": [7, null]}}',
            r'"test" of the split "mini" should be a list of sequence names, found \[7, null\]',
        ),
        ('{"mini": {"test": "abc"}}', 'list of sequence names, found "abc"'),
        ('{"mini": {"test": []}}', r"list of sequence names, found \[\]"),
        ('{"x": {"test": ["y"], "train": {"y": 1}}}', '"train" of the split "x" should be a list'),
    ):
        path.write_text(wrong)
        with pytest.raises(DataError, match=words):
            find_split("mini", "test", copied.tasks)


def test_public_pairs_are_drawn_as_published() -> None:
    """The first rows of split a, with the numbers of patches of their sequences; legacy draws, row after row."""
    names = split_sequences("a", "test")
    known = {"v_birdwoman": (2000, 251), "v_strand": (1816, 1625), "i_salon": (1102, 1100), "i_zion": (2000, 1766)}
    rng = np.random.RandomState(42)
    first = [names[k] for k in rng.randint(0, len(names), 1_000_000)[:4]]
    assert first == list(known)
    assert [int(rng.permutation(known[name][0])[0]) for name in first] == [row for _, row in known.values()]


def test_public_pairs_are_those_of_legacy_numpy() -> None:
    sizes = np.array([7, 30, 12])
    positives, inter, intra = draw_public_pairs(sizes, 50)
    legacy = np.random.RandomState(42)
    sequence = legacy.choice(np.arange(3), 50)
    rows = np.array([legacy.choice(np.arange(sizes[s]), 2, replace=False) for s in sequence])
    images = np.array([legacy.choice(np.arange(5), 2, replace=False) for _ in sequence])
    other = legacy.choice(np.arange(3), 50)
    other_rows = [legacy.randint(sizes[s]) for s in other]
    first = [sequence, images[:, 0], rows[:, 0]]
    np.testing.assert_array_equal(positives, np.stack([*first, sequence, images[:, 1], rows[:, 0]], axis=1))
    np.testing.assert_array_equal(intra, np.stack([*first, sequence, images[:, 1], rows[:, 1]], axis=1))
    np.testing.assert_array_equal(inter[:, [3, 5]], np.stack([other, other_rows], axis=1))
    np.testing.assert_array_equal(inter[:, [0, 1, 2, 4]], positives[:, [0, 1, 2, 4]])


def test_public_queries_begin_as_published() -> None:
    """The first eight queries of split a, none of which is left out for its contrast, and the first distractors."""
    names = split_sequences("a", "test")
    sizes = np.full(len(names), 2000)
    sizes[[names.index(name) for name in ("v_strand", "i_salon")]] = 1816, 1102
    queries, distractors = draw_public_candidates(sizes)
    assert [(names[s], int(i)) for s, i in queries[:4]] == [
        ("v_birdwoman", 3),
        ("v_strand", 2),
        ("i_salon", 324),
        ("i_zion", 1263),
    ]
    assert len(queries) == 40_000 and len(distractors) == 200_000


def test_redrawn_queries_have_contrast_and_are_no_distractors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keypatch.benchmarks.hpatches.lists.PAIRS", 20)
    rng = np.random.default_rng(0)
    for name in ("i_a", "v_b"):
        patches = rng.integers(0, 256, (40, 9, 9), np.uint8)
        patches[::2] = 100 + rng.integers(0, 3, (20, 9, 9))
        (tmp_path / name).mkdir()
        Image.fromarray(patches.reshape(-1, 9)).save(tmp_path / name / "ref.png")
    monkeypatch.setattr("keypatch.benchmarks.hpatches.lists.QUERIES", 10)
    tasks = redraw_public_tasks(tmp_path, ["i_a", "v_b"], [40, 40])
    assert (tasks.queries[:, 1] % 2 == 1).all() and (tasks.distractors[:, 1] % 2 == 1).all(), "odd rows have contrast"
    together = np.concatenate([tasks.queries, tasks.distractors])
    assert len(tasks.queries) == 10 and len(np.unique(together, axis=0)) == len(together) == 40
    candidates, _ = draw_public_candidates(np.array([40, 40]))
    kept = [tuple(c) for c in candidates.tolist() if c[1] % 2]
    assert [tuple(q) for q in tasks.queries.tolist()] == list(dict.fromkeys(kept))[:10], "the first ones, in order"


def check_fits(tasks: Tasks, counts: list[int]) -> None:
    sizes = np.array(counts)
    for table in (tasks.positives, tasks.inter, tasks.intra):
        assert (table >= 0).all() and (table[:, [1, 4]] <= 5).all() and (table[:, 1] != table[:, 4]).all()
        assert (table[:, 2] < sizes[table[:, 0]]).all() and (table[:, 5] < sizes[table[:, 3]]).all()
    for table in (tasks.queries, tasks.distractors):
        assert (table >= 0).all() and (table[:, 1] < sizes[table[:, 0]]).all()


def test_lists_of_another_set_fit_it_and_are_always_the_same() -> None:
    counts = [30, 2, 71]
    tasks = draw_tasks(["i_a", "i_b", "v_c"], counts)
    check_fits(tasks, counts)
    positives, inter, intra = tasks.positives, tasks.inter, tasks.intra
    assert len(positives) == len(inter) == len(intra) == 20 * 103
    assert (positives[:, [0, 2]] == positives[:, [3, 5]]).all()
    assert (intra[:, 0] == intra[:, 3]).all() and (intra[:, 2] != intra[:, 5]).all()
    assert (inter[:, 0] != inter[:, 3]).all()
    assert set(np.unique(positives[:, 1])) == set(range(6))
    together = np.concatenate([tasks.queries, tasks.distractors])
    assert (len(tasks.queries), len(tasks.distractors)) == (20, 41)
    assert len(np.unique(together, axis=0)) == len(together)
    again = draw_tasks(["x", "y", "z"], counts)
    np.testing.assert_array_equal(again.inter, inter)
    np.testing.assert_array_equal(again.queries, tasks.queries)


def test_one_sequence_has_no_pairs_with_another() -> None:
    tasks = draw_tasks(["i_a"], [12])
    check_fits(tasks, [12])
    assert len(tasks.inter) == len(tasks.distractors) == 0 and len(tasks.intra) == 240


def test_a_sequence_of_one_patch_is_named() -> None:
    with pytest.raises(DataError, match="v_b has one patch"):
        draw_tasks(["i_a", "v_b"], [4, 1])
