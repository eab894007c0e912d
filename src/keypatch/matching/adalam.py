"""AdaLAM: which nearest neighbours agree with an affine map of their surroundings.

Cavalli, Larsson, Oswald, Sattler, Pollefeys: Handcrafted Outlier Detection Revisited, ECCV 2020. A few distinctive
matches, the seeds, gather the matches around them in both images. A seed and two of its neighbours determine an affine
map; the neighbours nearest to where it puts them are kept, as far as they are many more than chance would bring there.

Places are complex numbers, relative to the seed: a linear map of the plane is then p z + q conj(z), with the singular
values |p| + |q| and ||p| - |q||.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from keypatch.geometry import Keypoints
from keypatch.settings import CheckedFields, brief, option

Places = NDArray[np.complex64]
Floats = NDArray[np.float32]
Numbers = NDArray[np.intp]
Mask = NDArray[np.bool_]

BLOCK = 64  # neighbourhoods at a time: what stays in the processor's cache
JUDGES = 32  # the most distinctive neighbours: on them all maps are tried first
SHARE = 0.3  # of the others, whose limit is then the residual that counts
FINALISTS = 8  # the maps that are then tried on all neighbours; all 128 would keep 1 to 2 % more matches
REFITS = 2
FAR = 1e3  # where the padding of a neighbourhood lies: no map puts anything there
MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd, its digits as if random: makes one number of two places


@dataclass(frozen=True)
class Candidates:
    """Matches that may be right: keypoint i of the first image with keypoint i of the second."""

    first: Keypoints  # n of them
    second: Keypoints
    sizes: tuple[tuple[float, float], tuple[float, float]]  # (width, height) of both images
    ratio: Floats  # (n,) distance to the nearest neighbour over the distance to the second nearest
    mutual: Mask  # (n,) each is the other's nearest neighbour

    def take(self, index: NDArray[np.generic]) -> "Candidates":
        first, second = self.first.take(index), self.second.take(index)
        return Candidates(first, second, self.sizes, self.ratio[index], self.mutual[index])


@dataclass(frozen=True)
class AdaLAM(CheckedFields):
    """AdaLAM with its authors' parameters. Nothing is sampled at random: distinctive neighbours define the maps.

    >>> kp.Matching(filter=kp.AdaLAM(fewest=8)).filter
    AdaLAM(fewest=8)
    """

    area_ratio: float = option(100.0, "Ratio of the image area to the area reserved for one seed.", above=0)
    expansion: float = option(4.0, "Ratio of a neighbourhood's radius to the radius reserved for one seed.", above=0)
    seed_ratio: float = option(0.8, "Ratio test for seeds.", above=0, most=1)
    degrees: float = option(30.0, "Largest rotation difference between a match and its seed, in degrees.", above=0)
    scale_rate: float = option(1.5, "Largest ratio between the scale changes of a match and its seed.", above=1)
    maps: int = option(128, "Maximum number of affine maps tried per neighbourhood.", least=1)
    largest_scale: float = option(5.0, "Reject maps that stretch or shrink by more than this.", above=1)
    confidence: float = option(
        200.0, "How many times more matches than expected by chance must agree with a map.", above=1
    )
    fewest: int = option(6, "Fewest matches that must agree with a map besides the three that define it.", least=1)

    __repr__ = brief

    def __call__(self, candidates: Candidates) -> Mask:
        """(n,) which candidates agree with their surroundings."""
        x, y = _places(candidates.first), _places(candidates.second)
        order = np.argsort(candidates.ratio, kind="stable")
        both = (x.view(np.uint64) + y.view(np.uint64) * MIXER)[order]
        _, found, group = np.unique(both, return_index=True, return_inverse=True)
        chosen = order[np.sort(found)]  # a place with several orientations counts once; the most distinctive come first
        kept = np.zeros(len(x), np.bool_)
        kept[chosen] = self._agree(candidates, chosen, x[chosen], y[chosen])
        kept[order] = kept[order[found]][group]
        return kept

    def _agree(self, candidates: Candidates, chosen: Numbers, x: Places, y: Places) -> Mask:
        """The answer for distinct places in the order of their ratios."""
        radius0, radius1 = (np.sqrt(width * height / (self.area_ratio * np.pi)) for width, height in candidates.sizes)
        x, y = x / np.float32(self.expansion * radius0), y / np.float32(self.expansion * radius1)
        able = np.flatnonzero(candidates.mutual[chosen] & (candidates.ratio[chosen] < self.seed_ratio))
        seeds = able[_leads(x[able], 1 / self.expansion)]
        near = self._near(candidates, chosen, x, y, seeds)
        kept = np.zeros(len(x), np.bool_)
        for around in _neighbourhoods(near, x, y, seeds, self.fewest + 2):
            rows, agree = self._agreeing(self._maps(around, radius1 / radius0), around)
            kept[around.member[rows][agree]] = True
            kept[around.seed[rows]] = True
        return kept

    def _near(self, candidates: Candidates, chosen: Numbers, x: Places, y: Places, seeds: Numbers) -> Mask:
        """(seeds, n) which other matches may share the map of a seed."""
        turn = (candidates.second.angle - candidates.first.angle)[chosen]
        growth = np.log(candidates.second.sigma / candidates.first.sigma)[chosen]
        chord = 2 * np.sin(np.radians(min(self.degrees, 180)) / 2)
        turned = (np.cos(turn) + 1j * np.sin(turn)) / np.float32(chord)
        near = np.ones((len(seeds), len(x)), np.bool_)
        near[np.arange(len(seeds)), seeds] = False
        for plane in (x, y, turned, growth / np.float32(np.log(self.scale_rate))):
            near &= _squared_distances(plane[seeds], plane) < 1
        return near

    def _maps(self, around: "_Neighbourhoods", unit: float) -> Places:
        """(2, rows, maps) made of couples of the most distinctive neighbours; nan where they are not believed."""
        couples = _couples(self.maps)
        i, j = couples[:, couples[1] < around.x.shape[1]]
        maps, believed = _maps_of_couples(around.x, around.y, i, j)
        p, q = abs(maps)
        believed &= (unit * (p + q) <= self.largest_scale) & (unit * abs(p - q) >= 1 / self.largest_scale)
        return np.where(believed & (j < around.sizes[:, None]), maps, np.complex64(np.nan))

    def _agreeing(self, maps: Places, around: "_Neighbourhoods") -> tuple[Numbers, Mask]:
        """The rows in which enough neighbours agree with a map, and which do after it was fitted to them again.

        All maps are tried on the most distinctive neighbours; the few on which most of these agree, on all.
        """
        terms, unit = around.terms, (1 / (self.confidence * (around.sizes - 2))).astype(np.float32)
        judged = _count(_residuals(maps, terms[:, :, :JUDGES]) <= SHARE / self.confidence)
        last = min(FINALISTS, judged.shape[1]) - 1
        rows = np.arange(len(unit))
        residuals = _residuals(maps[:, rows[:, None], np.argpartition(-judged, last)[:, : last + 1]], terms)
        which, support = self._support(residuals, unit)
        rows = np.flatnonzero(support)
        terms, unit, support = terms[rows], unit[rows], support[rows]
        agree = residuals[rows, which[rows]] <= (support * unit)[:, None]
        for _ in range(REFITS):
            residuals = _residuals(_fit(agree, terms), terms)
            _, reached = self._support(residuals, unit)
            agree = np.where((reached >= support)[:, None], residuals[:, 0] <= (reached * unit)[:, None], agree)
            support = np.maximum(support, reached)
        return rows, agree

    def _support(self, residuals: Floats, unit: Floats) -> tuple[Numbers, Floats]:
        """Of every row the map on which most neighbours agree, and how many; 0 where these are less than `fewest`.

        By chance a share r**2 of the others lies within r of the prediction: k agree if they are `confidence` times as
        many, so within k units of a squared residual. Two more always do, since the map is made of them.

        The largest such k is at most the number within the limit of all others, hence at most the number within the
        limit of so many, and so on: these bounds fall until the last is reached.
        """
        limit = np.full(len(unit), 1 / self.confidence, np.float32)
        support = np.full(len(unit), np.inf, np.float32)
        while True:
            counts = _count(residuals <= limit[:, None, None]) - 2
            reached = counts.max(axis=1, initial=0)
            reached[reached < self.fewest] = 0
            if np.array_equal(reached, support):
                return counts.argmax(axis=1), support
            support, limit = reached, reached * unit


@dataclass(frozen=True)
class _Neighbourhoods:
    """Some seeds and their neighbours, the most distinctive first; the smaller ones are padded."""

    seed: Numbers  # (rows,) which match it is
    sizes: Numbers  # (rows,) how many neighbours it has
    member: Numbers  # (rows, largest size) which matches these are
    x: Places  # (rows, largest size) where these are, relative to the seed, in units of the neighbourhood's radius
    y: Places

    @cached_property
    def terms(self) -> Floats:
        """(rows, 8, largest size) what squared residuals of maps are sums of: see `_residuals`."""
        products = self.x * self.x, self.x * self.y.conj(), self.x * self.y
        parts = (part for product in products for part in (product.real, product.imag))
        return np.stack([_square(self.x), _square(self.y), *parts], axis=1)


def _neighbourhoods(near: Mask, x: Places, y: Places, seeds: Numbers, fewest: int) -> Iterator[_Neighbourhoods]:
    """Those of the seeds to which at least so many are near."""
    owner, member = np.divmod(np.flatnonzero(near), max(len(x), 1))
    every = np.bincount(owner, minlength=len(seeds))
    starts, large = np.cumsum(every) - every, np.flatnonzero(every >= fewest)
    for rows in (large[start : start + BLOCK] for start in range(0, len(large), BLOCK)):
        seed, sizes = seeds[rows], every[rows]
        column = np.arange(sizes.max())
        members = member[starts[rows, None] + np.minimum(column, sizes[:, None] - 1)]
        there = np.where(column < sizes[:, None], y[members] - y[seed, None], np.complex64(FAR))
        yield _Neighbourhoods(seed, sizes, members, x[members] - x[seed, None], there)


def _places(keypoints: Keypoints) -> Places:
    return (keypoints.x + 1j * keypoints.y).astype(np.complex64)


def _square(z: Places) -> Floats:
    return z.real**2 + z.imag**2


def _leads(x: Places, radius: float) -> Mask:
    """Which of these have none before them within the radius."""
    from scipy.spatial import cKDTree  # a quarter of a second, which help texts need not wait

    near = cKDTree(np.stack([x.real, x.imag], axis=1)).query_pairs(radius, output_type="ndarray")
    leads = np.ones(len(x), np.bool_)
    leads[near.max(axis=1)] = False
    return leads


@cache
def _couples(count: int) -> Numbers:
    """(2, count) the first pairs i < j in the order (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    j, i = np.tril_indices(int(np.sqrt(2 * count)) + 2, -1)
    return np.stack([i, j])[:, :count]


def _maps_of_couples(x: Places, y: Places, i: Numbers, j: Numbers) -> tuple[Places, Mask]:
    """(2, rows, couples) maps that put neighbours i and j where they are; which of them are determined."""
    xi, xj, yi, yj = x[:, i], x[:, j], y[:, i], y[:, j]
    cross = 2 * (xi * xj.conj()).imag
    determined = abs(cross) > 1e-9
    over = -1j / np.where(determined, cross, 1)
    return np.stack([(yi * xj.conj() - yj * xi.conj()) * over, (yj * xi - yi * xj) * over]), determined


def _residuals(maps: Places, terms: Floats) -> Floats:
    """(rows, maps, neighbours) squared distances from where the maps (2, rows, maps) put the neighbours.

    |p x + q conj(x) - y|**2 is (|p|**2 + |q|**2) |x|**2 + |y|**2 and the real part of
    2 p conj(q) x**2 - 2 p x conj(y) - 2 conj(q) x y: one product of matrices for all.
    """
    p, q = maps
    factors = np.stack([_square(p) + _square(q) + 1j, 2 * p.conj() * q, -2 * p.conj(), -2 * q], axis=-1)
    return factors.view(np.float32) @ terms


def _fit(agree: Mask, terms: Floats) -> Places:
    """(2, rows, 1) maps of least squares over the neighbours that agree; nan where these determine none."""
    sums = terms @ agree[:, :, None].astype(np.float32)
    square = sums[:, 0]
    twice, u, v = sums[:, 2] + 1j * sums[:, 3], sums[:, 4] - 1j * sums[:, 5], sums[:, 6] + 1j * sums[:, 7]
    determinant = square**2 - _square(twice)
    determinant = np.where(determinant > 1e-6 * square**2, determinant, np.float32(np.nan))
    maps: Places = np.stack([square * u - twice.conj() * v, square * v - twice * u]) / determinant
    return maps


def _squared_distances(a: Places, b: Places) -> Floats:
    """(len(a), len(b)) by one product of matrices."""
    left = np.stack([-2 * a.real, -2 * a.imag, _square(a), np.ones_like(a.real)], axis=1)
    return left @ np.stack([b.real, b.imag, np.ones_like(b.real), _square(b)])


def _count(mask: Mask) -> Floats:
    """How many are true along the last axis, in a quarter of count_nonzero's time."""
    return mask.astype(np.float32) @ np.ones(mask.shape[-1], np.float32)
