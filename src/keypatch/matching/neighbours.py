"""Matches of two sets of descriptors: nearest neighbours, in one or both directions, with or without a ratio."""

from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.matching.faiss import find_nearest_by_faiss
from keypatch.matching.flann import find_nearest_by_flann
from keypatch.matching.matches import Matches
from keypatch.matching.tiles import Nearest, find_nearest
from keypatch.networks.devices import choose_device

Mode = Literal["mutual", "one-way"]
MODES: tuple[Mode, ...] = ("mutual", "one-way")
Sides = Literal["both", "first"]
SIDES: tuple[Sides, ...] = ("both", "first")
SEARCHES = {"tiles": find_nearest, "faiss": find_nearest_by_faiss, "flann": find_nearest_by_flann}

# How far rounding may put the distances to equal vectors apart, squared and halved, as a share of the squared length of
# the longer vector: about 2e-7 in 128 dimensions. What differs by less is tied.
ROUNDING = 1e-6


def match_descriptors(
    a: ArrayLike,
    b: ArrayLike,
    ratio: float | None = None,
    mode: Mode = "mutual",
    *,
    ratio_sides: Sides = "both",
    neighbours: str = "tiles",
    device: str = "auto",
) -> Matches:
    """Rows of a (n, d) with their nearest rows of b (m, d) by Euclidean distance; of equally near ones none.

    "mutual" keeps a pair only if each is the other's nearest neighbour, "one-way" gives every row of a its nearest.
    With a `ratio` the nearest must be nearer than this share of the distance to the second nearest (Lowe's test): seen
    from a if "one-way"; if "mutual" from both sides, or from a alone if `ratio_sides` is "first". Where there is no
    second, the test is passed. `neighbours` are exact but those of "flann".

    A tie is never broken, with or without a ratio, on whichever side it is seen: the order of the rows does not choose
    among equal ones, and descriptors that are all the same match nothing. Tied is what float32 cannot tell apart:
    squared distances that differ by less than 2 * `ROUNDING` of the squared length of the longer vector.
    """
    check_choices(ratio, mode, neighbours, ratio_sides)
    place = choose_device(device if neighbours == "tiles" else "cpu")
    first, second = _descriptors(a, "first"), _descriptors(b, "second")
    if not len(first) or not len(second):
        return Matches(np.empty((0, 2), np.int32), np.empty(0, np.float32))
    if first.shape[1] != second.shape[1]:
        raise KeypatchError(
            f"Descriptors of {first.shape[1]} and {second.shape[1]} dimensions cannot be compared. "
            "Describe both photos with the same descriptor."
        )
    first, second = first.to(place), second.to(place)
    forth, back = SEARCHES[neighbours](first, second)
    numbers = torch.arange(len(first), device=place)
    kept = _is_distinct(forth, first, second, ratio)
    if mode == "mutual":
        kept &= back.index[forth.index] == numbers
        kept &= _is_distinct(back, second, first, ratio if ratio_sides == "both" else None)[forth.index]
    indices = torch.stack([numbers, forth.index], dim=1)[kept]
    return Matches(indices.cpu().numpy(), (1 + forth.closeness[kept] / 2).cpu().numpy())


def _is_distinct(nearest: Nearest, queries: Tensor, others: Tensor, ratio: float | None) -> Tensor:
    """Whether d1 < ratio * d2, or d1 < d2 without a ratio, by more than rounding; closeness is -d**2 / 2."""
    own, found = (torch.linalg.vector_norm(vectors, dim=1) for vectors in (queries, others))
    rounding = ROUNDING * torch.maximum(own, found[nearest.index]).square()
    return nearest.closeness > (1.0 if ratio is None else ratio**2) * nearest.runner_up + rounding


def _descriptors(rows: ArrayLike, which: str) -> Tensor:
    values = np.ascontiguousarray(rows, np.float32)
    if values.ndim != 2:
        raise KeypatchError(f"Descriptors are an array (n, dimensions), the {which} have the shape {values.shape}.")
    tensor = torch.from_numpy(values)
    broken = (~torch.linalg.vector_norm(tensor, dim=1).isfinite()).nonzero()
    if len(broken):
        raise KeypatchError(
            f"Descriptor {int(broken[0])} of the {which} photo is not finite or too large to square, and {len(broken)} "
            "are in all. Describe the photo again."
        )
    return tensor


def check_choices(ratio: float | None, mode: str, neighbours: str, ratio_sides: str) -> None:
    """KeypatchError if one of the choices is not there."""
    if mode not in MODES:
        raise KeypatchError(f'There is no mode "{mode}". Choose {" or ".join(MODES)}.')
    if ratio_sides not in SIDES:
        raise KeypatchError(f'The ratio test has no sides "{ratio_sides}". Choose {" or ".join(SIDES)}.')
    if neighbours not in SEARCHES:
        raise KeypatchError(f'Neighbours are not found by "{neighbours}". Choose {" or ".join(SEARCHES)}.')
    if ratio is not None and not 0 < ratio <= 1:
        raise KeypatchError(f"The ratio {ratio} must lie above 0 and be at most 1; 0.8 to 0.95 is usual.")
