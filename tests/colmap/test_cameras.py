"""Cameras in COLMAP's terms and in ours."""

import numpy as np
import pytest

from keypatch.colmap import Camera
from keypatch.colmap.cameras import MODELS, project
from keypatch.errors import KeypatchError

pycolmap = pytest.importorskip("pycolmap")


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_the_parameters_that_colmap_gives_it(model: str) -> None:
    ours = Camera.from_focal(model, (640, 480), 500.0, focal_known=True)
    theirs = pycolmap.Camera.create_from_model_name(1, model, 500.0, 640, 480)
    assert ours.params == tuple(theirs.params)
    theirs.params = list(ours.params)
    assert theirs.verify_params()


def test_the_principal_point_in_our_pixels_is_half_a_pixel_less() -> None:
    camera = Camera("OPENCV", 640, 480, (500, 510, 320, 240, 0.1, 0, 0, 0))
    assert np.array_equal(camera.matrix, [[500, 0, 319.5], [0, 510, 239.5], [0, 0, 1]])


def test_a_matrix_of_opencv_comes_back() -> None:
    matrix = np.array([[500, 0, 301.25], [0, 510, 250.5], [0, 0, 1]])
    camera = Camera.from_matrix(2 * matrix, (640, 480))  # a matrix has no scale
    assert camera.params == (500, 510, 301.75, 251)
    assert np.array_equal(camera.matrix, matrix)


def test_a_ray_goes_through_the_same_place_in_both_conventions() -> None:
    camera = Camera.from_matrix([[500, 0, 301.25], [0, 510, 250.5], [0, 0, 1]], (640, 480))
    theirs = pycolmap.Camera(model=camera.model, width=640, height=480, params=list(camera.params))
    ours = np.linalg.solve(camera.matrix, [100, 50, 1])[:2]
    assert np.allclose(ours, theirs.cam_from_img(np.array([100.5, 50.5])), atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("PINHOL", 640, 480, (1, 1, 1, 1)), ["PINHOL", "SIMPLE_RADIAL"]),
        (("PINHOLE", 640, 480, (500, 320, 240)), ["PINHOLE", "4", "parameters, not 3"]),
        (("PINHOLE", 0, 480, (1, 1, 1, 1)), ["0 x 480"]),
        (("PINHOLE", 640, 480, (500, -1, 320, 240)), ["above 0"]),
        (("PINHOLE", 640, 480, (500, 500, float("nan"), 240)), ["finite"]),
    ],
)
def test_a_wrong_camera_is_refused(arguments: tuple, words: list[str]) -> None:
    with pytest.raises(KeypatchError) as error:
        Camera(*arguments)
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    "matrix", [np.eye(2), [[500, 3, 1], [0, 500, 1], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 1, 1]]]
)
def test_a_matrix_that_colmap_cannot_have_is_refused(matrix: object) -> None:
    with pytest.raises(KeypatchError, match="skew"):
        Camera.from_matrix(matrix, (640, 480))


@pytest.mark.parametrize("model", sorted({*MODELS} - {"THIN_PRISM_FISHEYE"}))
def test_points_are_seen_where_colmap_sees_them(model: str) -> None:
    bent = Camera.from_focal(model, (640, 480), 500.0, focal_known=True)
    distortion = [0.05, -0.02, 0.003, -0.002, 0.01, 0.02, -0.01, 0.005][: len(bent.distortion)]
    camera = Camera(model, 640, 480, (*bent.params[: len(bent.params) - len(distortion)], *distortion))
    theirs = pycolmap.Camera(model=model, width=640, height=480, params=list(camera.params))
    points = np.random.default_rng(0).uniform((-1, -0.8, 2), (1, 0.8, 4), (20, 3))
    expected = np.array([theirs.img_from_cam(point) for point in points]) - 0.5
    np.testing.assert_allclose(project(points, camera), expected, atol=1e-6)


def test_a_point_behind_the_camera_is_seen_nowhere() -> None:
    camera = Camera("PINHOLE", 640, 480, (500, 500, 320, 240))
    seen = project(np.array([[0.0, 0, -1], [0, 0, 1]]), camera)
    assert np.isnan(seen[0]).all() and seen[1].tolist() == [319.5, 239.5]
