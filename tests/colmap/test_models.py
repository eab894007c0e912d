"""Models of COLMAP: binary or text, pycolmap reads them, and poses stand also where a camera is impossible."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.colmap import package, read_cameras
from keypatch.colmap.models import read_model
from keypatch.errors import DataError, MissingExtra

pycolmap = pytest.importorskip("pycolmap")

CAMERAS = "1 PINHOLE 640 480 500 500 320 240\n"
IMAGES = "# comment\n2 0 0 1 0 0 0 0 1 c.jpg\n5 6 9\n1 1 0 0 0 0.5 0 2 1 a.jpg\n3 4 7 8 9 -1 5 5 9\n"
POINTS = "9 1 2 3 10 20 30 0.25 1 2 2 0\n7 4 5 6 40 50 60 0.5 1 0\n"


@pytest.fixture(params=["text", "binary"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for name, text in {"cameras": CAMERAS, "images": IMAGES, "points3D": POINTS}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    if request.param == "text":
        return tmp_path
    binary = tmp_path / "binary"
    binary.mkdir()
    pycolmap.Reconstruction(str(tmp_path)).write_binary(str(binary))
    return binary


def test_points_are_in_the_order_of_their_numbers_and_images_in_that_of_their_names(model: Path) -> None:
    made = read_model(model)
    assert list(made.cameras) == ["a.jpg", "c.jpg"]
    np.testing.assert_array_equal(made.points.xyz, [[4, 5, 6], [1, 2, 3]])
    np.testing.assert_array_equal(made.points.colours, [[40, 50, 60], [10, 20, 30]])
    np.testing.assert_array_equal(made.points.errors, [0.5, 0.25])
    np.testing.assert_array_equal(made.points.track_lengths, [1, 2])
    assert list(zip(made.seen_by.tolist(), made.seen.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]
    assert made.observations == {"a.jpg": 2, "c.jpg": 1}


def test_an_observation_has_the_number_and_the_place_of_its_keypoint_in_our_pixels(model: Path) -> None:
    made = read_model(model)
    assert made.keypoint.tolist() == [0, 2, 0]
    np.testing.assert_array_equal(made.place, [[2.5, 3.5], [4.5, 4.5], [4.5, 5.5]])


def test_poses_go_from_world_to_camera_and_agree_with_the_known_cameras(model: Path) -> None:
    poses, known = read_model(model).poses, read_cameras(model)
    np.testing.assert_allclose(poses["a.jpg"].translation, [0.5, 0, 2])
    np.testing.assert_allclose(poses["c.jpg"].rotation, np.diag([-1, 1, -1]))
    for name, pose in poses.items():
        np.testing.assert_array_equal(pose.rotation, known[name].pose.rotation)
        np.testing.assert_array_equal(pose.translation, known[name].pose.translation)


def test_poses_are_read_where_the_camera_is_impossible(tmp_path: Path) -> None:
    texts = {"cameras": "1 SIMPLE_RADIAL 640 480 -2318.9 320 240 0.4\n", "images": IMAGES, "points3D": POINTS}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    assert list(read_model(tmp_path, stand_ins=True).poses) == ["a.jpg", "c.jpg"]
    with pytest.raises(DataError, match="focal length above 0"):
        read_model(tmp_path)


def test_a_model_without_points_has_none(model: Path) -> None:
    empty = pycolmap.Reconstruction(str(model))
    empty.delete_all_points2D_and_points3D()
    empty.write_binary(str(model))
    made = read_model(model)
    assert made.points.xyz.shape == made.points.colours.shape == (0, 3)
    assert made.observations == {"a.jpg": 0, "c.jpg": 0}


def test_a_damaged_pose_is_a_sentence_that_names_the_model(tmp_path: Path) -> None:
    for name, text in {"cameras": CAMERAS, "images": "1 1 0 0 0 zero 0 2 1 a.jpg\n\n", "points3D": ""}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    with pytest.raises(DataError, match="not a readable COLMAP model"):
        read_model(tmp_path)


def test_without_pycolmap_the_extra_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"Reading a COLMAP model needs pycolmap: pip install 'keypatch\[colmap\]'"):
        read_model(model)
