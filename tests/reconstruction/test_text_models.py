"""Models of COLMAP as text: poses stand for themselves."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.errors import DataError
from keypatch.reconstruction.text_models import read_text_cameras, read_text_poses

IMAGES = "# comment\n1 1 0 0 0 0.5 0 2 1 a b.jpg\n3 4 7\n2 0 0 1 0 0 0 0 1 c.jpg\n\n"


def test_poses_are_read_where_the_camera_is_none_that_exists(tmp_path: Path) -> None:
    (tmp_path / "cameras.txt").write_text("1 SIMPLE_RADIAL 640 480 -2318.9 320 240 0.4\n")
    (tmp_path / "images.txt").write_text(IMAGES)
    poses = read_text_poses(tmp_path)
    assert list(poses) == ["a b.jpg", "c.jpg"]
    np.testing.assert_allclose(poses["a b.jpg"].translation, [0.5, 0, 2])
    np.testing.assert_allclose(poses["c.jpg"].rotation, np.diag([-1, 1, -1]))
    with pytest.raises(DataError, match="focal length above 0"):
        read_text_cameras(tmp_path)


def test_poses_agree_with_those_of_the_cameras(tmp_path: Path) -> None:
    (tmp_path / "cameras.txt").write_text("1 PINHOLE 640 480 500 500 320 240\n")
    (tmp_path / "images.txt").write_text(IMAGES)
    both = read_text_cameras(tmp_path)
    for name, pose in read_text_poses(tmp_path).items():
        np.testing.assert_array_equal(pose.rotation, both[name][1].rotation)
        np.testing.assert_array_equal(pose.translation, both[name][1].translation)


def test_a_damaged_pose_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "images.txt").write_text("1 1 0 0 0 zero 0 2 1 a.jpg\n\n")
    with pytest.raises(DataError, match=r"images\.txt, line 1"):
        read_text_poses(tmp_path)
