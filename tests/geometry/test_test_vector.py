"""The test vector of examples/test-vector: our cutter gives it, and so does the recipe of docs/conventions.md."""

import math
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.geometry import Keypoints, cut_patches

FOLDER = Path(__file__).parents[2] / "examples" / "test-vector"
SIDE, PATCH_SIGMAS = 32, 24.0
HALVING, SOFTENING = np.array([1, 4, 6, 4, 1]) / 16, np.array([1, 48, 158, 48, 1]) / 256
EXACT = int(cv2.__version__.split(".")[0]) >= 5  # OpenCV 4 takes bilinear samples at steps of 1/32 pixel

Image = NDArray[np.float64]


@pytest.fixture(scope="module")
def image() -> NDArray[np.uint8]:
    return np.asarray(cv2.imread(str(FOLDER / "image.pgm"), cv2.IMREAD_UNCHANGED), np.uint8)


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float32]:
    """x, y, sigma, angle, s11, s12, s21, s22 of each keypoint."""
    return np.loadtxt(FOLDER / "keypoints.csv", np.float32, delimiter=",", skiprows=1)


@pytest.fixture(scope="module")
def patches() -> NDArray[np.uint8]:
    strip = cv2.imread(str(FOLDER / "patches.pgm"), cv2.IMREAD_UNCHANGED)
    assert strip is not None and strip.dtype == np.uint8
    return np.asarray(strip, np.uint8).reshape(-1, SIDE, SIDE)


def filtered(image: Image, taps: NDArray[np.float64]) -> Image:
    """Both ways, the border repeated, halves rounded up."""
    height, width = image.shape
    padded = np.pad(image, 2, mode="edge")
    across = sum(tap * padded[:, k : k + width] for k, tap in enumerate(taps))
    return np.asarray(np.floor(sum(tap * across[k : k + height] for k, tap in enumerate(taps)) + 0.5))


def cut_as_written(image: Image, row: NDArray[np.float64]) -> Image:
    """One patch by the steps of the page, not rounded."""
    x, y, sigma, angle = row[:4]
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    step = sigma * row[4:].reshape(2, 2) @ turn * PATCH_SIGMAS / SIDE
    stretch = np.linalg.svd(step)[1][0]
    level = min(max(math.floor(2 * math.log2(stretch)), 0), 2 * math.floor(math.log2(max(image.shape))) + 1)
    for _ in range(level // 2):
        image = filtered(image, HALVING)[::2, ::2]
    if level % 2:
        image = filtered(image, SOFTENING)
    patch = np.empty((SIDE, SIDE))
    for j in range(SIDE):
        for i in range(SIDE):
            place = np.array([x, y]) + step @ (i - (SIDE - 1) / 2, j - (SIDE - 1) / 2)
            patch[j, i] = bilinear(image, *(place / 2 ** (level // 2)))
    return patch


def bilinear(image: Image, u: float, v: float) -> float:
    height, width = image.shape
    left, top = math.floor(u), math.floor(v)
    a, b = u - left, v - top

    def pixel(column: int, row: int) -> float:
        return float(image[min(max(row, 0), height - 1), min(max(column, 0), width - 1)])

    above = (1 - a) * pixel(left, top) + a * pixel(left + 1, top)
    below = (1 - a) * pixel(left, top + 1) + a * pixel(left + 1, top + 1)
    return (1 - b) * above + b * below


def test_our_cutter_gives_the_test_vector(
    image: NDArray[np.uint8], rows: NDArray[np.float32], patches: NDArray[np.uint8]
) -> None:
    x, y, sigma, angle = rows.T[:4]
    cut = cut_patches(image, Keypoints(x, y, sigma, angle, rows[:, 4:].reshape(-1, 2, 2)), PATCH_SIGMAS, SIDE)
    difference = np.abs(cut.astype(int) - patches)
    assert cut.shape == patches.shape and difference.max() <= (1 if EXACT else 6)
    assert difference.mean() < (0.01 if EXACT else 0.2)


def test_the_steps_of_the_page_give_the_test_vector(
    image: NDArray[np.uint8], rows: NDArray[np.float32], patches: NDArray[np.uint8]
) -> None:
    for number, (row, patch) in enumerate(zip(rows.astype(np.float64), patches, strict=True)):
        written = cut_as_written(image.astype(np.float64), row)
        assert np.abs(written - patch).max() < 0.51, f"keypoint {number}"  # what rounding to 8 bits leaves


def test_it_covers_the_pyramid(rows: NDArray[np.float32], image: NDArray[np.uint8]) -> None:
    steps = rows[:15, 2] * PATCH_SIGMAS / SIDE  # those not sheared
    assert {int(max(0, np.floor(2 * np.log2(step)))) for step in steps} == set(range(8))
