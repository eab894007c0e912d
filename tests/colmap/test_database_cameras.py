"""Cameras out of COLMAP databases: those of the ETH evaluation, made by sqlite3 as COLMAP of 2017, and today's."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from keypatch.colmap import Camera
from keypatch.colmap.database import read_database_cameras
from keypatch.errors import DataError

OLD = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);
CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,
    camera_id INTEGER NOT NULL, prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL,
    prior_tx REAL, prior_ty REAL, prior_tz REAL);
"""
RADIAL = np.array([700.0, 320, 240, 0.01], "<f8").tobytes()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write(tmp_path / "database.db", [(7, 2, 640, 480, RADIAL, 1)], [("b.jpg", 7), ("a.jpg", 7)])


def write(path: Path, cameras: list[tuple[object, ...]], images: list[tuple[str, int]]) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(OLD)
        database.executemany("INSERT INTO cameras VALUES (?, ?, ?, ?, ?, ?)", cameras)
        database.executemany("INSERT INTO images (name, camera_id) VALUES (?, ?)", images)
        database.commit()
    return path


def test_images_of_an_old_database_have_their_cameras_and_it_stays_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    found = read_database_cameras(old)
    assert list(found) == ["a.jpg", "b.jpg"]
    assert found["a.jpg"] == (7, Camera("SIMPLE_RADIAL", 640, 480, (700, 320, 240, 0.01), focal_known=True))
    assert found["b.jpg"].number == 7
    assert old.read_bytes() == before and {path.name for path in old.parent.iterdir()} == {"database.db"}


def test_a_database_of_pycolmaps_says_the_same(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    models = ["SIMPLE_PINHOLE", "PINHOLE", "OPENCV", "OPENCV_FISHEYE", "FULL_OPENCV", "RADIAL_FISHEYE"]
    written = {}
    with pycolmap.Database.open(str(tmp_path / "database.db")) as database:
        for number, model in enumerate(models):
            camera = pycolmap.Camera.create_from_model_name(number + 1, model, 500.0 + number, 640, 480)
            camera.has_prior_focal_length = number % 2 == 0
            camera.camera_id = database.write_camera(camera)
            database.write_image(pycolmap.Image(name=f"{model}.png", camera_id=camera.camera_id))
            written[f"{model}.png"] = camera
    found = read_database_cameras(tmp_path / "database.db")
    assert set(found) == set(written)
    for name, camera in written.items():
        ours = found[name].camera
        assert (ours.model, ours.params) == (camera.model.name, tuple(camera.params))
        assert (ours.width, ours.height, ours.focal_known) == (640, 480, camera.has_prior_focal_length)


FAULTS = {
    "no database": (lambda path: path.write_text("text"), "not a readable COLMAP database"),
    "other tables": (lambda path: sqlite3.connect(path).execute("CREATE TABLE x (y)").connection.close(), "no such"),
    "no camera": (lambda path: write(path, [], [("a.jpg", 3)]), "a.jpg has no camera"),
    "unknown model": (lambda path: write(path, [(1, 7, 640, 480, RADIAL, 0)], [("a.jpg", 1)]), "the unknown model 7"),
    "too few numbers": (
        lambda path: write(path, [(1, 2, 640, 480, RADIAL[:24], 0)], [("a.jpg", 1)]),
        "the camera of a.jpg",
    ),
    "half a number": (
        lambda path: write(path, [(1, 2, 640, 480, RADIAL[:-3], 0)], [("a.jpg", 1)]),
        "readable camera",
    ),
    "no numbers": (
        lambda path: write(path, [(1, 2, 640, 480, None, 0)], [("a.jpg", 1)]),
        "readable camera",
    ),
    "a name that leads out": (lambda path: write(path, [(1, 2, 640, 480, RADIAL, 0)], [("../a.jpg", 1)]), "plain path"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_database_is_a_sentence(tmp_path: Path, fault: str) -> None:
    make, words = FAULTS[fault]
    make(tmp_path / "database.db")
    with pytest.raises(DataError) as error:
        read_database_cameras(tmp_path / "database.db")
    assert words in str(error.value) and "database.db" in str(error.value)
