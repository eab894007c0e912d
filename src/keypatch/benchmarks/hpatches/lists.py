"""The lists of HPatches' tasks, which say which pairs are verified and which patches retrieved: read or drawn."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches.descriptors import IMAGES
from keypatch.errors import DataError
from keypatch.files import read_json, reading, require_folder, safe_name
from keypatch.patches.hpatches import read_strip, split_sequences
from keypatch.patches.tables import read_lines

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
PAIRS, QUERIES, DISTRACTORS = 1_000_000, 10_000, 20_000  # of the public lists
CONTRAST = 10.0  # standard deviation of the grey values that a patch to be retrieved exceeds in the public lists
PUBLIC_SEED = 42
SEED = 0


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
        remedy = (
            "training part. Leave out pca, or choose another"
            if part == "train"
            else "test part. Copy splits.json again"
        )
        raise DataError(f'The split "{split}" of {tasks} has no {remedy}.')
    return tuple(own[split][part])


def find_listed(folder: Path) -> set[str]:
    """The sequences that the lists of the only split of a folder name."""
    require_folder(folder)
    files = _paths(folder, _only_split(folder)).values()
    lines = (line for path, columns in files for line in _lines(path, columns))
    return {name for line in lines for name in line.split(",")[::3]}  # s1 and s2, or s


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
    both = np.concatenate([tasks.queries, tasks.distractors])
    if len(np.unique(both, axis=0)) < len(both):
        raise DataError(
            f"{paths['queries']} and {paths['distractors'].name} list a patch twice. Take both from one release."
        )
    return tasks


def _own_splits(path: Path) -> dict[str, dict[str, list[str]]]:
    """The splits beside the lists, as the public tool keeps them; none where there is no such file."""
    if not path.exists():
        return {}
    with reading(path, "table of splits"):
        splits: dict[str, dict[str, list[str]]] = read_json(path)
        parts = [(name, part, own) for name, split in splits.items() for part, own in split.items() if part in PARTS]
    for name, part, sequences in parts:
        if not isinstance(sequences, list) or not sequences or not all(isinstance(each, str) for each in sequences):
            raise DataError(
                f'{path}: "{part}" of the split "{name}" should be a list of sequence names, found '
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
    with reading(path, f"table of {columns}", "Is it the list of another split?"):
        table: Table = np.loadtxt(lines, np.int32, comments=None, delimiter=",", converters=converters, ndmin=2)
    if table.shape != (len(lines), columns.count(",") + 1):
        raise DataError(f"{path} does not have the columns {columns} in every line. Copy it again.")
    good = _fits(table, np.array(list(rows.values())))
    if not good.all():
        line = int(np.argmin(good))
        raise DataError(
            f'{path}, line {line + 2}: "{lines[line]}" names an image or a row that does not exist. Is it the list of '
            "another split?"
        )
    return table


def _lines(path: Path, columns: str) -> list[str]:
    head, *lines = read_lines(path) or [""]
    if head.replace(" ", "") != columns:
        raise DataError(f'{path}, line 1: expected "{columns}", found "{head[:40]}". Copy the file again.')
    if not lines:
        raise DataError(f"{path} has no rows. Copy it again.")
    return lines


def _fits(table: Table, limits: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the images and rows of each line exist."""
    if table.shape[1] == 2:
        return np.asarray((table[:, 1] >= 0) & (table[:, 1] < limits[table[:, 0]]))
    images = table[:, [1, 4]]
    exist = ((images >= 0) & (images <= IMAGES)).all(axis=1)
    return np.asarray(exist & _fits(table[:, [0, 2]], limits) & _fits(table[:, [3, 5]], limits))


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


def draw_tasks(names: Sequence[str], counts: Sequence[int]) -> Tasks:
    """Lists for a set without public ones, the same whenever names and numbers of rows are the same.

    As large as the public ones, but at most 20 pairs for each point, a fifth of the points as queries and two fifths as
    distractors, which are about the shares of split a. Inter pairs are always of two sequences; where there is one
    sequence only, they are absent, and so are distractors.
    """
    sizes = np.asarray(counts)
    if sizes.min() < 2:
        raise DataError(f"{names[int(sizes.argmin())]} has one patch, but a pair needs two. Leave it out.")
    rng, total = np.random.default_rng(SEED), int(sizes.sum())
    pairs = min(PAIRS, 20 * total)
    sequence = rng.integers(0, len(sizes), pairs)
    images = rng.permuted(np.tile(np.arange(IMAGES + 1), (pairs, 1)), axis=1)[:, :2]
    row = rng.integers(0, sizes[sequence])
    other_row = (row + rng.integers(1, sizes[sequence])) % sizes[sequence]
    intra = _pairs(sequence, images, row, sequence, other_row)
    positives = _pairs(sequence, images, row, sequence, row)
    points = np.stack([np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(n) for n in sizes])], axis=1)
    points = rng.permutation(points).astype(np.int32)
    queries, others = min(QUERIES, max(1, total // 5)), min(DISTRACTORS, max(1, 2 * total // 5))
    if len(sizes) == 1:
        return Tasks(positives, positives[:0], intra, points[:queries], points[:0])
    other = (sequence + rng.integers(1, len(sizes), pairs)) % len(sizes)
    inter = _pairs(sequence, images, row, other, rng.integers(0, sizes[other]))
    return Tasks(positives, inter, intra, points[:queries], points[queries : queries + others])


def redraw_public_tasks(folder: Path, names: Sequence[str], counts: Sequence[int]) -> Tasks:
    """The lists of a public split, drawn again as they were made: legacy random numbers from the seed 42.

    `names` in the split's order. Needs the strips: queries and distractors are ref patches of some contrast.
    """
    sizes = np.asarray(counts)
    queries, distractors = draw_public_candidates(sizes)
    contrast = [read_strip(folder, name, "ref").std(axis=(1, 2)) > CONTRAST for name in names]
    queries = _first_ones(queries, contrast)[:QUERIES]
    distractors = _first_ones(distractors, contrast)
    chosen = {tuple(query) for query in queries.tolist()}
    kept = [tuple(patch) not in chosen for patch in distractors.tolist()]
    return Tasks(*draw_public_pairs(sizes, PAIRS), queries, distractors[kept][:DISTRACTORS])


def draw_public_pairs(sizes: NDArray[np.int64], pairs: int) -> tuple[Table, Table, Table]:
    """Positives, inter and intra as in the public files; a million rows take most of a minute."""
    rng = np.random.RandomState(PUBLIC_SEED)
    sequence = rng.randint(0, len(sizes), pairs)
    # legacy numpy draws two without replacement as the head of a permutation; the last image was never drawn
    rows = np.array([rng.permutation(size)[:2] for size in sizes[sequence]])
    images = np.array([rng.permutation(IMAGES)[:2] for _ in range(pairs)])
    other = rng.randint(0, len(sizes), pairs)
    inter = _pairs(sequence, images, rows[:, 0], other, rng.randint(0, sizes[other]))
    positives = _pairs(sequence, images, rows[:, 0], sequence, rows[:, 0])
    return positives, inter, _pairs(sequence, images, rows[:, 0], sequence, rows[:, 1])


def draw_public_candidates(sizes: NDArray[np.int64]) -> tuple[Table, Table]:
    """Queries and distractors (n, 2) in the order of the public files, before those of low contrast are left out."""
    rng = np.random.RandomState(PUBLIC_SEED)
    tables = []
    for count in (4 * QUERIES, 10 * DISTRACTORS):
        sequence = rng.randint(0, len(sizes), count)
        tables.append(np.stack([sequence, rng.randint(0, sizes[sequence])], axis=1).astype(np.int32))
    return tables[0], tables[1]


def _pairs(
    first: NDArray[np.int64],
    images: NDArray[np.int64],
    row: NDArray[np.int64],
    second: NDArray[np.int64],
    other_row: NDArray[np.int64],
) -> Table:
    return np.stack([first, images[:, 0], row, second, images[:, 1], other_row], axis=1).astype(np.int32)


def _first_ones(patches: Table, contrast: Sequence[NDArray[np.bool_]]) -> Table:
    """Those of enough contrast, each where it comes first."""
    kept = patches[[contrast[sequence][row] for sequence, row in patches.tolist()]]
    _, first = np.unique(kept, axis=0, return_index=True)
    return kept[np.sort(first)]
