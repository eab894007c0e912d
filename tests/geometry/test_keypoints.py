"""Keypoints: their checks and their frames."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

THREE = Keypoints([1, 2, 3], [4, 5, 6], [1, 2, 3], [0, 0.5, -0.5], response=[0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": [1, np.nan]}, "Keypoint 1 has x nan; every value must be finite"),
        ({"angle": [np.inf, 0]}, "Keypoint 0 has angle inf"),
        ({"sigma": [1, 0]}, "Keypoint 1 has sigma 0.0; it must be above 0"),
        ({"y": [1, 2, 3]}, r"y must have shape \(2,\) to match x, not \(3,\)"),
        ({"response": [1]}, r"response must have shape \(2,\)"),
        ({"shape": np.eye(2)}, r"shape must have shape \(2, 2, 2\)"),
        ({"shape": 2 * np.eye(2)[None].repeat(2, 0)}, "must have determinant 1"),
    ],
)
def test_wrong_keypoints_are_named(change, sentence):
    right = {"x": [1, 2], "y": [3, 4], "sigma": [1, 1], "angle": [0, 0]}
    with pytest.raises(KeypatchError, match=sentence):
        Keypoints(**{**right, **change})


def test_take_keeps_every_column():
    for chosen in (THREE.take([2, 0]), THREE.take(np.array([2, 0]))):
        assert chosen.x.tolist() == [3, 1]
        assert chosen.response is not None
        assert chosen.response.tolist() == pytest.approx([0.1, 0.3])
    assert THREE.take(np.array([True, False, True])).y.tolist() == [4, 6]
    assert THREE.take(slice(1, None)).sigma.tolist() == [2, 3]
    assert len(THREE.take([])) == len(Keypoints([], [], [], []).take(np.zeros(0, bool))) == 0


def test_no_keypoints():
    none = Keypoints([], [], [], [])
    assert len(none) == 0
    assert none.frames().shape == (0, 2, 2)
    assert len(Keypoints.from_frames([], [])) == 0


def test_frame_turns_clockwise_on_screen():
    """A quarter turn takes the x axis (right) to the y axis (down)."""
    frame = Keypoints([0], [0], [3], [np.pi / 2]).frames()[0]
    np.testing.assert_allclose(frame @ [1, 0], [0, 3], atol=1e-6)
    np.testing.assert_allclose(frame @ [0, 1], [-3, 0], atol=1e-6)


@given(arrays.arrays(np.float64, (3, 2, 2), elements=st.floats(-4, 4)))
def test_frames_survive_the_way_through_keypoints(frames):
    frames = frames + 6 * np.eye(2)  # positive determinant, not nearly flat
    frames = frames[np.linalg.det(frames) > 1]
    keypoints = Keypoints.from_frames(np.zeros((len(frames), 2)), frames)
    np.testing.assert_allclose(keypoints.frames(), frames, atol=1e-4)  # float32 of values up to 10
    assert keypoints.shape is not None
    np.testing.assert_allclose(keypoints.shape, keypoints.shape.swapaxes(1, 2), atol=1e-4)


@pytest.mark.parametrize("frame", [[[1, 0], [0, -1]], [[1, 1], [1, 1]], [[1, 0], [0, np.nan]]])
def test_flat_mirrored_or_unknown_frames_are_refused(frame):
    with pytest.raises(KeypatchError, match="Frame 1 is flat, mirrored or not finite"):
        Keypoints.from_frames([[0, 0], [0, 0]], [np.eye(2), frame])


def test_without_shape_only_the_shape_is_gone():
    sheared = Keypoints.from_frames([[1, 2]], [[[3, 1], [0, 2]]], [0.5])
    plain = sheared.without_shape()
    assert plain.shape is None
    for name in ("x", "y", "sigma", "angle", "response"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(sheared, name))


def test_joined_keypoints_are_those_of_all_parts_and_a_part_without_shapes_is_not_sheared() -> None:
    plain = Keypoints([1.0], [2.0], [3.0], [0.5])
    sheared = Keypoints.from_frames([[4, 5]], [[[2, 1], [0, 2]]])
    joined = Keypoints.join([plain, sheared])
    np.testing.assert_allclose(joined.frames(), np.concatenate([plain.frames(), sheared.frames()]), rtol=1e-6)
    assert joined.xy.tolist() == [[1, 2], [4, 5]]
    assert Keypoints.join([plain, plain]).shape is None
