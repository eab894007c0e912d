"""Files as users have them: which photo is meant, and a sentence for every broken one."""

import sqlite3

import h5py
import numpy as np
import pytest

from keypatch.doctor.stated import read_stated_database, read_stated_h5
from keypatch.errors import DataError


def arrays(n=3):
    return {
        "keypoints": np.arange(2.0 * n).reshape(n, 2),
        "scales": np.ones(n),
        "oris": np.zeros(n),
        "descriptors": np.ones((8, n)),
    }


def write(path, **photos):
    with h5py.File(path, "w") as file:
        for name, content in photos.items():
            for key, array in content.items():
                file[f"{name}/{key}"] = array
    return path


def database(path, rows=3, columns=4, content=None, names=("a.jpg",), descriptors=True):
    """COLMAP's tables by hand, as old and new versions have them in common."""
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT)")
        for table in ("keypoints", "descriptors"):
            file.execute(f"CREATE TABLE {table} (image_id INTEGER, rows INTEGER, cols INTEGER, data BLOB)")
        for number, name in enumerate(names):
            values = np.ones((rows, columns), np.float32).tobytes() if content is None else content
            file.execute("INSERT INTO images VALUES (?, ?)", (number, name))
            file.execute("INSERT INTO keypoints VALUES (?, ?, ?, ?)", (number, rows, columns, values))
            if descriptors:
                file.execute("INSERT INTO descriptors VALUES (?, ?, 8, ?)", (number, rows, bytes(8 * rows)))
    file.close()
    return path


def test_an_h5_is_read_as_hloc_means_it(tmp_path):
    found = read_stated_h5(write(tmp_path / "f.h5", a=arrays()), "a")
    np.testing.assert_array_equal(found.xy, arrays()["keypoints"])
    assert (found.unit, found.length, found.descriptors.shape, found.transposed) == ("degrees", 1, (3, 8), False)


@pytest.mark.parametrize("columns", [2, 4, 6])
def test_a_database_is_read_as_colmap_means_it(tmp_path, columns):
    row = [10.5, 20.5, *{2: [], 4: [3, 0.5], 6: [2.633, -1.438, 1.438, 2.633]}[columns]]
    content = np.array([row], np.float32).tobytes()
    found = read_stated_database(database(tmp_path / "d.db", 1, columns, content), "a.jpg")
    np.testing.assert_array_equal(found.xy, [[10, 20]])
    assert (found.unit, found.length) == ("radians", 512)
    if columns == 2:
        assert found.sigma is None and found.angle is None
    else:
        assert found.sigma == pytest.approx([3], abs=1e-3) and found.angle == pytest.approx([0.5], abs=1e-3)


def test_descriptors_of_other_types_are_floats_in_bytes(tmp_path):
    path = database(tmp_path / "d.db", descriptors=False)
    with sqlite3.connect(path) as file:
        file.execute("ALTER TABLE descriptors ADD COLUMN type INTEGER")
        content = np.full((3, 2), 0.5, np.float32).tobytes()
        file.execute("INSERT INTO descriptors VALUES (0, 3, 8, ?, 1)", (content,))
    file.close()
    found = read_stated_database(path, "a.jpg")
    assert found.length == 1
    np.testing.assert_array_equal(found.descriptors, np.full((3, 2), 0.5))


def test_a_database_without_descriptors_is_read(tmp_path):
    assert read_stated_database(database(tmp_path / "d.db", descriptors=False), "a.jpg").descriptors is None


@pytest.mark.parametrize(
    ("names", "photo", "name", "chosen"),
    [
        (["a.jpg", "b.jpg"], "b.jpg", None, 1),
        (["x/a.jpg", "x/b.jpg"], "b.jpg", None, 1),
        (["x/a.jpg", "y/a.jpg"], "a.jpg", "y/a.jpg", 1),
        (["other.jpg"], "a.jpg", None, 0),
    ],
)
def test_the_photo_is_found_by_its_name(tmp_path, names, photo, name, chosen):
    content = {each: {**arrays(), "keypoints": np.full((3, 2), float(i))} for i, each in enumerate(names)}
    found = read_stated_h5(write(tmp_path / "f.h5", **content), photo, name)
    assert found.xy[0, 0] == chosen


@pytest.mark.parametrize(
    ("names", "name"), [(["x/a.jpg", "y/a.jpg"], None), (["b.jpg", "c.jpg"], None), (["b.jpg"], "c.jpg")]
)
def test_a_name_in_doubt_lists_those_there_are(tmp_path, names, name):
    with pytest.raises(DataError, match=f"--name.*{names[0]}"):
        read_stated_database(database(tmp_path / "d.db", names=names), "a.jpg", name)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"keypoints": np.zeros(3)}, r"should be an \(n, 2\) array"),
        ({"keypoints": np.full((3, 2), np.nan)}, "keypoint 0 has a value that is not finite"),
        ({"scales": np.ones(4)}, r"shape \(4,\) for 3 keypoints"),
        ({"scales": np.array([1.0, 0.0, 1.0])}, "keypoint 1 has scale 0.*padding"),
        ({"oris": np.array([0, np.inf, 0])}, "keypoint 1 .* not finite"),
        ({"descriptors": np.ones((8, 5))}, r"3 keypoints but descriptors of shape \(8, 5\)"),
        ({"descriptors": np.full((8, 3), np.nan)}, "not finite"),
    ],
)
def test_a_malformed_h5_is_named(tmp_path, change, sentence):
    with pytest.raises(DataError, match=sentence):
        read_stated_h5(write(tmp_path / "f.h5", a={**arrays(), **change}), "a")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"content": b"123"}, "cut off"),
        ({"columns": 3}, "2, 4 or 6 columns, not 3"),
        ({"content": np.zeros((3, 4), np.float32).tobytes()}, "has scale 0"),
        ({"content": np.full((3, 4), np.nan, np.float32).tobytes()}, "not finite"),
        ({"rows": -1, "content": b"", "descriptors": False}, "cut off"),
    ],
)
def test_a_malformed_database_is_named(tmp_path, options, sentence):
    with pytest.raises(DataError, match=sentence):
        read_stated_database(database(tmp_path / "d.db", **options), "a.jpg")


def test_files_of_another_kind_are_named(tmp_path):
    other = tmp_path / "text"
    other.write_text("no database and no HDF5")
    with pytest.raises(DataError, match="not a readable COLMAP database"):
        read_stated_database(other, "a.jpg")
    with pytest.raises(DataError, match="not a readable feature file"):
        read_stated_h5(other, "a.jpg")
    for read in (read_stated_database, read_stated_h5):
        with pytest.raises(DataError, match="There is no"):
            read(tmp_path / "missing", "a.jpg")
    assert not (tmp_path / "missing").exists()
