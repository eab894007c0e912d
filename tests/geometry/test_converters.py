"""Converters: round trips through each convention, the owners' own functions, and what is refused."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage import data

from keypatch.errors import KeypatchError
from keypatch.geometry import (
    Keypoints,
    from_colmap,
    from_hloc,
    from_laf,
    from_opencv,
    to_colmap,
    to_hloc,
    to_laf,
    to_opencv,
)

ROUNDING = 2.0**-23  # of float32, relative
PLACE = 5000 * ROUNDING  # the spacing of float32 at the farthest place

places = st.floats(-100, 5000, width=32)
sigmas = st.floats(0.125, 200, width=32)
angles = st.floats(-3.125, 3.125, width=32)
strengths = st.floats(0, 1, width=32)
shears = st.tuples(st.floats(0.5, 2), st.floats(-1, 1))


@st.composite
def plain(draw: st.DrawFn) -> Keypoints:
    rows = draw(st.lists(st.tuples(places, places, sigmas, angles, strengths), max_size=4))
    x, y, sigma, angle, response = np.array(rows, np.float32).reshape(-1, 5).T
    return Keypoints(x, y, sigma, angle, response=response)


@st.composite
def sheared(draw: st.DrawFn) -> Keypoints:
    keypoints = draw(plain())
    stretches = [draw(shears) for _ in range(len(keypoints))]
    shape = np.array([[[a, b], [0, 1 / a]] for a, b in stretches]).reshape(-1, 2, 2)
    return Keypoints(keypoints.x, keypoints.y, keypoints.sigma, keypoints.angle, shape)


def assert_same(found: Keypoints, expected: Keypoints, *, response: bool = False) -> None:
    """Equal but for rounding; angles modulo a full turn, since a frame does not count turns."""
    np.testing.assert_allclose(found.xy, expected.xy, atol=PLACE)
    np.testing.assert_allclose(found.sigma, expected.sigma, rtol=4 * ROUNDING)
    turns = (found.angle.astype(float) - expected.angle) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.rint(turns), atol=4 * ROUNDING)
    assert found.shape is None
    if response:
        np.testing.assert_array_equal(found.response, expected.response)


@given(plain())
def test_opencv_round_trip(keypoints):
    assert_same(from_opencv(to_opencv(keypoints)), keypoints, response=True)


@given(plain())
def test_colmap_round_trip(keypoints):
    assert_same(from_colmap(to_colmap(keypoints, 4)), keypoints)
    assert_same(from_colmap(to_colmap(keypoints, 6)), keypoints)
    np.testing.assert_allclose(from_colmap(to_colmap(keypoints, 2), sigma=1).xy, keypoints.xy, atol=PLACE)


@given(plain())
def test_hloc_round_trip(keypoints):
    assert_same(from_hloc(**to_hloc(keypoints)), keypoints, response=True)


@given(plain(), st.sampled_from([5.0, 12.0, 24.0]))
def test_laf_round_trip(keypoints, patch_sigmas):
    assert_same(from_laf(to_laf(keypoints, patch_sigmas), patch_sigmas), keypoints)


@given(sheared())
def test_shapes_survive_six_columns_and_frames(keypoints):
    for found in (from_colmap(to_colmap(keypoints, 6)), from_laf(to_laf(keypoints, 12), 12)):
        np.testing.assert_allclose(found.xy, keypoints.xy, atol=PLACE)
        # float32 entries of frames of up to 200 * 2.2, and the shape that is computed from them
        np.testing.assert_allclose(found.frames(), keypoints.frames(), rtol=1e-5, atol=2e-4)


def test_opencv_size_is_a_diameter_and_its_angle_in_degrees():
    keypoints = from_opencv([cv2.KeyPoint(10.5, 20.25, 6.0, 90.0, 0.5)])
    assert keypoints.xy.tolist() == [[10.5, 20.25]]
    assert keypoints.sigma.tolist() == [3.0]
    assert keypoints.angle.tolist() == pytest.approx([np.pi / 2])
    negative = to_opencv(Keypoints([0], [0], [1], [-np.pi / 2]))[0]
    assert negative.angle == pytest.approx(270, abs=1e-4)
    assert to_opencv(Keypoints([0], [0], [1], [-1e-9]))[0].angle == 0
    assert to_opencv(Keypoints([], [], [], [])) == []


def test_keypoints_without_an_angle_are_refused_unless_upright():
    bare = [cv2.KeyPoint(1, 2, 3, 45), cv2.KeyPoint(1, 2, 3)]
    with pytest.raises(KeypatchError, match=r"1 of 2 OpenCV keypoints have no angle .* keypoint 1"):
        from_opencv(bare)
    assert from_opencv(bare, upright=True).angle.tolist() == [0, 0]


def test_sift_computes_the_same_of_its_keypoints_after_the_round_trip():
    """OpenCV's own descriptor sees no difference: place, size and angle are all that it reads, beside the octave."""
    image, sift = data.camera(), cv2.SIFT.create(nfeatures=50, enable_precise_upscale=True)
    found = sift.detect(image, None)
    back = to_opencv(from_opencv(found))
    for old, new in zip(found, back, strict=True):
        new.octave = old.octave
    before, after = (sift.compute(image, chosen)[1] for chosen in (found, back))
    assert np.abs(before - after).max() <= 2  # of 255: an angle of float32 radians


def test_colmap_rows_begin_at_the_corner():
    keypoints = Keypoints([10], [20], [3], [0.5])
    assert to_colmap(keypoints, 2).tolist() == [[10.5, 20.5]]
    np.testing.assert_allclose(to_colmap(keypoints), [[10.5, 20.5, 3, 0.5]])
    # the six columns that COLMAP itself makes of scale 3 and orientation 0.5
    np.testing.assert_allclose(to_colmap(keypoints, 6), [[10.5, 20.5, 2.633, -1.438, 1.438, 2.633]], atol=1e-3)
    assert to_colmap(keypoints).dtype == np.float32
    assert to_colmap(Keypoints([], [], [], []), 6).shape == (0, 6)


def test_colmap_reads_our_rows_as_meant():
    """pycolmap's own keypoints: scale, orientation and the matrix that it makes of them."""
    pycolmap = pytest.importorskip("pycolmap")
    keypoints = Keypoints([10, 300.25], [20, 7], [3, 0.8], [0.5, -2.5])
    theirs = pycolmap.keypoints_from_matrix(to_colmap(keypoints))
    for k, row in zip(theirs, to_colmap(keypoints, 6), strict=True):
        np.testing.assert_allclose([k.x, k.y, k.a11, k.a12, k.a21, k.a22], row, rtol=1e-6)
    np.testing.assert_allclose([k.compute_scale() for k in theirs], keypoints.sigma, rtol=1e-6)
    np.testing.assert_allclose([k.compute_orientation() for k in theirs], keypoints.angle, rtol=1e-6)
    assert_same(from_colmap(pycolmap.keypoints_to_matrix(theirs)), keypoints)


@pytest.mark.parametrize("columns", [2, 4, 6])
def test_rows_of_a_database_are_read(tmp_path: Path, columns):
    pycolmap = pytest.importorskip("pycolmap")
    rows = np.array([[10.5, 20.5, 0, -3, 3, 0]], np.float32)[:, :columns]
    if columns == 4:
        rows = np.array([[10.5, 20.5, 3, np.pi / 2]], np.float32)
    with pycolmap.Database.open(tmp_path / "database.db") as database:
        camera = database.write_camera(pycolmap.Camera.create_from_model_name(0, "PINHOLE", 500.0, 640, 480))
        image = database.write_image(pycolmap.Image(name="a.jpg", camera_id=camera))
        database.write_keypoints(image, rows)
        keypoints = from_colmap(database.read_keypoints(image), sigma=3)
    assert_same(keypoints, Keypoints([10], [20], [3], [0 if columns == 2 else np.pi / 2]))


def test_hloc_arrays_may_be_of_float16_and_without_scales():
    half = np.float16
    keypoints = from_hloc(np.array([[3.5, 4]], half), np.array([2], half), np.array([90], half), np.array([0.25], half))
    assert_same(keypoints, Keypoints([3.5], [4], [2], [np.pi / 2]))
    assert keypoints.response is not None
    assert keypoints.response.tolist() == [0.25]
    bare = from_hloc([[1, 2, 0.9]], sigma=4)  # a third column is left alone
    assert (bare.xy.tolist(), bare.sigma.tolist(), bare.angle.tolist()) == ([[1, 2]], [4], [0])
    assert set(to_hloc(bare)) == {"keypoints", "scales", "oris"}
    assert all(array.dtype == np.float32 for array in to_hloc(keypoints).values())


@given(plain())
def test_kornia_sees_the_opposite_angle_and_half_the_side(keypoints):
    torch = pytest.importorskip("torch")
    feature = pytest.importorskip("kornia.feature")
    laf = torch.from_numpy(to_laf(keypoints, 24))[None]
    scale, degrees = feature.get_laf_scale(laf)[0, :, 0, 0], feature.get_laf_orientation(laf)[0, :, 0]
    np.testing.assert_allclose(scale, 12 * keypoints.sigma, rtol=1e-5)
    np.testing.assert_allclose(degrees, -np.degrees(keypoints.angle), atol=1e-3)
    np.testing.assert_array_equal(feature.get_laf_center(laf)[0], keypoints.xy)
    rebuilt = feature.laf_from_center_scale_ori(laf[:, :, :, 2], scale[None, :, None, None], degrees[None, :, None])
    assert_same(from_laf(rebuilt.requires_grad_(), 24), keypoints)


def test_a_sheared_frame_is_the_region_that_kornia_draws():
    """kornia's own outline of a frame: the centre first, then an ellipse that begins at the end of the y axis."""
    torch = pytest.importorskip("torch")
    feature = pytest.importorskip("kornia.feature")
    keypoints = Keypoints.from_frames([[50, 60]], [[[3, 1], [-0.5, 2]]])
    outline = feature.laf_to_boundary_points(torch.from_numpy(to_laf(keypoints, 24))[None], 20)[0, 0].numpy()
    np.testing.assert_allclose(outline[:2], [[50, 60], [50 + 12 * 1, 60 + 12 * 2]], rtol=1e-6)
    patch = np.linalg.solve(keypoints.frames()[0], (outline[1:] - keypoints.xy).T)
    np.testing.assert_allclose(np.linalg.norm(patch, axis=0), 12, rtol=1e-5)


SHEARED = Keypoints.from_frames([[1, 2]], [[[3, 1], [0, 2]]])


@pytest.mark.parametrize("write", [to_opencv, to_colmap, to_hloc])
def test_shapes_are_never_lost_silently(write):
    with pytest.raises(KeypatchError, match=r"cannot hold the keypoints' shapes.* with without_shape\(\)"):
        write(SHEARED)
    assert len(write(SHEARED.without_shape())) > 0


def test_places_of_sheared_keypoints_are_two_columns():
    np.testing.assert_allclose(to_colmap(SHEARED, 2), [[1.5, 2.5]])


@pytest.mark.parametrize(
    ("convert", "sentence"),
    [
        (lambda: from_colmap(np.zeros((3, 5))), r"2, 4 or 6 columns, not shape \(3, 5\)"),
        (lambda: from_colmap([]), r"2, 4 or 6 columns, not shape \(0,\)"),
        (lambda: from_colmap([["a", "b"]]), "not an array of numbers"),
        (lambda: from_colmap([[1, 2], [3]]), "not an array of numbers"),
        (lambda: from_colmap([[1, 2]]), "have no scale. Pass sigma"),
        (lambda: from_colmap([[1, np.nan, 3, 0]]), "Keypoint 0 has y nan"),
        (lambda: from_colmap([[1, 2, 0, 0]]), "Keypoint 0 has sigma 0"),
        (lambda: from_colmap([[1, 2, 1, 0, 0, -1]]), "Frame 0 is flat, mirrored or not finite"),
        (lambda: from_hloc([1, 2, 3]), r"shape \(n, 2\), not \(3,\)"),
        (lambda: from_hloc([[1, 2]]), "hloc's keypoints without scales have no scale"),
        (lambda: from_hloc([[1, 2]], [1, 2]), r"sigma must have shape \(1,\)"),
        (lambda: from_hloc([[1, 2]], [1], [1], [np.inf]), "Keypoint 0 has response inf"),
        (lambda: from_laf(np.zeros((2, 3)), 12), r"shape \(n, 2, 3\), for one image, not \(2, 3\)"),
        (lambda: from_laf(np.zeros((2, 5, 2, 3)), 12), "for one image"),
        (lambda: from_laf(np.zeros((1, 1, 2, 3)), 12), "Frame 0 is flat"),
        (lambda: from_laf([[[1, 0, np.nan], [0, 1, 0]]], 12), "Keypoint 0 has x nan"),
        (lambda: from_laf(np.zeros((0, 2, 3)), 0), "patch_sigmas.* must be above 0, not 0"),
        (lambda: to_laf(SHEARED, float("nan")), "patch_sigmas.* must be above 0, not nan"),
        (lambda: from_opencv([cv2.KeyPoint(float("nan"), 2, 3, 0)]), "Keypoint 0 has x nan"),
        (lambda: from_opencv([cv2.KeyPoint(1, 2, 0, 0)]), "Keypoint 0 has sigma 0"),
    ],
)
def test_wrong_input_is_named(convert, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        convert()


@pytest.mark.parametrize("columns", [2, 4, 6])
def test_no_keypoints(columns):
    assert len(from_colmap(np.zeros((0, columns)), sigma=1)) == 0
    assert len(from_hloc(np.zeros((0, 2)), [], [], [])) == len(from_laf(np.zeros((1, 0, 2, 3)), 12)) == 0
    assert len(from_opencv([])) == 0
