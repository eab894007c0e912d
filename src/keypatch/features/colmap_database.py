"""COLMAP's databases, read without COLMAP, which would bring an old one up to date."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError

_IN_BYTES = (-1, 0)  # COLMAP's types of descriptors: unknown, SIFT; the others are float32


@dataclass(frozen=True)
class ColmapDatabase:
    """What is asked of a database of any version of COLMAP."""

    path: Path
    connection: sqlite3.Connection

    def ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that answer SQL."""
        return self.connection.execute(question, values).fetchall()

    def described_images(self) -> list[str]:
        """The names of the images that have a list of keypoints, be it empty."""
        named = "SELECT name FROM images JOIN keypoints USING (image_id) WHERE typeof(name) = 'text' ORDER BY name"
        return [name for (name,) in self.ask(named)]

    def keypoints(self, name: str) -> NDArray[np.float32]:
        """(n, columns) an image's keypoints as they are stored; DataError where there are none or they are cut off."""
        ask = "SELECT rows, cols, data FROM keypoints JOIN images USING (image_id) WHERE name = ?"
        found = self.ask(ask, name)
        if not found:
            raise DataError(f"{self.path} has no keypoints of {name}.")
        rows, columns, data = found[0]
        return self._array(np.dtype(np.float32), rows, 4 if rows == 0 else columns, data, f"keypoints of {name}")

    def descriptors(self, name: str) -> NDArray[np.uint8] | NDArray[np.float32] | None:
        """(n, d) an image's descriptors, SIFT in bytes and all others as float32; None where there are none."""
        of_image = "FROM descriptors JOIN images USING (image_id) WHERE name = ?"
        found = self.ask(f"SELECT rows, cols, data {of_image}", name)
        if not found or not found[0][0]:
            return None
        rows, columns, data = found[0]
        what = f"descriptors of {name}"
        values = self._array(np.dtype(np.uint8), rows, columns, data, what)
        typed = "type" in [column for _, column, *_ in self.ask("PRAGMA table_info(descriptors)")]
        if not typed or self.ask(f"SELECT type {of_image}", name)[0][0] in _IN_BYTES:
            return values
        if values.shape[1] % 4:
            raise DataError(f"{self.path}: the {what} are no float32 of whole length. Make the database again.")
        return values.view(np.float32)

    def _array(self, kind: "np.dtype[Any]", rows: object, columns: object, data: object, what: str) -> NDArray[Any]:
        height, width = (each if isinstance(each, int) else -1 for each in (rows, columns))  # SQLite checks no types
        content = data if isinstance(data, bytes) else b""
        if height < 0 or width < 1 or len(content) != height * width * kind.itemsize:
            raise DataError(f"{self.path}: the {what} are cut off. Make the database again.")
        return np.frombuffer(content, kind).reshape(height, width)


@contextmanager
def open_colmap_database(path: Path) -> Iterator[ColmapDatabase]:
    """A database for reading only; DataError where it is none, or has other tables than those it is asked for."""
    file = path.resolve()  # what a writer has not folded in yet lies beside the file itself, not beside a link to it
    # in today's databases SQLite would make files for writers beside them, and fail where it may not
    in_use = any(file.with_name(file.name + end).exists() for end in ("-wal", "-journal"))
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True)) as connection:
            yield ColmapDatabase(path, connection)
    except sqlite3.Error as error:
        raise DataError(f"{path} is not a COLMAP database that can be read ({error}).") from error
