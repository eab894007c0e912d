"""Rank-1 on HPatches strips alone, one sequence after the other: what a study scores its checkpoints by."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.contamination import seen_strips
from keypatch.benchmarks.hpatches.descriptors import SIDE, StripDescriptors
from keypatch.benchmarks.hpatches.matching import match_strips
from keypatch.benchmarks.hpatches.scores import KINDS, level_scores
from keypatch.benchmarks.result import Result, provenance_of
from keypatch.describers.protocol import Describer, check_descriptors
from keypatch.errors import DataError
from keypatch.patches.hpatches import STRIPS, find_sequences, read_sequences
from keypatch.patches.patch_set import reduce_patches
from keypatch.progress import Progress
from keypatch.settings import did_you_mean

Strips = dict[str, NDArray[np.uint8]]  # (n, side, side) by the name of the strip


def evaluate_rank1(
    describer: Describer,
    folder: str | Path,
    sequences: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Rank-1 of the patches of ref among those of each other strip of the same sequence, e, h and t apart.

    "rank1.e" is the mean over sequences and strips, "rank1.e.i" and "rank1.e.v" over the sequences of changed light and
    of changed viewpoint, "rank1.e.v_boat" over the strips of one sequence. `sequences` chooses some of them, by their
    names with or without i_ and v_. Every describer gets the patches at 64x64, by OpenCV's 8-bit bilinear resize of the
    65x65 ones. `progress` counts sequences.
    """
    folder = Path(folder)
    names = choose_sequences(find_sequences(folder), sequences, folder)
    digest = hashlib.sha256()
    shares = []
    for done, (name, strips) in enumerate(read_sequences(folder, names), start=1):
        hash_strips(digest, name, strips)
        shares.append(_rank1_of_strips(describer, strips))
        Progress.of(progress).count(done, len(names), "sequences")
    return Result(
        benchmark="hpatches",
        descriptor=describer.name,
        settings={"data": folder.resolve().name, "sequences": names},
        scores=level_scores("rank1", np.array(shares), names),
        curves={},
        provenance=provenance_of(describer, digest.hexdigest()),
        contamination=seen_strips(describer, folder, names),
    )


def hash_strips(digest: "hashlib._Hash", name: str, strips: Strips) -> None:
    """Put a sequence into the hash that results carry."""
    for strip in STRIPS:
        digest.update(f"{name}/{strip}".encode() + strips[strip].tobytes())


def choose_sequences(present: Sequence[str], wanted: Sequence[str] | None, folder: Path) -> list[str]:
    """Those wanted, by their names with or without i_ and v_; all for None."""
    if wanted is None:
        return list(present)
    full_names = {name: name for name in present}
    full_names |= {name[2:]: name for name in present if name.startswith(KINDS)}
    chosen = []
    for name in wanted:
        if name not in full_names:
            hint = did_you_mean(name, full_names)
            raise DataError(f'{folder} has no sequence "{name}".{hint} Its sequences: {", ".join(present)}.')
        chosen.append(full_names[name])
    if not chosen:
        raise DataError(f"No sequence was chosen. {folder} has: {', '.join(present)}.")
    return sorted(set(chosen))


def _rank1_of_strips(describer: Describer, strips: Strips) -> NDArray[np.float64]:
    """(levels, images)"""
    patches = np.concatenate([reduce_patches(strips[strip], SIDE) for strip in STRIPS])
    descriptors = describer.describe(patches)
    check_descriptors(describer, descriptors, len(patches))
    only = StripDescriptors(("",), np.array([len(strips["ref"])]), descriptors)
    return np.asarray(match_strips(only, "L2", "pessimistic", "trapezoid").alone[0])
