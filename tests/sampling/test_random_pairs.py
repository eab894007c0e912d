import numpy as np
import pytest

from keypatch.errors import DataError
from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling import RandomPairs


def test_a_batch_is_the_same_as_ever(classes: Classes) -> None:
    # Numbers of the first version: runs made with it can be repeated.
    assert RandomPairs(4).draw(classes, seed=3, step=5).indices.tolist() == [[150, 148], [21, 22], [63, 61], [962, 964]]


def test_every_ordered_pair_of_a_class_comes_up_equally_often() -> None:
    classes = classes_of(np.repeat([5, 9], 3), "made")
    counts = np.zeros((6, 6))
    for step in range(3000):
        batch = RandomPairs(2).draw(classes, 0, step).indices
        counts[batch[:, 0], batch[:, 1]] += 1
    wanted = np.kron(np.eye(2), 1 - np.eye(3)) * 500
    assert np.abs(counts - wanted).max() < 5 * np.sqrt(500)  # five standard deviations of a count


def test_a_set_too_small_for_one_batch_is_refused_with_the_number_that_fits() -> None:
    classes = classes_of(np.repeat(np.arange(10), 2), "made")
    with pytest.raises(DataError, match=r"only 10 with two patches.*sampler\.pairs=10"):
        RandomPairs(11).draw(classes, 0, 0)
    with pytest.raises(DataError, match="at least 2 pairs"):
        RandomPairs(1).draw(classes, 0, 0)
