"""The lists of HPatches' tasks: which pairs are verified, which patches are retrieved; read from the public files."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches_descriptors import IMAGES
from keypatch.errors import DataError
from keypatch.files import reason, require_folder, safe_name
from keypatch.patches.hpatches import split_sequences

Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
Table = NDArray[np.int32]

_FILES = {  # field of Tasks -> start of the file's name, columns
    "positives": ("verif_pos", "s1,t1,idx1,s2,t2,idx2"),
    "inter": ("verif_neg_inter", "s1,t1,idx1,s2,t2,idx2"),
    "intra": ("verif_neg_intra", "s1,t1,idx1,s2,t2,idx2"),
    "queries": ("retr_queries", "s,idx"),
    "distractors": ("retr_distractors", "s,idx"),
}


@dataclass(frozen=True, eq=False)
class Tasks:
    """Pairs (n, 6): sequence, image, row of the first patch, then of the second; ref patches (n, 2): sequence, row.

    A sequence is its number among those scored; image 0 is ref, image k is e<k>, h<k> or t<k>, by the level asked for.
    """

    positives: Table  # pairs of the same point
    inter: Table  # pairs of different points of any sequences
    intra: Table  # pairs of different points of one sequence
    queries: Table
    distractors: Table

    def update(self, digest: "hashlib._Hash") -> None:
        """Put the lists into the hash that results carry."""
        for field in fields(self):
            digest.update(field.name.encode() + np.ascontiguousarray(getattr(self, field.name)).tobytes())


def find_split(split: str, part: Part, tasks: Path | None) -> tuple[str, ...]:
    """The sequences of a split, of those in `<tasks>/splits/splits.json` where there is one, or of the public ones."""
    own = _own_splits(tasks / "splits" / "splits.json") if tasks else {}
    if split not in own:
        return split_sequences(split, part)
    if part not in own[split]:
        remedy = "for training. Leave out pca, or choose another" if part == "train" else "test. Copy splits.json again"
        raise DataError(f'The split "{split}" of {tasks} has no part {remedy}.')
    return tuple(own[split][part])


def find_listed(folder: Path) -> set[str]:
    """The sequences that the lists of the only split of a folder name."""
    require_folder(folder)
    names: set[str] = set()
    for path, columns in _paths(folder, _only_split(folder)).values():
        for line in _lines(path, columns):
            names.update(line.split(",")[::3])  # s1 and s2, or s
    return names


def read_tasks(folder: Path, split: str, names: Sequence[str], counts: Sequence[int]) -> Tasks:
    """The five files of a split; for "all", of the only split that the folder has.

    Raises:
        DataError: a file is missing, empty or malformed, or does not fit these sequences and their numbers of rows.
    """
    require_folder(folder)
    name = _only_split(folder) if split == "all" else split
    rows = dict(zip(names, counts, strict=True))
    files = _paths(folder, name)
    tables = {field: _read(path, columns, rows) for field, (path, columns) in files.items()}
    tasks, paths = Tasks(**tables), {field: path for field, (path, _) in files.items()}
    _check_pairs(tasks, paths)
    for field in ("queries", "distractors"):
        _refuse_repeated(tables[field], paths[field])
    both = np.concatenate([np.unique(tasks.queries, axis=0), np.unique(tasks.distractors, axis=0)])
    if len(np.unique(both, axis=0)) < len(both):
        raise DataError(f"{paths['distractors']} holds queries of {paths['queries'].name}. Take both from one release.")
    return tasks


def _own_splits(path: Path) -> dict[str, dict[str, list[str]]]:
    """The splits beside the lists, as the public tool keeps them; none where there is no such file."""
    if not path.exists():
        return {}
    try:
        splits: dict[str, dict[str, list[str]]] = json.loads(path.read_text(encoding="utf-8"))
        parts = [(name, part, own) for name, split in splits.items() for part, own in split.items() if part in PARTS]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not a table of splits ({error}). Copy it again.") from None
    for name, part, sequences in parts:
        if not isinstance(sequences, list) or not sequences or not all(isinstance(each, str) for each in sequences):
            raise DataError(
                f'{path}: "{part}" of the split "{name}" should be a list of names of sequences, found '
                f"{json.dumps(sequences)[:40]}. Copy it again."
            )
        for each in sequences:
            safe_name(each, str(path))
    return splits


def _paths(folder: Path, split: str) -> dict[str, tuple[Path, str]]:
    """The file and its columns for each field of Tasks."""
    return {field: (folder / f"{start}_split-{split}.csv", columns) for field, (start, columns) in _FILES.items()}


def _only_split(folder: Path) -> str:
    found = sorted(path.stem.partition("_split-")[2] for path in folder.glob("verif_pos_split-*.csv"))
    if len(found) != 1:
        there = f"the lists of the splits {', '.join(found)}; choose one" if found else "no verif_pos_split-NAME.csv"
        raise DataError(f"{folder} has {there}. Set split=NAME and tasks=DIR.")
    return found[0]


def _read(path: Path, columns: str, rows: Mapping[str, int]) -> Table:
    lines = _lines(path, columns)
    numbers = {name: number for number, name in enumerate(rows)}
    converters: Any = {k: numbers.__getitem__ for k, column in enumerate(columns.split(",")) if column[0] == "s"}
    try:
        table: Table | None = np.loadtxt(lines, np.int32, comments=None, delimiter=",", converters=converters, ndmin=2)
    except (ValueError, KeyError):
        table = None
    limits = np.array(list(rows.values()))
    good = table is not None and table.shape == (len(lines), columns.count(",") + 1) and _fits(table, limits)
    if table is None or not good:
        raise DataError(_first_bad_line(path, lines, columns, rows))
    return table


def _lines(path: Path, columns: str) -> list[str]:
    try:
        head, *lines = path.read_text(encoding="utf-8", errors="replace").rstrip().splitlines() or [""]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}. A split has five such files.") from None
    if head.replace(" ", "") != columns:
        raise DataError(f'{path}, line 1: expected "{columns}", found "{head[:40]}". Copy the file again.')
    if not lines:
        raise DataError(f"{path} has no rows. Copy it again.")
    return lines


def _fits(table: Table, limits: NDArray[np.int64]) -> bool:
    """Whether every image and row of a table exists."""
    if table.shape[1] == 2:
        return bool(((table[:, 1] >= 0) & (table[:, 1] < limits[table[:, 0]])).all())
    images = table[:, [1, 4]]
    return (
        bool(((images >= 0) & (images <= IMAGES)).all())
        and _fits(table[:, [0, 2]], limits)
        and _fits(table[:, [3, 5]], limits)
    )


def _first_bad_line(path: Path, lines: Sequence[str], columns: str, rows: Mapping[str, int]) -> str:
    for number, line in enumerate(lines, start=2):
        wrong = _wrong(line, columns.split(","), rows)
        if wrong:
            return f"{path}, line {number}: {wrong}. Is it the list of another split?"
    return f"{path} does not hold the columns {columns}. Copy it again."


def _wrong(line: str, columns: Sequence[str], rows: Mapping[str, int]) -> str:
    """What is wrong with a line of a list; nothing, if it is right."""
    words = line.split(",")
    if len(words) != len(columns):
        return f'expected {",".join(columns)}, found "{line.strip()[:40]}"'
    sequence = ""
    for column, word in zip(columns, words, strict=True):
        if column[0] == "s":
            sequence = word
            if word not in rows:
                return f'the sequence "{word[:40]}" is not among the {len(rows)} that are scored'
            continue
        limit, what = (rows[sequence], f"rows of {sequence}") if column[0] == "i" else (IMAGES + 1, "images")
        if not word.strip().isdecimal() or int(word) >= limit:
            return f'{column} is "{word.strip()[:40]}", but the {limit} {what} are 0 to {limit - 1}'
    return ""


def _check_pairs(tasks: Tasks, paths: Mapping[str, Path]) -> None:
    if not len(tasks.positives) == len(tasks.inter) == len(tasks.intra):
        sizes = ", ".join(f"{paths[k].name} {len(getattr(tasks, k)):,}" for k in ("positives", "inter", "intra"))
        raise DataError(f"The lists of pairs have different numbers of rows: {sizes}. Take all from one release.")
    for field, table in (("positives", tasks.positives), ("intra", tasks.intra)):
        one_sequence, same_row = table[:, 0] == table[:, 3], table[:, 2] == table[:, 5]
        good = one_sequence & (same_row if field == "positives" else ~same_row)
        if not good.all():
            should = "show the same point" if field == "positives" else "be different points of one sequence"
            line = int(np.argmin(good)) + 2
            raise DataError(f"{paths[field]}, line {line}: the two patches should {should}. Copy the file again.")


def _refuse_repeated(table: Table, path: Path) -> None:
    _, first = np.unique(table, axis=0, return_index=True)
    if len(first) < len(table):
        line = int(np.setdiff1d(np.arange(len(table)), first)[0]) + 2
        raise DataError(f"{path}, line {line}: this patch is listed before. Copy the file again.")
