"""Test pairs of the PhotoTour layout: `patch1 point1 unused patch2 point2 unused [more]`, one pair per line."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import write_text
from keypatch.patches.patch_set import Pairs
from keypatch.patches.tables import is_row_of_integers, parse_integers, read_lines

COLUMNS = 6
MEANING = "six integers or more (patch, point, unused, patch, point, unused)"


def find_pairs(folder: Path, n_patches: int, point_id: NDArray[np.int64] | None = None) -> tuple[Pairs, ...]:
    """Every pair list of a folder, by name: m50_*.txt and each other text file whose first line is a pair."""
    lists = (path for path in sorted(folder.glob("*.txt")) if _is_pair_list(path))
    return tuple(read_pairs(path, n_patches, point_id) for path in lists)


def read_pairs(path: Path, n_patches: int, point_id: NDArray[np.int64] | None = None) -> Pairs:
    """The pairs of one list; a pair matches if both its point ids are the same.

    Raises:
        DataError: with the line that is malformed, names a patch the set does not have, or gives a patch another point
            than `point_id` (of the set's info.txt) does.
    """
    table = parse_integers(path, read_lines(path), COLUMNS, MEANING)
    pairs = Pairs(path.stem, first=table[:, 0], second=table[:, 3], is_match=table[:, 1] == table[:, 4])
    for patches, points in ((pairs.first, table[:, 1]), (pairs.second, table[:, 4])):
        outside = (patches < 0) | (patches >= n_patches)
        if outside.any():
            line = int(np.argmax(outside))
            raise DataError(
                f"{path}, line {line + 1}: there is no patch {patches[line]}, the set has {n_patches} patches "
                f"(0 to {n_patches - 1}). The list belongs to another set or sheets are missing."
            )
        if point_id is None:
            continue
        other = point_id[patches] != points
        if other.any():
            line = int(np.argmax(other))
            raise DataError(
                f"{path}, line {line + 1}: patch {patches[line]} shows point {points[line]} here, but point "
                f"{point_id[patches[line]]} in info.txt. The list belongs to another set."
            )
    return pairs


def write_pairs(folder: Path, pairs: Pairs, point_id: NDArray[np.int64]) -> None:
    """`<name>.txt` with seven columns, as in the published lists.

    Raises:
        KeypatchError: `is_match` says otherwise than the point ids, from which readers take it.
    """
    first, second = point_id[pairs.first], point_id[pairs.second]
    if not np.array_equal(first == second, pairs.is_match):
        raise KeypatchError(f"{pairs.name}: a pair matches exactly if both patches show the same point; some do not.")
    rows = zip(pairs.first.tolist(), first.tolist(), pairs.second.tolist(), second.tolist(), strict=True)
    write_text(folder / f"{pairs.name}.txt", "".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in rows))


def _is_pair_list(path: Path) -> bool:
    if path.name in ("info.txt", "interest.txt"):
        return False
    if path.name.startswith("m50_"):
        return True  # a list by its name: if its first line is malformed, the reader says so
    with path.open(encoding="utf-8", errors="replace") as file:
        return is_row_of_integers(file.readline(), COLUMNS)
