"""The HPatches layout: strips of others are read, as training data and for scoring, and every wrong strip is named."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.errors import DataError
from keypatch.patches.hpatches import STRIPS, find_sequences, read_hpatches, read_sequences, split_sequences

Make = Callable[..., Any]


def test_a_class_is_a_row_of_a_sequence(hpatches: Make) -> None:
    folder, made = hpatches(rows=3)
    for _ in range(2):  # from the strips, then from the cache
        found = read_hpatches(folder)
        assert (len(found), found.side, found.name) == (2 * 3 * 16, 65, "hpatches-release")
        classes = found.classes()
        assert classes.count == 6 and classes.skipped == 0
        for k in range(6):
            row = made["i_one" if k < 3 else "v_two"][:, k % 3]  # (16, 65, 65)
            members = classes.members[classes.starts[k] : classes.starts[k + 1]]
            assert np.array_equal(found.take(members), row)
    assert isinstance(found.patches, np.memmap) and len(list(folder.glob("*.npy"))) == 1


def test_sequences_come_one_by_one_with_their_strips(hpatches: Make) -> None:
    folder, made = hpatches()
    found = dict(read_sequences(folder))
    assert list(found) == ["i_one", "v_two"] == find_sequences(folder)
    for name, strips in found.items():
        assert tuple(strips) == STRIPS and len(STRIPS) == 16
        assert np.array_equal(np.stack(list(strips.values())), made[name])
    assert [name for name, _ in read_sequences(folder, ["v_two"])] == ["v_two"]
    with pytest.raises(DataError, match="lacks 1 of the 2 sequences of the list: v_three"):
        list(read_sequences(folder, ["v_two", "v_three"]))


def test_a_split_takes_its_training_part(hpatches: Make) -> None:
    train = split_sequences("a", "train")
    folder, made = hpatches(names=[*train, "i_fog"], rows=1, side=9)
    found = read_hpatches(folder, "a")
    assert found.name == "hpatches-release-a" and found.classes().count == 76
    assert np.array_equal(found.patches[:16], made[train[0]][:, 0])
    shutil.rmtree(folder / train[5])
    with pytest.raises(DataError, match=rf"lacks 1 of the 76 sequences of the split a: {train[5]}\. Copy"):
        read_hpatches(folder, "a")
    assert read_hpatches(folder).classes().count == 76, "without a split, what is there is taken"


def test_the_splits_are_those_of_the_benchmark(shared: Path) -> None:
    import json

    splits = json.loads((shared / "protocols" / "hpatches_splits.json").read_text())
    for name, parts in splits.items():
        assert split_sequences(name, "test") == tuple(parts["test"])
        if "train" in parts:
            assert split_sequences(name, "train") == tuple(parts["train"])


def test_training_and_test_parts_are_disjoint_and_complete() -> None:
    full = set(split_sequences("full", "test"))
    assert len(full) == 116
    for name in "abc":
        train, test = split_sequences(name, "train"), split_sequences(name, "test")
        assert (len(train), len(test)) == (76, 40) and set(train) | set(test) == full
    assert set(split_sequences("illum", "test")) == {name for name in full if name.startswith("i_")}
    assert set(split_sequences("view", "test")) == {name for name in full if name.startswith("v_")}


def test_unknown_splits_and_splits_without_training_are_told() -> None:
    with pytest.raises(DataError, match=r'no split "d"\. Its splits: a, b, c, full, illum, view'):
        split_sequences("d", "test")
    with pytest.raises(DataError, match=r'split "full" has no training part\. Use a, b or c'):
        split_sequences("full", "train")


WRONG_STRIPS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda p: p.unlink(), r"v_two/h3\.png (is missing|cannot be read)"),
    "empty": (lambda p: p.write_bytes(b""), r"v_two/h3\.png is empty"),
    "cut off": (lambda p: p.write_bytes(p.read_bytes()[:3000]), r"v_two/h3\.png is not a readable image"),
    "not an image": (lambda p: p.write_text("no"), r"v_two/h3\.png is not an image"),
    "of uneven height": (
        lambda p: Image.new("L", (65, 200)).save(p),
        r"v_two/h3\.png is 65x200 pixels, but a strip's height must be a multiple of its width",
    ),
    "lower than a patch": (lambda p: Image.new("L", (65, 64)).save(p), r"v_two/h3\.png is 65x64 pixels"),
    "with another number of patches": (
        lambda p: Image.new("L", (65, 260)).save(p),
        r"v_two/h3\.png has 4 patches of side 65, but ref\.png has 3 of side 65",
    ),
    "of another side": (
        lambda p: Image.new("L", (64, 192)).save(p),
        r"v_two/h3\.png has 3 patches of side 64, but ref\.png has 3 of side 65",
    ),
}


@pytest.mark.parametrize("kind", WRONG_STRIPS)
def test_a_wrong_strip_is_named(hpatches: Make, kind: str) -> None:
    spoil, message = WRONG_STRIPS[kind]
    folder, _ = hpatches()
    spoil(folder / "v_two" / "h3.png")
    with pytest.raises(DataError, match=message):
        read_hpatches(folder)
    with pytest.raises(DataError, match=message):
        list(read_sequences(folder))
    assert not list(folder.glob("*.npy")) and not list(folder.glob(".*"))


def test_sequences_of_different_sides_are_told_apart(hpatches: Make) -> None:
    folder, _ = hpatches(names=["i_one"], side=65)
    hpatches(names=["v_two"], side=64)
    with pytest.raises(DataError, match="v_two has patches of side 64, but i_one has side 65"):
        read_hpatches(folder)


def test_folders_that_are_no_set_of_sequences_are_told_apart(tmp_path: Path, hpatches: Make) -> None:
    folder, _ = hpatches()
    with pytest.raises(DataError, match=r"i_one is a single HPatches sequence\. Give the folder that contains it"):
        read_hpatches(folder / "i_one")
    with pytest.raises(DataError, match="There is no folder"):
        read_hpatches(folder / "absent")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "photo.jpg").write_bytes(b"x")
    with pytest.raises(DataError, match="has no HPatches sequences"):
        read_hpatches(tmp_path / "other")
