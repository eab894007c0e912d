"""HPatches strips: is the nearest patch of another image of the sequence the same point?"""

import hashlib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.result import Result, provenance_of
from keypatch.describers.protocol import Describer, Progress, check_descriptors
from keypatch.errors import DataError
from keypatch.metrics import rank1
from keypatch.patches.hpatches import STRIPS, find_sequences, read_sequences

LEVELS = ("e", "h", "t")  # easy, hard, tough: how far the frames were moved before cutting
KINDS = ("i_", "v_")  # sequences of changed light, of changed viewpoint
SIDE = 64

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
    names = _choose(find_sequences(folder), sequences, folder)
    digest = hashlib.sha256()
    shares: dict[tuple[str, str], float] = {}  # (sequence, strip) -> rank-1
    for done, (name, strips) in enumerate(read_sequences(folder, names), start=1):
        hash_strips(digest, name, strips)
        for strip, share in _rank1_of_strips(describer, strips).items():
            shares[name, strip] = share
        if progress is not None:
            progress(done, len(names))
    return Result(
        benchmark="hpatches",
        descriptor=describer.name,
        settings={"data": folder.resolve().name, "sequences": names},
        scores=_scores(shares),
        curves={},
        provenance=provenance_of(describer, digest.hexdigest()),
    )


def hash_strips(digest: "hashlib._Hash", name: str, strips: Strips) -> None:
    """Put a sequence into the hash that results carry."""
    for strip in STRIPS:
        digest.update(f"{name}/{strip}".encode() + strips[strip].tobytes())


def reduce_patches(patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, side, side) -> (n, 64, 64) by OpenCV's 8-bit bilinear resize; patches of 64x64 stay as they are."""
    if patches.shape[1] == SIDE:
        return patches
    reduced = np.empty((len(patches), SIDE, SIDE), dtype=np.uint8)
    for target, patch in zip(reduced, patches, strict=True):
        cv2.resize(patch, (SIDE, SIDE), dst=target, interpolation=cv2.INTER_LINEAR)
    return reduced


def _rank1_of_strips(describer: Describer, strips: Strips) -> dict[str, float]:
    patches = np.concatenate([reduce_patches(strips[strip]) for strip in STRIPS])
    descriptors = describer.describe(patches)
    check_descriptors(describer, descriptors, len(patches))
    by_strip = dict(zip(STRIPS, np.split(descriptors, len(STRIPS)), strict=True))
    same_row = np.arange(len(by_strip["ref"]))
    return {strip: rank1(by_strip["ref"], by_strip[strip], same_row) for strip in STRIPS if strip != "ref"}


def _scores(shares: dict[tuple[str, str], float]) -> dict[str, float]:
    groups: dict[str, list[float]] = {f"rank1.{level}": [] for level in LEVELS}
    for (sequence, strip), share in shares.items():
        level = f"rank1.{strip[0]}"
        groups[level].append(share)
        groups.setdefault(f"{level}.{sequence}", []).append(share)
        if sequence.startswith(KINDS):
            groups.setdefault(f"{level}.{sequence[0]}", []).append(share)
    return {group: float(np.mean(values)) for group, values in groups.items()}


def _choose(present: Sequence[str], wanted: Sequence[str] | None, folder: Path) -> list[str]:
    if wanted is None:
        return list(present)
    full_names = {name: name for name in present}
    full_names |= {name[2:]: name for name in present if name.startswith(KINDS)}
    chosen = []
    for name in wanted:
        if name not in full_names:
            close = get_close_matches(name, full_names, n=1)
            hint = f' Did you mean "{close[0]}"?' if close else ""
            raise DataError(f'{folder} has no sequence "{name}".{hint} Its sequences: {", ".join(present)}.')
        chosen.append(full_names[name])
    if not chosen:
        raise DataError(f"No sequence is chosen. Those of {folder}: {', '.join(present)}.")
    return sorted(set(chosen))
