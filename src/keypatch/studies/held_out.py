"""A part of the training points held out to choose by: a patch set of its own, in no test set and never trained on."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from keypatch.cache import make_once
from keypatch.errors import DataError, KeypatchError
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.pair_lists import draw_pair_lists
from keypatch.patches.patch_set import JoinedSets
from keypatch.patches.phototour import PATCH_SIDE, write_phototour
from keypatch.patches.sources import DRAWN_FROM, SOURCES, identity_of

HELD_OUT = "held-out"
LEFT = f" without {HELD_OUT}"  # of the name of what is left
MATCHES = 4000  # of the pair lists at most, and as many other pairs
SEED = 0


def hold_out(source: PatchSet | JoinedSets, share: float) -> tuple[PatchSet, PatchSet]:
    """(what is left to train on, what is held out): a share of the points with two patches or more, drawn at random.

    The first still has all patches in their places, but each one held out is a point of its own, and a point with a
    single patch is not trained on.

    Raises:
        KeypatchError: the share is not between 0 and 1, or leaves too little on one side.
    """
    if not 0 < share < 1:
        raise KeypatchError(f"--held-out {share:g}: give a share of the points between 0 and 1, such as 0.1.")
    if not isinstance(source, PatchSet):
        raise KeypatchError("--held-out takes points from one set, and there are several. Name one with --data.")
    if source.side != PATCH_SIDE:
        raise KeypatchError(f"--held-out needs patches of {PATCH_SIDE}x{PATCH_SIDE}; {source.name} has {source.side}.")
    points, sizes = np.unique(source.point_id, return_counts=True)
    several = points[sizes >= 2]
    count = round(share * len(several))
    if count < 2 or len(several) - count < 2:
        raise DataError(
            f"--held-out {share:g} leaves {len(several) - count} points of {source.name} to train on and {count} to "
            "score on. Choose another share, or more data."
        )
    chosen = np.random.default_rng(SEED).choice(several, count, replace=False)
    held = np.isin(source.point_id, chosen)
    alone = source.point_id.copy()
    alone[held] = points.max() + 1 + np.arange(held.sum())
    images = None if source.image_id is None else source.image_id[held]
    about = f"a share of {share:g} of the points of {source.name}, drawn with seed {SEED}"
    card = {"about": about, DRAWN_FROM: identity_of(source)}
    card |= {SOURCES: source.card[SOURCES]} if SOURCES in source.card else {}
    return (
        replace(source, name=f"{source.name}{LEFT}", point_id=alone),
        PatchSet(HELD_OUT, source.take(np.flatnonzero(held)), source.point_id[held], images, card=card),
    )


def keep_held_out(folder: Path, held: PatchSet, write: bool) -> PatchSet:
    """The set in PhotoTour layout with an easy and a hard pair list; the first that wants it writes it."""

    def make(place: Path) -> None:
        pairs = draw_pair_lists(held.patches, held.point_id, MATCHES, np.random.default_rng([SEED, 1]))
        write_phototour(place, held.patches, held.point_id, image_id=held.image_id, pairs=pairs, card=held.card)

    return open_patches(make_once(folder, make)) if write or folder.exists() else held
