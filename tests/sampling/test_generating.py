import numpy as np
from scipy import stats

from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling.generating import Generated, uniform


def test_slots_are_the_patches_then_turned_copies_round_robin() -> None:
    classes = classes_of(np.repeat([4, 7], [3, 6]), "made")
    positives = Generated(generate=5, rotation=10.0)
    assert positives.slots(classes).tolist() == [5, 6]
    drawn = positives.patches(classes, np.array([1, 0]), np.array([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, -1]]), seed=0)
    assert drawn.indices.tolist() == [[3, 4, 5, 6, 7, 8], [0, 1, 2, 0, 1, -1]]
    assert drawn.turns is not None
    generated = np.zeros((2, 6), bool)
    generated[1, 3:5] = True
    assert ((drawn.turns != 0) == generated).all() and np.abs(drawn.turns).max() <= 10
    assert drawn.classes.tolist() == [1, 0]


def test_without_generation_nothing_is_turned(classes: Classes) -> None:
    positives = Generated(generate=0)
    assert np.array_equal(positives.slots(classes), np.diff(classes.starts))
    assert positives.patches(classes, np.array([0]), np.array([[0, 1]]), 0).turns is None


def test_an_angle_is_that_of_seed_class_and_slot_whatever_is_asked_with_it(classes: Classes) -> None:
    positives, slots = Generated(), np.arange(15)[None]
    alone = [positives.patches(classes, np.array([c]), slots, 5).turns for c in range(20)]
    together = positives.patches(classes, np.arange(20), np.repeat(slots, 20, 0), 5).turns
    assert np.array_equal(np.concatenate([t for t in alone if t is not None]), together)
    other = positives.patches(classes, np.arange(20), np.repeat(slots, 20, 0), 6).turns
    assert together is not None and other is not None
    assert not (together[together != 0] == other[together != 0]).any()


def test_angles_are_uniform_and_not_correlated_between_neighbours() -> None:
    drawn = uniform(0, np.arange(200)[:, None], np.arange(50))
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > 0.01
    centred = drawn - 0.5
    for other in (np.roll(centred, 1, 0), np.roll(centred, 1, 1)):
        assert abs((centred * other).mean()) < 4 / 12 / 100  # four standard deviations of 10,000 products
    assert len(np.unique(drawn)) == drawn.size


def test_two_random_slots_of_small_classes_are_often_of_one_source() -> None:
    # 15 slots of 2 patches: 8 and 7 of a kind, so (8 * 7 + 7 * 6) / (15 * 14) = 47 %; of 3 patches 29 %
    slots = np.array([[i, j] for i in range(15) for j in range(15) if i != j])
    for size, rate in ((2, 98 / 210), (3, 4 / 14)):
        classes = classes_of(np.repeat([0, 1], size), "made")
        drawn = Generated().patches(classes, np.zeros(len(slots), np.int64), slots, 0)
        assert abs(drawn.same_source - rate) < 1e-12
