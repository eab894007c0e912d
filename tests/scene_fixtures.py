"""A scene with known geometry: its photos by Pillow, features and matches by plain h5py, cameras as plain text."""

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

SIZE = (640, 480)
K = np.array([[700.0, 0, 323.25], [0, 703.0, 236.75], [0, 0, 1]])  # centre of the top-left pixel = (0, 0)
VIEWS, POINTS = 6, 260


@dataclass(frozen=True)
class Scene:
    folder: Path
    names: list[str]
    rotations: np.ndarray  # (n, 3, 3) world to camera
    centres: np.ndarray  # (n, 3)
    keypoints: dict[str, np.ndarray]  # (m, 2) in the pixels of K
    matches: dict[tuple[str, str], np.ndarray]

    @property
    def photos(self) -> Path:
        return self.folder / "photos"

    @property
    def features(self) -> Path:
        return self.folder / "features.h5"

    @property
    def matches_file(self) -> Path:
        return self.folder / "matches.h5"

    @property
    def cameras(self) -> Path:
        return self.folder / "cameras"


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"))


def make_scene(folder: Path) -> Scene:
    """Six views of 260 points in a box, without noise, every point in every view under another number."""
    rng = np.random.default_rng(3)
    points = rng.uniform((-2, -1.5, -1), (2, 1.5, 1), (POINTS, 3))
    names = [f"{number}.png" for number in range(VIEWS)]
    rotations, centres, keypoints, order = [], [], {}, {}
    for number, name in enumerate(names):
        angle = np.radians(-40 + 16 * number)
        centre = np.array([7 * np.sin(angle), 0.4 * np.cos(3 * angle), -7 * np.cos(angle)])
        rotation = _looking(-centre)
        order[name] = rng.permutation(POINTS)  # keypoint k of a photo is point order[k]
        seen = (points[order[name]] - centre) @ rotation.T
        keypoints[name] = (seen @ K.T)[:, :2] / seen[:, 2:]
        assert np.all((keypoints[name] > 0) & (keypoints[name] < np.array(SIZE) - 1))
        rotations.append(rotation)
        centres.append(centre)
    matches = {
        (a, b): np.stack([np.arange(POINTS), np.argsort(order[b])[order[a]]], axis=1)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }
    made = Scene(folder, names, np.array(rotations), np.array(centres), keypoints, matches)
    _write(made, points, rng)
    return made


def _looking(direction: np.ndarray) -> np.ndarray:
    """Rows right, down, forward of a level camera whose world has y down."""
    forward = direction / np.linalg.norm(direction)
    right = np.cross([0, 1, 0], forward)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def _write(scene: Scene, points: np.ndarray, rng: np.random.Generator) -> None:
    scene.photos.mkdir()
    scene.cameras.mkdir()
    with h5py.File(scene.features, "w") as file:
        for number, name in enumerate(scene.names):
            picture = np.full((SIZE[1], SIZE[0], 3), (200, 40, 90), np.uint8)
            picture += rng.integers(0, 20, picture.shape, dtype=np.uint8)
            Image.fromarray(picture).save(scene.photos / name)
            group = file.create_group(name)
            group["keypoints"] = scene.keypoints[name].astype(np.float32)
            group["descriptors"] = rng.normal(size=(8, POINTS)).astype(np.float32)
            group["image_size"] = np.array(SIZE)
            rows = [*K, np.zeros(3), *scene.rotations[number].T, scene.centres[number], SIZE]
            text = "\n".join(" ".join(repr(float(value)) for value in row) for row in rows)
            (scene.cameras / f"{name}.camera").write_text(text + "\n")
    with h5py.File(scene.matches_file, "w") as file:
        for (a, b), rows in scene.matches.items():
            file[f"{a}/{b}/matches0"] = rows[:, 1].astype(np.int32)
            file[f"{a}/{b}/matching_scores0"] = np.ones(POINTS, np.float32)
