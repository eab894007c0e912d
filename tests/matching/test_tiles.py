"""Nearest neighbours from tiles, against distances written out."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from keypatch.matching import neighbours
from keypatch.matching.neighbours import Nearest, find_nearest

SIZES = st.integers(1, 11)


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rows of whole numbers: their products are exact in float32, and equal distances are frequent."""
    dim, values = draw(st.integers(1, 3)), st.integers(-2, 2).map(float)
    first, second = (draw(arrays(np.float32, (draw(SIZES), dim), elements=values)) for _ in range(2))
    return first, second


def closeness(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    return -np.sum((a[:, None].astype(np.float64) - b[None]) ** 2, axis=2) / 2


def check(nearest: Nearest, table: NDArray[np.float64]) -> None:
    assert nearest.index.tolist() == table.argmax(axis=1).tolist()  # of equal ones the first
    ordered = np.sort(np.column_stack([np.full(len(table), -np.inf), table]), axis=1)
    assert nearest.closeness.tolist() == ordered[:, -1].tolist()
    assert nearest.runner_up.tolist() == ordered[:, -2].tolist()


@pytest.fixture(params=[1, 3], scope="module")
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@given(sets=two_sets(), tile=st.integers(1, 12))
def test_both_directions_are_what_a_table_of_distances_says(
    threads: None, sets: tuple[NDArray[np.float32], NDArray[np.float32]], tile: int
) -> None:
    a, b = sets
    forth, back = find_nearest(torch.from_numpy(a), torch.from_numpy(b), tile)
    check(forth, closeness(a, b))
    check(back, closeness(b, a))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 700), (700, 1), (512, 512), (513, 1030), (1030, 511)])
def test_sets_around_the_size_of_a_tile(threads: None, n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-20, 21, (size, 16)).astype(np.float32) for size in (n, m))
    forth, back = find_nearest(torch.from_numpy(a), torch.from_numpy(b))
    check(forth, closeness(a, b))
    check(back, closeness(b, a))


def test_equal_vectors_everywhere_do_not_fill_the_memory_with_one_group() -> None:
    same = torch.ones(50, 4)
    forth, back = find_nearest(same, same, tile=8)
    assert not forth.index.any() and not back.index.any()
    assert not forth.runner_up.any()


def test_as_many_threads_as_before_are_left(threads: None) -> None:
    before = torch.get_num_threads()
    find_nearest(torch.randn(20, 4), torch.randn(20, 4), tile=4)
    assert torch.get_num_threads() == before


def test_the_pass_over_tiles_stays_on_the_device_of_the_descriptors() -> None:
    a, b = torch.empty(10, 4, device="meta"), torch.empty(7, 4, device="meta")  # meets no tensor of the CPU
    top, columns = neighbours._scan(neighbours.lift(a), [neighbours.lift_partner(part) for part in torch.split(b, 3)])
    assert top.largest.device.type == top.tile.device.type == columns.device.type == "meta"
    assert top.second.shape == (10,) and columns.shape == (7,)
