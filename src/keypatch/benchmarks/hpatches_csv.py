"""Descriptors of HPatches strips as the public tool keeps them: `<sequence>/<strip>.csv`, a row for each patch."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches_descriptors import StripDescriptors
from keypatch.errors import DataError, KeypatchError
from keypatch.files import reason, write_atomically
from keypatch.patches.hpatches import STRIPS, is_sequence

SUFFIX = ".csv"


def is_csv_folder(path: Path) -> bool:
    """Whether this is a folder of descriptors: one folder in it, at least, holds a file such as ref.csv."""
    return path.is_dir() and any(is_sequence(entry, SUFFIX) for entry in path.iterdir() if entry.is_dir())


def count_csv_rows(folder: Path, names: Sequence[str]) -> list[int]:
    """How many points each sequence shows, by the lines of its ref.csv."""
    return [len(_lines(folder / name / f"ref{SUFFIX}")) for name in names]


def read_csv_strips(
    folder: Path, names: Sequence[str], counts: Sequence[int], strips: Sequence[str] = STRIPS
) -> NDArray[np.float32]:
    """(patches, dim): the strips one after the other, sequence by sequence. The delimiter is a comma or a semicolon.

    Raises:
        DataError: a file is missing, or has other rows or columns than it should, or no numbers, or nan.
    """
    parts: list[NDArray[np.float32]] = []
    for name, count in zip(names, counts, strict=True):
        for strip in strips:
            path = folder / name / f"{strip}{SUFFIX}"
            part = _read(path)
            if len(part) != count:
                raise DataError(
                    f"{path} has {len(part)} rows for the {count} patches of {name}. Write the descriptors again."
                )
            if parts and part.shape[1] != parts[0].shape[1]:
                raise DataError(
                    f"{path} has {part.shape[1]} columns, the files before it {parts[0].shape[1]}. "
                    "Write the descriptors again."
                )
            parts.append(part)
    return np.concatenate(parts)


def write_csv_strips(descriptors: StripDescriptors, folder: Path) -> None:
    """Write all strips, with as many digits as float32 needs to come back unchanged.

    Raises:
        KeypatchError: the folder is not empty, or cannot be written.
    """
    check_csv_target(folder)
    for sequence, name in enumerate(descriptors.names):
        try:
            (folder / name).mkdir(parents=True)
        except OSError as error:
            raise KeypatchError(f"{folder / name} cannot be made: {reason(error)}.") from error
        for number, strip in enumerate(STRIPS):
            with write_atomically(folder / name / f"{strip}{SUFFIX}", "w") as file:
                np.savetxt(file, descriptors.strip(sequence, number), fmt="%.9g", delimiter=",")


def check_csv_target(folder: Path) -> None:
    """KeypatchError unless the folder is empty, or can be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise KeypatchError(f"{folder} is there already and not an empty folder. Choose another for the descriptors.")


def _read(path: Path) -> NDArray[np.float32]:
    lines = _lines(path)
    delimiter = ";" if ";" in lines[0] else ","
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a number beyond float32 becomes inf, refused below
            table = np.loadtxt(lines, np.float32, comments=None, delimiter=delimiter, ndmin=2)
    except ValueError:
        raise DataError(_first_bad_line(path, lines, delimiter)) from None
    if table.shape[1] < 2:
        raise DataError(f"{path} has one column. Check its delimiter, which should be a comma or a semicolon.")
    broken = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if broken.size:
        raise DataError(
            f"{path}, line {broken[0] + 1}: the descriptor holds nan, inf or a number beyond float32, and so do "
            f"{broken.size - 1} more. Write the descriptors again."
        )
    return table


def _lines(path: Path) -> list[str]:
    try:
        lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}. A sequence has {len(STRIPS)} such files.") from None
    if not lines:
        raise DataError(f"{path} is empty. Write the descriptors again.")
    return lines


def _first_bad_line(path: Path, lines: Sequence[str], delimiter: str) -> str:
    width = len(lines[0].split(delimiter))
    for number, line in enumerate(lines, start=1):
        words = line.split(delimiter)
        if len(words) != width or not all(map(_is_number, words)):
            found = line.strip()[:40]
            return f'{path}, line {number}: expected {width} numbers, found "{found}". Write the descriptors again.'
    return f"{path}: some line does not hold {width} numbers. Write the descriptors again."


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
