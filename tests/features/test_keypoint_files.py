"""Keypoints of others: h5 by plain h5py, databases by pycolmap and sqlite3, tables as text."""

import sqlite3
from pathlib import Path

import h5py
import numpy as np
import pytest

from keypatch.errors import DataError, KeypatchError
from keypatch.features.extraction import FileOptions
from keypatch.features.keypoint_files import open_keypoints

XY = np.float32([[10.25, 20.5], [30, 40]])


def test_hloc_keypoints_are_as_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "k.h5", "w") as file:
        file["db/a.jpg/keypoints"], file["db/a.jpg/scales"] = XY, np.float32([2, 3])
        file["db/a.jpg/oris"] = np.float32([90, 0])
    found = open_keypoints(tmp_path / "k.h5").read("db/a.jpg")
    np.testing.assert_array_equal(found.xy, XY)
    np.testing.assert_array_equal(found.sigma, [2, 3])
    np.testing.assert_allclose(found.angle, [np.pi / 2, 0])
    with pytest.raises(DataError, match=r'has no photo "b\.jpg"'):
        open_keypoints(tmp_path / "k.h5").read("b.jpg")


def colmap(path: Path, rows: np.ndarray) -> None:
    """A database with one photo, made by pycolmap."""
    pycolmap = pytest.importorskip("pycolmap")
    with pycolmap.Database.open(path) as database:
        camera = pycolmap.Camera.create_from_model_id(0, pycolmap.CameraModelId.SIMPLE_PINHOLE, 500.0, 640, 480)
        number = database.write_camera(camera)
        image = database.write_image(pycolmap.Image(name="db/a.jpg", camera_id=number))
        database.write_keypoints(image, rows)


@pytest.mark.parametrize(
    ("rows", "sigma", "angle"),
    [
        (np.float32([[10.75, 21, 2, 0.5], [30.5, 40.5, 3, -1]]), [2, 3], [0.5, -1]),
        (np.float32([[10.75, 21, 0, -2, 2, 0], [30.5, 40.5, 3, 0, 0, 3]]), [2, 3], [np.pi / 2, 0]),
        (np.float32([[10.75, 21], [30.5, 40.5]]), [1.5, 1.5], [0, 0]),
    ],
)
def test_colmaps_half_pixel_is_taken_off(
    tmp_path: Path, rows: np.ndarray, sigma: list[float], angle: list[float]
) -> None:
    colmap(tmp_path / "k.db", rows)
    before = (tmp_path / "k.db").read_bytes()
    found = open_keypoints(tmp_path / "k.db", sigma=1.5).read("db/a.jpg")
    np.testing.assert_allclose(found.xy, XY, atol=1e-5)
    np.testing.assert_allclose(found.sigma, sigma, rtol=1e-6)
    np.testing.assert_allclose(found.angle, angle, atol=1e-6)
    assert (tmp_path / "k.db").read_bytes() == before


def test_a_photo_of_the_database_without_keypoints_has_none(tmp_path: Path) -> None:
    colmap(tmp_path / "k.db", np.empty((0, 4), np.float32))
    assert len(open_keypoints(tmp_path / "k.db").read("db/a.jpg")) == 0
    with pytest.raises(DataError, match=r"has no keypoints for other\.jpg"):
        open_keypoints(tmp_path / "k.db").read("other.jpg")


def sqlite(path: Path, rows: object, cols: object, content: object) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE images (image_id INTEGER, name TEXT)")
        database.execute("CREATE TABLE keypoints (image_id INTEGER, rows, cols, data)")
        database.execute("INSERT INTO images VALUES (1, 'a.jpg')")
        database.execute("INSERT INTO keypoints VALUES (1, ?, ?, ?)", (rows, cols, content))
    database.close()


@pytest.mark.parametrize(
    ("rows", "cols", "content", "message"),
    [
        (2, 4, np.zeros(7, np.float32).tobytes(), "cut off"),
        (10**12, 4, np.zeros(8, np.float32).tobytes(), "cut off"),
        (-2, -4, np.zeros(8, np.float32).tobytes(), "cut off"),
        (2.5, 4, np.zeros(10, np.float32).tobytes(), "cut off"),
        (2, 4, "text", "cut off"),
        (2, 4, None, "cut off"),
        ("x", 4, np.zeros(8, np.float32).tobytes(), "cut off"),
        (2, 3, np.zeros(6, np.float32).tobytes(), "2, 4 or 6 columns"),
        (2, 2, np.zeros(4, np.float32).tobytes(), "Pass sigma"),
        (2, 4, np.full(8, np.nan, np.float32).tobytes(), "finite"),
        (2, 4, np.zeros(8, np.float32).tobytes(), "must be above 0"),
    ],
)
def test_hostile_rows_are_told(tmp_path: Path, rows: object, cols: object, content: object, message: str) -> None:
    sqlite(tmp_path / "k.db", rows, cols, content)
    with pytest.raises(DataError, match=message):
        open_keypoints(tmp_path / "k.db").read("a.jpg")


def test_another_database_is_told(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "k.db")
    database.execute("CREATE TABLE other (a)")
    database.commit()
    database.close()
    with pytest.raises(DataError, match="not a readable COLMAP database"):
        open_keypoints(tmp_path / "k.db").read("a.jpg")


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_has_columns_by_name(tmp_path: Path) -> None:
    text = 'angle,y,image,x,sigma,response\n0.5,20.5,"a, b.jpg",10.25,2,7\n1,40,"a, b.jpg",30,3,8\n0,1,c.jpg,2,3,4\n'
    found = open_keypoints(table(tmp_path / "k.csv", text)).read("a, b.jpg")
    np.testing.assert_array_equal(found.xy, XY)
    assert found.response is not None
    np.testing.assert_array_equal([found.sigma, found.angle, found.response], [[2, 3], [0.5, 1], [7, 8]])


def test_csv_without_names_serves_every_photo_and_may_leave_values_out(tmp_path: Path) -> None:
    source = open_keypoints(table(tmp_path / "k.csv", "x,y,sigma\n10.25,20.5,\n30,40,3\n"), sigma=1.5)
    found = source.read("any.jpg")
    np.testing.assert_array_equal(found.sigma, [1.5, 3])
    np.testing.assert_array_equal(found.angle, [0, 0])
    assert found.response is None
    assert len(open_keypoints(table(tmp_path / "k.csv", "x,y,sigma\n")).read("any.jpg")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must name the columns x and y"),
        ("1,2\n3,4\n", "must name the columns x and y"),
        ("x,y,sigma\n1,two,3\n", r"k\.csv, line 2 is not a readable row of numbers .could not convert"),
        ("x,y\n1,2\n", "no scale. Set it with --sigma"),
        ("x,y,sigma\n,2,3\n", "must be finite"),
        ("x,y,sigma\n1,2,-3\n", "must be above 0"),
        ("x,y,sigma,image\n1,2,3,\n", "line 2: the column image is empty"),
        ("x,y,sigma,image\n1,2,3,b.jpg\n", r"no keypoints for a\.jpg"),
    ],
)
def test_wrong_tables_are_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_keypoints(table(tmp_path / "k.csv", text)).read("a.jpg")


def test_other_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: no such file"):
        open_keypoints(tmp_path / "k.csv")
    (tmp_path / "k.csv").write_bytes(b"\xff\x00\xfe" * 100)
    with pytest.raises(DataError, match=r"is not a readable csv table"):
        open_keypoints(tmp_path / "k.csv")
    with pytest.raises(KeypatchError, match="sigma is -1; it must be above 0"):
        FileOptions(sigma=-1)
