"""Looking at patch sets: counts, pair lists, and every fault a reader would stumble over."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.building.options import FORMAT, STATE, TEST, TRAIN
from keypatch.building.summary import tell_card
from keypatch.errors import DataError, KeypatchError
from keypatch.patches.hpatches import STRIPS, find_sequences, read_sequences
from keypatch.patches.patch_set import read_set_card
from keypatch.patches.phototour import find_pair_lists, read_phototour

Findings = Iterator[tuple[str, str] | KeypatchError]  # facts (name, value) and faults, in reading order


def look_at_phototour(folder: Path) -> Findings:
    patches = read_phototour(folder)
    yield "folder", str(folder)
    yield "patches", f"{len(patches):,} of {patches.side}x{patches.side} pixels"
    sizes = np.unique(patches.point_id, return_counts=True)[1]
    yield "points", f"{len(sizes):,}, {sizes.mean():.1f} patches each (at most {sizes.max()})"
    if single := int((sizes == 1).sum()):
        yield "left out", f"{single:,} points with a single patch, which cannot be used for training"
    if patches.image_id is not None:
        yield "images", f"{len(np.unique(patches.image_id)):,}"
    yield "keypoints", "with every patch" if patches.keypoints is not None else "not recorded (interest.txt)"
    yield from _of_card(patches.card)
    lists = find_pair_lists(patches)
    for pairs in lists:
        matching = int(pairs.is_match.sum())
        yield f"{pairs.name}.txt", f"{matching:,} matching and {len(pairs) - matching:,} other pairs"
    if not lists:
        yield "pair lists", "none: the set can be used for training, but not for scoring"
    patches.classes()  # raises where too few points have two patches


def look_at_build(folder: Path) -> Findings:
    """A folder of `keypatch build`: its set, or the parts of it."""
    state = FORMAT.read_json(folder / STATE)
    if not state["finished"]:
        yield DataError(f"{folder} is not finished. Run the same `keypatch build` again to resume it.")
        return
    parts = [name for name in (TRAIN, TEST) if (folder / name / "info.txt").exists()]
    for part in parts or [""]:
        look = look_at_phototour if (folder / part / "info.txt").exists() else look_at_hpatches
        for found in look(folder / part):
            if isinstance(found, KeypatchError):
                yield found
            else:
                yield f"{part} {found[0]}".strip(), found[1]
    for text in state.get("skipped", ()):
        yield "skipped", str(text)


def _of_card(card: Mapping[str, Any]) -> Findings:
    if card.get("made_by") == "keypatch build":
        yield from _of_build(card)
    for name in ("origin", "terms", "about"):
        if name in card:
            yield name, str(card[name])


def _of_build(card: Mapping[str, Any]) -> Findings:
    """What the card of a built set says about its quality."""
    part = f", {card['part']} part" if card["part"] else ""
    yield "built by", f"method {card['method']}{part}"
    yield "sources", f"{len(card['sources']):,} photos with fingerprints"
    yield from tell_card(card)
    for number, text in enumerate(card["warnings"], start=1):
        yield f"warning {number}", str(text)


def look_at_hpatches(folder: Path) -> Findings:
    names = find_sequences(folder)
    by_group = {group: sum(name.startswith(group) for name in names) for group in ("i_", "v_")}
    yield "sequences", f"{len(names)} ({by_group['i_']} with changed light, {by_group['v_']} with changed viewpoint)"
    rows, sides = 0, set()
    for _, strips in read_sequences(folder):
        rows += len(strips["ref"])
        sides.add(strips["ref"].shape[1])
    if len(sides) > 1:
        yield DataError(f"{folder} mixes patches of different sides: {sorted(sides)} pixels. Copy the sequences again.")
    yield "patches", f"{rows * len(STRIPS):,} of {min(sides)}x{min(sides)} pixels"
    yield "points", f"{rows:,}, {len(STRIPS)} patches each"
    yield from _of_card(read_set_card(folder))
