"""Patch verification on a small set, against scores computed the long way."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import average_precision_score

from keypatch.benchmarks import evaluate_ubc
from keypatch.benchmarks.ubc import squared_distances
from keypatch.describers import protocol
from keypatch.errors import DataError, KeypatchError
from keypatch.metrics import fpr95
from keypatch.patches import Pairs, PatchSet

POINTS, VIEWS = 30, 3


@dataclass(frozen=True)
class MeanPixels:
    """A describer in ten lines: the means of an 8x8 grid."""

    name: str = "pixels"
    dim: int = 64
    patch_size: int = 64
    patch_sigmas: float = 24.0
    unit_length: bool = False
    fault: float = 0.0  # added to the first value

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        blocks = patches.reshape(-1, 8, 8, 8, 8)
        means: NDArray[np.float32] = blocks.mean(axis=(2, 4), dtype=np.float32).reshape(-1, 64)
        means[:1, :1] += self.fault
        return means


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PhotoTour set of 90 patches, three of each point, one patch of a point of its own, and two lists."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 256, (POINTS, 8, 8)).repeat(8, 1).repeat(8, 2)
    noise = rng.normal(0, 120, (POINTS, VIEWS, 8, 8)).repeat(8, 2).repeat(8, 3)
    patches = np.clip(points[:, None] + noise, 0, 255).astype(np.uint8).reshape(-1, 64, 64)
    sheet = np.zeros((256, 64, 64), np.uint8)
    sheet[: len(patches)] = patches
    sheet[len(patches)] = rng.integers(0, 256, (64, 64))
    Image.fromarray(sheet.reshape(16, 16, 64, 64).swapaxes(1, 2).reshape(1024, 1024)).save(tmp_path / "patches0000.bmp")
    ids = [*np.repeat(np.arange(POINTS) * 7, VIEWS), 1000]
    (tmp_path / "info.txt").write_text("".join(f"{point} 0\n" for point in ids))
    for name in ("m50_200_200_0", "other"):
        first, second = rng.integers(0, 90, 200), rng.integers(0, 90, 200)
        second[:100] = first[:100] // VIEWS * VIEWS + (first[:100] + 1) % VIEWS
        rows = (f"{a} {ids[a]} 0 {b} {ids[b]} 0 0\n" for a, b in zip(first, second, strict=True))
        (tmp_path / f"{name}.txt").write_text("".join(rows))
    return tmp_path


def test_scores_are_those_computed_the_long_way(folder: Path) -> None:
    result = evaluate_ubc(MeanPixels(), folder)
    sheet = np.asarray(Image.open(folder / "patches0000.bmp")).reshape(16, 64, 16, 64).swapaxes(1, 2)
    described = MeanPixels().describe(sheet.reshape(-1, 64, 64)[:90]).astype(np.float64)
    for name in ("m50_200_200_0", "other"):
        rows = np.loadtxt(folder / f"{name}.txt", dtype=int)
        is_match = rows[:, 1] == rows[:, 4]
        distances = [float(np.linalg.norm(described[row[0]] - described[row[3]])) for row in rows]
        assert result.scores[f"fpr95.{name}"] == pytest.approx(fpr95(distances, is_match), abs=1e-12)
        assert result.scores[f"ap.{name}"] == pytest.approx(average_precision_score(is_match, -np.array(distances)))
        assert 0.5 < result.scores[f"auc.{name}"] < 1
        assert result.curves[f"roc.{name}"].y[-1] == result.curves[f"pr.{name}"].x[-1] == 1
    firsts, lasts = described[0::VIEWS], described[VIEWS - 1 :: VIEWS]
    distances = np.linalg.norm(firsts[:, None] - lasts[None], axis=2)
    expected = np.mean(distances.argmin(axis=1) == np.arange(POINTS))
    assert 0.2 < expected < 1
    assert result.scores["rank1"] == pytest.approx(expected)


def test_the_spread_is_that_of_patches_of_different_points_at_unit_length(folder: Path) -> None:
    scores = evaluate_ubc(MeanPixels(), folder).scores
    sheet = np.asarray(Image.open(folder / "patches0000.bmp")).reshape(16, 64, 16, 64).swapaxes(1, 2)
    described = MeanPixels().describe(sheet.reshape(-1, 64, 64)[:91]).astype(np.float64)
    described /= np.linalg.norm(described, axis=1, keepdims=True)
    ids = np.loadtxt(folder / "info.txt", dtype=int)[:, 0]
    cosines = (described @ described.T)[ids[:, None] != ids]  # every such pair; the score draws 100,000 of them
    assert scores["spread.m1"] == pytest.approx(cosines.mean(), abs=4 * cosines.std() / np.sqrt(90_000))
    assert scores["spread.dm2"] / 64 == pytest.approx((cosines**2).mean(), abs=4 * (cosines**2).std() / np.sqrt(90_000))
    assert evaluate_ubc(MeanPixels(), folder).scores == scores


def test_the_result_says_what_was_scored(folder: Path) -> None:
    result = evaluate_ubc(MeanPixels(), folder, rule="hynet")
    assert (result.benchmark, result.descriptor) == ("ubc", "pixels")
    assert result.settings["rule"] == "hynet"
    assert result.settings["pairs"] == {"m50_200_200_0": 200, "other": 200}
    assert len(result.provenance.hashes["data"]) == 64
    assert evaluate_ubc(MeanPixels(), folder).scores["fpr95.other"] <= result.scores["fpr95.other"]


def test_the_hash_is_of_the_data_and_not_of_its_place(folder: Path) -> None:
    before = evaluate_ubc(MeanPixels(), folder).provenance.hashes["data"]
    moved = folder.rename(folder.with_name("moved"))
    assert evaluate_ubc(MeanPixels(), moved).provenance.hashes["data"] == before
    (moved / "other.txt").unlink()
    assert evaluate_ubc(MeanPixels(), moved).provenance.hashes["data"] != before


@dataclass(frozen=True)
class Learned(MeanPixels):
    weights_hash: str = "ff00"


def test_learned_weights_are_named_by_their_hash(folder: Path) -> None:
    assert evaluate_ubc(Learned(), folder).provenance.hashes["weights"] == "ff00"
    assert "weights" not in evaluate_ubc(MeanPixels(), folder).provenance.hashes


def test_patches_are_described_in_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate_ubc(MeanPixels(), folder)
    monkeypatch.setattr(protocol, "CHUNK", 40)
    steps: list[tuple[int, int]] = []
    chunked = evaluate_ubc(MeanPixels(), folder, progress=lambda done, total: steps.append((done, total)))
    assert chunked.scores == whole.scores
    assert steps == [(40, 91), (80, 91), (91, 91)]


def test_descriptors_that_are_not_finite_are_refused(folder: Path) -> None:
    with pytest.raises(KeypatchError, match="pixels gave non-finite descriptors for 1 of 91 patches"):
        evaluate_ubc(MeanPixels(fault=np.nan), folder)


def test_descriptors_of_a_wrong_size_are_refused(folder: Path) -> None:
    with pytest.raises(KeypatchError, match=r"shape \(91, 64\) for 91 patches, expected \(91, 32\)"):
        evaluate_ubc(MeanPixels(dim=32), folder)


def test_a_set_without_pairs_is_refused(folder: Path) -> None:
    for path in (folder / "m50_200_200_0.txt", folder / "other.txt"):
        path.unlink()
    with pytest.raises(DataError, match="has no list of pairs"):
        evaluate_ubc(MeanPixels(), folder)
    with pytest.raises(DataError, match="has no list of pairs"):
        evaluate_ubc(MeanPixels(), PatchSet("bare", np.zeros((4, 64, 64), np.uint8), np.array([0, 0, 1, 1])))


def test_near_identical_vectors_keep_their_distances() -> None:
    base = np.random.default_rng(0).normal(size=128)
    base /= np.linalg.norm(base)
    steps = np.array([0, 1e-5, 2e-5, 4e-5])
    descriptors = (base + steps[:, None] * np.eye(128)[0]).astype(np.float32)
    pairs = Pairs("near", np.zeros(4, np.int64), np.arange(4), np.array([True, True, False, False]))
    np.testing.assert_allclose(np.sqrt(squared_distances(descriptors, pairs)), steps, rtol=0.01)
