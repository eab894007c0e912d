"""Text files with one row of numbers per line; a bad line is named."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.files import reading

INTEGER = re.compile(r"[+-]?[0-9]{1,18}")  # 18 digits always fit into 64 bits


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, blank ones at its end left out."""
    with reading(path):
        return path.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()


def parse_integers(path: Path, lines: list[str], columns: int, meaning: str) -> NDArray[np.int64]:
    """The first `columns` integers of every line of `path`, (lines, columns); `meaning` says what was expected.

    Raises:
        DataError: with the number of the first line that is blank, too short or holds something else.
    """
    return _parse(path, lines, columns, meaning, np.dtype(np.int64))


def parse_floats(path: Path, lines: list[str], columns: int, meaning: str) -> NDArray[np.float64]:
    """The first `columns` numbers of every line, (lines, columns), all finite; otherwise as `parse_integers`."""
    table: NDArray[np.float64] = _parse(path, lines, columns, meaning, np.dtype(np.float64))
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        line = int(np.argmin(finite))
        raise DataError(
            f'{path}, line {line + 1}: numbers must be finite, found "{lines[line].strip()}". '
            "Fix the line or write the file again."
        )
    return table


def is_row_of_integers(line: str, columns: int) -> bool:
    words = line.split()[:columns]
    return len(words) == columns and all(INTEGER.fullmatch(word) for word in words)


def _parse(path: Path, lines: list[str], columns: int, meaning: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    if not lines:
        raise DataError(f"{path} is empty; every line should hold {meaning}. Copy it again.")
    try:
        # One pass in C, about ten times faster than a loop; it skips blank lines, hence the comparison of counts.
        table = np.loadtxt(lines, dtype=dtype, comments=None, usecols=range(columns), ndmin=2)
    except ValueError:
        table = None
    if table is None or len(table) != len(lines):
        raise DataError(_first_bad_line(path, lines, columns, meaning, dtype))
    return table


def _first_bad_line(path: Path, lines: list[str], columns: int, meaning: str, dtype: np.dtype[Any]) -> str:
    is_good = is_row_of_integers if dtype.kind == "i" else _is_row_of_floats
    for number, line in enumerate(lines, start=1):
        if not is_good(line, columns):
            found = line.strip()[:60]
            return f'{path}, line {number}: expected {meaning}, found "{found}". Fix the line or copy the file again.'
    return f"{path}: a line does not hold {meaning}. Copy the file again."


def _is_row_of_floats(line: str, columns: int) -> bool:
    try:
        return len([float(word) for word in line.split()[:columns]]) == columns
    except ValueError:
        return False
