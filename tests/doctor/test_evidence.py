"""Angles against gradients of known direction."""

import numpy as np
import pytest

from keypatch.doctor.evidence import FROM_Y, SIGN, STATED, UNIT, UNIT_AND_SIGN, fit_angles, gradient_histograms


def ramp(degrees, side=200):
    rows, columns = np.mgrid[0:side, 0:side] - side / 2
    direction = np.radians(degrees)
    return (
        np.rint(128 + 160 / side * (np.cos(direction) * columns + np.sin(direction) * rows))
        .clip(0, 255)
        .astype(np.uint8)
    )


@pytest.mark.parametrize("degrees", [0, 40, 110, 200, 310])
def test_a_ramp_points_to_its_bright_side_clockwise_on_screen(degrees):
    histogram = gradient_histograms(ramp(degrees), np.array([[100.0, 100.0]]), np.array([6.0]))
    assert histogram.shape == (1, 36)
    assert abs((10 * np.argmax(histogram) - degrees + 180) % 360 - 180) <= 10


@pytest.fixture(scope="module")
def tiles():
    """49 ramps of random directions side by side: image, centres, degrees."""
    rng = np.random.default_rng(0)
    degrees = rng.uniform(0, 360, 49)
    rows = [np.hstack([ramp(angle, 60) for angle in degrees[7 * i : 7 * i + 7]]) for i in range(7)]
    centres = np.array([(30 + 60 * (i % 7), 30 + 60 * (i // 7)) for i in range(49)], float)
    return np.vstack(rows), centres, degrees


@pytest.mark.parametrize(
    ("unit", "write", "right"),
    [
        ("degrees", lambda degrees: degrees, STATED),
        ("degrees", lambda degrees: -degrees, SIGN),
        ("degrees", np.radians, UNIT),
        ("radians", lambda degrees: degrees, UNIT),
        ("radians", lambda degrees: -degrees, UNIT_AND_SIGN),
        ("radians", lambda degrees: np.radians(90 - degrees), FROM_Y),
    ],
)
def test_the_right_reading_fits_and_the_others_are_chance(tiles, unit, write, right):
    image, centres, degrees = tiles
    fits = fit_angles(image, centres, np.full(49, 3.0), write(degrees), unit)
    assert max(fits, key=lambda reading: fits[reading].lift) == right
    assert fits[right].height > 0.9
    assert all(fit.lift < 0.3 for reading, fit in fits.items() if reading != right)


def test_angles_that_happen_to_be_common_are_chance():
    """All gradients go right, all angles are 0: a perfect height, and no evidence of anything."""
    places = np.random.default_rng(0).uniform(50, 150, (30, 2))
    fit = fit_angles(ramp(0), places, np.full(30, 3.0), np.zeros(30), "degrees")[STATED]
    assert fit.height > 0.9
    assert fit.lift == pytest.approx(0, abs=1e-6)
