"""Binary files of the ETH local feature evaluation: keypoints, descriptors and matches of its sets.

All are little endian and begin with two int32, the numbers of rows and columns. Keypoints have float32 columns x, y,
sigma, angle in our convention (COLMAP's less 0.5), descriptors float32 rows in the same order, matches uint32 columns
of keypoint numbers from 0.
"""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.files import reading, write_atomically
from keypatch.geometry import Keypoints

KEYPOINTS, DESCRIPTORS, MATCHES = "keypoints", "descriptors", "matches"  # folders
_HEAD = struct.Struct("<ii")
_KEYPOINT_COLUMNS, _MATCH_COLUMNS = 4, 2


def image_file(folder: Path, image: str) -> Path:
    """Where the keypoints or the descriptors of an image lie in their folder."""
    return folder / f"{image}.bin"


def pair_file(folder: Path, first: str, second: str) -> Path:
    """Where the matches of two images lie in their folder."""
    return folder / f"{first}---{second}.bin"


def read_eth_keypoints(path: Path) -> Keypoints:
    """The keypoints of an image; raises DataError for a file that is missing, cut off or holds anything else."""
    x, y, sigma, angle = _read(path, np.dtype("<f4"), "keypoints", _KEYPOINT_COLUMNS).astype(np.float32).T
    with reading(path):
        return Keypoints(x, y, sigma, angle)


def write_eth_keypoints(path: Path, keypoints: Keypoints) -> None:
    """Shapes of sheared keypoints, which the file has no columns for, are left out."""
    _write(path, np.stack([keypoints.x, keypoints.y, keypoints.sigma, keypoints.angle], axis=1).astype("<f4"))


def read_eth_descriptors(path: Path, count: int) -> NDArray[np.float32]:
    """(count, dim) descriptors of an image with so many keypoints; raises DataError as `read_eth_keypoints`."""
    rows = _read(path, np.dtype("<f4"), "descriptors")
    if len(rows) != count:
        raise DataError(
            f"{path} has {len(rows)} descriptors, but the image has {count} keypoints. Describe the image again."
        )
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if broken.size:
        raise DataError(f"{path}: descriptor {broken[0]} is not finite. Describe the image again.")
    return rows.astype(np.float32)


def write_eth_descriptors(path: Path, descriptors: NDArray[np.float32]) -> None:
    _write(path, descriptors.astype("<f4"))


def read_eth_matches(path: Path, counts: tuple[int, int]) -> NDArray[np.int64]:
    """(m, 2) keypoint numbers of images with so many keypoints; raises DataError as `read_eth_keypoints`."""
    rows = _read(path, np.dtype("<u4"), "matches", _MATCH_COLUMNS).astype(np.int64)
    beyond = np.argwhere(rows >= np.array(counts))
    if len(beyond):
        row, column = beyond[0]
        raise DataError(
            f"{path}: match {row} names keypoint {rows[row, column]} of the {('first', 'second')[column]} image, which "
            f"has {counts[column]}. Delete the file to match again."
        )
    return rows


def write_eth_matches(path: Path, indices: NDArray[np.integer]) -> None:
    """Pairs without matches have a file too, of no rows."""
    _write(path, np.asarray(indices).reshape(-1, _MATCH_COLUMNS).astype("<u4"))


def _read(path: Path, kind: np.dtype[np.generic], what: str, columns: int | None = None) -> NDArray[np.generic]:
    """The rows of a file; `columns` where only so many are understood."""
    with reading(path):
        content = path.read_bytes()
    if len(content) < _HEAD.size:
        raise DataError(f"{path} is cut off: it has {len(content)} bytes. Copy it again.")
    rows, found = _HEAD.unpack_from(content)
    if rows < 0 or found < 1 or found != (columns or found):
        expected = f"{columns} columns" if columns else "one column or more"
        raise DataError(f"{path} does not hold {what}: expected {expected}, but it claims {rows} rows of {found}.")
    size = _HEAD.size + rows * found * kind.itemsize
    if len(content) != size:
        raise DataError(
            f"{path} claims {rows} rows of {found} columns, {size} bytes with its header, but has {len(content)}. "
            "It is cut off, or not a file of this benchmark. Copy it again."
        )
    return np.frombuffer(content, kind, offset=_HEAD.size).reshape(rows, found)


def _write(path: Path, rows: NDArray[np.generic]) -> None:
    with write_atomically(path) as file:
        file.write(_HEAD.pack(*rows.shape))
        file.write(rows.tobytes())
