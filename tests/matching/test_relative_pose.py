"""Poses of planted scenes: what is right, what is told where no pose can be had."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.colmap.cameras import Camera, to_rays
from keypatch.colmap.known_cameras import read_intrinsics
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Features
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import Pose, rotation_angle, translation_angle
from keypatch.matching.image_matches import EXIF, GUESSED, REFINED, ImageMatches, match
from keypatch.matching.matching import Matching
from keypatch.matching.relative_pose import recover_pose

SIZE = (1200, 900)
TRUE = Camera.from_focal("PINHOLE", SIZE, 1000.0, focal_known=True)
TURN = cv2.Rodrigues(np.array([0.05, 0.25, -0.04]))[0]
MOVE = np.array([-0.9, 0.1, 0.3]) / np.linalg.norm([-0.9, 0.1, 0.3])
POSE = Matching(model="E", filter=None)


def scene(kind: str = "deep", count: int = 300) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    points = rng.uniform([-3, -2, 5], [3, 2, 12], (count, 3))
    if kind == "plane":
        points[:, 2] = 7 + 0.4 * points[:, 0] - 0.2 * points[:, 1]
    if kind == "line":
        points = np.outer(rng.uniform(0, 1, count), [3, 2, 2]) + np.array([-2, -1, 7])
    if kind == "place":
        points[:] = [0.3, 0.2, 8]
    return points


def seen(points: NDArray[np.float64], pose: Pose, camera: Camera, noise: float) -> NDArray[np.float64]:
    rays = points @ pose.rotation.T + pose.translation
    pixels = rays[:, :2] / rays[:, 2:] * camera.focal + camera.matrix[:2, 2]
    return np.asarray(pixels + np.random.default_rng(1).normal(0, noise, pixels.shape))


def view(places: NDArray[np.float64]) -> Features:
    """Features whose descriptors match by number."""
    ones = np.ones(len(places), np.float32)
    rows = np.random.default_rng(2).normal(size=(len(places), 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Features(Keypoints(*places.T.astype(np.float32), ones, 0 * ones), rows, SIZE, "planted")


def planted(
    kind: str = "deep", turn: NDArray[np.float64] = TURN, move: NDArray[np.float64] = MOVE, noise: float = 0.2
) -> tuple[Features, Features]:
    points = scene(kind)
    first = seen(points, Pose(np.eye(3), np.zeros(3)), TRUE, 0)
    return view(first), view(seen(points, Pose(turn, move), TRUE, noise))


def test_the_pose_goes_from_the_first_camera_to_the_second() -> None:
    found = match(*planted(), POSE, intrinsics=[TRUE]).pose
    assert found is not None and found.translation is not None
    assert rotation_angle(found.rotation, TURN) < 0.1
    assert translation_angle(found.translation, MOVE) < 0.5 and found.translation @ MOVE > 0
    assert found.sources == ("given", "given")


def test_points_lie_where_they_were_planted_and_where_the_cameras_see_them() -> None:
    matches = match(*planted(noise=0.02), POSE, intrinsics=[TRUE])
    assert matches.pose is not None
    truth = scene()[matches.matches.indices[:, 0]]
    off = np.linalg.norm(matches.pose.points - truth, axis=1) / truth[:, 2]
    assert np.median(off) < 0.005
    here = matches.pose.points[:, :2] / matches.pose.points[:, 2:]
    np.testing.assert_allclose(here, to_rays(matches.points0, TRUE), atol=1e-3)


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_the_error_is_of_the_size_that_is_told(noise: float) -> None:
    found = match(*planted(noise=noise), POSE, intrinsics=[TRUE]).pose
    assert found is not None and found.translation is not None
    turn, direction = found.uncertainty
    assert rotation_angle(found.rotation, TURN) < turn < 1
    assert translation_angle(found.translation, MOVE) < direction < 3


def test_a_lens_that_bends_is_straightened() -> None:
    first, second = planted(noise=0.05)
    bent = Camera("SIMPLE_RADIAL", *SIZE, (1000.0, 600.0, 450.0, -0.15))

    def bend(features: Features) -> Features:
        rays = to_rays(features.keypoints.xy, TRUE)
        pixels = rays * (1 - 0.15 * np.square(rays).sum(1, keepdims=True)) * 1000 + bent.matrix[:2, 2]
        return view(pixels)

    matches = match(bend(first), bend(second), POSE, intrinsics=[bent])
    assert matches.pose is not None and len(matches) > 280
    assert rotation_angle(matches.pose.rotation, TURN) < 0.1
    assert len(match(bend(first), bend(second), POSE, intrinsics=[TRUE])) < len(matches)


def test_a_plane_gives_a_pose_and_no_fundamental_matrix_that_one_may_trust() -> None:
    views = planted("plane")
    matches = match(*views, POSE, intrinsics=[TRUE])
    assert matches.pose is not None and matches.pose.other is None  # the other would have some of it behind a camera
    assert rotation_angle(matches.pose.rotation, TURN) < 0.5
    (warning,) = match(*views, replace(POSE, model="F")).warnings()
    assert "also fit a single homography" in warning and "model H" in warning
    assert match(*planted(), replace(POSE, model="F")).warnings() == []


def test_a_camera_that_only_turned_has_a_rotation_and_no_direction() -> None:
    matches = match(*planted(move=np.zeros(3)), POSE, intrinsics=[TRUE])
    assert matches.pose is not None and matches.pose.translation is None
    assert rotation_angle(matches.pose.rotation, TURN) < 0.05
    assert np.isnan(matches.pose.points).all()
    assert "turned in place" in matches.sentences()[3]
    assert matches.pose.to_json()["t"] is None


def test_a_camera_that_moved_a_little_is_not_taken_for_one_that_turned() -> None:
    matches = match(*planted(move=0.05 * MOVE, noise=0.1), POSE, intrinsics=[TRUE])
    assert matches.pose is not None and matches.pose.translation is not None
    assert translation_angle(matches.pose.translation, MOVE) < matches.pose.uncertainty[1]


def test_wrong_cameras_are_told() -> None:
    wrong = Camera.from_focal("PINHOLE", SIZE, 300.0, focal_known=True)
    matches = match(*planted(noise=0.05), POSE, intrinsics=[wrong])
    assert matches.warnings()[0].startswith("300 matches fit one fundamental matrix, but only ")
    assert "are probably wrong" in matches.warnings()[0]
    assert match(*planted(), POSE, intrinsics=[TRUE]).warnings() == []


def test_without_intrinsics_the_matches_tell_the_focal_length_where_they_can() -> None:
    pose = match(*planted(noise=0.1), POSE).pose
    assert pose is not None and pose.sources == (REFINED, REFINED)
    assert pose.cameras[0].focal[0] == pytest.approx(1000, rel=0.05)
    assert rotation_angle(pose.rotation, TURN) < 1
    sideways = match(*planted(turn=np.eye(3), move=np.array([1.0, 0, 0])), POSE)  # any focal length fits
    assert sideways.pose is not None and sideways.pose.sources == (GUESSED, GUESSED)
    assert sideways.pose.cameras[0].focal[0] == 1.2 * SIZE[0]
    assert "degrees off" in sideways.warnings()[-1]


def test_the_focal_length_of_exif_data_is_taken(motorcycle: tuple[Path, Path], tmp_path: Path) -> None:
    from PIL import Image

    paths = []
    for path in motorcycle:
        exif = Image.Exif()
        exif.get_ifd(0x8769)[0xA405] = 40  # focal length in 35 mm film
        paths.append(tmp_path / f"{path.stem}.jpg")
        Image.open(path).save(paths[-1], quality=95, exif=exif)
    matches = match(*paths, POSE, describer="rootsift")
    assert matches.pose is not None and matches.pose.sources == (EXIF, EXIF)
    width, height = matches.features[0].image_size
    assert matches.pose.cameras[0].focal[0] == pytest.approx(40 / np.hypot(36, 24) * np.hypot(width, height))


NO_POSE = {
    "no keypoints": lambda: (view(np.empty((0, 2))), view(np.empty((0, 2)))),
    "one keypoint": lambda: (view(np.array([[10.0, 20]])), view(np.array([[30.0, 20]]))),
    "one place": lambda: planted("place", noise=0),
    "a line": lambda: planted("line"),
}


@pytest.mark.parametrize("kind", NO_POSE)
@pytest.mark.parametrize("model", ["E", "F", "H"])
def test_where_there_is_no_geometry_none_is_made_up(kind: str, model: str) -> None:
    matches = match(*NO_POSE[kind](), replace(POSE, model=model))
    assert matches.pose is None and matches.matrix is None and len(matches) == 0
    assert matches.sentences()


def test_a_plane_that_two_poses_explain_is_told() -> None:
    turn, move = cv2.Rodrigues(np.array([0.1, -0.18, -0.1]))[0], np.array([-0.91, 0.28, 0.15])
    matches = match(*planted("plane", turn, move), POSE, intrinsics=[TRUE])
    assert matches.pose is not None and matches.pose.other is not None
    assert min(rotation_angle(each.rotation, turn) for each in (matches.pose, matches.pose.other)) < 0.1
    assert "fits them as well" in matches.warnings()[0]


def test_two_identical_photos_turned_by_nothing() -> None:
    first, _ = planted()
    matches = match(first, first, POSE, intrinsics=[TRUE])
    assert matches.pose is not None and matches.pose.translation is None
    assert matches.pose.degrees < 1e-3


@pytest.fixture(scope="module")
def posed() -> ImageMatches:
    return match(*planted(), POSE, intrinsics=[TRUE])


def test_tables_hold_the_pose_and_the_points(posed: ImageMatches, tmp_path: Path) -> None:
    value = json.loads(posed.save(tmp_path / "pose.json").read_text())
    assert posed.pose is not None
    assert value["pose"]["R"] == posed.pose.rotation.tolist() and value["pose"]["K"][0] == TRUE.matrix.tolist()
    assert "x1 = R x0 + t" in value["pose"]["convention"]
    assert [value["matches"][0][axis] for axis in "XYZ"] == posed.pose.points[0].tolist()
    assert posed.save(tmp_path / "pose.csv").read_text().split("\n")[0].endswith("score,X,Y,Z,pixels")


def test_pictures_of_a_model_need_it(posed: ImageMatches) -> None:
    width, height = posed.draw(style="epipolar").size
    assert width > 2 * SIZE[0] > height
    with pytest.raises(KeypatchError, match="needs matches verified by the model H"):
        posed.draw(style="overlay")
    with pytest.raises(KeypatchError, match="no geometry was found"):
        match(*NO_POSE["no keypoints"](), POSE).draw(style="epipolar")
    plane = match(*planted("plane"), replace(POSE, model="H"))
    assert plane.draw(style="overlay").size[0] >= 1000


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("PINHOLE 1200 900 1000 1000 600 450", (1000, 1000, 600, 450)),
        ("# a comment\n7 simple_radial 1200 900 1000 600 450 -0.1\n", (1000, 600, 450, -0.1)),
    ],
)
def test_a_camera_line_of_colmap_is_read(text: str, params: tuple[float, ...], tmp_path: Path) -> None:
    path = tmp_path / "camera.txt"
    path.write_text(text)
    camera = read_intrinsics(path)
    assert isinstance(camera, Camera) and camera.params == params


def test_a_matrix_is_read(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "K.txt", TRUE.matrix)
    assert np.array_equal(read_intrinsics(tmp_path / "K.txt"), TRUE.matrix)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "camera.txt"),
        ("PINHOLE 1200 900 1000", "takes 4 parameters"),
        ("PINHOLE a b 1 1 1 1", "not a readable camera line"),
        ("PINHOLE 10 10 1 1 5 5\nPINHOLE 10 10 1 1 5 5", "has 2 lines"),
        ("HASSELBLAD 1200 900 1000", "camera.txt"),
    ],
)
def test_what_is_no_camera_is_refused(text: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "camera.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=wrong):
        read_intrinsics(path)


def test_the_camera_of_another_size_is_refused() -> None:
    small = Camera.from_focal("PINHOLE", (600, 450), 500.0, focal_known=True)
    with pytest.raises(KeypatchError, match="600 x 450 pixels, but the photo has 1200 x 900"):
        match(*planted(), POSE, intrinsics=[small])


def test_the_pose_is_the_one_of_four_that_sees_the_points() -> None:
    points = scene()
    essential = np.cross(np.eye(3), MOVE) @ TURN  # rows e_i x t, so minus the cross matrix of t
    here, there = (
        points @ pose.rotation.T + pose.translation for pose in (Pose(np.eye(3), np.zeros(3)), Pose(TURN, MOVE))
    )
    found = recover_pose(essential, here[:, :2] / here[:, 2:], there[:, :2] / there[:, 2:])
    np.testing.assert_allclose(found.rotation, TURN, atol=1e-9)
    np.testing.assert_allclose(found.translation, MOVE, atol=1e-9)
