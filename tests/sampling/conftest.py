"""A set of classes of one to six patches."""

import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.patches.patch_set import Classes, classes_of


@pytest.fixture(scope="session")
def classes() -> Classes:
    sizes = np.random.default_rng(0).integers(1, 7, 300)
    return classes_of(np.repeat(np.arange(300) * 7 - 50, sizes), "made")  # ids neither dense nor positive


@pytest.fixture(scope="session")
def owner(classes: Classes) -> NDArray[np.int64]:
    """The class of each patch; -1 for one that is the only one of its point."""
    owners = np.full(classes.members.max() + 7, -1)
    owners[classes.members] = np.repeat(np.arange(classes.count), np.diff(classes.starts))
    return owners
