"""AdaLAM: which nearest neighbours agree with an affine map of their surroundings.

Cavalli, Larsson, Oswald, Sattler, Pollefeys: Handcrafted Outlier Detection Revisited, ECCV 2020. A few distinctive
matches, the seeds, gather the matches around them in both images. A seed and two of its neighbours determine an affine
map; the neighbours nearest to where it puts them are kept, as far as they are many more than chance would bring there.

Places are complex numbers, relative to the seed: a linear map of the plane is then p z + q conj(z), with the singular
values |p| + |q| and ||p| - |q||.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from keypatch.geometry import Keypoints
from keypatch.settings import CheckedFields, brief, option

Places = NDArray[np.complex64]
Floats = NDArray[np.float32]
Numbers = NDArray[np.intp]
Mask = NDArray[np.bool_]

CELLS = 1 << 18  # residuals at a time: what stays in the processor's cache
FIRST_MAPS = 21  # made of the seven most distinctive neighbours; most neighbourhoods need no others
MISSED = 0.01  # the probability of a better map at which no more are tried
REFITS = 2
FAR = 1e3  # where the padding of a neighbourhood lies: no map puts anything there


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
    """The method with its authors' numbers. Nothing is drawn at random: distinctive neighbours make the first maps.

    >>> kp.Matching(filter=kp.AdaLAM(fewest=8)).filter
    AdaLAM(fewest=8)
    """

    area_ratio: float = option(100.0, "Area of the image over the area that a seed has to itself.", above=0)
    expansion: float = option(4.0, "Radius of a neighbourhood over the radius that a seed has to itself.", above=0)
    seed_ratio: float = option(0.8, "Ratio test of seeds.", above=0, most=1)
    degrees: float = option(30.0, "Most that the rotation of a match may differ from its seed's.", above=0)
    scale_rate: float = option(1.5, "Most that the change of scale of a match may differ from its seed's.", above=1)
    maps: int = option(128, "Most affine maps tried in a neighbourhood.", least=1)
    largest_scale: float = option(5.0, "Maps that stretch or shrink by more are not believed.", above=1)
    confidence: float = option(200.0, "How many times more matches must agree with a map than by chance.", above=1)
    fewest: int = option(6, "Matches that must agree with a map beside the three that it is made of.", least=1)

    __repr__ = brief

    def __call__(self, candidates: Candidates) -> Mask:
        """(n,) which candidates agree with their surroundings."""
        x, y = _places(candidates.first), _places(candidates.second)
        order = np.argsort(candidates.ratio, kind="stable")
        both = np.stack([x, y], axis=1)[order].view("V16").ravel()
        _, found, group = np.unique(both, return_index=True, return_inverse=True)
        chosen = order[np.sort(found)]  # a place with several orientations counts once; the most distinctive come first
        kept = np.zeros(len(x), np.bool_)
        kept[chosen] = self._agree(candidates, chosen, x[chosen], y[chosen])
        kept[order] = kept[order[found]][group]
        return kept

    def _agree(self, candidates: Candidates, chosen: Numbers, x: Places, y: Places) -> Mask:
        """The answer for distinct places in the order of their ratios."""
        radius0, radius1 = (np.sqrt(width * height / (self.area_ratio * np.pi)) for width, height in candidates.sizes)
        able = np.flatnonzero(candidates.mutual[chosen] & (candidates.ratio[chosen] < self.seed_ratio))
        seeds = able[_leads(x[able], radius0)]
        x, y = x / np.float32(self.expansion * radius0), y / np.float32(self.expansion * radius1)
        around = _Neighbourhoods(x, y, seeds, *self._neighbours(candidates, chosen, x, y, seeds))
        maps, support = self._best_maps(around, radius1 / radius0)
        kept = np.zeros(len(x), np.bool_)
        for rows in around.blocks(np.flatnonzero(support >= self.fewest), 1):
            kept[self._agreeing(around, rows, maps[:, rows], support[rows])] = True
            kept[seeds[rows]] = True
        return kept

    def _neighbours(
        self, candidates: Candidates, chosen: Numbers, x: Places, y: Places, seeds: Numbers
    ) -> tuple[Numbers, Numbers]:
        """A seed, by its number among the seeds, and a match that may share its map, for every such pair, sorted."""
        first, second = candidates.first.take(chosen), candidates.second.take(chosen)
        turn, growth = second.angle - first.angle, np.log(second.sigma / first.sigma)
        owner, member = np.divmod(np.flatnonzero(_square(x[seeds, None] - x) < 1), max(len(x), 1))
        seed = seeds[owner]
        turned = np.abs((turn[member] - turn[seed] + np.pi) % (2 * np.pi) - np.pi)
        fits = (_square(y[member] - y[seed]) < 1) & (turned < np.radians(self.degrees)) & (member != seed)
        fits &= np.abs(growth[member] - growth[seed]) < np.log(self.scale_rate)
        return owner[fits], member[fits]

    def _best_maps(self, around: "_Neighbourhoods", unit: float) -> tuple[Places, Numbers]:
        """Of every seed the map (2, seeds) on which most neighbours agree, and how many beside the two that make it."""
        best, support = np.zeros((2, len(around.sizes)), np.complex64), np.zeros(len(around.sizes), np.intp)
        left = np.flatnonzero(around.sizes >= self.fewest + 2)
        i, j = _couples(self.maps)
        for tried in (slice(0, FIRST_MAPS), slice(FIRST_MAPS, self.maps)):
            for rows in around.blocks(left, len(i[tried])):
                x, y, _ = around.padded(rows)
                made = j[tried][j[tried] < x.shape[1]]
                maps, believed = _maps_of_couples(x, y, i[tried][: len(made)], made)
                stretch, shrink = unit * (abs(maps[0]) + abs(maps[1])), unit * abs(abs(maps[0]) - abs(maps[1]))
                believed &= (stretch <= self.largest_scale) & (shrink >= 1 / self.largest_scale)
                believed &= made < around.sizes[rows, None]
                residuals = _residuals(maps, x, y)
                close = np.count_nonzero(residuals <= np.float32(1 / self.confidence), axis=2)
                close[~believed] = 0
                most = np.zeros_like(believed)
                most[np.arange(len(rows)), close.argmax(axis=1)] = True
                for chosen in (most, ~most):  # what the first ones reach leaves few of the others to look at
                    chosen &= close > np.maximum(self.fewest - 1, support[rows, None]) + 2
                    row, _ = np.nonzero(chosen)
                    counts = self._support(residuals[chosen], around.sizes[rows[row]])
                    order = np.lexsort((-counts, row))
                    first = order[np.flatnonzero(np.diff(row[order], prepend=-1))]
                    first = first[counts[first] > support[rows[row[first]]]]
                    best[:, rows[row[first]]], support[rows[row[first]]] = maps[:, chosen][:, first], counts[first]
            share = (support[left] + 2) / around.sizes[left]  # a better map is made of two others of as many
            left = left[(1 - share**2) ** FIRST_MAPS >= MISSED]
        return best, support

    def _agreeing(self, around: "_Neighbourhoods", rows: Numbers, maps: Places, support: Numbers) -> Numbers:
        """The neighbours that agree with these maps, after the maps were fitted to them again."""
        x, y, members = around.padded(rows)
        sizes = around.sizes[rows]
        agree = self._within(_residuals(maps[:, :, None], x, y)[:, 0], sizes, support)
        for _ in range(REFITS):
            residuals = _residuals(_fit(x, np.where(agree, y, 0), agree)[:, :, None], x, y)[:, 0]
            counts = self._support(residuals, sizes)
            agree = np.where((counts >= support)[:, None], self._within(residuals, sizes, counts), agree)
            support = np.maximum(support, counts)
        return members[agree]

    def _within(self, residuals: Floats, sizes: Numbers, support: Numbers) -> Mask:
        return residuals * np.float32(self.confidence) * (sizes - 2)[:, None].astype(np.float32) <= support[:, None]

    def _support(self, residuals: Floats, sizes: Numbers) -> Numbers:
        """(rows,) the largest k such that k + 2 squared residuals are at most k / (confidence * others).

        By chance a share r**2 of the others lies within r of the prediction: k agree if they are `confidence` times as
        many. Two more always do, since the map is made of them. 0 where k would be less than `fewest`.
        """
        close = np.flatnonzero(residuals <= np.float32(1 / self.confidence))
        row = close // max(residuals.shape[1], 1)
        able = np.bincount(row, minlength=len(residuals)) >= self.fewest + 2
        close, row = close[able[row]], (np.cumsum(able) - 1)[row[able[row]]]
        others = (sizes - 2)[able]
        width = int(others.max(initial=0)) + 2
        needed = (self.confidence * others.astype(np.float32))[row]
        least = np.ceil(residuals.ravel()[close] * needed)  # the k from which on it counts
        cell = row * width + np.clip(least, 1, width - 1).astype(np.intp)
        counts = np.bincount(cell, minlength=len(others) * width).reshape(-1, width).cumsum(axis=1)
        k = np.arange(width)
        reached = ((counts >= k + 2) & (k <= others[:, None])) | (k == 0)
        support = np.zeros(len(residuals), np.intp)
        support[able] = width - 1 - reached[:, ::-1].argmax(axis=1)
        return np.where(support >= self.fewest, support, 0)


@dataclass(frozen=True)
class _Neighbourhoods:
    """The neighbours of every seed, one after the other."""

    x: Places  # (n,) of all matches, in units of the neighbourhood's radius
    y: Places
    seeds: Numbers  # (s,) which of the matches they are
    owner: Numbers  # (m,) whose neighbour, in ascending order
    member: Numbers  # (m,) which match

    @cached_property
    def sizes(self) -> Numbers:
        return np.bincount(self.owner, minlength=len(self.seeds))

    def blocks(self, rows: Numbers, maps: int) -> Iterator[Numbers]:
        """The rows in blocks of similar size, so that little is padded and few residuals are computed at a time."""
        rows = rows[np.argsort(self.sizes[rows], kind="stable")]
        while len(rows):
            cells = self.sizes[rows] * maps * np.arange(1, len(rows) + 1)
            count = max(1, int(np.searchsorted(cells, CELLS, side="right")))
            yield rows[:count]
            rows = rows[count:]

    def padded(self, rows: Numbers) -> tuple[Places, Places, Numbers]:
        """(rows, largest size) places relative to the seed in both images, and which matches they are."""
        start, size = np.searchsorted(self.owner, rows)[:, None], self.sizes[rows, None]
        column = np.arange(int(size.max()))
        member = self.member[start + np.minimum(column, size - 1)]
        seed = self.seeds[rows, None]
        y = np.where(column < size, self.y[member] - self.y[seed], np.complex64(FAR))
        return self.x[member] - self.x[seed], y, member


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


def _couples(count: int) -> tuple[Numbers, Numbers]:
    """The first pairs i < j in the order (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    j, i = np.tril_indices(int(np.sqrt(2 * count)) + 2, -1)
    return i[:count], j[:count]


def _maps_of_couples(x: Places, y: Places, i: Numbers, j: Numbers) -> tuple[Places, Mask]:
    """(2, rows, couples) maps that put neighbours i and j where they are; which of them are determined."""
    cross = x[:, i] * x[:, j].conj()
    cross = 2j * cross.imag
    determined = abs(cross) > 1e-9
    cross = np.where(determined, cross, 1)
    p = (y[:, i] * x[:, j].conj() - y[:, j] * x[:, i].conj()) / cross
    q = (y[:, j] * x[:, i] - y[:, i] * x[:, j]) / cross
    return np.stack([p, q]), determined


def _fit(x: Places, y: Places, agree: Mask) -> Places:
    """(2, rows) maps of least squares over the neighbours that agree."""
    x = np.where(agree, x, 0)
    square, twice = (x * x.conj()).real.sum(axis=1), (x * x).sum(axis=1)
    u, v = (y * x.conj()).sum(axis=1), (y * x).sum(axis=1)
    determinant = square**2 - _square(twice)
    determinant = np.where(determinant > 1e-12, determinant, 1)
    return (np.stack([square * u - twice.conj() * v, square * v - twice * u]) / determinant).astype(np.complex64)


def _residuals(maps: Places, x: Places, y: Places) -> Floats:
    """(rows, maps, neighbours) squared distances from where the maps (2, rows, maps) put the neighbours."""
    p, q = maps
    minus = np.full(p.shape, -1, np.float32)
    along: Floats = _rows(p.real + q.real, q.imag - p.imag, minus) @ _columns(x.real, x.imag, y.real)
    across: Floats = _rows(p.imag + q.imag, p.real - q.real, minus) @ _columns(x.real, x.imag, y.imag)
    along *= along
    across *= across
    along += across
    return along


def _rows(*parts: Floats) -> Floats:
    return np.stack(parts, axis=-1)


def _columns(*parts: Floats) -> Floats:
    return np.stack(parts, axis=1)
