"""Blobs of known place and scale: how far they lie from a stated keypoint."""

import numpy as np
import pytest

from keypatch.doctor.blobs import find_blobs, probe
from keypatch.doctor.stated import upright_keypoints

SIGMA = 4.0
DOG = SIGMA * 2 ** (-1 / 6)  # what a DoG detector says of such a blob


def blob(x=60.0, y=50.0):
    rows, columns = np.mgrid[0:100, 0:120]
    return np.rint(20 + 200 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * SIGMA**2))).astype(np.uint8)


@pytest.mark.parametrize(("dx", "dy"), [(0, 0), (0.5, 0.5), (-1.0, 0.25)])
def test_the_offset_leads_to_the_blob(dx, dy):
    found = probe(blob(), upright_keypoints(np.array([[60.0 + dx, 50.0 + dy]]), np.array([DOG])))
    assert found.blob.all()
    np.testing.assert_allclose(found.offset * DOG, [[-dx, -dy]], atol=0.06)


@pytest.mark.parametrize("octaves", [-0.25, 0.0, 0.25])
def test_the_scale_is_that_of_the_blob(octaves):
    found = probe(blob(), upright_keypoints(np.array([[60.0, 50.0]]), np.array([DOG * 2**-octaves])))
    assert found.octaves[0] == pytest.approx(octaves, abs=0.06)


def test_twice_the_scale_has_no_extremum():
    found = probe(blob(), upright_keypoints(np.array([[60.0, 50.0]] * 2), np.array([2 * DOG, DOG / 2])))
    assert np.isnan(found.octaves).all()


def test_an_edge_is_no_blob():
    edge = np.zeros((100, 120), np.uint8)
    edge[:, 60:] = 200
    found = probe(edge, upright_keypoints(np.array([[60.0, 50.0], [64.0, 50.0]]), np.array([4.0, 4.0])))
    assert not found.blob.any()
    assert np.isnan(found.offset).all()


def test_no_keypoints_give_empty_arrays():
    found = probe(blob(), upright_keypoints(np.empty((0, 2)), np.empty(0)))
    assert found.offset.shape == (0, 2) and found.octaves.shape == (0,)


def test_many_blobs_give_factor_and_bias():
    rng = np.random.default_rng(0)
    places = np.array([(x, y) for x in range(40, 600, 60) for y in range(40, 480, 60)]) + rng.uniform(
        -0.5, 0.5, (80, 2)
    )
    rows, columns = np.mgrid[0:500, 0:620]
    image = np.full(rows.shape, 20.0)
    for x, y in places:
        image += 200 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * SIGMA**2))
    found = find_blobs(image.astype(np.uint8), places + np.array([0.5, -0.3]), np.full(80, 2 * DOG))
    assert found.factor == 0.5
    assert found.scale == pytest.approx(0.5, rel=0.03)
    np.testing.assert_allclose(found.bias, (0.5, -0.3), atol=0.03)
    assert found.blobs == 80 and found.support == 1
