"""What holds for every describer; a new one is tested by being added to the table."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from keypatch.describers import Describer, SiftDescriber
from keypatch.describers.network import NetworkDescriber
from keypatch.errors import KeypatchError
from keypatch.networks import NETWORKS

PATCHES = np.random.default_rng(0).integers(0, 256, (33, 64, 64), dtype=np.uint8)
ROUNDING = 2e-5  # float32 sums in another order, for another size of batch


def untrained(network: str) -> Describer:
    torch.manual_seed(0)
    return NetworkDescriber(NETWORKS[network]().build(), network, device="cpu", precision="float32")


DESCRIBERS: dict[str, Callable[[], Describer]] = {
    "sift": SiftDescriber,
    "rootsift": lambda: SiftDescriber(root=True),
    **{network: partial(untrained, network) for network in NETWORKS},
}


@pytest.fixture(scope="module", params=DESCRIBERS)
def describer(request: pytest.FixtureRequest) -> Describer:
    return DESCRIBERS[request.param]()


def test_rows_are_float32_of_its_dimension_and_of_unit_length(describer: Describer) -> None:
    described = describer.describe(PATCHES)
    assert described.dtype == np.float32
    assert described.shape == (len(PATCHES), describer.dim)
    assert np.isfinite(described).all()
    if describer.unit_length:
        np.testing.assert_allclose(np.linalg.norm(described, axis=1), 1, atol=1e-5)


def test_no_patches_give_no_rows(describer: Describer) -> None:
    described = describer.describe(PATCHES[:0])
    assert described.shape == (0, describer.dim)
    assert described.dtype == np.float32


def test_a_row_does_not_depend_on_the_other_patches(describer: Describer) -> None:
    whole = describer.describe(PATCHES)
    for count in (1, 2, 31):
        np.testing.assert_allclose(describer.describe(PATCHES[:count]), whole[:count], atol=ROUNDING)
    np.testing.assert_allclose(describer.describe(PATCHES[::-1].copy()), whole[::-1], atol=ROUNDING)


def test_different_patches_have_different_rows(describer: Describer) -> None:
    assert len(np.unique(describer.describe(PATCHES), axis=0)) == len(PATCHES)


def test_describing_leaves_the_patches_alone_and_is_repeatable(describer: Describer) -> None:
    patches = PATCHES.copy()
    first = describer.describe(patches)
    np.testing.assert_array_equal(patches, PATCHES)
    np.testing.assert_array_equal(describer.describe(patches), first)


def test_flat_patches_give_finite_rows(describer: Describer) -> None:
    flat = np.stack([np.full((64, 64), grey, dtype=np.uint8) for grey in (0, 90, 255)])
    assert np.isfinite(describer.describe(flat)).all()


@pytest.mark.parametrize("side", [32, 65])
def test_patches_of_another_side_are_described(describer: Describer, side: int) -> None:
    patches = np.random.default_rng(1).integers(0, 256, (2, side, side), dtype=np.uint8)
    assert describer.describe(patches).shape == (2, describer.dim)


def test_read_only_and_strided_patches_are_described(describer: Describer) -> None:
    wide = np.zeros((3, 64, 128), dtype=np.uint8)
    wide[:, :, ::2] = PATCHES[:3]
    wide.flags.writeable = False
    np.testing.assert_allclose(describer.describe(wide[:, :, ::2]), describer.describe(PATCHES[:3]), atol=ROUNDING)


@pytest.mark.parametrize(
    "wrong",
    [
        PATCHES.astype(np.float32),
        np.full((2, 64, 64), np.nan),
        PATCHES.astype(np.int64),
        PATCHES[0],
        PATCHES[:, None],
        PATCHES[:, :32],
        PATCHES[:, :0, :0],
        PATCHES.tolist(),
    ],
    ids=["float", "nan", "int64", "one patch without n", "with a channel", "not square", "no pixels", "a list"],
)
def test_wrong_patches_are_refused_with_a_sentence(describer: Describer, wrong: Any) -> None:
    with pytest.raises(KeypatchError, match=r"[Pp]atch"):
        describer.describe(wrong)


def test_it_says_what_it_is(describer: Describer) -> None:
    assert describer.name
    assert describer.patch_size > 0
    assert describer.patch_sigmas > 0
