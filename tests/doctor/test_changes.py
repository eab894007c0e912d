"""Changes of a photograph: a blob comes to lie where the homography says, and nothing aliases."""

import numpy as np
import pytest
from skimage import data

from keypatch.doctor.changes import rescale, shift, turn
from keypatch.geometry import apply_homography


def blob(x, y, sigma=3.0):
    rows, columns = np.mgrid[0:90, 0:130]
    return np.rint(20 + 200 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))).astype(np.uint8)


def centre_of_mass(image):
    weight = image.astype(float) - 20
    weight[weight < 4] = 0
    rows, columns = np.indices(image.shape)
    return np.array([(weight * columns).sum(), (weight * rows).sum()]) / weight.sum()


CHANGES = {
    "turned by 15": lambda image: turn(image, 15),
    "turned by 90": lambda image: turn(image, 90),
    "turned by 200": lambda image: turn(image, 200),
    "half as large": lambda image: rescale(image, 0.5),
    "0.7 times": lambda image: rescale(image, 0.7),
    "1.5 times": lambda image: rescale(image, 1.5),
    "shifted": lambda image: shift(image, 0.25, -0.5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_blob_lies_where_the_homography_says(change):
    place = (70.3, 41.8)
    changed, homography = change(blob(*place))
    np.testing.assert_allclose(centre_of_mass(changed), apply_homography(homography, [place])[0], atol=0.05)


def test_a_turn_is_clockwise_on_screen():
    changed, homography = turn(blob(110, 45), 90)  # right of the centre goes below it
    assert changed.shape == (130, 90)
    np.testing.assert_allclose(apply_homography(homography, [(110, 44.5)]), [(44.5, 110)])


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_quarter_turn_moves_whole_pixels(degrees):
    image = data.camera()[:100, :140]
    np.testing.assert_array_equal(turn(image, degrees)[0], np.rot90(image, -degrees // 90))


def test_all_of_the_photograph_is_held():
    for degrees in range(0, 360, 15):
        changed, homography = turn(np.zeros((90, 130), np.uint8), degrees)
        corners = apply_homography(homography, [(-0.5, -0.5), (129.5, -0.5), (129.5, 89.5), (-0.5, 89.5)])
        assert corners.min() >= -0.5 - 1e-6
        assert np.all(corners.max(axis=0) <= np.array(changed.shape[::-1]) - 0.5 + 1e-6)


def test_a_smaller_copy_does_not_alias():
    stripes = np.tile(np.array([0, 255], np.uint8), (80, 50))  # one pixel each: grey at half the size
    assert np.ptp(rescale(stripes, 0.5)[0][5:-5, 5:-5].astype(int)) < 40


def test_around_a_turned_photograph_its_border_is_repeated():
    assert turn(np.full((40, 60), 77, np.uint8), 45)[0].min() == 77
