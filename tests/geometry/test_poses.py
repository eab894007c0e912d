"""Camera poses: errors as the Image Matching Challenge measures them, ways between cameras, alignment."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.errors import KeypatchError
from keypatch.geometry import Pose, Similarity, align, relative_pose, rotation_angle, translation_angle

seeds = st.integers(0, 2**32 - 1)


def random_rotation(rng: np.random.Generator):
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return rotation * np.sign(np.linalg.det(rotation))


def random_pose(rng: np.random.Generator) -> Pose:
    return Pose(random_rotation(rng), rng.normal(size=3))


def turn_about_z(degrees: float):
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])


def test_errors_are_those_of_the_image_matching_challenge(reference: Path):
    """400 pairs of poses; rows 397 and 398 have no translation. The challenge's code keeps 1e-15 inside an arccos."""
    figures = np.load(reference / "mining_poses.npz")
    turns = [rotation_angle(*pair) for pair in zip(figures["R"], figures["R_gt"], strict=True)]
    shifts = [translation_angle(*pair) for pair in zip(figures["t"], figures["t_gt"], strict=True)]
    np.testing.assert_allclose(np.radians(turns), figures["err_q_rad"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.radians(shifts), figures["err_t_rad"], rtol=0, atol=1e-6)
    assert figures["t_sign_flipped"].any()


@pytest.mark.parametrize("degrees", [0, 1e-7, 1e-3, 45, 90, 179.999, 180])
def test_small_and_large_turns_are_exact(degrees):
    assert rotation_angle(np.eye(3), turn_about_z(degrees)) == pytest.approx(degrees, rel=1e-9, abs=1e-12)
    assert rotation_angle(turn_about_z(30), turn_about_z(30 - degrees)) == pytest.approx(degrees, rel=1e-6, abs=1e-12)


def test_the_sign_of_a_translation_is_ignored():
    assert translation_angle([1, 0, 0], [-2, 0, 0]) == 0
    assert translation_angle([1, 0, 0], [1, 1, 0]) == pytest.approx(45)
    assert translation_angle([1, 0, 0], [-1, 1, 0]) == pytest.approx(45)
    assert translation_angle([0, 0, 0], [1, 1, 0]) == translation_angle([1, 1, 0], [0, 0, 0]) == 90


@given(seeds)
def test_the_relative_pose_leads_from_one_camera_to_the_other(seed):
    rng = np.random.default_rng(seed)
    first, second, point = random_pose(rng), random_pose(rng), rng.normal(size=3)
    way = relative_pose(first, second)
    seen = [pose.rotation @ point + pose.translation for pose in (first, second)]
    np.testing.assert_allclose(way.rotation @ seen[0] + way.translation, seen[1], atol=1e-12)


@given(seeds)
def test_the_centre_is_seen_at_zero(seed):
    pose = random_pose(np.random.default_rng(seed))
    np.testing.assert_allclose(pose.rotation @ pose.centre + pose.translation, 0, atol=1e-12)


@given(seeds, st.integers(3, 8))
def test_alignment_finds_the_similarity(seed, count):
    rng = np.random.default_rng(seed)
    true = Similarity(float(rng.uniform(0.1, 10)), random_rotation(rng), rng.normal(size=3))
    centres = rng.normal(size=(count, 3))
    if count == 3:
        centres[:, 2] = 0  # cameras in one plane: a mirrored solution fits as well and must not be taken
    found = align(centres, true.apply(centres))
    assert found.scale == pytest.approx(true.scale)
    np.testing.assert_allclose(found.rotation, true.rotation, atol=1e-6)
    np.testing.assert_allclose(found.translation, true.translation, atol=1e-6)


@given(seeds)
def test_no_other_similarity_is_nearer(seed):
    rng = np.random.default_rng(seed)
    centres, target = rng.normal(size=(2, 6, 3))
    best = align(centres, target)
    least = np.square(best.apply(centres) - target).sum()
    for _ in range(20):
        nudge = turn_about_z(rng.normal())[:, rng.permutation(3)]
        nudge = nudge * np.linalg.det(nudge)
        other = Similarity(best.scale * rng.uniform(0.9, 1.1), best.rotation @ nudge, best.translation)
        shifted = Similarity(best.scale, best.rotation, best.translation + 0.01 * rng.normal(size=3))
        assert np.square(other.apply(centres) - target).sum() >= least
        assert np.square(shifted.apply(centres) - target).sum() >= least


@given(seeds)
def test_a_carried_camera_sees_the_carried_world_alike(seed):
    rng = np.random.default_rng(seed)
    similarity = Similarity(float(rng.uniform(0.1, 10)), random_rotation(rng), rng.normal(size=3))
    pose, point = random_pose(rng), rng.normal(size=3)
    carried = similarity.carry(pose)
    seen = pose.rotation @ point + pose.translation
    seen_carried = carried.rotation @ similarity.apply(point[None])[0] + carried.translation
    np.testing.assert_allclose(seen_carried, similarity.scale * seen, atol=1e-9)
    np.testing.assert_allclose(carried.centre, similarity.apply(pose.centre[None])[0], atol=1e-9)


@pytest.mark.parametrize(
    ("centres", "sentence"),
    [
        (np.zeros((2, 3)), "at least three cameras, not 2"),
        (np.zeros((4, 3)), "on one line or at one point"),
        (np.outer([0, 1, 2, 5], [1, 2, 3]), "on one line or at one point"),
        (np.full((4, 3), np.nan), "must be finite"),
        (np.zeros((4, 2)), r"both be \(n, 3\), not \(4, 2\)"),
    ],
)
def test_cameras_that_cannot_be_aligned_are_named(centres, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        align(centres, centres)


@pytest.mark.parametrize(
    ("rotation", "translation", "sentence"),
    [
        (np.eye(4), np.zeros(3), r"rotation \(3, 3\)"),
        (np.eye(3), np.zeros(4), r"translation \(3,\)"),
        (-np.eye(3), np.zeros(3), "not a rotation"),
        (2 * np.eye(3), np.zeros(3), "not a rotation"),
        (np.full((3, 3), np.nan), np.zeros(3), "not a rotation"),
        (np.eye(3), [0, 0, np.inf], "not finite"),
    ],
)
def test_what_is_no_pose_is_refused(rotation, translation, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        Pose(rotation, translation)
