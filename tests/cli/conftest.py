"""Small sets written by Pillow and plain text, and a command line run in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.cli.main import run

POINTS, VIEWS = 60, 4


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def keypatch(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """keypatch("list", "recipes") -> exit code, stdout, stderr.

    No progress is shown, however slow the machine; a test that wants it asks for `shown_progress` too.
    """
    monkeypatch.setattr("keypatch.progress.A_MOMENT", float("inf"))

    def call(*words: object) -> Outcome:
        capfd.readouterr()
        code = run([str(word) for word in words])
        printed = capfd.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call


@pytest.fixture
def shown_progress(keypatch: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is shown, however fast the machine."""
    monkeypatch.setattr("keypatch.progress.A_MOMENT", 0.0)


@pytest.fixture(scope="session")
def phototour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 points of 4 noisy views each on one sheet, with a list of 60 matching and 60 other pairs."""
    folder = tmp_path_factory.mktemp("sets") / "small"
    folder.mkdir()
    rng = np.random.default_rng(0)
    blurred = np.asarray(
        [Image.fromarray(p).resize((64, 64), Image.Resampling.BICUBIC) for p in _noise(rng, POINTS, 8)]
    ).astype(float)
    views = np.repeat(blurred, VIEWS, axis=0) + rng.normal(0, 12, (POINTS * VIEWS, 64, 64))
    cells = np.zeros((256, 64, 64), np.uint8)
    cells[: len(views)] = views.clip(0, 255)
    sheet = cells.reshape(16, 16, 64, 64).transpose(0, 2, 1, 3).reshape(1024, 1024)
    Image.fromarray(sheet).save(folder / "patches0000.bmp")
    (folder / "info.txt").write_text("".join(f"{i // VIEWS} 0\n" for i in range(len(views))))
    pairs = [(VIEWS * p, p, VIEWS * q + 1, q) for p in range(POINTS) for q in (p, (p + 7) % POINTS)]
    (folder / "m50_120_120_0.txt").write_text("".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in pairs))
    return folder


@pytest.fixture(scope="session")
def strips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sequences of 20 points in HPatches layout."""
    folder = tmp_path_factory.mktemp("sets") / "strips"
    rng = np.random.default_rng(1)
    for name in ("i_light", "v_view"):
        (folder / name).mkdir(parents=True)
        column = np.concatenate([np.asarray(Image.fromarray(p).resize((65, 65))) for p in _noise(rng, 20, 9)])
        for strip in ("ref", *(f"{level}{k}" for level in "eht" for k in range(1, 6))):
            noisy = column + rng.normal(0, 5, column.shape)
            Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / name / f"{strip}.png")
    return folder


def _noise(rng: np.random.Generator, count: int, side: int) -> np.ndarray:
    return rng.integers(0, 256, (count, side, side), dtype=np.uint8)
