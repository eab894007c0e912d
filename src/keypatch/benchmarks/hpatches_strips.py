"""Which HPatches strips are scored, and their descriptors: from a describer, or from csv files that others wrote."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import describe_cached
from keypatch.benchmarks.hpatches_csv import SUFFIX, count_csv_rows, is_csv_folder, read_csv_strips
from keypatch.benchmarks.hpatches_descriptors import StripDescriptors, StripPatches, all_strips, reduce_patches
from keypatch.benchmarks.hpatches_rank1 import choose_sequences, hash_strips
from keypatch.benchmarks.hpatches_tasks import find_listed, find_split
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import DataError
from keypatch.patches.hpatches import (
    count_rows,
    find_sequences,
    is_sequence,
    read_sequences,
    read_strip,
    require_sequences,
)

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
    """The strips in a folder of patches or of csv descriptors, after a look that all are there."""
    is_csv = is_csv_folder(folder) and not any(is_sequence(entry) for entry in folder.iterdir())
    suffix = SUFFIX if is_csv else ".png"
    if split == EVERY:
        names = choose_sequences(find_sequences(folder, suffix), sequences or None, folder)
        if tasks:  # lists of a split: no task is to be scored on other sequences than the rest
            names = _choose_listed(names, tasks, folder)
    else:
        names = require_sequences(folder, find_split(split, "test", tasks), f"the split {split}", suffix)
    counts = count_csv_rows(folder, names) if is_csv else count_rows(folder, names)
    learned: list[str] = []
    if training:
        part = f"the training part of the split {split}"
        learned = require_sequences(folder, find_split(split, "train", tasks), part, suffix)
    return Strips(folder, is_csv, names, counts, learned)


def _choose_listed(names: Sequence[str], tasks: Path, folder: Path) -> list[str]:
    listed = find_listed(tasks)
    chosen = [name for name in names if name in listed]
    if not chosen:
        raise DataError(
            f"The lists of {tasks} name none of the {len(names)} sequences of {folder}. Choose other lists."
        )
    return chosen


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
    patches = all_strips(strips.folder, strips.names, counts)
    rows = describe_cached(describer, patches, _hash_of_reduced(data_hash), progress)
    training = np.empty((0, describer.dim), np.float32)
    if strips.training:
        refs = np.array(count_rows(strips.folder, strips.training))
        learned = StripPatches(strips.folder, [(name, "ref") for name in strips.training], refs)
        training = describe_cached(describer, learned, _hash_of_reduced(_hash_of_refs(strips)), progress)
    return StripDescriptors(tuple(strips.names), counts, rows), training


def read_strips(source: Path, strips: Strips) -> tuple[StripDescriptors, NDArray[np.float32]]:
    """As `describe_strips`, from a folder of csv files."""
    require_sequences(source, [*strips.names, *strips.training], "the data", SUFFIX)
    rows = read_csv_strips(source, strips.names, strips.counts)
    training = np.empty((0, rows.shape[1]), np.float32)
    if strips.training:
        training = read_csv_strips(source, strips.training, count_csv_rows(source, strips.training), ("ref",))
    return StripDescriptors(tuple(strips.names), np.array(strips.counts), rows), training


def _hash_of_refs(strips: Strips) -> str:
    digest = hashlib.sha256()
    for name in strips.training:
        digest.update(name.encode() + read_strip(strips.folder, name, "ref").tobytes())
    return digest.hexdigest()


def _hash_of_reduced(data_hash: str) -> str:
    """Of the patches as a describer gets them: what was hashed is 65x65, and another OpenCV may reduce it otherwise."""
    noise = np.random.default_rng(0).integers(0, 256, (1, 65, 65), np.uint8)
    return hashlib.sha256(data_hash.encode() + reduce_patches(noise).tobytes()).hexdigest()
