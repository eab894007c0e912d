"""Stores of features and matches: many files that are read as one."""

import json
import random
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

import keypatch as kp
from keypatch.engines import Parallel
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, FeatureReader, read_features, read_names
from keypatch.features.conversion import convert
from keypatch.features.description import describe
from keypatch.features.store import INDEX, Index, Names, Store, shard_name, write_index
from keypatch.matching.match_files import MatchReader
from keypatch.matching.matching import Matching
from keypatch.matching.pairs import match_pairs
from keypatch.storage import Folder, fetched, find_files

FEW = Extraction(keypoints=20)


def contents(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Every group of a file or of all files of a store, by plain h5py."""
    found = dict[str, dict[str, np.ndarray]]()
    for each in sorted(path.glob("*.h5")) if path.is_dir() else [path]:
        with h5py.File(each) as file:

            def visit(name: str, item: object) -> None:
                if isinstance(item, h5py.Dataset):
                    group, _, key = name.rpartition("/")
                    found.setdefault(group, {})[key] = item[()]

            file.visititems(visit)
    return found


def assert_same(one: Path, other: Path) -> None:
    first, second = contents(one), contents(other)
    assert first.keys() == second.keys() and first
    for name, arrays in first.items():
        assert arrays.keys() == second[name].keys()
        for key, array in arrays.items():
            assert array.dtype == second[name][key].dtype
            np.testing.assert_array_equal(array, second[name][key])


def test_every_reader_takes_a_store_for_a_file(photos: Path, tmp_path: Path) -> None:
    file, store = tmp_path / "f.h5", tmp_path / "f"
    describe(photos, file, "sift", FEW)
    made = describe(photos, store, "sift", FEW)
    assert (made.described, made.skipped) == (4, 0)
    assert len(list(store.glob("*.h5"))) == 4  # one for each quarter of the work
    assert_same(file, store)
    assert read_names(store) == read_names(file)
    with FeatureReader(file) as one, FeatureReader(store) as other:
        assert one.settings == other.settings and one.descriptor == other.descriptor
        for name in one.names():
            np.testing.assert_array_equal(one.read(name).descriptors, other.read(name).descriptors)
            assert one.image_size(name) == other.image_size(name)
    with pytest.raises(DataError, match=r'has no photo "x\.png"'):
        read_features(store, "x.png")
    ways = {"file": (file, tmp_path / "m.h5"), "store": (store, tmp_path / "m")}
    for features, matches in ways.values():
        match_pairs(features, "exhaustive", matches, Matching(ratio=None, model=None))
    assert_same(tmp_path / "m.h5", tmp_path / "m")
    with MatchReader(tmp_path / "m.h5") as one, MatchReader(tmp_path / "m") as other:
        assert len(one) == len(other) == 6 and one.totals() == other.totals()
        np.testing.assert_array_equal(other.read("a.png", "b.jpg").indices, one.read("a.png", "b.jpg").indices)
    again = describe(photos, store, "sift", FEW)
    assert (again.described, again.skipped) == (0, 4)
    assert kp.inspect(store).kind == "store of features" and not kp.inspect(store).problems
    assert kp.inspect(tmp_path / "m").kind == "store of matches"
    assert kp.inspect(store).facts["keypoints"] == kp.inspect(file).facts["keypoints"]


def test_shards_of_an_array_make_one_store(photos: Path, tmp_path: Path) -> None:
    whole, store = tmp_path / "whole.h5", tmp_path / "shared"
    describe(photos, whole, "sift", FEW)
    counts = [describe(photos, store, "sift", FEW, shard=f"{number}/3").described for number in (1, 2, 3)]
    assert sum(counts) == 4 and max(counts) < 4
    assert not (store / INDEX).exists()  # tasks would overwrite each other's
    assert_same(whole, store)
    pairs = [match_pairs(store, "exhaustive", tmp_path / "m", shard=f"{number}/2") for number in (1, 2)]
    match_pairs(whole, "exhaustive", tmp_path / "m.h5")
    assert_same(tmp_path / "m.h5", tmp_path / "m")
    assert pairs == [tmp_path / "m"] * 2
    with pytest.raises(KeypatchError, match=r"--shard needs an output .* not the file .*new\.h5: name a folder"):
        describe(photos, tmp_path / "new.h5", "sift", FEW, shard="1/2")


def test_conversion_there_and_back_changes_nothing(photos: Path, tmp_path: Path) -> None:
    file, store, back = tmp_path / "f.h5", tmp_path / "store", tmp_path / "back.h5"
    describe(photos, file, "sift", FEW)
    convert(file, store)
    convert(store, back)
    assert_same(file, store)
    assert_same(file, back)
    with h5py.File(file) as one, h5py.File(back) as other:
        for name in read_names(file):
            assert dict(one[name].attrs) == dict(other[name].attrs)
        assert one.attrs["settings"] == other.attrs["settings"]
    describe(photos, back, "sift", FEW)  # goes on where it was
    convert(store, back)
    with pytest.raises(KeypatchError, match="are both stores"):
        convert(store, tmp_path / "other")
    with pytest.raises(KeypatchError, match="are both files"):
        convert(file, back)


def test_other_settings_and_other_folders_are_refused(photos: Path, tmp_path: Path) -> None:
    describe(photos / "a.png", tmp_path / "f", "sift", FEW)
    with pytest.raises(KeypatchError, match=r"other settings: keypoints = 20 \(now 5\)"):
        describe(photos / "a.png", tmp_path / "f", "sift", Extraction(keypoints=5))
    with pytest.raises(KeypatchError, match="is a folder with other contents"):
        describe(photos, photos, "sift", FEW)
    with pytest.raises(DataError, match=r"There is no feature file .*: it is a folder but not a store"):
        read_names(photos)


def test_an_index_is_only_a_table_of_the_shards(photos: Path, tmp_path: Path) -> None:
    store = tmp_path / "f"
    describe(photos, store, "sift", FEW)
    names = read_names(store)
    (store / INDEX).unlink()
    assert read_names(store) == names
    describe(photos, store, "sift", FEW)
    assert (store / INDEX).exists()
    next(store.glob("*.h5")).unlink()
    with pytest.raises(DataError, match=r"lacks 1 of its 4 files, such as .*\.h5\. Copy them again, or delete index"):
        read_names(store)
    (store / INDEX).unlink()
    assert len(read_names(store)) == 3
    assert describe(photos, store, "sift", FEW).described == 1
    assert read_names(store) == names


@pytest.mark.parametrize("damage", ["cut", "long", "text", "shard", "offsets", "name"])
def test_a_damaged_index_is_told(photos: Path, tmp_path: Path, damage: str) -> None:
    store = tmp_path / "f"
    describe(photos, store, "sift", FEW)
    path = store / INDEX
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-3])
    elif damage == "long":
        path.write_bytes(b"\xff" * 8 + content[8:])
    elif damage == "text":
        path.write_text("no index at all")
    elif damage == "offsets":
        path.write_bytes(content.replace(b'"data_offsets": [0,', b'"data_offsets": [9,', 1))
    elif damage == "name":  # points out of every folder
        path.write_bytes(content.replace(b"a.png", b"../.a", 1))
    else:
        shards = sorted(each.name for each in store.glob("*.h5"))
        write_index(path, [(name, 7) for name in sorted(read_names(store))], shards)
    with pytest.raises(DataError, match=r"index|plain path"), FeatureReader(store) as reader:
        for name in list(reader.names()):
            reader.read(name)


def test_the_index_is_a_safetensors_file_of_sorted_names(tmp_path: Path) -> None:
    draw = random.Random(0)
    names = sorted({"".join(draw.choices("abcäß/ñ漢", k=draw.randint(1, 9))) for _ in range(500)})
    write_index(tmp_path / INDEX, [(name, number % 3) for number, name in enumerate(names)], ["x.h5", "y.h5", "z.h5"])
    index = Index(tmp_path / INDEX)
    assert list(index) == names == [name for name, _ in index.rows()]
    assert all(index.shard(name) == ("x.h5", "y.h5", "z.h5")[number % 3] for number, name in enumerate(names))
    assert index.shard("") is None and index.shard("zzz") is None and names[3] + "!" not in index
    plain = load_file(tmp_path / INDEX)
    assert plain["names"].tobytes().decode() == "".join(names)
    assert len(plain["ends"]) == len(plain["shards"]) == len(names)


def test_fresh_names_stand_in_order_among_those_of_the_index() -> None:
    known, fresh = ["b", "d", "f"], {"a": "1", "c": "2", "g": "3"}
    names = Names("store", known, fresh)
    assert list(names) == [names[number] for number in range(len(names))] == names[:] == ["a", "b", "c", "d", "f", "g"]
    assert "c" in names and "b" in names and "e" not in names


def test_photos_and_features_behind_an_address(photos: Path, tmp_path: Path) -> None:
    there = Folder("memory://photos")
    for name in ("a.png", "b.jpg"):
        there.write(name, (photos / name).read_bytes())
    there.write("broken.png", b"text")
    (tmp_path / "few").mkdir()
    for name in ("a.png", "b.jpg"):
        (tmp_path / "few" / name).write_bytes((photos / name).read_bytes())
    describe(tmp_path / "few", tmp_path / "here.h5", "sift", FEW)
    with pytest.raises(DataError, match=r"1 of 3 photos .*\nmemory://photos/broken\.png is not an image"):
        describe("memory://photos", "memory://features", "sift", FEW)
    assert read_names("memory://features") == ["a.png", "b.jpg"]
    for name in read_names("memory://features"):
        one, other = read_features(tmp_path / "here.h5", name), read_features("memory://features", name)
        np.testing.assert_array_equal(one.descriptors, other.descriptors)
    match_pairs("memory://features", "exhaustive", "memory://matches")
    with MatchReader("memory://matches") as reader:
        assert len(reader) == 1
    assert kp.inspect("memory://features").facts["photos"] == "2"
    assert [name for name, _ in find_files("memory://photos")] == ["a.png", "b.jpg", "broken.png"]
    convert("memory://features", tmp_path / "copy.h5")
    assert_same(tmp_path / "here.h5", tmp_path / "copy.h5")
    with pytest.raises(DataError, match="There is nothing at memory://nowhere"):
        describe("memory://nowhere", tmp_path / "f.h5", "sift")
    with pytest.raises(KeypatchError, match=r"nosuch://x cannot be reached: Protocol not known: nosuch"):
        describe("nosuch://x", tmp_path / "f.h5", "sift")
    with pytest.raises(DataError, match=r"memory://photos is an address\. Copy the photos"):
        kp.reconstruct("memory://photos", tmp_path / "model")


def test_workers_write_to_an_address_that_all_of_them_reach(photos: Path, tmp_path: Path) -> None:
    describe(photos, tmp_path / "here.h5", "sift", FEW)
    describe(f"file://{photos}", f"file://{tmp_path}/there", "sift", FEW, parallel=Parallel(workers=2))
    assert_same(tmp_path / "here.h5", tmp_path / "there")
    assert not list((tmp_path / "there").glob(".*"))


def test_a_shard_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(KeypatchError, match=r"cannot be written: no space left on device\. Free some space"):
        Folder(tmp_path / "f").write("a.h5", b"content")
    assert not list((tmp_path / "f").iterdir())


def test_the_same_work_has_the_same_name() -> None:
    assert shard_name(["a", "b"]) == shard_name(["b", "a"]) != shard_name(["ab"])


def test_a_copy_that_was_fetched_goes(photos: Path) -> None:
    with fetched(f"file://{photos}/a.png") as copy:
        assert copy.read_bytes() == (photos / "a.png").read_bytes()
    assert not copy.exists()


def test_a_newer_store_is_refused(photos: Path, tmp_path: Path) -> None:
    describe(photos / "a.png", tmp_path / "f", "sift", FEW)
    about = json.loads((tmp_path / "f" / "store.json").read_text())
    (tmp_path / "f" / "store.json").write_text(json.dumps(about | {"format_number": 2}))
    with pytest.raises(DataError, match="written by a newer keypatch"):
        Store(tmp_path / "f")
