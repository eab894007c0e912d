"""Relative poses: what is estimated, what counts as failed, which pairs there are."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from poses import ESTIMATORS, REACH, estimate_pose, evaluate_poses, over_seeds, pose_error

from keypatch.benchmarks.imc.scenes import PosedScene, read_posed_scene
from keypatch.colmap.cameras import Camera, PosedCamera, straightened, to_rays
from keypatch.errors import KeypatchError
from keypatch.features import Features, Photo
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import Pose
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Estimator

WIDE, LONG = (
    Camera("PINHOLE", 640, 480, (500.0, 510.0, 320.0, 240.0)),
    Camera("PINHOLE", 800, 600, (900.0, 900.0, 400.0, 300.0)),
)


def turned(degrees: float) -> NDArray[np.float64]:
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])


HERE, THERE = (
    PosedCamera(WIDE, Pose(np.eye(3), np.zeros(3))),
    PosedCamera(LONG, Pose(turned(10), np.array([-1, 0.2, 0]))),
)


def seen(points: NDArray[np.float64], posed: PosedCamera) -> Keypoints:
    """Where a camera without distortion sees points of the world."""
    rays = points @ posed.pose.rotation.T + posed.pose.translation
    xy = (rays / rays[:, 2:]) @ posed.camera.matrix.T
    ones = np.ones(len(xy), np.float32)
    return Keypoints(xy[:, 0], xy[:, 1], ones, 0 * ones)


def world(count: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform((-2, -1.5, 4), (2, 1.5, 9), (count, 3))


def matches(count: int, wrong: int = 0) -> Matches:
    second = np.arange(count)
    second[:wrong] = np.random.default_rng(1).permutation(wrong)
    return Matches(np.stack([np.arange(count), second], axis=1), np.ones(count))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_pose_is_found_among_wrong_matches_of_two_cameras(estimator: Estimator) -> None:
    places = seen(world(300), HERE), seen(world(300), THERE)
    assert pose_error(matches(300, 60), places, (HERE, THERE), estimator) < 1


def test_the_error_is_the_larger_of_rotation_and_direction() -> None:
    places, found = (seen(world(300), HERE), seen(world(300), THERE)), matches(300)
    turned_more = PosedCamera(LONG, Pose(turned(17), THERE.pose.translation))
    moved_elsewhere = PosedCamera(LONG, Pose(turned(10), np.array([0, 1.0, 0])))
    assert pose_error(found, places, (HERE, turned_more)) == pytest.approx(7, abs=0.1)
    assert pose_error(found, places, (HERE, moved_elsewhere)) == pytest.approx(
        np.degrees(np.arccos(0.2 / np.hypot(1, 0.2))), abs=0.5
    )


def test_the_pose_goes_from_the_first_camera_to_the_second() -> None:
    places = seen(world(300), HERE), seen(world(300), THERE)
    estimate = estimate_pose(matches(300), places, (WIDE, LONG))
    assert estimate is not None
    np.testing.assert_allclose(estimate.rotation, turned(10), atol=1e-3)
    np.testing.assert_allclose(estimate.translation, THERE.pose.translation / np.hypot(1, 0.2), atol=1e-2)


def test_one_seed_gives_one_answer_and_seeds_differ() -> None:
    places, found = (seen(world(200), HERE), seen(world(200), THERE)), matches(200, 150)
    errors = [pose_error(found, places, (HERE, THERE), "magsac", seed) for seed in (0, 0, 1, 2, 3)]
    assert errors[0] == errors[1]
    assert len(set(errors)) > 1


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_matches_are_a_failure_and_no_error(count: int) -> None:
    places = seen(world(count), HERE), seen(world(count), THERE)
    assert pose_error(matches(count), places, (HERE, THERE)) == float("inf")


def test_a_bent_ray_is_straightened() -> None:
    bent = Camera("SIMPLE_RADIAL", 640, 480, (500.0, 320.0, 240.0, -0.1))
    rays = np.random.default_rng(0).uniform(-0.4, 0.4, (50, 2))
    by_definition = rays * (1 - 0.1 * np.square(rays).sum(1, keepdims=True)) * 500 + (319.5, 239.5)
    np.testing.assert_allclose(to_rays(by_definition, bent), rays, atol=2e-4)  # OpenCV inverts by a few iterations
    np.testing.assert_allclose(straightened(by_definition, bent), rays * 500 + (319.5, 239.5), atol=0.1)


def test_a_fisheye_is_refused() -> None:
    fisheye = Camera("OPENCV_FISHEYE", 640, 480, (500.0, 500.0, 320.0, 240.0, 0, 0, 0, 0))
    with pytest.raises(KeypatchError, match="undistorted first"):
        to_rays(seen(world(3), HERE).xy, fisheye)


def scene(count: int) -> PosedScene:
    """Cameras in a row that look the same way."""
    photos = tuple(Photo(f"{number:02}.png", Path(f"{number:02}.png")) for number in range(count))
    poses = [Pose(np.eye(3), np.array([-0.3 * number, 0, 0])) for number in range(count)]
    return PosedScene(
        "row", Path(), photos, {photo.name: PosedCamera(WIDE, pose) for photo, pose in zip(photos, poses, strict=True)}
    )


@pytest.mark.parametrize(("photos", "pairs"), [(2, 1), (4, 6), (10, 24), (19, 51)])
def test_every_photo_is_paired_with_the_three_after_it(photos: int, pairs: int) -> None:
    assert len(scene(photos).pairs(REACH)) == pairs
    assert scene(4).pairs(REACH)[:3] == [("00.png", "01.png"), ("00.png", "02.png"), ("00.png", "03.png")]


def test_a_failed_pair_counts_in_the_area_of_every_seed(tmp_path: Path) -> None:
    row = scene(3)
    photos = tuple(Photo(photo.name, tmp_path / photo.name) for photo in row.photos)
    for photo in photos:
        photo.path.touch()
    row = PosedScene("row", tmp_path, photos, row.cameras)
    known = {
        name: Features(seen(world(200), posed), np.zeros((200, 1), np.float32), (640, 480), "toy")
        for name, posed in row.cameras.items()
    }
    known["02.png"] = Features(known["02.png"].keypoints.take([]), np.zeros((0, 1), np.float32), (640, 480), "toy")
    result = evaluate_poses(known, row, lambda a, b: matches(min(len(a), len(b))), seeds=(0, 1))
    for estimator in ESTIMATORS:
        areas = over_seeds(result.scores, f"auc10.{estimator}")
        assert areas == pytest.approx([1 / 3, 1 / 3], abs=0.01)  # one of three pairs has matches
    assert result.scores["count.matches"] == pytest.approx(200 / 3)
    assert result.settings["pairs"] == 3 and result.settings["seeds"] == [0, 1]
    with pytest.raises(KeypatchError, match="one seed or more"):
        evaluate_poses(known, row, lambda a, b: matches(0), seeds=())


def test_matches_of_one_place_count_once_for_the_pose() -> None:
    here, there = seen(world(5), HERE), seen(world(5), THERE)
    thrice = np.tile(np.arange(5), 3)
    assert pose_error(matches(15), (here.take(thrice), there.take(thrice)), (HERE, THERE)) == float("inf")


def test_the_shared_scenes_have_their_pairs(shared: Path) -> None:
    strecha = shared / "data" / "strecha"
    assert len(read_posed_scene(strecha / "castle-P19").pairs(REACH)) == 51
    assert len(read_posed_scene(strecha / "entry-P10").pairs(REACH)) == 24
