"""Which HPatches strips are scored, and their descriptors: from a describer, or from csv files that others wrote.

Csv files are as the public tool keeps them: `<sequence>/<strip>.csv`, a row for each patch.
"""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import describe_cached
from keypatch.benchmarks.hpatches.descriptors import SIDE, StripDescriptors, StripPatches
from keypatch.benchmarks.hpatches.lists import find_listed, find_split
from keypatch.benchmarks.hpatches.rank1 import choose_sequences, hash_strips
from keypatch.describers.protocol import Describer
from keypatch.errors import DataError, KeypatchError
from keypatch.files import reading, write_atomically
from keypatch.patches.hpatches import (
    STRIPS,
    count_rows,
    find_sequences,
    is_sequence,
    read_sequences,
    read_strip,
    require_sequences,
)
from keypatch.patches.patch_set import reduce_patches
from keypatch.patches.tables import read_lines
from keypatch.progress import Progress

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
                    f"{path} has {len(part)} rows, but {name} has {count} patches. Write the descriptors again."
                )
            if parts and part.shape[1] != parts[0].shape[1]:
                raise DataError(
                    f"{path} has {part.shape[1]} columns, but the files before it have {parts[0].shape[1]}. "
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
        for number, strip in enumerate(STRIPS):
            with write_atomically(folder / name / f"{strip}{SUFFIX}", "w") as file:
                np.savetxt(file, descriptors.strip(sequence, number), fmt="%.9g", delimiter=",")


def check_csv_target(folder: Path) -> None:
    """KeypatchError unless the folder is empty, or can be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise KeypatchError(f"{folder} exists and is not an empty folder. Choose another one for the descriptors.")


def _read(path: Path) -> NDArray[np.float32]:
    lines = _lines(path)
    delimiter = ";" if ";" in lines[0] else ","
    with reading(path, "table of numbers", "Write the descriptors again."), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a number beyond float32 becomes inf, refused below
        table = np.loadtxt(lines, np.float32, comments=None, delimiter=delimiter, ndmin=2)
    if table.shape[1] < 2:
        raise DataError(f"{path} has only one column. Its delimiter should be a comma or a semicolon.")
    broken = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if broken.size:
        raise DataError(
            f"{path}, line {broken[0] + 1}: the descriptor holds nan, inf or a number too large for float32, and so do "
            f"{broken.size - 1} more. Write the descriptors again."
        )
    return table


def _lines(path: Path) -> list[str]:
    lines = [line for line in read_lines(path) if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty. Write the descriptors again.")
    return lines


EVERY = "all"  # sequences that are there, instead of those of a split


@dataclass(frozen=True, eq=False)
class Strips:
    """The sequences that are scored, and those that whitening learns from."""

    folder: Path
    is_csv: bool  # the folder holds descriptors, and patches are nowhere
    names: list[str]
    counts: list[int]  # points of each
    training: list[str]


def find_strips(
    folder: Path, split: str, sequences: Sequence[str] = (), tasks: Path | None = None, training: bool = False
) -> Strips:
    """The strips in a folder of patches or of csv descriptors; DataError if one is missing."""
    is_csv = is_csv_folder(folder) and not any(is_sequence(entry) for entry in folder.iterdir())
    suffix = SUFFIX if is_csv else ".png"
    if split == EVERY:
        names = choose_sequences(find_sequences(folder, suffix), sequences or None, folder)
        if tasks:  # lists of a split: no task is to be scored on other sequences than the rest
            listed = find_listed(tasks)
            names, there = [name for name in names if name in listed], len(names)
            if not names:
                raise DataError(
                    f"The lists of {tasks} name none of the {there} sequences of {folder}. Choose other lists."
                )
    else:
        names = require_sequences(folder, find_split(split, "test", tasks), f"the split {split}", suffix)
    counts = count_csv_rows(folder, names) if is_csv else count_rows(folder, names)
    learned: list[str] = []
    if training:
        part = f"the training part of the split {split}"
        learned = require_sequences(folder, find_split(split, "train", tasks), part, suffix)
    return Strips(folder, is_csv, names, counts, learned)


def hash_of_strips(strips: Strips) -> "hashlib._Hash":
    """Of all patches; of names and numbers of rows where there are descriptors only."""
    digest = hashlib.sha256()
    if strips.is_csv:
        digest.update("".join(f"{name} {n}\n" for name, n in zip(strips.names, strips.counts, strict=True)).encode())
        return digest
    for name, patches in read_sequences(strips.folder, strips.names):
        hash_strips(digest, name, patches)
    return digest


def describe_strips(
    describer: Describer, strips: Strips, data_hash: str, progress: Progress | None = None
) -> tuple[StripDescriptors, NDArray[np.float32]]:
    """The descriptors of the strips, and those of ref of the sequences to learn from, (0, dim) where there are none."""
    counts = np.array(strips.counts)
    every = [(name, strip) for name in strips.names for strip in STRIPS]
    patches = StripPatches(strips.folder, every, np.repeat(counts, len(STRIPS)))
    rows = describe_cached(describer, patches, _hash_of_reduced(data_hash), progress)
    training = np.empty((0, describer.dim), np.float32)
    if strips.training:
        refs = np.array(count_rows(strips.folder, strips.training))
        learned = StripPatches(strips.folder, [(name, "ref") for name in strips.training], refs)
        digest = hashlib.sha256()
        for name in strips.training:
            digest.update(name.encode() + read_strip(strips.folder, name, "ref").tobytes())
        training = describe_cached(describer, learned, _hash_of_reduced(digest.hexdigest()), progress)
    return StripDescriptors(tuple(strips.names), counts, rows), training


def read_strips(source: Path, strips: Strips) -> tuple[StripDescriptors, NDArray[np.float32]]:
    """As `describe_strips`, from a folder of csv files."""
    require_sequences(source, [*strips.names, *strips.training], "the data", SUFFIX)
    rows = read_csv_strips(source, strips.names, strips.counts)
    training = np.empty((0, rows.shape[1]), np.float32)
    if strips.training:
        training = read_csv_strips(source, strips.training, count_csv_rows(source, strips.training), ("ref",))
    return StripDescriptors(tuple(strips.names), np.array(strips.counts), rows), training


def _hash_of_reduced(data_hash: str) -> str:
    """Of the patches as a describer gets them: what was hashed is 65x65, and another OpenCV may reduce it otherwise."""
    noise = np.random.default_rng(0).integers(0, 256, (1, 65, 65), np.uint8)
    return hashlib.sha256(data_hash.encode() + reduce_patches(noise, SIDE).tobytes()).hexdigest()
