"""Exact nearest neighbours of two sets of vectors in both directions, from one pass over tiles of their products.

The products cost the most, so they are made once for both directions. Of a tile only the maxima are kept: finding where
they lie is slow, and is done afterwards, only in the one tile in which a vector's nearest neighbour was seen.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

TILE = 512  # vectors; the fastest of 128 to 2048: a tile of products, 1 MB, stays in the cache
DEVICE_TILE = 8192  # on a GPU: 256 MB of products

Result = TypeVar("Result")


@dataclass(frozen=True)
class Nearest:
    """Of each vector of one set the nearest of the other; closeness is -d**2 / 2 for the Euclidean distance d."""

    index: Tensor  # (n,) int64; the first of equally near ones
    closeness: Tensor  # (n,) float32
    runner_up: Tensor  # (n,) closeness of the second nearest; minus infinity where there is none


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
    for number, (rows, columns) in enumerate(_in_threads(scan, len(a_tiles), a.device)):
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

    for _ in _in_threads(look, len(groups), index.device):
        pass
    return Nearest(index, top.largest, runner_up)


def _in_threads(work: Callable[[int], Result], count: int, device: torch.device) -> Iterator[Result]:
    """work(0), work(1), ... in this order; on the CPU several at a time."""
    threads = torch.get_num_threads()
    if threads == 1 or count < 2 or device.type != "cpu":
        yield from map(work, range(count))
        return
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(work, range(count))
    finally:
        torch.set_num_threads(threads)  # the workers' setting is also what later threads would start with
