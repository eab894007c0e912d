"""Lists of HPatches' tasks that are drawn: those of the public splits again, and our own for any other set."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches_descriptors import IMAGES
from keypatch.benchmarks.hpatches_tasks import Table, Tasks
from keypatch.errors import DataError
from keypatch.patches.hpatches import read_strip

PAIRS, QUERIES, DISTRACTORS = 1_000_000, 10_000, 20_000  # of the public lists
CONTRAST = 10.0  # standard deviation of the grey values that a patch to be retrieved exceeds in the public lists
PUBLIC_SEED = 42
SEED = 0


def draw_tasks(names: Sequence[str], counts: Sequence[int]) -> Tasks:
    """Lists for a set without public ones, the same whenever names and numbers of rows are the same.

    As large as the public ones, but at most 20 pairs for each point, a fifth of the points as queries and two fifths as
    distractors, which are about the shares of split a. Inter pairs are always of two sequences; where there is one
    sequence only, they are absent, and so are distractors.
    """
    sizes = np.asarray(counts)
    if sizes.min() < 2:
        raise DataError(f"{names[int(sizes.argmin())]} has one patch; pairs of a sequence need two. Leave it out.")
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
