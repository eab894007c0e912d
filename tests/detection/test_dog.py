"""DoG points: place and scale of known blobs, angles, order and repeats."""

import numpy as np
import pytest

from keypatch.detection import detect_dog
from keypatch.errors import KeypatchError


def blobs(places, sigma):
    y, x = np.mgrid[0:200, 0:260]
    image = sum(180 * np.exp(-((x - u) ** 2 + (y - v) ** 2) / (2 * sigma**2)) for u, v in places)
    return np.rint(image + 30).astype(np.uint8)


def noise():
    return np.random.default_rng(0).integers(0, 256, (120, 120), dtype=np.uint8)


@pytest.mark.parametrize("sigma", [2.0, 4.0, 6.0])
def test_blobs_are_found_at_their_place_and_scale(sigma):
    """DoG's extremum lies at 2^(-1/6) of the blob's sigma; without the precise upscale the place is off by 0.25."""
    for place in [(100.3, 90.6), (130.75, 100.1)]:
        found = detect_dog(blobs([place], sigma), limit=1, orientations="one")
        np.testing.assert_allclose(found.xy, [place], atol=0.1)
        assert found.sigma[0] == pytest.approx(2 ** (-1 / 6) * sigma, rel=0.05)


@pytest.mark.parametrize("angle", [0, 60, 135, 270])
def test_angle_points_from_dark_to_bright_clockwise(angle):
    y, x = np.mgrid[0:200, 0:260]
    ramp = 1.2 * (np.cos(np.radians(angle)) * (x - 130) + np.sin(np.radians(angle)) * (y - 100))
    image = np.clip(ramp + blobs([(130, 100)], 3) * 0.07 + 100, 0, 255).astype(np.uint8)
    found = detect_dog(image, contrast_threshold=0.005, orientations="one")
    centre = np.argmin(np.hypot(found.x - 130, found.y - 100))
    assert abs((np.degrees(found.angle[centre]) - angle + 180) % 360 - 180) < 10


def test_strongest_first_and_at_most_as_many_as_asked():
    found = detect_dog(noise())
    assert found.response is not None
    assert np.all(np.diff(found.response) <= 0)
    np.testing.assert_array_equal(detect_dog(noise(), limit=10).x, found.x[:10])
    assert len(detect_dog(noise(), limit=0)) == 0


def test_a_point_of_several_directions_comes_once_when_asked():
    every, one, upright = (detect_dog(noise(), orientations=choice) for choice in ("all", "one", "upright"))
    places = {*zip(every.x, every.y, every.sigma, strict=True)}
    assert len(every) > len(one) == len(upright) == len(places)
    assert not upright.angle.any()
    assert one.angle.any()


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (64, 64)])
def test_nothing_is_found_in_an_empty_photo(shape):
    assert len(detect_dog(np.zeros(shape, np.uint8))) == 0


@pytest.mark.parametrize(
    ("image", "limit", "sentence"),
    [
        (np.zeros((9, 9, 3), np.uint8), None, "grey image"),
        (np.zeros((9, 9), np.float32), None, "uint8, not float32"),
    ],
)
def test_wrong_input_is_named(image, limit, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        detect_dog(image, limit)
