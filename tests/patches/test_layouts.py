"""The one door: layouts are found by looking, and what is none is told apart."""

import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keypatch.errors import DataError
from keypatch.patches import open_patches
from keypatch.patches.phototour import find_pair_lists

Make = Callable[..., Any]


def test_both_layouts_are_found_by_looking(phototour: Make, hpatches: Make) -> None:
    made = phototour()
    assert np.array_equal(open_patches(made.folder).patches, made.patches)
    assert np.array_equal(open_patches(str(made.folder)).patches, made.patches)
    folder, _ = hpatches()
    assert open_patches(folder).side == 65


def test_a_split_belongs_to_hpatches(phototour: Make, hpatches: Make) -> None:
    folder, _ = hpatches()
    with pytest.raises(DataError, match="lacks 76 of the 76 sequences of the split a"):
        open_patches(folder, split="a")
    with pytest.raises(DataError, match=r'has no splits\. Leave out "--split a"'):
        open_patches(phototour().folder, split="a")


def test_a_part_of_a_set_is_taken_when_asked_for(phototour: Make) -> None:
    made = phototour()
    (made.folder / "info.txt").write_text("0 0\n0 0\n1 0\n1 0\n1")
    with pytest.raises(DataError, match="--allow-partial"):
        open_patches(made.folder)
    assert len(open_patches(made.folder, allow_partial=True)) == 4


def test_the_embedded_sets_open_by_name(phototour: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"train": phototour("made-train").folder, "test": phototour("made-test", n=5).folder}
    stand_in = SimpleNamespace(embedded_folder=folders.__getitem__)
    monkeypatch.setitem(sys.modules, "keypatch.patches.embedded", stand_in)
    assert (open_patches("embedded").name, len(open_patches("embedded"))) == ("embedded", 300)
    assert (open_patches("embedded-test").name, len(open_patches("embedded-test"))) == ("embedded-test", 5)


def test_what_is_no_patch_set_is_told_apart(tmp_path: Path, phototour: Make) -> None:
    with pytest.raises(DataError, match=r"There is no folder .*absent.*docs/data\.md"):
        open_patches(tmp_path / "absent")
    (tmp_path / "liberty.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"liberty\.zip is a file, not a folder.*unpack it first"):
        open_patches(tmp_path / "liberty.zip")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty is empty"):
        open_patches(tmp_path / "empty")
    (tmp_path / "empty" / "photo.jpg").write_bytes(b"x")
    with pytest.raises(DataError, match=r"is not a patch set: neither sheets and info\.txt"):
        open_patches(tmp_path / "empty")
    phototour("liberty"), phototour("notredame")
    with pytest.raises(
        DataError, match=r"holds the patch sets liberty, notredame\. Give one of them, such as .*liberty"
    ):
        open_patches(tmp_path)


@pytest.mark.parametrize(("name", "patches", "points"), [("nd-test", 4094, 1412), ("castle-test", 3071, 792)])
def test_real_sets_have_the_figures_of_their_table(
    shared: Path, tmp_path: Path, name: str, patches: int, points: int
) -> None:
    unpacker = runpy.run_path(str(shared / "data" / "unpack.py"))
    unpacker["unpack"](shared / "data" / "patches" / name, tmp_path / name)
    expected, point_id, lists = unpacker["load"](shared / "data" / "patches" / name)
    found = open_patches(tmp_path / name)
    assert (len(found), found.classes().count, found.classes().skipped) == (patches, points, 0)
    assert np.array_equal(found.patches, expected) and np.array_equal(found.point_id, point_id)
    pairs = find_pair_lists(found)
    assert [f"{each.name}.txt" for each in pairs] == list(lists)
    for each in pairs:
        assert np.array_equal(np.stack([each.first, each.second, each.is_match], 1), lists[f"{each.name}.txt"])


def test_real_strips_have_the_figures_of_their_table(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "data" / "patches" / "oxford-hpatches", tmp_path / "oxford", copy_function=shutil.copyfile)
    (tmp_path / "oxford").chmod(0o755)
    found = open_patches(tmp_path / "oxford")
    assert (len(found), found.classes().count, found.side) == (6656, 416, 65)
