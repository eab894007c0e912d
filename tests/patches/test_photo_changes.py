"""Views and changes of a photograph."""

import math

import numpy as np

from keypatch.geometry import ViewRange, apply_homography, random_homography
from keypatch.patches.single_photos import PhotoChanges, change_photo, render_view

Y, X = np.mgrid[0:150, 0:200]
UNCHANGED = PhotoChanges(blur=0, gain=(1, 1), gamma=(1, 1), slope=0, noise=0, quality=(99, 100))


def test_a_view_shows_a_blob_where_the_homography_puts_it():
    photo = (200 * np.exp(-((X - 70.4) ** 2 + (Y - 60.7) ** 2) / (2 * 3**2))).astype(np.uint8)
    for seed in range(5):
        view = random_homography(np.random.default_rng(seed), (200, 150), ViewRange())
        seen = render_view(photo, view).astype(float)
        assert seen.shape == view.size[::-1]
        expected = apply_homography(view.homography, [70.4, 60.7])[0]
        y, x = np.mgrid[0 : seen.shape[0], 0 : seen.shape[1]]
        seen[np.hypot(x - expected[0], y - expected[1]) > 20] = 0  # mirror images beyond the edges
        found = np.average(x, weights=seen), np.average(y, weights=seen)
        np.testing.assert_allclose(found, expected, atol=0.2)


def test_a_smaller_view_does_not_alias():
    stripes = (128 + 100 * np.sin(2 * np.pi * X / 2.5)).astype(np.uint8)
    half = ViewRange(turn=0, zoom=(0.5, 0.5), stretch=1, perspective=0)
    assert render_view(stripes, random_homography(np.random.default_rng(0), (200, 150), half)).std() < 20


def test_no_change_changes_nothing_but_compression():
    photo = (128 + 60 * np.sin(X / 9) * np.cos(Y / 7)).astype(np.uint8)
    changed = change_photo(photo, UNCHANGED, np.random.default_rng(0))
    assert np.abs(changed.astype(int) - photo).max() <= 3


def test_each_change_does_what_its_name_says():
    photo = np.random.default_rng(1).integers(60, 180, (150, 200), dtype=np.uint8)

    def changed(**change):
        settings = {**UNCHANGED.__dict__, **change}
        return change_photo(photo, PhotoChanges(**settings), np.random.default_rng(1)).astype(float)

    assert math.isclose(changed(gain=(0.5, 0.5)).mean(), photo.mean() / 2, rel_tol=0.02)
    assert changed(gamma=(1.4, 1.4)).mean() < photo.mean() - 5
    assert changed(blur=2).std() < 0.7 * photo.std()
    assert changed(noise=100).std() > 1.02 * photo.std()
    sloped = changed(slope=0.9)
    assert abs(sloped[:, :20].mean() - sloped[:, -20:].mean()) + abs(sloped[:20].mean() - sloped[-20:].mean()) > 5
    assert np.abs(changed(quality=(10, 11)) - photo).mean() > 3


def test_changes_are_determined_by_the_generator():
    photo = np.full((40, 50), 99, np.uint8)
    first, again = (change_photo(photo, PhotoChanges(), np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
