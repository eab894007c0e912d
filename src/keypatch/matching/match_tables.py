"""The matches of two photographs as a table that other programs read: csv or JSON."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.errors import KeypatchError
from keypatch.files import write_atomically, write_json
from keypatch.matching.matched import MatchedPhotos
from keypatch.provenance import provenance

FORMAT, NUMBER = "keypatch-photo-matches", 1
TABLES = (".csv", ".json")
_COLUMNS = ("index0", "index1", "x0", "y0", "x1", "y1", "score")


def require_table(path: Path) -> None:
    """KeypatchError unless the file's name says which kind it is to be."""
    if path.suffix.lower() not in TABLES:
        raise KeypatchError(f"The matches of two photos are written as {' or '.join(TABLES)}, not as {path.name}.")


def write_table(path: Path, matched: MatchedPhotos) -> None:
    """One row per match that is left; JSON also has the counts, the settings and the matrix."""
    rows = _rows(matched)
    if path.suffix.lower() == ".csv":
        with write_atomically(path, "w") as file:
            writer = csv.DictWriter(file, ["image0", "image1", *(rows[0] if rows else _COLUMNS)], lineterminator="\n")
            writer.writeheader()
            writer.writerows({"image0": matched.names[0], "image1": matched.names[1], **row} for row in rows)
        return
    matrix = matched.matches.matrix
    value = {
        "format": FORMAT,
        "format_number": NUMBER,
        "images": matched.names,
        "descriptor": matched.features[0].descriptor,
        "counts": matched.counts(),
        "settings": matched.matching.settings(),
        "matrix": None if matrix is None else matrix.tolist(),
        "matches": rows,
        "provenance": provenance().to_json(),
    }
    write_json(path, value)


def _rows(matched: MatchedPhotos) -> list[dict[str, Any]]:
    matches = matched.matches
    places = [matched.features[side].keypoints.xy[matches.indices[:, side]] for side in (0, 1)]
    table = np.column_stack([*places, matches.scores]).tolist()
    rows = [
        dict(zip(_COLUMNS, (*pair, *row), strict=True))
        for pair, row in zip(matches.indices.tolist(), table, strict=True)
    ]
    if matched.truth is not None:
        for row, right in zip(rows, matched.right(matches).tolist(), strict=True):
            row["right"] = int(right)
    return rows
