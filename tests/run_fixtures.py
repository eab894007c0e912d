"""A small patch set and a short training run on it, made once."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.patches.patch_set import Pairs
from keypatch.patches.phototour import write_phototour

POINTS, VIEWS = 80, 4


@pytest.fixture(scope="session")
def small_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 points of 4 noisy views, with a list of 80 matching and 80 other pairs."""
    folder = tmp_path_factory.mktemp("sets") / "small"
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (POINTS, 8, 8)).repeat(8, axis=1).repeat(8, axis=2)
    patches = (coarse.repeat(VIEWS, axis=0) + rng.normal(0, 12, (POINTS * VIEWS, 64, 64))).clip(0, 255).astype(np.uint8)
    point_id = np.arange(POINTS).repeat(VIEWS)
    first = np.tile(np.arange(POINTS) * VIEWS, 2)
    second = np.concatenate([first[:POINTS] + 1, np.roll(first[:POINTS], 1) + 1])
    pairs = Pairs("m50_160_160_0", first, second, point_id[first] == point_id[second])
    write_phototour(folder, patches, point_id, pairs=[pairs], card={"about": "noise in blocks"})
    return folder


@pytest.fixture(scope="session")
def run_folder(small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps of a thin HardNet."""
    from keypatch.commands.train import train
    from keypatch.training.conditions import Conditions

    settings = ("sampler.pairs=32", "network.width=4", "network.dim=16")
    out = tmp_path_factory.mktemp("runs") / "thin"
    return train("hardnet", small_set, out, Conditions(threads=1), settings=settings, pairs=64)
