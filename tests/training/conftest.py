from pathlib import Path

import numpy as np
import pytest

from keypatch.losses import Hardest, HybridTriplet, NormDifference, Triplet
from keypatch.networks import HyNet, L2Net
from keypatch.patches import PatchSet
from keypatch.patches.phototour import write_phototour
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import SGD, Adam, Linear, Recipe


@pytest.fixture(scope="session")
def small_set() -> PatchSet:
    """48 points with 3 similar 64x64 patches each."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 256, (48, 1, 8, 8)).repeat(8, 2).repeat(8, 3)
    views = np.clip(points + rng.normal(0, 12, (48, 3, 64, 64)), 0, 255).astype(np.uint8)
    return PatchSet("small", views.reshape(-1, 64, 64), np.repeat(np.arange(48), 3))


@pytest.fixture(scope="session")
def small_folder(small_set: PatchSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on disk, for commands."""
    folder = tmp_path_factory.mktemp("sets") / "small"
    write_phototour(folder, small_set.patches, small_set.point_id)
    return folder


@pytest.fixture(scope="session")
def hardnet() -> Recipe:
    """HardNet's step on a narrow network."""
    return Recipe(
        name="narrow",
        network=L2Net(dim=16, width=4, dropout=0.1),
        sampler=RandomPairs(16),
        augment=Augmentation(),
        mining=Hardest(),
        loss=(Triplet(),),
        optimizer=SGD(lr=0.1),
        schedule=Linear(),
        pairs=16 * 6,
    )


@pytest.fixture(scope="session")
def hynet() -> Recipe:
    """HyNet's step on a narrow network, with a moving average of the weights."""
    return Recipe(
        name="narrow-hynet",
        network=HyNet(dim=16, width=4, dropout=0.1),
        sampler=RandomPairs(24),
        augment=Augmentation(flips="hynet"),
        mining=Hardest(blocks=("anchors", "positives", "rows", "columns")),
        loss=(HybridTriplet(), NormDifference()),
        optimizer=Adam(),
        schedule=Linear(warmup=0.2),
        pairs=24 * 6,
        average=0.9,
    )
