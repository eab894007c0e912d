"""Features and feature files that no code of ours has written."""

from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from skimage import data


@pytest.fixture(scope="session")
def motorcycle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A real stereo pair: the same rows, further right in the left photo."""
    folder = tmp_path_factory.mktemp("motorcycle")
    left, right, _ = data.stereo_motorcycle()
    paths = folder / "left.png", folder / "right.png"
    for path, photo in zip(paths, (left, right), strict=True):
        Image.fromarray(photo).save(path)
    return paths


@pytest.fixture
def write_features(tmp_path: Path) -> Callable[..., Path]:
    """write_features({"a.jpg": 30}) -> an h5 file as hloc writes it, every photo a noisy view of the same points."""

    def write(counts: Mapping[str, int], name: str = "features.h5", dim: int = 16) -> Path:
        rng = np.random.default_rng(0)
        places, vectors = rng.uniform(10, 500, (200, 2)), rng.normal(size=(200, dim))
        path = tmp_path / name
        with h5py.File(path, "w") as file:
            for shift, (photo, count) in enumerate(counts.items()):
                rows = vectors[:count] + rng.normal(0, 0.05, (count, dim))
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                group = file.create_group(photo)
                group["keypoints"] = (places[:count] + 7 * shift).astype(np.float32)
                group["descriptors"] = rows.T.astype(np.float32)
                group["image_size"] = np.array([600, 600])
        return path

    return write
