"""The score inside reference images: given where interest.txt names them, and what it is then."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks import Ubc, evaluate_ubc
from keypatch.metrics import reference_image_precisions

POINTS, VIEWS, IMAGES = 40, 3, 4


@dataclass(frozen=True)
class MeanPixels:
    """Means of 8x8 blocks."""

    name: str = "pixels"
    dim: int = 64
    patch_size: int = 64
    patch_sigmas: float = 24.0
    unit_length: bool = False

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        return patches.reshape(-1, 8, 8, 8, 8).mean(axis=(2, 4), dtype=np.float32).reshape(-1, 64)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def patches(tmp_path: Path) -> NDArray[np.uint8]:
    """A PhotoTour set without interest.txt: 40 points of three views, one list of pairs."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 256, (POINTS, 1, 8, 8))
    noisy = points + rng.normal(0, 90, (POINTS, VIEWS, 8, 8))
    sheet = np.zeros((256, 64, 64), np.uint8)
    sheet[: POINTS * VIEWS] = noisy.clip(0, 255).repeat(8, 2).repeat(8, 3).reshape(-1, 64, 64)
    Image.fromarray(sheet.reshape(16, 16, 64, 64).swapaxes(1, 2).reshape(1024, 1024)).save(tmp_path / "patches0000.bmp")
    (tmp_path / "info.txt").write_text("".join(f"{point} 0\n" for point in range(POINTS) for _ in range(VIEWS)))
    rows = [(VIEWS * p, p, VIEWS * q + 1, q) for p in range(POINTS) for q in (p, (p + 5) % POINTS)]
    (tmp_path / "m50_80_80_0.txt").write_text("".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in rows))
    return sheet[: POINTS * VIEWS]


def write_interest(folder: Path, images: list[int]) -> None:
    (folder / "interest.txt").write_text("".join(f"{image} 10.5 20.25 0.5 2\n" for image in images))


def test_it_is_the_mean_over_reference_images(tmp_path: Path, patches: NDArray[np.uint8]) -> None:
    images = [2 + point % IMAGES for point in range(POINTS) for _ in range(VIEWS)]
    write_interest(tmp_path, images)
    result = evaluate_ubc(MeanPixels(), tmp_path)
    by_image = reference_image_precisions(
        MeanPixels().describe(patches), np.repeat(np.arange(POINTS), VIEWS), np.array(images)
    )
    assert len(by_image) == IMAGES and 0.3 < by_image.mean() < 0.999
    assert result.scores["revisited_map"] == pytest.approx(by_image.mean())
    replicates = result.replicates["revisited_map"]
    assert (replicates.units, replicates.count) == ("images", IMAGES)
    low, high = result.interval("revisited_map") or (1, 0)
    assert low < by_image.mean() < high
    bare = evaluate_ubc(MeanPixels(), tmp_path, Ubc(intervals=False))
    assert bare.scores["revisited_map"] == result.scores["revisited_map"] and not bare.replicates


def test_other_scores_do_not_change_with_it(tmp_path: Path, patches: NDArray[np.uint8]) -> None:
    without = evaluate_ubc(MeanPixels(), tmp_path)
    assert "revisited_map" not in without.scores
    write_interest(tmp_path, [7] * len(patches))
    within = evaluate_ubc(MeanPixels(), tmp_path)
    assert {**within.scores, "revisited_map": 0} == {**without.scores, "revisited_map": 0}
    assert set(within.scores) - set(without.scores) == {"revisited_map"}


def test_images_that_patches_were_cut_from_are_no_reference_images(tmp_path: Path, patches: NDArray[np.uint8]) -> None:
    write_interest(tmp_path, [1 + view for _ in range(POINTS) for view in range(VIEWS)])
    assert "revisited_map" not in evaluate_ubc(MeanPixels(), tmp_path).scores


def test_other_reference_images_are_other_data(tmp_path: Path, patches: NDArray[np.uint8]) -> None:
    hashes = []
    for images in (None, 2, 3):
        if images is not None:
            write_interest(tmp_path, [1 + index % images for index in range(len(patches))])
        hashes.append(evaluate_ubc(MeanPixels(), tmp_path).provenance.hashes["data"])
    assert len(set(hashes)) == 3
