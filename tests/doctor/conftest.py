"""Photographs of scikit-image, and files with planted faults written by plain h5py, numpy and pycolmap."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from skimage import data


@pytest.fixture(scope="session")
def planting() -> ModuleType:
    """bench/planting.py, which also fills the table of the docs."""
    path = Path(__file__).parents[2] / "bench" / "planting.py"
    spec = importlib.util.spec_from_file_location("planting", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def photos() -> Mapping[str, np.ndarray]:
    return {
        "astronaut": cv2.cvtColor(data.astronaut(), cv2.COLOR_RGB2GRAY),
        "coffee": cv2.cvtColor(data.coffee(), cv2.COLOR_RGB2GRAY),
        "camera": data.camera(),
    }


@pytest.fixture(scope="session")
def opencv(planting: ModuleType, photos: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """OpenCV's unbiased SIFT of every photo, in hloc's convention."""
    return {name: planting.by_opencv(photo) for name, photo in photos.items()}


@pytest.fixture
def examined(planting: ModuleType, photos: Mapping[str, np.ndarray], tmp_path: Path) -> Callable[..., Any]:
    """Write the numbers to a file of that kind, and examine it with its photo."""
    from keypatch.doctor.examination import examine

    def call(photo: str, written: Any, kind: str = "h5", **options: Any) -> Any:
        height, width = photos[photo].shape
        image, path = tmp_path / f"{photo}.bmp", tmp_path / f"planted.{kind}"
        Image.fromarray(photos[photo]).save(image)
        if kind == "h5":
            planting.write_h5(path, image.name, written, **options)
            return examine(image, features=path)
        planting.write_database(path, image.name, (width, height), written)
        return examine(image, database=path)

    return call
