"""Looking at patch sets: counts, pair lists, and every fault a reader would stumble over."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keypatch.errors import DataError, KeypatchError
from keypatch.patches.hpatches import STRIPS, find_sequences, read_sequences
from keypatch.patches.phototour import find_pair_lists, read_phototour

Findings = Iterator[tuple[str, str] | KeypatchError]  # facts (name, value) and faults, in reading order


def look_at_phototour(folder: Path) -> Findings:
    patches = read_phototour(folder)
    yield "folder", str(folder)
    yield "patches", f"{len(patches):,} of {patches.side}x{patches.side} pixels"
    sizes = np.unique(patches.point_id, return_counts=True)[1]
    yield "points", f"{len(sizes):,}, {sizes.mean():.1f} patches each (at most {sizes.max()})"
    if single := int((sizes == 1).sum()):
        yield "left out", f"{single:,} points with a single patch are of no use in training"
    if patches.image_id is not None:
        yield "images", f"{len(np.unique(patches.image_id)):,}"
    yield "keypoints", "with every patch" if patches.keypoints is not None else "not recorded (interest.txt)"
    for name in ("origin", "terms", "about"):
        if name in patches.card:
            yield name, str(patches.card[name])
    lists = find_pair_lists(patches)
    for pairs in lists:
        matching = int(pairs.is_match.sum())
        yield f"{pairs.name}.txt", f"{matching:,} matching and {len(pairs) - matching:,} other pairs"
    if not lists:
        yield "pair lists", "none: the set can be trained on, but not scored"
    patches.classes()  # raises where too few points have two patches


def look_at_hpatches(folder: Path) -> Findings:
    names = find_sequences(folder)
    by_group = {group: sum(name.startswith(group) for name in names) for group in ("i_", "v_")}
    yield "sequences", f"{len(names)} ({by_group['i_']} of changed light, {by_group['v_']} of changed viewpoint)"
    rows, sides = 0, set()
    for _, strips in read_sequences(folder):
        rows += len(strips["ref"])
        sides.add(strips["ref"].shape[1])
    if len(sides) > 1:
        yield DataError(f"{folder} mixes patches of the sides {sorted(sides)}. Copy the sequences again.")
    yield "patches", f"{rows * len(STRIPS):,} of {min(sides)}x{min(sides)} pixels"
    yield "points", f"{rows:,}, {len(STRIPS)} patches each"
