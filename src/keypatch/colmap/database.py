"""COLMAP's databases: read without COLMAP, which would upgrade old ones in place, and written through pycolmap.

COLMAP trusts what a database says, and crashes on what is wrong: everything is checked before it is written.
"""

import os
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from glob import escape
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.colmap.cameras import MODELS, Camera
from keypatch.colmap.package import load_pycolmap
from keypatch.errors import DataError, KeypatchError
from keypatch.files import reading, reason, safe_name, temporary_path
from keypatch.geometry.converters import COLMAP_CORNER, to_colmap
from keypatch.geometry.keypoints import Keypoints

MARGIN = 1.0  # pixels: detectors refine positions, some of them across the border
_IN_BYTES = (-1, 0)  # COLMAP's types of descriptors: unknown, SIFT; the others are float32
_MODEL_NAMES = {model.number: name for name, model in MODELS.items()}
_SMALLEST_LIMIT = 10**6  # bytes of a value; beyond that, no value is larger than the file
_CAMERAS = """
    SELECT name, camera_id, model, width, height, params, prior_focal_length
    FROM images LEFT JOIN cameras USING (camera_id) ORDER BY name
"""

Pairs = Iterable[tuple[tuple[str, str], ArrayLike]]


@dataclass(frozen=True)
class ColmapDatabase:
    """A database of any version of COLMAP, open for reading."""

    path: Path
    connection: sqlite3.Connection

    def ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that answer SQL; sqlite3.Error where that takes more steps than a file of its size can need."""
        steps = repeat(0, self.connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) // 100)  # ten for each byte
        self.connection.set_progress_handler(lambda: next(steps, 1), 1000)
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
            raise DataError(f"{self.path} has no keypoints for {name}.")
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
            raise DataError(f"{self.path}: the {what} are not float32 numbers. Create the database again.")
        return values.view(np.float32)

    def _array(self, kind: "np.dtype[Any]", rows: object, columns: object, data: object, what: str) -> NDArray[Any]:
        height, width = (each if isinstance(each, int) else -1 for each in (rows, columns))  # SQLite checks no types
        content = data if isinstance(data, bytes) else b""
        if height < 0 or width < 1 or len(content) != height * width * kind.itemsize:
            raise DataError(f"{self.path}: the {what} are cut off. Create the database again.")
        return np.frombuffer(content, kind).reshape(height, width)


@contextmanager
def open_colmap_database(path: Path) -> Iterator[ColmapDatabase]:
    """A database for reading only; DataError if it is not one, or lacks a table that is asked for.

    COLMAP makes tables and indices alone. A view could answer with more than there is room or time for.
    """
    file = path.resolve()  # a writer's journal lies beside the file itself, not beside a link to it
    # else SQLite would write files of its own beside the database, and fail where it may not
    in_use = any(file.with_name(file.name + end).exists() for end in ("-wal", "-journal"))
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    address = f"file:{quote(str(file))}?{how}"
    with reading(path, "COLMAP database"), closing(sqlite3.connect(address, uri=True)) as connection:
        size = sum(each.stat().st_size for each in file.parent.glob(f"{escape(file.name)}*"))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, _SMALLEST_LIMIT))
        connection.execute("PRAGMA trusted_schema = OFF")
        database = ColmapDatabase(path, connection)
        for kind, name in database.ask("SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')"):
            raise DataError(f"{path} has a {kind} ({name}), which COLMAP never makes. Create the database again.")
        yield database


class NumberedCamera(NamedTuple):
    """A camera and its number in the database: images with the same number share it."""

    number: int
    camera: Camera


def read_database_cameras(path: Path) -> dict[str, NumberedCamera]:
    """The camera of every image by its name, from a database of any version of COLMAP, which stays as it is.

    Raises:
        DataError: the file is not a COLMAP database, or an image has no camera of a known model.
    """
    with open_colmap_database(path) as database:
        rows = database.ask(_CAMERAS)
    found = {}
    for name, number, model, width, height, params, known in rows:
        if model not in _MODEL_NAMES:
            missing = "no camera" if model is None else f"a camera with the unknown model {model}"
            raise DataError(f"{path}: {name} has {missing}. Create the database again with another camera model.")
        with reading(f"{path}: the camera of {name}", "camera", "Create the database again."):
            values = tuple(np.frombuffer(params, "<f8").tolist())
            camera = Camera(_MODEL_NAMES[model], int(width), int(height), values, focal_known=bool(known))
        found[safe_name(str(name), str(path))] = NumberedCamera(number, camera)
    return found


def write_database(
    path: str | Path,
    cameras: Mapping[str, Camera],
    keypoints: Mapping[str, Keypoints | NDArray[np.floating]],
    matches: Mapping[tuple[str, str], ArrayLike] | Pairs,
    *,
    share_cameras: bool | Container[str] = False,
) -> Path:
    """A new COLMAP database with cameras, rigs, frames, keypoints and matches, ready for verification and mapping.

    `cameras` has a camera for each image name; with `share_cameras` images with equal cameras share one, or only
    those that it names; else each has its own. Keypoints are `Keypoints` or places (n, 2) in our pixels, the centre of
    the top-left pixel at (0, 0): 0.5 is added here. Matches are keypoint numbers (m, 2) by pair of names, each keypoint
    at most once.

    Raises:
        KeypatchError: the file exists, or something in it would be wrong; nothing is written then.
    """
    place = Path(path)
    if place.exists():
        raise KeypatchError(f"{place} already exists. Delete it or choose another name.")
    sharing: Container[str] = cameras if share_cameras is True else share_cameras or ()
    pairs = matches.items() if isinstance(matches, Mapping) else matches
    temporary = temporary_path(place)
    try:
        _open_for_writing(temporary)
        _fill(temporary, cameras, keypoints, pairs, sharing)
        os.replace(temporary, place)
    except RuntimeError as error:  # of SQLite, by pycolmap
        raise KeypatchError(f"{place} cannot be written ({error}). Is the disk full?") from error
    finally:
        for leftover in place.parent.glob(f"{escape(temporary.name)}*"):  # also SQLite's journals
            leftover.unlink(missing_ok=True)
    return place


def _open_for_writing(path: Path) -> None:
    """SQLite's own messages do not say why a file cannot be made."""
    try:
        path.touch()
    except OSError as error:
        raise KeypatchError(f"{path.parent} cannot be written to: {reason(error)}. Choose another folder.") from error


def _fill(
    path: Path,
    cameras: Mapping[str, Camera],
    keypoints: Mapping[str, Keypoints | NDArray[np.floating]],
    matches: Pairs,
    sharing: Container[str],
) -> None:
    images: dict[str, int] = {}
    counts: dict[str, int] = {}
    rigs: dict[Camera | str, tuple[int, int]] = {}  # by shared camera, or by the image that has one of its own
    seen: set[frozenset[str]] = set()
    with closing(load_pycolmap().Database.open(str(path))) as database:
        for name, camera in cameras.items():
            if not is_image_name(name):
                raise DataError(f"{name!r} is not a valid image name in COLMAP. Rename the file.")
            rows, key = _keypoint_rows(name, keypoints, camera), camera if name in sharing else name
            if key not in rigs:
                rigs[key] = _add_camera(database, camera)
            images[name], counts[name] = _add_image(database, name, *rigs[key], rows), len(rows)
        for pair, indices in matches:
            checked = _check_matches(pair, indices, counts)
            if frozenset(pair) in seen:
                raise DataError(f"The matches of {pair[0]} and {pair[1]} are given twice. Remove one of them.")
            seen.add(frozenset(pair))
            if len(checked):
                numbers = np.ascontiguousarray(checked, np.uint32)
                database.write_matches(images[pair[0]], images[pair[1]], numbers)


def _add_camera(database: Any, camera: Camera) -> tuple[int, int]:
    """The numbers of a new camera and of the rig that COLMAP wants around each."""
    colmap = load_pycolmap()
    row = colmap.Camera(model=camera.model, width=camera.width, height=camera.height, params=list(camera.params))
    if not row.verify_params():
        raise KeypatchError(f"COLMAP does not accept the parameters {camera.params} of a {camera.model} camera.")
    row.has_prior_focal_length = camera.focal_known
    row.camera_id = database.write_camera(row)
    rig = colmap.Rig()
    rig.add_ref_sensor(row.sensor_id)
    return row.camera_id, database.write_rig(rig)


def _add_image(database: Any, name: str, camera: int, rig: int, keypoints: NDArray[np.float32]) -> int:
    """The number of a new image, with its frame in the rig and its keypoints as rows of COLMAP."""
    colmap = load_pycolmap()
    image, frame = colmap.Image(name=name, camera_id=camera), colmap.Frame()
    image.image_id = database.write_image(image)
    frame.rig_id = rig
    frame.add_data_id(image.data_id)
    database.write_frame(frame)
    database.write_keypoints(image.image_id, np.ascontiguousarray(keypoints, np.float32))
    return int(image.image_id)


def is_image_name(name: str) -> bool:
    """Whether COLMAP can name an image so: without control characters and halves of surrogate pairs."""
    return bool(name) and not any(category(letter) in ("Cc", "Cs") for letter in name)


def _keypoint_rows(
    name: str, keypoints: Mapping[str, Keypoints | NDArray[np.floating]], camera: Camera
) -> NDArray[np.float32]:
    """COLMAP's rows of an image's keypoints; they must be finite and lie in the image, or hardly outside."""
    if name not in keypoints:
        raise DataError(f"{name} has no keypoints. Describe it, or leave it out.")
    found = keypoints[name]
    if isinstance(found, Keypoints):
        rows = to_colmap(found, 4 if found.shape is None else 6)
    else:
        places = np.asarray(found)
        if places.ndim != 2 or places.shape[1] != 2 or not np.issubdtype(places.dtype, np.number):
            raise DataError(f"{name}: keypoints must be an (n, 2) array, not {places.dtype} of shape {places.shape}.")
        rows = (places.astype(np.float64) + COLMAP_CORNER).astype(np.float32)
    if not np.isfinite(rows).all():
        raise DataError(f"{name}: keypoint {np.argwhere(~np.isfinite(rows))[0, 0]} is not finite.")
    size = np.array([camera.width, camera.height])
    beyond = np.flatnonzero((rows[:, :2] < -MARGIN).any(1) | (rows[:, :2] > size + MARGIN).any(1))
    if len(beyond):
        x, y = rows[beyond[0], :2] - COLMAP_CORNER
        raise DataError(
            f"{name}: keypoint {beyond[0]} at ({x:.1f}, {y:.1f}) lies outside the photo of {camera.width} x "
            f"{camera.height} pixels. Were the keypoints detected in a copy of another size?"
        )
    return rows


def _check_matches(pair: tuple[str, str], indices: ArrayLike, counts: Mapping[str, int]) -> NDArray[np.integer]:
    """The matches (m, 2) of a pair as integers, every index in range and no keypoint twice."""
    names, rows = f"{pair[0]} and {pair[1]}", np.asarray(indices)
    if pair[0] == pair[1]:
        raise DataError(f"{pair[0]} is matched with itself. Leave this pair out.")
    for name in pair:
        if name not in counts:
            raise DataError(f"There are matches of {names}, but no image {name}.")
    if rows.size == 0:
        return np.empty((0, 2), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
        raise DataError(f"The matches of {names} must be integers (m, 2), not {rows.dtype} of shape {rows.shape}.")
    for column, name in enumerate(pair):
        numbers = rows[:, column]
        if numbers.min() < 0 or numbers.max() >= counts[name]:
            worst = numbers.min() if numbers.min() < 0 else numbers.max()
            raise DataError(
                f"The matches of {names} name keypoint {worst} of {name}, which has {counts[name]}. "
                "Features and matches are from different runs: match again."
            )
        if len(np.unique(numbers)) < len(numbers):
            twice = np.argmax(np.bincount(numbers.astype(np.int64)))
            raise DataError(
                f"The matches of {names} use keypoint {twice} of {name} more than once. Keep only mutual nearest "
                "neighbours."
            )
    return rows
