"""Keypoints made elsewhere: hloc's h5, COLMAP's database, csv."""

import csv
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.database import open_colmap_database
from keypatch.errors import DataError
from keypatch.features.feature_files import FeatureReader
from keypatch.files import read_head, reading
from keypatch.geometry import Keypoints, from_colmap

_COLUMNS = ("x", "y", "sigma", "angle", "response")
_EVERY = "*"  # stands for the photo in a table that names none


class KeypointSource(Protocol):
    """Keypoints by the name of the photo; threads may read at once."""

    def read(self, name: str) -> Keypoints:
        """Raises DataError: there are none of that name, or they are malformed."""


def open_keypoints(path: str | Path, sigma: float | None = None) -> KeypointSource:
    """The keypoints in a file of any of the kinds; `sigma` is that of all where the file has no scales."""
    path = Path(path)
    if path.is_dir():
        return HlocKeypoints(path, sigma)
    head = read_head(path)
    if head.startswith(b"\x89HDF"):
        return HlocKeypoints(path, sigma)
    return ColmapKeypoints(path, sigma) if head.startswith(b"SQLite format 3") else CsvKeypoints(path, sigma)


class HlocKeypoints:
    """A feature file in hloc's layout: ours, or one whose pixels are counted as ours (not hloc's own `dog`)."""

    def __init__(self, path: Path, sigma: float | None) -> None:
        self._reader, self._sigma = FeatureReader(path), sigma

    def read(self, name: str) -> Keypoints:
        return self._reader.keypoints(name, self._sigma)


class ColmapKeypoints:
    """A COLMAP database, opened for reading only and without COLMAP."""

    def __init__(self, path: Path, sigma: float | None) -> None:
        self._path, self._sigma = path, sigma

    def read(self, name: str) -> Keypoints:
        with open_colmap_database(self._path) as database:
            rows = database.keypoints(name)
        with reading(f"{self._path}: {name}", "list of keypoints"):
            return from_colmap(rows, self._sigma)


class CsvKeypoints:
    """A table with a header: x, y and, where known, sigma, angle (radians clockwise), response; image names the photo.

    In a table without the column image the keypoints are those of every photo.
    """

    def __init__(self, path: Path, sigma: float | None) -> None:
        self._path, self._sigma = path, sigma
        self._tables = _read_csv(path)

    def read(self, name: str) -> Keypoints:
        table = self._tables.get(name, self._tables.get(_EVERY))
        if table is None:
            raise DataError(f"{self._path} has no keypoints for {name}.")
        x, y, sigma, angle, response = table.T
        if np.isnan(sigma).any() and self._sigma is None:
            raise DataError(f"{self._path}: the keypoints of {name} have no scale. Set it with --sigma.")
        sigma = np.nan_to_num(sigma, nan=self._sigma or 0)
        strength = None if np.isnan(response).any() else response
        with reading(f"{self._path}: {name}", "list of keypoints"):
            return Keypoints(x, y, sigma, np.nan_to_num(angle, nan=0), None, strength)


def _read_csv(path: Path) -> dict[str, NDArray[np.float32]]:
    """(n, 5) by the name of the photo: the columns, nan where the table has none."""
    rows = dict[str, list[list[float]]]()
    remedy = "Keypoints come from an hloc .h5 file, a COLMAP database or a csv table."
    with reading(path, "csv table", remedy), path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if not {"x", "y"} <= set(reader.fieldnames or ()):
            raise DataError(f"{path} is not a keypoint table: its first line must name the columns x and y.")
        if "image" not in (reader.fieldnames or ()):
            rows[_EVERY] = []
        for row in reader:
            with reading(f"{path}, line {reader.line_num}", "row of numbers"):
                values = [float(row.get(column) or "nan") for column in _COLUMNS]
            photo = row.get("image", _EVERY)
            if not photo:
                raise DataError(f"{path}, line {reader.line_num}: the column image is empty. Name the photo.")
            rows.setdefault(photo, []).append(values)
    return {name: np.array(values, np.float32).reshape(-1, len(_COLUMNS)) for name, values in rows.items()}
