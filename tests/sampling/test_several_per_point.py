import numpy as np
import pytest

from keypatch.errors import DataError, RecipeError
from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling import SeveralPerPoint


@pytest.mark.parametrize("per_point", [2, 4, 6])
def test_a_class_gives_the_full_pairs_it_has_up_to_the_limit(classes: Classes, per_point: int) -> None:
    sizes = np.diff(classes.starts)
    for step in range(20):
        drawn = SeveralPerPoint(50, per_point).draw(classes, 0, step)
        assert drawn.indices.shape == (50, 2)
        assert len(np.unique(drawn.indices)) == 100
        last = drawn.classes[-1]
        for point in set(drawn.classes.tolist()):
            rows, full = int((drawn.classes == point).sum()), min(sizes[point], per_point) // 2
            assert rows == full or (point == last and rows < full)


def test_rows_of_a_point_stand_together(classes: Classes) -> None:
    points = SeveralPerPoint(50).draw(classes, 0, 0).classes
    assert (points[1:] != points[:-1]).sum() + 1 == len(set(points.tolist()))


def test_every_patch_comes_up_equally_often() -> None:
    classes = classes_of(np.repeat([0, 1, 2], 5), "made")
    counts = np.zeros(15)
    for step in range(3000):
        np.add.at(counts, SeveralPerPoint(6).draw(classes, 0, step).indices.ravel(), 1)
    assert np.abs(counts - 2400).max() < 4 * np.sqrt(3000 * 0.8 * 0.2)


def test_what_cannot_be_filled_is_refused() -> None:
    classes = classes_of(np.repeat([0, 1, 2], [2, 3, 9]), "made")
    assert len(SeveralPerPoint(4).draw(classes, 0, 0).indices) == 4
    with pytest.raises(DataError, match=r"only 4 such pairs.*sampler\.pairs=4"):
        SeveralPerPoint(5).check(classes)
    with pytest.raises(DataError, match="no negatives"):
        SeveralPerPoint(2, per_point=4).check(classes)
    with pytest.raises(RecipeError, match="even number"):
        SeveralPerPoint(4, per_point=3)
