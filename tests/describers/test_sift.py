"""SIFT of a patch: what OpenCV gives, and how it is scaled."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.describers import SiftDescriber

PATCHES = np.random.default_rng(0).integers(0, 256, (5, 64, 64), dtype=np.uint8)


def opencv_sift(patch: NDArray[np.uint8]) -> NDArray[np.float32]:
    keypoint = cv2.KeyPoint(31.5, 31.5, 10.67, 0)
    return np.asarray(cv2.SIFT.create().compute(patch, [keypoint])[1][0], dtype=np.float32)


def test_sift_is_opencvs_vector_over_512() -> None:
    expected = np.stack([opencv_sift(patch) for patch in PATCHES]) / 512
    np.testing.assert_array_equal(SiftDescriber().describe(PATCHES), expected)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=5e-3)  # 8-bit rounding


def test_rootsift_is_the_root_of_sift_over_its_sum() -> None:
    sift = SiftDescriber().describe(PATCHES)
    expected = np.sqrt(sift / sift.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(SiftDescriber(root=True).describe(PATCHES), expected, atol=1e-7)


@pytest.mark.parametrize("root", [False, True])
def test_a_flat_patch_gives_zeros(root: bool) -> None:
    flat = np.full((1, 64, 64), 90, dtype=np.uint8)
    np.testing.assert_array_equal(SiftDescriber(root).describe(flat), np.zeros((1, 128)))


def test_the_grid_spans_the_patch() -> None:
    # gradients at the border of the patch reach the outer cells of the 4x4 grid, whose 8 bins come row by row
    patch = np.full((1, 64, 64), 50, dtype=np.uint8)
    patch[:, :8, :8] = PATCHES[:1, :8, :8]
    cells = SiftDescriber().describe(patch).reshape(4, 4, 8).sum(axis=2)
    assert cells[0, 0] > 0.9 * cells.sum()


def test_patches_of_another_side_are_described_by_the_same_grid() -> None:
    smooth = np.stack([cv2.GaussianBlur(patch, (0, 0), 4) for patch in PATCHES])
    large = np.stack([cv2.resize(patch, (128, 128), interpolation=cv2.INTER_LINEAR) for patch in smooth])
    similar = (SiftDescriber(True).describe(smooth) * SiftDescriber(True).describe(large)).sum(axis=1)
    assert similar.min() > 0.9


def test_a_wider_patch_has_the_same_grid_in_its_middle() -> None:
    # the wide patch is the narrow one with its border repeated, as OpenCV does beyond the image it is given
    smooth = np.stack([cv2.GaussianBlur(patch, (0, 0), 2) for patch in PATCHES])
    wide = np.pad(smooth, ((0, 0), (16, 16), (16, 16)), mode="edge")
    narrow = SiftDescriber(root=True).describe(smooth)
    similar = (SiftDescriber(root=True, patch_size=96, patch_sigmas=18.0).describe(wide) * narrow).sum(axis=1)
    assert similar.min() > 0.97
    assert (SiftDescriber(root=True).describe(wide) * narrow).sum(axis=1).max() < 0.95  # the grid over all of it


def test_by_default_the_grid_is_the_patch() -> None:
    assert SiftDescriber() == SiftDescriber(patch_size=64, patch_sigmas=12.0)
