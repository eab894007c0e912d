import numpy as np
from numpy.typing import NDArray

from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling import RandomPairs, RandomTriplets


def test_the_third_patch_shows_another_point(classes: Classes, owner: NDArray[np.int64]) -> None:
    for step in range(50):
        drawn = RandomTriplets(64).draw(classes, 0, step)
        assert (owner[drawn.indices[:, 2]] != drawn.classes).all()
        assert np.array_equal(drawn.indices[:, :2], RandomPairs(64).draw(classes, 0, step).indices)


def test_other_points_come_up_equally_often_whatever_their_sizes() -> None:
    classes = classes_of(np.repeat([0, 1, 2, 3], [2, 3, 4, 11]), "made")
    counts = np.zeros((4, 4))
    for step in range(2000):
        drawn = RandomTriplets(4).draw(classes, 0, step)
        np.add.at(counts, (drawn.classes, np.searchsorted([2, 5, 9], drawn.indices[:, 2], side="right")), 1)
    wanted = (1 - np.eye(4)) * 2000 / 3
    assert np.abs(counts - wanted).max() < 4 * np.sqrt(2000 / 3)
