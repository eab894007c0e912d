"""Collapsed networks, which give every patch the same vector or almost the same, score as chance does."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.evaluation import evaluate
from keypatch.benchmarks.table import headline_scores
from keypatch.patches.hpatches import STRIPS

POINTS, VIEWS = 100, 3


@dataclass(frozen=True)
class Collapsed:
    """A common direction, and noise that says nothing about the patch but that it is another one."""

    noise: float
    name: str = "collapsed"
    dim: int = 64
    patch_size: int = 64
    patch_sigmas: float = 24.0
    unit_length: bool = True

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        rows = np.tile(np.random.default_rng(0).normal(size=self.dim), (len(patches), 1))
        for row, patch in zip(rows, patches, strict=True):
            seed = int.from_bytes(hashlib.sha256(patch.tobytes()).digest()[:8])
            row += self.noise * np.random.default_rng(seed).normal(size=self.dim)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def noisy_patches(points: int, views: int) -> NDArray[np.uint8]:
    """(points, views, 64, 64): easy to tell apart for whoever looks at them."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(40, 216, (points, 1, 8, 8)).repeat(8, 2).repeat(8, 3)
    return (pixels + rng.integers(-20, 21, (points, views, 64, 64))).astype(np.uint8)


def write_phototour(folder: Path) -> None:
    sheet = np.zeros((512, 64, 64), np.uint8)
    sheet[: POINTS * VIEWS] = noisy_patches(POINTS, VIEWS).reshape(-1, 64, 64)
    for number, part in enumerate(np.split(sheet, 2)):
        pixels = part.reshape(16, 16, 64, 64).swapaxes(1, 2).reshape(1024, 1024)
        Image.fromarray(pixels).save(folder / f"patches{number:04d}.bmp")
    ids = np.repeat(np.arange(POINTS), VIEWS)
    (folder / "info.txt").write_text("".join(f"{point} 0\n" for point in ids))
    (folder / "interest.txt").write_text("".join(f"{1 + point % 2} 10.5 20.25 0.5 2\n" for point in ids))
    pairs = [(p, q) for p in range(POINTS) for q in (p, p, p, *((p + step) % POINTS for step in (1, 2, 3)))]
    places = [(VIEWS * p + k % VIEWS, p, VIEWS * q + (k + 1) % VIEWS, q) for k, (p, q) in enumerate(pairs)]
    (folder / "m50_600_600_0.txt").write_text("".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in places))


def write_strips(folder: Path) -> None:
    patches = noisy_patches(3 * POINTS, len(STRIPS)).reshape(3, POINTS, len(STRIPS), 64, 64)
    for name, sequence in zip(("i_a", "i_b", "v_c"), patches, strict=True):
        (folder / name).mkdir()
        for number, strip in enumerate(STRIPS):
            Image.fromarray(sequence[:, number].reshape(-1, 64)).save(folder / name / f"{strip}.png")


def write_classes(folder: Path) -> None:
    for number, images in enumerate(noisy_patches(10, 20)):
        (folder / f"class{number}").mkdir()
        for place, pixels in enumerate(images):
            Image.fromarray(pixels).save(folder / f"class{number}" / f"{place}.png")


@dataclass(frozen=True)
class Case:
    write: Callable[[Path], None]
    limits: dict[str, tuple[float, float]]  # what a guess scores, and somewhat more; never much more than nothing


CASES = {
    # 5 % of the matches are missed at the threshold, so 95 % of the non-matches are accepted; a rank-1 of 1/100
    "ubc": Case(write_phototour, {"fpr95": (0.85, 1), "rank1": (0, 0.05), "revisited_map": (0, 0.1)}),
    # a sixth of the pairs is right where AP is measured; one of 100 patches; five among 125
    "hpatches": Case(
        write_strips,
        {
            "verification.ap": (0, 0.2),
            "verification.auc": (0, 0.55),
            "matching.map": (0, 0.02),
            "retrieval.map": (0, 0.15),
            "rank1.e": (0, 0.03),
        },
    ),
    # 19 of the 199 others are of the class; one cluster of all has precision 0.095, recall 1 and so F1 0.174
    "embedding": Case(write_classes, {"recall@1": (0, 0.2), "nmi": (0, 0.25), "f1": (0, 0.2)}),
}


@pytest.mark.parametrize("noise", [0, 1e-4], ids=["constant", "nearly constant"])
@pytest.mark.parametrize("on", CASES)
def test_a_collapsed_network_scores_as_chance_does(
    on: str, noise: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "data"
    data.mkdir()
    CASES[on].write(data)
    result = evaluate(Collapsed(noise), on, data)
    limits = CASES[on].limits
    for name in sorted({*headline_scores(result), *limits} - {"fpr95"}):
        low, high = limits["fpr95" if name.startswith("fpr95.") else name]
        assert low <= result.scores[name] <= high, (name, result.scores[name])
