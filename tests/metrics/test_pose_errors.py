"""Pose errors after the similarity that a reconstruction leaves open."""

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.geometry.poses import Pose
from keypatch.metrics.poses import pose_errors


def turn(axis: tuple[float, float, float], degrees: float) -> np.ndarray:
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(np.radians(degrees)) * cross + (1 - np.cos(np.radians(degrees))) * cross @ cross


def poses(count: int, seed: int = 0) -> dict[str, Pose]:
    rng = np.random.default_rng(seed)
    made = {}
    for number in range(count):
        rotation = turn(rng.normal(size=3), rng.uniform(0, 180))
        made[f"{number}.jpg"] = Pose(rotation, -rotation @ rng.uniform(-5, 5, 3))
    return made


def moved(pose: Pose) -> Pose:
    """The same camera in a world turned by 40 degrees, shrunk to a third and shifted."""
    world, centre = turn((1, 2, 3), 40), pose.centre
    rotation = pose.rotation @ world.T
    return Pose(rotation, -rotation @ (world @ centre / 3 + np.array([10, 0, -4])))


def test_the_same_cameras_in_another_world_have_no_error() -> None:
    truth = poses(6)
    errors = pose_errors({name: moved(pose) for name, pose in truth.items()}, truth)
    assert max(errors.rotation) < 1e-9 and max(errors.position) < 1e-9


def test_one_turned_and_one_shifted_camera_are_found_in_the_truths_unit() -> None:
    truth = poses(40)
    wrong = dict(truth)
    wrong["3.jpg"] = Pose(turn((0, 1, 0), 2.5) @ truth["3.jpg"].rotation, truth["3.jpg"].translation)
    wrong["3.jpg"] = Pose(wrong["3.jpg"].rotation, -wrong["3.jpg"].rotation @ truth["3.jpg"].centre)
    shifted = truth["7.jpg"].centre + np.array([0, 0, 0.2])
    wrong["7.jpg"] = Pose(truth["7.jpg"].rotation, -truth["7.jpg"].rotation @ shifted)
    errors = pose_errors({name: moved(pose) for name, pose in wrong.items()}, truth)
    rotation = dict(zip(errors.images, errors.rotation, strict=True))
    position = dict(zip(errors.images, errors.position, strict=True))
    # one of forty centres moved by 0.2 pulls the similarity a little
    assert rotation["3.jpg"] == pytest.approx(2.5, abs=0.1) and max(rotation, key=rotation.__getitem__) == "3.jpg"
    assert position["7.jpg"] == pytest.approx(0.2, abs=0.02) and max(position, key=position.__getitem__) == "7.jpg"
    summary = errors.summary()
    centres = np.array([pose.centre for pose in truth.values()])
    span = max(np.linalg.norm(a - b) for a in centres for b in centres)
    assert summary["span"] == pytest.approx(span)
    assert summary["position_max_percent"] == pytest.approx(100 * max(errors.position) / span)
    assert summary["rotation_median_degrees"] < 0.1 < summary["rotation_max_degrees"]


def test_only_cameras_that_both_know_count() -> None:
    truth = poses(6)
    estimated = {name: moved(pose) for name, pose in truth.items() if name != "0.jpg"} | {"new.jpg": truth["0.jpg"]}
    assert pose_errors(estimated, truth).images == ["1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg"]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_cameras_are_a_sentence(count: int) -> None:
    truth = poses(count)
    with pytest.raises(KeypatchError, match="at least three"):
        pose_errors(truth, truth)


def test_cameras_on_one_line_are_a_sentence() -> None:
    truth = {str(number): Pose(np.eye(3), np.array([-float(number), 0, 0])) for number in range(5)}
    with pytest.raises(KeypatchError, match="line"):
        pose_errors(truth, truth)
