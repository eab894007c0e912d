"""`inspect` of COLMAP's databases and models, made by pycolmap or plain text, and of folders of `reconstruct`."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keypatch.colmap import package
from keypatch.commands.inspect.inspection import inspect

CAMERAS = "# a comment\n1 PINHOLE 640 480 500 500 320 240\n"
IMAGES = (
    "1 1 0 0 0 0 0 0 1 a.jpg\n5.0 6.0 1 7.0 8.0 2\n2 1 0 0 0 1 0 0 1 sub/b c.jpg\n5.0 6.0 1 7.0 8.0 2\n"
    "3 1 0 0 0 2 0 0 1 d.jpg\n5.0 6.0 2\n4 1 0 0 0 3 0 0 1 e.jpg\n5.0 6.0 2\n"
)
POINTS = "1 0 0 5 255 0 0 0.5 1 0 2 0\n2 0 1 5 255 0 0 1.5 1 1 2 1 3 0 4 0\n"


def write_model(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in {"cameras": CAMERAS, "images": IMAGES, "points3D": POINTS}.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Two images of a camera, 5 and 3 keypoints, matched and not verified."""
    pycolmap = pytest.importorskip("pycolmap")
    path = tmp_path / "two words.db"
    with pycolmap.Database.open(str(path)) as made:
        camera = made.write_camera(pycolmap.Camera(model="PINHOLE", width=64, height=48, params=[50, 50, 32, 24]))
        for name, count in {"a.jpg": 5, "b.jpg": 3}.items():
            image = made.write_image(pycolmap.Image(name=name, camera_id=camera))
            made.write_keypoints(image, np.ones((count, 4), np.float32))
        made.write_matches(1, 2, np.array([[0, 1], [2, 2]], np.uint32))
    return path


def test_a_database_is_counted(database: Path) -> None:
    found = inspect(database)
    assert (found.kind, found.problems) == ("COLMAP database", ())
    assert found.facts == {
        "images": "2",
        "cameras": "1",
        "keypoints": "8 in 2 images",
        "columns": "4",
        "descriptors": "for 0 images",
        "pairs matched": "1",
        "pairs verified": "0",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE keypoints SET data = substr(data, 1, 7) WHERE image_id = 1", "keypoints of 1 images are cut off"),
        ("UPDATE keypoints SET data = NULL", "keypoints of 2 images are cut off"),
        ("UPDATE keypoints SET cols = 5, data = zeroblob(20 * rows)", "2, 4 or 6 columns, not 5"),
        ("DELETE FROM images WHERE image_id = 2", "1 lists of keypoints belong to no image"),
        ("DROP TABLE two_view_geometries", "not a readable COLMAP database"),
    ],
)
def test_a_harmed_database_has_a_problem(database: Path, change: str, message: str) -> None:
    connection = sqlite3.connect(database)
    connection.execute(change)
    connection.commit()
    connection.close()
    found = inspect(database)
    assert len(found.problems) == 1 and message in found.problems[0]
    assert found.facts["cameras"] == "1"


def test_another_database_is_told(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    assert "not a readable COLMAP database" in inspect(tmp_path / "other.db").problems[0]


FACTS = {
    "images": "4 with a pose",
    "cameras": "1 PINHOLE",
    "points": "2",
    "mean track length": "3.00",
    "reprojection error": "1.000 px",
}


def test_a_text_model_is_counted(tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    found = inspect(write_model(tmp_path / "model"))
    assert (found.kind, found.problems) == ("COLMAP model", ())
    assert found.facts == FACTS


def test_without_pycolmap_the_points_of_a_text_model_are_not_counted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    found = inspect(write_model(tmp_path / "model"))
    assert found.problems == () and found.facts["images"] == "4 with a pose"
    assert found.facts["points"].startswith("not counted. Reading a COLMAP model needs pycolmap")


def test_a_binary_file_that_was_cut_off_does_not_matter_beside_the_text(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    folder = write_model(tmp_path / "model")
    pycolmap.Reconstruction(str(folder)).write_binary(str(folder))
    (folder / "points3D.bin").write_bytes(b"")  # pycolmap would read it for ever
    assert inspect(folder).facts == FACTS


def test_cameras_alone_have_no_points(tmp_path: Path) -> None:
    (write_model(tmp_path / "model") / "points3D.txt").unlink()
    assert inspect(tmp_path / "model").facts == {"images": "4 with a pose", "cameras": "1 PINHOLE"}


def test_a_harmed_model_names_the_line(tmp_path: Path) -> None:
    write_model(tmp_path)
    (tmp_path / "images.txt").write_text("1 1 0 0\n")
    assert "images.txt, line 1" in inspect(tmp_path).problems[0]


def test_a_binary_model_is_counted(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    write_model(tmp_path / "text")
    (tmp_path / "binary").mkdir()
    pycolmap.Reconstruction(str(tmp_path / "text")).write_binary(str(tmp_path / "binary"))
    found = inspect(tmp_path / "binary")
    assert (found.kind, found.problems) == ("COLMAP model", ())
    assert found.facts == FACTS


REPORT: dict[str, Any] = {
    "format": "keypatch-reconstruction",
    "format_number": 1,
    "finished": True,
    "photos": ["a.jpg", "sub/b c.jpg", "lost.jpg"],
    "registered": ["a.jpg", "sub/b c.jpg"],
    "notes": ["The poses were not compared."],
    "settings": {"seed": 0, "ratio": 0.9},
}


def write_report(folder: Path, **changed: Any) -> Path:
    (folder / "reconstruction.json").write_text(json.dumps(REPORT | changed))
    return folder


def test_a_reconstruction_shows_its_report_and_its_model(tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    write_model(write_report(tmp_path) / "model")
    found = inspect(tmp_path)
    assert (found.kind, found.problems) == ("reconstruction", ())
    assert found.facts["photos"] == "3, 2 with a pose"
    assert found.facts["settings"] == "seed = 0, ratio = 0.9"
    assert found.facts["note 1"] == "The poses were not compared."
    assert found.facts["points"] == "2"


def test_a_reconstruction_of_two_photos_shows_its_database(tmp_path: Path, database: Path) -> None:
    database.rename(tmp_path / "database.db")
    assert inspect(write_report(tmp_path)).facts["pairs matched"] == "1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"finished": False}, "is not finished"),
        ({"format_number": 99}, "newer keypatch"),
        ({"format": 1}, "not a report"),
    ],
)
def test_a_report_that_cannot_be_used_is_a_problem(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    assert message in inspect(write_report(tmp_path, **changed)).problems[0]


def test_a_cut_report_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "reconstruction.json").write_text('{"format": ')
    assert "is not a readable JSON file" in inspect(tmp_path).problems[0]
