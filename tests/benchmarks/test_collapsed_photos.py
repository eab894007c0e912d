"""A descriptor that says nothing of its patch scores as chance does, whatever their order would give away."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.evaluation import evaluate
from keypatch.benchmarks.planar.homography import Homography, PlanarMatching
from keypatch.benchmarks.planar.rotation import Rotation
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.stages import BenchmarkExtraction

STRONGEST = BenchmarkExtraction(
    keypoints=150, rule="strongest"
)  # the first keypoint of one photo is often that of the other
SHIFTS = (4.0, 9.0)


class Collapsed:
    """All vectors are one, but for some noise that has nothing to do with the patches."""

    name, dim, patch_size, patch_sigmas, unit_length = "collapsed", 128, 8, 12.0, True

    def __init__(self, noise: float) -> None:
        self.noise, self.rng = noise, np.random.default_rng(0)

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        vectors = self.dim**-0.5 + self.noise * self.rng.normal(size=(len(patches), self.dim))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two planes, each shifted by a few pixels; any keypoint is found again."""
    folder = tmp_path_factory.mktemp("planes")
    for name, photo in {"camera": skimage.data.camera()[60:300, 150:420], "brick": skimage.data.brick()}.items():
        (folder / name).mkdir()
        Image.fromarray(photo[:240, :270]).save(folder / name / "img1.png")
        for number, shift in enumerate(SHIFTS, start=2):
            moved = cv2.warpAffine(photo, np.array([[1, 0, shift], [0, 1, 0]]), (270, 240))
            Image.fromarray(np.asarray(moved)).save(folder / name / f"img{number}.png")
            (folder / name / f"H_1_{number}").write_text(f"1 0 {shift} 0 1 0 0 0 1")
    return folder


def homography(descriptor: str | Collapsed, data: Path, **matching: object) -> Result:
    settings = Homography(STRONGEST, PlanarMatching(**matching), seeds=(0,), pictures=False)  # type: ignore[arg-type]
    return evaluate(descriptor, "homography", data, settings=settings, cache=False)


def rotation(descriptor: str | Collapsed, data: Path) -> Result:
    return evaluate(descriptor, "rotation", data / "camera" / "img1.png", settings=Rotation(STRONGEST, step=90))


@pytest.mark.parametrize("noise", [1e-9, 1e-5, 1e-3])
def test_nearly_equal_descriptors_score_as_chance_does(data: Path, noise: float) -> None:
    found = homography(Collapsed(noise), data).scores
    assert found["mma3"] < 0.05 and found["accuracy3"] == found["auc5"] == 0
    assert rotation(Collapsed(noise), data).scores["share"] < 0.05


@pytest.mark.parametrize("mode", ["mutual", "one-way"])
def test_equal_descriptors_match_nothing(data: Path, mode: str) -> None:
    found = homography(Collapsed(0), data, mode=mode).scores
    assert found["count.matches"] == found["mma10"] == found["accuracy3"] == found["auc5"] == 0


def test_equal_descriptors_match_nothing_in_a_turned_photo(data: Path) -> None:
    assert rotation(Collapsed(0), data).scores["share"] == 0


def test_a_descriptor_that_tells_scores_high_on_the_same_data(data: Path) -> None:
    assert homography("rootsift", data).scores["mma3"] > 0.8
    assert rotation("rootsift", data).scores["share"] > 0.9
