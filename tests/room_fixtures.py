"""A room of textured walls rendered from known cameras: of every pixel it is known which place of the room it shows."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import map_coordinates
from skimage import data

import keypatch as kp

SIZE = (480, 360)
FOCAL = 420.0
K = np.array([[FOCAL, 0, (SIZE[0] - 1) / 2], [0, FOCAL, (SIZE[1] - 1) / 2], [0, 0, 1]])
VIEWS = 7
# a point on each wall, its two axes and the photograph on it; a corner of two walls over a floor
WALLS = (
    ((-3.0, -2.2, 2.0), (1, 0, 0.35), (0, 1, 0), "coffee"),
    ((0.0, -2.2, 3.05), (1, 0, -0.45), (0, 1, 0), "chelsea"),
    ((-4.0, 1.4, 3.5), (1, 0, 0), (0, 0, -1), "rocket"),
)
EXTENT = (8.0, 4.2)  # of a wall along its axes
QUICK = {  # how `build` is told to make a model of it in seconds
    "describer": "rootsift",
    "extraction": kp.Extraction(keypoints=900),
    "mapping": kp.Mapping(focal=FOCAL, share_camera=True),
}


@dataclass(frozen=True)
class Room:
    photos: Path
    names: list[str]
    rotations: np.ndarray  # (n, 3, 3) world to camera
    centres: np.ndarray  # (n, 3)

    def places(self, view: int, xy: np.ndarray) -> np.ndarray:
        """(n, 3) what is seen at pixels (n, 2) of a view."""
        return _trace(self.rotations[view], self.centres[view], xy)[0]


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return make_room(tmp_path_factory.mktemp("room") / "photos")


def make_room(folder: Path) -> Room:
    folder.mkdir()
    textures = [_texture(name) for *_, name in WALLS]
    x, y = np.meshgrid(np.arange(2 * SIZE[0]), np.arange(2 * SIZE[1]))
    fine = np.stack([x.ravel(), y.ravel()], axis=1) / 2 - 0.25  # four rays of a pixel
    names, rotations, centres = [], [], []
    for view in range(VIEWS):
        angle = np.radians(-24 + 8 * view)
        centre = np.array([5.2 * np.sin(angle), 0.25 * np.cos(4 * angle) - 0.3, 2.6 - 5.2 * np.cos(angle)])
        rotation = _looking(np.array([0.1, 0.1, 2.6]) - centre, roll=np.radians(6 * (view % 3 - 1)))
        _, wall, across = _trace(rotation, centre, fine)
        grey = np.zeros(len(fine), np.float32)
        for number, texture in enumerate(textures):
            here = np.flatnonzero(wall == number)
            scale = np.array(texture.shape[::-1]) / EXTENT
            column, row = (across[here] * scale - 0.5).T
            grey[here] = map_coordinates(texture, [row, column], order=1, mode="nearest")
        picture = grey.reshape(SIZE[1], 2, SIZE[0], 2).mean(axis=(1, 3))
        names.append(f"{view}.png")
        Image.fromarray(np.rint(picture).astype(np.uint8)).save(folder / names[-1])
        rotations.append(rotation)
        centres.append(centre)
    return Room(folder, names, np.array(rotations), np.array(centres))


def _texture(name: str) -> np.ndarray:
    """A photograph and its mirror image side by side turned round, so that nothing on the wall repeats exactly."""
    photo = cv2.cvtColor(getattr(data, name)(), cv2.COLOR_RGB2GRAY)
    wide = np.concatenate([photo, cv2.rotate(photo, cv2.ROTATE_180)[:, ::-1]], axis=1)
    return cv2.resize(wide, (1000, 525), interpolation=cv2.INTER_AREA).astype(np.float32)


def _looking(direction: np.ndarray, roll: float) -> np.ndarray:
    forward = direction / np.linalg.norm(direction)
    right = np.cross([0, 1, 0], forward)
    right /= np.linalg.norm(right)
    level = np.stack([right, np.cross(forward, right), forward])
    turn = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    return turn @ level


def _trace(rotation: np.ndarray, centre: np.ndarray, xy: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rays through pixels (n, 2): the place hit (n, 3), the wall (n,) or -1, and the place on it (n, 2)."""
    rays = np.concatenate([xy, np.ones((len(xy), 1))], axis=1) @ np.linalg.inv(K).T @ rotation
    nearest, wall = np.full(len(xy), np.inf), np.full(len(xy), -1)
    across = np.zeros((len(xy), 2))
    for number, (origin, right, down, _) in enumerate(WALLS):
        u, v = (np.array(axis, float) / np.linalg.norm(axis) for axis in (right, down))
        normal = np.cross(u, v)
        depth = (np.array(origin) - centre) @ normal / (rays @ normal)
        seen = centre + depth[:, None] * rays - origin
        on_wall = np.stack([seen @ u, seen @ v], axis=1)
        hit = (depth > 0) & (depth < nearest) & np.all((on_wall >= 0) & (on_wall <= EXTENT), axis=1)
        nearest[hit], wall[hit], across[hit] = depth[hit], number, on_wall[hit]
    return centre + nearest[:, None] * rays, wall, across
