"""A ring of cameras around known points, in the layouts of others and written by none of our writers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

SIZE = (640, 480)
K = np.array([[700.0, 0, 323.25], [0, 703.0, 236.75], [0, 0, 1]])  # centre of the top-left pixel = (0, 0)
VIEWS, POINTS, DIM = 6, 260, 24


@dataclass(frozen=True)
class Ring:
    """Views of the same points, each under another number in every view, without noise."""

    names: list[str]
    rotations: np.ndarray  # (n, 3, 3) world to camera
    centres: np.ndarray  # (n, 3)
    rays: list[np.ndarray]  # (points, 2): x / z, y / z
    descriptors: list[np.ndarray]  # (points, DIM)

    @property
    def keypoints(self) -> list[np.ndarray]:
        return [rays * (K[0, 0], K[1, 1]) + (K[0, 2], K[1, 2]) for rays in self.rays]

    def write_photos(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name in self.names:
            Image.fromarray(np.full(SIZE[::-1], 90, np.uint8)).save(folder / name)

    def write_strecha(self, folder: Path) -> Path:
        self.write_photos(folder / "images")
        (folder / "cameras").mkdir()
        for name, rotation, centre in zip(self.names, self.rotations, self.centres, strict=True):
            rows = [*K, np.zeros(3), *rotation.T, centre, SIZE]
            text = "\n".join(" ".join(repr(float(value)) for value in row) for row in rows)
            (folder / "cameras" / f"{name}.camera").write_text(text + "\n")
        return folder

    def write_challenge(self, scene: Path) -> Path:
        """images/, calibration/*.h5 and images.txt in set_100; returns that folder."""
        folder = scene / "set_100"
        self.write_photos(folder / "images")
        (folder / "calibration").mkdir()
        for name, rotation, centre in zip(self.names, self.rotations, self.centres, strict=True):
            with h5py.File(folder / "calibration" / f"calibration_{Path(name).stem}.h5", "w") as file:
                file["K"], file["R"], file["T"] = K, rotation, -rotation @ centre
        (folder / "images.txt").write_text("".join(f"images/{name}\n" for name in self.names))
        return folder

    def write_hloc(self, path: Path, prefixes: Sequence[str] = ("",)) -> Path:
        with h5py.File(path, "w") as file:
            for prefix in prefixes:
                for name, keypoints, rows in zip(self.names, self.keypoints, self.descriptors, strict=True):
                    group = file.create_group(prefix + name)
                    group["keypoints"], group["descriptors"] = keypoints.astype(np.float32), rows.T.astype(np.float32)
        return path

    def write_challenge_features(self, folder: Path) -> Path:
        """keypoints.h5 and descriptors.h5, an array for each photo."""
        folder.mkdir()
        for file_name, arrays in (("keypoints.h5", self.keypoints), ("descriptors.h5", self.descriptors)):
            with h5py.File(folder / file_name, "w") as file:
                for name, array in zip(self.names, arrays, strict=True):
                    file[Path(name).stem] = array.astype(np.float32)
        return folder


@pytest.fixture(scope="session")
def ring() -> Ring:
    rng = np.random.default_rng(3)
    points, vectors = rng.uniform((-2, -1.5, -1), (2, 1.5, 1), (POINTS, 3)), rng.normal(size=(POINTS, DIM))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rotations, centres, rays, descriptors = [], [], [], []
    for number in range(VIEWS):
        angle = np.radians(-40 + 16 * number)
        centre = np.array([7 * np.sin(angle), 0.4 * np.cos(3 * angle), -7 * np.cos(angle)])
        forward = -centre / np.linalg.norm(centre)
        right = np.cross([0, 1, 0], forward)
        right /= np.linalg.norm(right)
        rotation, order = np.stack([right, np.cross(forward, right), forward]), rng.permutation(POINTS)
        seen = (points[order] - centre) @ rotation.T
        rotations.append(rotation)
        centres.append(centre)
        rays.append(seen[:, :2] / seen[:, 2:])
        descriptors.append(vectors[order])
    return Ring([f"{n}.png" for n in range(VIEWS)], np.array(rotations), np.array(centres), rays, descriptors)
