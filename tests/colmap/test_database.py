"""COLMAP's databases as they are stored: by pycolmap, and by SQL where they are older or broken."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from keypatch.colmap.database import open_colmap_database
from keypatch.errors import DataError

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) + 0.5


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Keypoints of "b #1.jpg" and none of a.jpg, whose list is empty; c.jpg has no list."""
    pycolmap = pytest.importorskip("pycolmap")
    path = tmp_path / "100 % mine?.db"
    with pycolmap.Database.open(str(path)) as made:
        camera = made.write_camera(pycolmap.Camera(model="PINHOLE", width=64, height=48, params=[50, 50, 32, 24]))
        ids = [made.write_image(pycolmap.Image(name=n, camera_id=camera)) for n in ("b #1.jpg", "a.jpg", "c.jpg")]
        made.write_keypoints(ids[0], ROWS)
        made.write_keypoints(ids[1], ROWS[:0])
    return path


def change(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(sql, values)
        database.commit()


def test_keypoints_come_as_they_are_stored_and_the_file_stays_as_it_is(stored: Path) -> None:
    before = stored.read_bytes()
    with open_colmap_database(stored) as database:
        assert database.described_images() == ["a.jpg", "b #1.jpg"]
        np.testing.assert_array_equal(database.keypoints("b #1.jpg"), ROWS)
        assert database.keypoints("a.jpg").shape == (0, 4)
        assert database.descriptors("b #1.jpg") is None
        with pytest.raises(DataError, match=r"has no keypoints for c\.jpg"):
            database.keypoints("c.jpg")
    assert stored.read_bytes() == before and [path.name for path in stored.parent.iterdir()] == [stored.name]


@pytest.mark.parametrize(("number", "kind"), [(-1, np.uint8), (0, np.uint8), (1, np.float32), (2, np.float32)], ids=str)
def test_descriptors_are_bytes_or_floats_by_their_type(stored: Path, number: int, kind: type) -> None:
    content = np.arange(24, dtype=np.uint8).reshape(3, 8)
    change(stored, "INSERT INTO descriptors VALUES (1, ?, 3, 8, ?)", number, content.tobytes())
    with open_colmap_database(stored) as database:
        found = database.descriptors("b #1.jpg")
    np.testing.assert_array_equal(found, content.view(kind))


def test_half_a_float_is_told(stored: Path) -> None:
    change(stored, "INSERT INTO descriptors VALUES (1, 1, 3, 7, ?)", bytes(21))
    with open_colmap_database(stored) as database, pytest.raises(DataError, match=r"descriptors of b #1\.jpg are no"):
        database.descriptors("b #1.jpg")


@pytest.mark.parametrize("what", ["rows = 2", "cols = -4", "cols = 0", "data = NULL", "rows = 'x'", "data = 'text'"])
def test_what_does_not_fit_is_cut_off(stored: Path, what: str) -> None:
    change(stored, f"UPDATE keypoints SET {what} WHERE image_id = 1")
    with (
        open_colmap_database(stored) as database,
        pytest.raises(DataError, match=r"keypoints of b #1\.jpg are cut off"),
    ):
        database.keypoints("b #1.jpg")


def test_what_a_writer_has_not_folded_in_yet_is_read_through_a_link_too(stored: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(stored)
    with closing(sqlite3.connect(stored)) as writer:
        assert writer.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        writer.execute("INSERT INTO keypoints VALUES (3, 3, 4, ?)", (ROWS.tobytes(),))
        writer.commit()
        for path in (stored, link):
            with open_colmap_database(path) as database:
                assert database.described_images() == ["a.jpg", "b #1.jpg", "c.jpg"]
    with (
        pytest.raises(DataError, match=r"link\.db has no keypoints for d\.jpg"),
        open_colmap_database(link) as database,
    ):
        database.keypoints("d.jpg")


def test_nothing_can_be_written(stored: Path) -> None:
    with pytest.raises(DataError, match="readonly"), open_colmap_database(stored) as database:
        database.ask("DELETE FROM images")


def test_no_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match="is not a readable COLMAP database"),
        open_colmap_database(tmp_path / "none.db"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS image_id, 'a' AS name FROM n"


@pytest.mark.parametrize("answer", [ENDLESS, "SELECT 1 AS image_id, zeroblob(900000000) AS name"])
def test_views_are_refused(stored: Path, answer: str) -> None:
    change(stored, "DROP TABLE images")
    change(stored, f"CREATE VIEW images AS {answer}")
    with pytest.raises(DataError, match=r"has a view \(images\)"), open_colmap_database(stored):
        pass


def test_values_larger_than_the_file_are_refused(stored: Path) -> None:
    change(stored, "DROP TABLE keypoints")
    made = "data BLOB GENERATED ALWAYS AS (zeroblob(900000000))"
    change(stored, f"CREATE TABLE keypoints (image_id INTEGER, rows INTEGER, cols INTEGER, {made})")
    change(stored, "INSERT INTO keypoints VALUES (1, 225000000, 1)")
    with pytest.raises(DataError, match="too big"), open_colmap_database(stored) as database:
        database.keypoints("b #1.jpg")


def test_an_answer_without_end_is_given_up(stored: Path) -> None:
    with pytest.raises(DataError, match="interrupted"), open_colmap_database(stored) as database:
        database.ask(ENDLESS)
