"""COLMAP databases of own features: checked in Python before anything reaches COLMAP, which does not check."""

import os
import secrets
from collections.abc import Container, Iterable, Mapping
from glob import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import PARTIAL_SUFFIX, reason
from keypatch.geometry.converters import COLMAP_CORNER, to_colmap
from keypatch.geometry.keypoints import Keypoints
from keypatch.reconstruction.camera_models import Camera
from keypatch.reconstruction.colmap import DatabaseWriter

MARGIN = 1.0  # pixels: detectors refine places, some of them over the border

Pairs = Iterable[tuple[tuple[str, str], ArrayLike]]


def write_database(
    path: str | Path,
    cameras: Mapping[str, Camera],
    keypoints: Mapping[str, Keypoints | NDArray[np.floating]],
    matches: Mapping[tuple[str, str], ArrayLike] | Pairs,
    *,
    share_cameras: bool | Container[str] = False,
) -> Path:
    """A new COLMAP database with cameras, rigs, frames, keypoints and matches, ready for verification and mapping.

    `cameras` has a camera for each image name; with `share_cameras` images with equal cameras share one, or those of
    them that it names, else each has its own. Keypoints are `Keypoints` or places (n, 2) in our pixels, the centre of
    the top-left pixel at (0, 0): 0.5 is added here. Matches are keypoint numbers (m, 2) by pair of names, each keypoint
    at most once.

    Raises:
        KeypatchError: the file exists, or something in it would be wrong; nothing is written then.
    """
    place = Path(path)
    if place.exists():
        raise KeypatchError(f"{place} exists already. Delete it or choose another name.")
    temporary = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        _open_for_writing(temporary)
        _fill(temporary, cameras, keypoints, matches, share_cameras)
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
    matches: Mapping[tuple[str, str], ArrayLike] | Pairs,
    share_cameras: bool | Container[str],
) -> None:
    database = DatabaseWriter(path)
    try:
        all_or_none: Container[str] = cameras if share_cameras else ()
        sharing = all_or_none if isinstance(share_cameras, bool) else share_cameras
        shared: dict[Camera, int] = {}
        images: dict[str, int] = {}
        counts: dict[str, int] = {}
        for name, camera in cameras.items():
            _check_name(name)
            rows = _keypoint_rows(name, keypoints, camera)
            number = shared.get(camera) if name in sharing else None
            if number is None:
                number = database.add_camera(camera)
            if name in sharing:
                shared[camera] = number
            images[name], counts[name] = database.add_image(name, number, rows), len(rows)
        seen: set[frozenset[str]] = set()
        for pair, indices in matches.items() if isinstance(matches, Mapping) else matches:
            checked = _check_matches(pair, indices, counts)
            if frozenset(pair) in seen:
                raise DataError(f"The matches of {pair[0]} and {pair[1]} are given twice. Keep one of them.")
            seen.add(frozenset(pair))
            if len(checked):
                database.add_matches(images[pair[0]], images[pair[1]], checked)
    finally:
        database.close()


def _check_name(name: str) -> None:
    if not name or any(not letter.isprintable() for letter in name):
        raise DataError(f"{name!r} cannot be an image's name in a COLMAP database. Rename the file.")


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
            raise DataError(f"{name}: keypoints are places (n, 2), not {places.dtype} of the shape {places.shape}.")
        rows = (places.astype(np.float64) + COLMAP_CORNER).astype(np.float32)
    if not np.isfinite(rows).all():
        raise DataError(f"{name}: keypoint {np.argwhere(~np.isfinite(rows))[0, 0]} is not finite.")
    size = np.array([camera.width, camera.height])
    beyond = np.flatnonzero((rows[:, :2] < -MARGIN).any(1) | (rows[:, :2] > size + MARGIN).any(1))
    if len(beyond):
        x, y = rows[beyond[0], :2] - COLMAP_CORNER
        raise DataError(
            f"{name}: keypoint {beyond[0]} at ({x:.1f}, {y:.1f}) lies outside the photo of {camera.width} x "
            f"{camera.height} pixels. Were the keypoints found in a copy of another size?"
        )
    return rows


def _check_matches(pair: tuple[str, str], indices: ArrayLike, counts: Mapping[str, int]) -> NDArray[np.integer]:
    """The matches (m, 2) of a pair as integers, every index in range and no keypoint twice."""
    names, rows = f"{pair[0]} and {pair[1]}", np.asarray(indices)
    if pair[0] == pair[1]:
        raise DataError(f"{pair[0]} is matched with itself. Leave this pair out.")
    for name in pair:
        if name not in counts:
            raise DataError(f"{names} are matched, but there is no image {name}.")
    if rows.size == 0:
        return np.empty((0, 2), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
        raise DataError(f"The matches of {names} are {rows.dtype} of the shape {rows.shape}, not integers (m, 2).")
    for column, name in enumerate(pair):
        numbers = rows[:, column]
        if numbers.min() < 0 or numbers.max() >= counts[name]:
            worst = numbers.min() if numbers.min() < 0 else numbers.max()
            raise DataError(
                f"The matches of {names} name keypoint {worst} of {name}, which has {counts[name]}. "
                "Match again: features and matches are not of one run."
            )
        if len(np.unique(numbers)) < len(numbers):
            twice = np.argmax(np.bincount(numbers.astype(np.int64)))
            raise DataError(
                f"The matches of {names} use keypoint {twice} of {name} more than once. Keep mutual nearest neighbours."
            )
    return rows
