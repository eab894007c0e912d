"""What is built from: textured photos, planes, a rendered room."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from room_fixtures import QUICK, Room

import keypatch as kp


def textured(seed: int, width: int = 320, height: int = 240) -> NDArray[np.uint8]:
    """Blobs of many sizes and brightnesses."""
    rng = np.random.default_rng(seed)
    image = np.full((height, width), 128.0)
    y, x = np.mgrid[:height, :width]
    for _ in range(260):
        u, v, sigma = rng.uniform(0, width), rng.uniform(0, height), np.exp(rng.uniform(np.log(2), np.log(9)))
        stretch, strength = rng.uniform(1, 1.8), rng.uniform(-90, 90)
        near = np.s_[max(0, int(v - 4 * sigma)) : int(v + 4 * sigma), max(0, int(u - 4 * sigma)) : int(u + 4 * sigma)]
        image[near] += strength * np.exp(-((x[near] - u) ** 2 + stretch * (y[near] - v) ** 2) / (2 * sigma**2))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three textured photos."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(3):
        Image.fromarray(textured(number)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="session")
def write_sequence() -> Callable[..., None]:
    """write_sequence(folder, motion): six photos of a plane in Oxford's layout, or with hpatches=True in HPatches'."""

    def write(folder: Path, motion: float, *, hpatches: bool = False, photos: int = 6, seed: int = 5) -> None:
        folder.mkdir(parents=True)
        plane, rng = textured(seed, 480, 360), np.random.default_rng(seed)
        for number in range(1, photos + 1):
            homography = np.eye(3)
            if number > 1 and motion:
                turn = motion * rng.uniform(-0.5, 0.5)
                homography[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
                homography[:2, 2] = motion * rng.uniform(20, 60, 2)
                homography[2, :2] = motion * rng.uniform(-3e-4, 3e-4, 2)
            image = cv2.warpPerspective(plane, homography, (480, 360), flags=cv2.INTER_CUBIC)
            Image.fromarray(image).save(folder / (f"{number}.ppm" if hpatches else f"img{number}.png"))
            if number > 1:
                np.savetxt(folder / (f"H_1_{number}" if hpatches else f"H1to{number}p"), homography)

    return write


@pytest.fixture(scope="session")
def built(room: Room, tmp_path_factory: pytest.TempPathFactory) -> kp.BuiltSet:
    pytest.importorskip("pycolmap")
    return kp.build(room.photos, tmp_path_factory.mktemp("built") / "out", kp.Tracks(), **QUICK)
