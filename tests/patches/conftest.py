"""Small sets in the published layouts, made with plain numpy and Pillow, never with our writer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

STRIPS = ["ref", "e1", "e2", "e3", "e4", "e5", "h1", "h2", "h3", "h4", "h5", "t1", "t2", "t3", "t4", "t5"]


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes into the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYPATCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "own-cache"))
    return tmp_path / "own-cache"


@dataclass(frozen=True)
class Made:
    folder: Path
    patches: NDArray[np.uint8]
    point_id: NDArray[np.int64]


@pytest.fixture
def phototour(tmp_path: Path) -> Callable[..., Made]:
    """Makes a PhotoTour set of n patches; three patches per point, ids 10, 17, 24, ... (not dense)."""

    def make(name: str = "liberty", n: int = 300, seed: int = 0) -> Made:
        folder = tmp_path / name
        folder.mkdir()
        patches = np.random.default_rng(seed).integers(0, 256, (n, 64, 64)).astype(np.uint8)
        for sheet in range((n + 255) // 256):
            picture = np.zeros((1024, 1024), np.uint8)
            for k, patch in enumerate(patches[256 * sheet : 256 * (sheet + 1)]):
                row, column = divmod(k, 16)
                picture[64 * row : 64 * row + 64, 64 * column : 64 * column + 64] = patch
            Image.fromarray(picture).save(folder / f"patches{sheet:04d}.bmp")
        point_id = 10 + 7 * (np.arange(n) // 3)
        (folder / "info.txt").write_text("".join(f"{point} 0\n" for point in point_id))
        return Made(folder, patches, point_id)

    return make


@pytest.fixture
def hpatches(tmp_path: Path) -> Callable[..., tuple[Path, dict[str, NDArray[np.uint8]]]]:
    """Makes sequences of strips; gives the folder and, by sequence, the patches (16, rows, side, side)."""

    def make(
        names: Sequence[str] = ("i_one", "v_two"), rows: int = 3, side: int = 65
    ) -> tuple[Path, dict[str, NDArray[np.uint8]]]:
        rng = np.random.default_rng(0)
        made = {}
        for name in names:
            folder = tmp_path / "hpatches-release" / name
            folder.mkdir(parents=True)
            made[name] = rng.integers(0, 256, (16, rows, side, side)).astype(np.uint8)
            for strip, patches in zip(STRIPS, made[name], strict=True):
                Image.fromarray(np.concatenate(list(patches))).save(folder / f"{strip}.png")
        return tmp_path / "hpatches-release", made

    return make
