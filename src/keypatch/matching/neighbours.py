"""Nearest neighbours of two sets of descriptors, and which of them match.

The exact search goes over tiles of the products of both sets. The products cost the most, so they are made once for
both directions. Of a tile only the maxima are kept: finding where they lie is slow, and is done afterwards, only in the
one tile in which a vector's nearest neighbour was seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Features
from keypatch.geometry import Keypoints
from keypatch.matching.adalam import Candidates
from keypatch.matching.matches import Evidence, Matches
from keypatch.matching.matching import Matching
from keypatch.networks.devices import choose_device, in_threads

TILE = 512  # vectors; the fastest of 128 to 2048: a tile of products, 1 MB, stays in the cache
DEVICE_TILE = 8192  # on a GPU: 256 MB of products
ELSEWHERE = 1 << 22  # products at a time in the search for a second neighbour elsewhere: 16 MB
APART = 10.0  # pixels: what lies nearer to a neighbour may be the same thing, and is no lookalike of it
ASKED = 1000  # neighbours at most whose lookalikes are looked for: a sample tells a share
BIN, BLUR = 5, 6  # degrees in a bin of the histogram of turns, and bins to either side by which it is smoothed
FEWEST_TURNS, AGREED = 10, 0.5  # distinct matches, and the share of them that must agree, for an angle to be believed
TREES, CHECKS = 4, 128  # of FLANN, as in the Image Matching Challenge
KD_TREES = 1  # FLANN's number of this kind of index

# How far rounding may put the distances to equal vectors apart, squared and halved, as a share of the squared length of
# the longer vector: about 2e-7 in 128 dimensions. What differs by less is tied.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Nearest:
    """Of each vector of one set the nearest of the other; closeness is -d**2 / 2 for the Euclidean distance d."""

    index: Tensor  # (n,) int64; the first of equally near ones
    closeness: Tensor  # (n,) float32
    runner_up: Tensor  # (n,) closeness of the second nearest; minus infinity where there is none


def find_matches(
    first: Features,
    second: Features,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    *,
    device: str = "auto",
) -> Matches:
    """Matches by descriptors and by where keypoints lie, before any geometry of the two views.

    As `match_descriptors`. With `matching.apart` the second nearest of the ratio test is the nearest that lies so many
    pixels from the first (first geometrically inconsistent neighbour; Mishkin, Matas, Perdoch 2015): the other
    orientations of a place and its near-duplicates no longer rival their own match. What is turned otherwise than most
    distinct matches, by more than `matching.turn`, is no match. What fails the ratio test is kept all the same if
    `matching.filter` finds that it agrees with the neighbours around it.
    """
    if first.descriptor != second.descriptor:
        raise KeypatchError(
            f"Descriptors of {first.descriptor} and {second.descriptor} cannot be compared. Describe both images with "
            "the same descriptor."
        )
    return _match((first.descriptors, second.descriptors), matching, device, (first, second))


def match_descriptors(
    a: ArrayLike,
    b: ArrayLike,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    *,
    device: str = "auto",
) -> Matches:
    """Rows of a (n, d) with their nearest rows of b (m, d) by Euclidean distance, unverified.

    "mutual" keeps a pair only if each is the other's nearest neighbour, "one-way" gives every row of a its nearest.
    With a ratio the nearest must be nearer than this share of the distance to the second nearest (Lowe's test): seen
    from a if "one-way"; if "mutual" from both sides, or from a alone if `ratio_sides` is "first". Where there is no
    second, the test is passed. What needs keypoints, `apart`, `turn` and `filter`, is left to `find_matches`.

    A tie is never broken, with or without a ratio, on whichever side it is seen: the order of the rows does not choose
    among equal ones, and descriptors that are all the same match nothing. Tied is what float32 cannot tell apart:
    squared distances that differ by less than 2 * `ROUNDING` of the squared length of the longer vector.
    """
    return _match((a, b), matching, device)


def _match(
    rows: tuple[ArrayLike, ArrayLike],
    matching: Matching,
    device: str,
    features: tuple[Features, Features] | None = None,
) -> Matches:
    place = choose_device(device if matching.neighbours == "tiles" else "cpu")
    first, second = _descriptors(rows[0], "first"), _descriptors(rows[1], "second")
    if not len(first) or not len(second):
        return Matches(np.empty((0, 2), np.int32), np.empty(0, np.float32))
    if first.shape[1] != second.shape[1]:
        raise KeypatchError(
            f"Descriptors of {first.shape[1]} and {second.shape[1]} dimensions cannot be compared. "
            "Describe both images with the same descriptor."
        )
    first, second = first.to(place), second.to(place)
    forth, back = _SEARCHES[matching.neighbours](first, second)
    numbers = torch.arange(len(first), device=place)
    mutual = back.index[forth.index] == numbers
    if features is not None and matching.apart:
        asking = mutual if matching.mode == "mutual" else torch.ones_like(mutual)
        forth = _second_elsewhere(forth, first, second, features[1].keypoints, matching.apart, asking)
        asking = torch.zeros_like(back.index, dtype=torch.bool).index_fill_(0, forth.index[mutual], True)
        back = _second_elsewhere(back, second, first, features[0].keypoints, matching.apart, asking)

    def passing(ratio: float | None) -> Tensor:
        passed = _is_distinct(forth, first, second, ratio)
        if matching.mode == "mutual":
            passed &= (
                mutual
                & _is_distinct(back, second, first, ratio if matching.ratio_sides == "both" else None)[forth.index]
            )
        return passed

    left, distinct = torch.nonzero(passing(None))[:, 0], passing(matching.ratio)
    if features is not None and matching.turn < 180:
        here, there = (torch.from_numpy(each.keypoints.angle).to(place) for each in features)
        left = left[turned_alike(there[forth.index[left]] - here[left], distinct[left], matching.turn)]
    indices = torch.stack([left, forth.index[left]], dim=1).cpu().numpy()
    scores, passed = (1 + forth.closeness[left] / 2).cpu().numpy(), distinct[left].cpu().numpy()
    every = Matches(indices, scores, distinct=passed)
    if features is not None and matching.judges:
        likely = passing(None if matching.ratio is None else (1 + matching.ratio) / 2)[left].cpu().numpy()
        lookalikes = _lookalikes((first, second), indices, features)
        every = replace(every, evidence=Evidence(every.indices, every.indices[likely], lookalikes))
    if features is None or matching.filter is None:
        return every.take(passed)
    ratios = (forth.closeness[left] / forth.runner_up[left]).clamp(min=0).sqrt().cpu().numpy()
    keypoints = [each.keypoints.take(column) for each, column in zip(features, indices.T, strict=True)]
    sizes = _size(features[0]), _size(features[1])
    agree = matching.filter(Candidates(keypoints[0], keypoints[1], sizes, ratios, mutual[left].cpu().numpy()))
    return replace(every, agreeing=agree).take(agree if matching.ratio in (None, 1) else agree | passed)


def turned_alike(turned: Tensor, distinct: Tensor, most: float) -> Tensor:
    """(m,) which matches are turned, in radians, by within `most` degrees of what distinct ones mostly are.

    Between two photos all that stands still turns by about one angle, by which the camera turned about its axis (weak
    geometric consistency; Jegou, Douze, Schmid 2008). Where distinct matches do not agree on an angle, all are.
    """
    degrees = torch.rad2deg(turned).double() % 360
    votes = torch.bincount((degrees[distinct] // BIN).long() % (360 // BIN), minlength=360 // BIN)
    smooth = torch.stack([votes.roll(k) * (BLUR - abs(k)) for k in range(1 - BLUR, BLUR)]).sum(0)
    off = _half_turn(degrees - (int(smooth.argmax()) + 0.5) * BIN)
    off = _half_turn(off - off[distinct & (off.abs() <= most)].mean())  # the peak of a broad one may be at its side
    alike, count = off.abs() <= most, int(votes.sum())
    is_known = count >= FEWEST_TURNS and int(alike[distinct].sum()) >= AGREED * count
    return alike if is_known else torch.ones_like(alike)


def _half_turn(degrees: Tensor) -> Tensor:
    """The same angles from -180 to 180."""
    return (degrees + 180) % 360 - 180


def _size(features: Features) -> tuple[float, float]:
    """Of the image; of what its keypoints cover where a foreign file does not say."""
    if min(features.image_size) > 0:
        return features.image_size
    return tuple(features.keypoints.xy.max(axis=0, initial=0) + 1)


def _second_elsewhere(
    nearest: Nearest, queries: Tensor, others: Tensor, places: Keypoints, apart: float, asking: Tensor
) -> Nearest:
    """The same with the second nearest looked for `apart` pixels or more from the nearest, for those asking (n,)."""
    rows, runner_up = torch.nonzero(asking)[:, 0], nearest.runner_up.clone()
    runner_up[rows], _ = _nearest_elsewhere(rows, nearest.index[rows], queries, others, places, apart)
    return replace(nearest, runner_up=runner_up)


def _nearest_elsewhere(
    rows: Tensor, found: Tensor, queries: Tensor, others: Tensor, places: Keypoints, apart: float
) -> tuple[Tensor, Tensor]:
    """Of these rows (n,) of the queries the nearest that lies `apart` pixels or more from what each has found (n,).

    Its closeness and its index; minus infinity and -1 where there is none.
    """
    from scipy.spatial import cKDTree

    company = cKDTree(places.xy).query_pairs(np.nextafter(apart, 0), output_type="ndarray")
    itself = np.arange(len(places)).repeat(2).reshape(-1, 2)
    of, near = torch.from_numpy(np.concatenate([itself, company, company[:, ::-1]])).T.to(queries.device)
    near, count = near[of.argsort(stable=True)], torch.bincount(of, minlength=len(places))
    start, partners = count.cumsum(0) - count, lift_partner(others).T
    closeness, index = queries.new_full((len(rows),), -torch.inf), torch.full_like(found, -1)
    for some in torch.split(torch.arange(len(rows), device=rows.device), max(1, ELSEWHERE // len(others))):
        products = lift(queries[rows[some]]) @ partners
        own = found[some]
        row = torch.arange(len(some), device=some.device).repeat_interleave(count[own])
        inside = torch.arange(len(row), device=some.device) - (count[own].cumsum(0) - count[own])[row]
        products[row, near[start[own][row] + inside]] = -torch.inf
        closeness[some], index[some] = products.max(dim=1)
    return closeness, index.masked_fill(closeness == -torch.inf, -1)


def _lookalikes(
    rows: tuple[Tensor, Tensor], pairs: NDArray[np.int64], features: tuple[Features, Features]
) -> NDArray[np.int32]:
    """(k, 2) of a sample of these pairs either end with its next best elsewhere in the other image than it has."""
    found, pairs = [], pairs[:: 1 + len(pairs) // ASKED]
    for side in (0, 1):
        own, other = torch.from_numpy(pairs[:, [side, 1 - side]].T.copy()).to(rows[0].device)
        _, next_best = _nearest_elsewhere(own, other, rows[side], rows[1 - side], features[1 - side].keypoints, APART)
        some = torch.stack([own, next_best], dim=1)[next_best >= 0].cpu().numpy().astype(np.int32)
        found.append(some if side == 0 else some[:, ::-1])
    return np.concatenate(found)


def _is_distinct(nearest: Nearest, queries: Tensor, others: Tensor, ratio: float | None) -> Tensor:
    """Whether d1 < ratio * d2, or d1 < d2 without a ratio, by more than rounding; closeness is -d**2 / 2."""
    own, found = (torch.linalg.vector_norm(vectors, dim=1) for vectors in (queries, others))
    rounding = ROUNDING * torch.maximum(own, found[nearest.index]).square()
    return nearest.closeness > (1.0 if ratio is None else ratio**2) * nearest.runner_up + rounding


def _descriptors(rows: ArrayLike, which: str) -> Tensor:
    values = np.ascontiguousarray(rows, np.float32)
    if values.ndim != 2:
        raise KeypatchError(f"Descriptors must be an array (n, dimensions), but the {which} have shape {values.shape}.")
    tensor = torch.from_numpy(values)
    broken = (~torch.linalg.vector_norm(tensor, dim=1).isfinite()).nonzero()
    if len(broken):
        raise KeypatchError(
            f"Descriptor {int(broken[0])} of the {which} image is not finite or is too large, one of {len(broken)} "
            "such descriptors. Describe the image again."
        )
    return tensor


def find_nearest(a: Tensor, b: Tensor, tile: int | None = None) -> tuple[Nearest, Nearest]:
    """For each row of a (n, d) the nearest row of b (m, d), and the other way round; n and m are at least 1.

    On the CPU, tiles go to as many Python threads as torch would use, each computing on one. What is added to memory
    are a copy of b and a few tiles, whatever n and m are.
    """
    tile = tile or (TILE if a.device.type == "cpu" else DEVICE_TILE)
    a_tiles, b_tiles = torch.split(a, tile), [lift_partner(part) for part in torch.split(b, tile)]

    def scan(number: int) -> tuple[_TopTwo, Tensor]:
        return _scan(lift(a_tiles[number]), b_tiles)

    by_row, by_column = [], _TopTwo.before_all(len(b), a)
    for number, (rows, columns) in enumerate(in_threads(scan, range(len(a_tiles)), a.device)):
        by_row.append(rows)
        by_column.see(columns, number)
    forth = _locate(_TopTwo.joined(by_row), lambda chosen: lift(a[chosen]), lambda k: b_tiles[k], tile)
    back = _locate(by_column, lambda chosen: lift_partner(b[chosen]), lambda k: lift(a_tiles[k]), tile)
    return forth, back


def lift(vectors: Tensor) -> Tensor:
    """(n, d + 2) vectors whose product with a `lift_partner` is the closeness: a.b - |a|**2 / 2 - |b|**2 / 2."""
    half = vectors.square().sum(1, keepdim=True) / -2
    return torch.cat([vectors, half, torch.ones_like(half)], dim=1)


def lift_partner(vectors: Tensor) -> Tensor:
    half = vectors.square().sum(1, keepdim=True) / -2
    return torch.cat([vectors, torch.ones_like(half), half], dim=1)


@dataclass
class _TopTwo:
    """The largest and the second largest of what was seen tile by tile, and the first tile that had the largest."""

    largest: Tensor
    second: Tensor
    tile: Tensor

    @classmethod
    def before_all(cls, count: int, like: Tensor) -> "_TopTwo":
        nothing = like.new_full((count,), -torch.inf)
        return cls(nothing, nothing, torch.zeros_like(nothing, dtype=torch.int64))

    @classmethod
    def joined(cls, parts: "list[_TopTwo]") -> "_TopTwo":
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in ("largest", "second", "tile")))

    def see(self, maxima: Tensor, tile: int) -> None:
        self.tile[maxima > self.largest] = tile
        self.second = torch.maximum(self.second, torch.minimum(self.largest, maxima))
        self.largest = torch.maximum(self.largest, maxima)


def _scan(rows: Tensor, b_tiles: Sequence[Tensor]) -> tuple[_TopTwo, Tensor]:
    """Of one tile of rows the top two over all columns; of every column the maximum over these rows."""
    top = _TopTwo.before_all(len(rows), rows)
    products = rows.new_empty(len(rows) * len(b_tiles[0]))
    column_maxima = []
    for number, columns in enumerate(b_tiles):
        product = products[: len(rows) * len(columns)].view(len(rows), len(columns))
        torch.mm(rows, columns.T, out=product)
        top.see(product.amax(1), number)
        column_maxima.append(product.amax(0))
    return top, torch.cat(column_maxima)


def _locate(top: _TopTwo, queries: Callable[[Tensor], Tensor], others: Callable[[int], Tensor], tile: int) -> Nearest:
    """The place of each largest value, found by making again the products with the tile that had it."""
    index, runner_up = torch.empty_like(top.tile), top.second.clone()
    groups = torch.split(top.tile.argsort(stable=True), torch.bincount(top.tile).tolist())

    def look(number: int) -> None:
        partners = others(number).T
        for chosen in torch.split(groups[number], tile):
            products = queries(chosen) @ partners
            place = products.argmax(1, keepdim=True)
            index[chosen] = number * tile + place[:, 0]
            inside = products.scatter_(1, place, -torch.inf).amax(1)
            runner_up[chosen] = torch.maximum(runner_up[chosen], inside)

    for _ in in_threads(look, range(len(groups)), index.device):
        pass
    return Nearest(index, top.largest, runner_up)


def find_nearest_by_faiss(a: Tensor, b: Tensor) -> tuple[Nearest, Nearest]:
    """What `find_nearest` gives, but which of equally near vectors comes out is left to faiss."""
    return _search_faiss(lift(a), lift_partner(b)), _search_faiss(lift_partner(b), lift(a))


def _search_faiss(queries: Tensor, others: Tensor) -> Nearest:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra.of("faiss is not installed", "faiss", "use tiles") from error

    index = faiss.IndexFlatIP(others.shape[1])
    index.add(others.numpy())
    closeness, places = (torch.from_numpy(found) for found in index.search(queries.numpy(), min(2, len(others))))
    return _nearest(places, closeness)


def find_nearest_by_flann(a: Tensor, b: Tensor) -> tuple[Nearest, Nearest]:
    """What `find_nearest` gives, but now and then another than the nearest; the same for the same vectors."""
    return _search_flann(a, b), _search_flann(b, a)


def _search_flann(queries: Tensor, others: Tensor) -> Nearest:
    cv2.setRNGSeed(0)  # trees are split at random
    index = cv2.flann.Index(others.numpy(), {"algorithm": KD_TREES, "trees": TREES})
    places, squares = index.knnSearch(queries.numpy(), min(2, len(others)), params={"checks": CHECKS})
    return _nearest(torch.from_numpy(places).long(), torch.from_numpy(squares) / -2)


def _nearest(places: Tensor, closeness: Tensor) -> Nearest:
    """From the nearest and, where there is one, the second nearest of each vector, (n, 1 or 2)."""
    none = torch.full_like(closeness[:, 0], -torch.inf)
    return Nearest(places[:, 0], closeness[:, 0], closeness[:, 1] if closeness.shape[1] > 1 else none)


_SEARCHES = {"tiles": find_nearest, "faiss": find_nearest_by_faiss, "flann": find_nearest_by_flann}
