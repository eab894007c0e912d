"""Known cameras: Strecha's files and COLMAP's models, written by others."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.colmap import read_cameras
from keypatch.errors import DataError

# (R, C) of a camera that stands at (2, 0, 0) and looks along -x
TURN = np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])  # camera to world: its z axis is the world's -x
CENTRE = np.array([2.0, 0, 0])
STRECHA = "500 0 319.5\n0 510 239.5\n0 0 1\n0 0 0\n0 0 -1\n0 1 0\n1 0 0\n2 0 0\n640 480\n"
CAMERAS = "# comment\n1 PINHOLE 640 480 500 510 320 240\n7 SIMPLE_RADIAL 64 48 50 32 24 0.1\n"
# the quaternion of TURN.T, w first: a turn by 90 degrees about y
IMAGES = (
    "# comment\n"
    "1 0.7071067811865476 0 0.7071067811865476 0 0 0 2 1 sub/a photo.jpg\n"
    "10.5 20.5 -1 30 40 5\n"
    "2 1 0 0 0 0.5 0 0 7 b.jpg\n"
    "\n"
)


@pytest.fixture
def text_model(tmp_path: Path) -> Path:
    (tmp_path / "cameras.txt").write_text(CAMERAS)
    (tmp_path / "images.txt").write_text(IMAGES)
    return tmp_path


def test_strechas_r_turns_from_camera_to_world_and_his_k_is_in_our_pixels(tmp_path: Path) -> None:
    (tmp_path / "0000.jpg.camera").write_text(STRECHA)
    ((name, (camera, pose)),) = read_cameras(tmp_path).items()
    assert name == "0000.jpg"
    assert (camera.width, camera.height, camera.params) == (640, 480, (500, 510, 320, 240))
    assert np.array_equal(camera.matrix, [[500, 0, 319.5], [0, 510, 239.5], [0, 0, 1]])
    assert np.array_equal(pose.rotation, TURN.T)
    assert np.allclose(pose.centre, CENTRE)
    ahead = pose.rotation @ np.array([-3.0, 0, 0]) + pose.translation
    assert np.allclose(ahead, [0, 0, 5])  # five units in front of a camera at x = 2 that looks along -x


def test_a_text_model_keeps_blanks_in_names_and_empty_lines_of_points(text_model: Path) -> None:
    found = read_cameras(text_model)
    assert list(found) == ["sub/a photo.jpg", "b.jpg"]
    first, second = found.values()
    assert np.allclose(first.pose.rotation, TURN.T, atol=1e-15)
    assert np.array_equal(first.pose.translation, [0, 0, 2])
    assert np.array_equal(first.camera.matrix[:2, 2], [319.5, 239.5])
    assert second.camera.model == "SIMPLE_RADIAL" and second.camera.params == (50, 32, 24, 0.1)
    assert np.allclose(second.pose.centre, [-0.5, 0, 0])


def test_both_forms_say_the_same_of_one_camera(text_model: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    strecha = tmp_path_factory.mktemp("strecha")
    (strecha / "sub.camera").write_text(STRECHA)
    theirs, ours = read_cameras(strecha)["sub"], read_cameras(text_model)["sub/a photo.jpg"]
    assert theirs.camera == ours.camera
    assert np.allclose(theirs.pose.centre, ours.pose.centre) and np.allclose(theirs.pose.rotation, ours.pose.rotation)


def test_pycolmap_reads_the_same_and_its_binary_model_too(text_model: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    (text_model / "points3D.txt").write_text("5 0 0 1 1 2 3 0.5 1 1\n")
    (text_model / "images.txt").write_text(IMAGES.replace("a photo", "a"))  # its own reader cuts names at blanks
    model = pycolmap.Reconstruction()
    model.read_text(str(text_model))
    for image in model.images.values():
        posed = read_cameras(text_model)[image.name]
        assert np.allclose(posed.pose.rotation, image.cam_from_world().rotation.matrix())
        assert np.allclose(posed.pose.centre, image.projection_center())
        assert posed.camera.params == tuple(model.cameras[image.camera_id].params)
    binary = text_model / "binary"
    binary.mkdir()
    model.write_binary(str(binary))
    for name, posed in read_cameras(binary).items():
        assert posed.camera == read_cameras(text_model)[name].camera
        assert np.allclose(posed.pose.centre, read_cameras(text_model)[name].pose.centre)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("images.txt", IMAGES.replace(" 7 b.jpg", " 8 b.jpg"), ["images.txt, line 4", "camera 8"]),
        ("images.txt", IMAGES.replace("0.5 0 0 7", "0.5 x 0 7"), ["line 4", "'x'"]),
        ("images.txt", IMAGES.replace("2 1 0 0 0 0.5", "2 0 0 0 0 0.5"), ["line 4", "quaternion"]),
        ("images.txt", IMAGES.replace("10.5 20.5 -1 30 40 5\n", ""), ["line 3", "POINT3D_ID"]),
        ("images.txt", IMAGES.replace(" sub/a photo.jpg", ""), ["line 2", "NAME"]),
        ("cameras.txt", CAMERAS.replace("500 510", "500"), ["cameras.txt, line 2", "PINHOLE"]),
        ("cameras.txt", CAMERAS.replace("PINHOLE", "WIDE"), ["cameras.txt, line 2", "WIDE"]),
    ],
)
def test_a_damaged_text_model_is_named_with_its_line(text_model: Path, file: str, text: str, words: list[str]) -> None:
    (text_model / file).write_text(text)
    with pytest.raises(DataError) as error:
        read_cameras(text_model)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (STRECHA.replace("0 0 0\n", "", 1), ["26", "23"]),
        (STRECHA.replace("0 0 0\n", "0.1 0 0\n"), ["distortion"]),
        (STRECHA.replace("0 1 0\n", "0 2 0\n"), ["rotation"]),
        (STRECHA.replace("0 1 0\n", "0 -1 0\n"), ["rotation"]),
        (STRECHA.replace("2 0 0", "2 nan 0"), ["finite"]),
        ("K = 1", ["not a readable camera file of Strecha"]),
        ("", ["found 0"]),
    ],
)
def test_a_damaged_camera_file_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "0000.jpg.camera").write_text(text)
    with pytest.raises(DataError) as error:
        read_cameras(tmp_path)
    assert all(word in str(error.value) for word in ["0000.jpg.camera", *words]), error.value


def test_a_folder_without_cameras_says_what_would_be_one(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("hello")
    with pytest.raises(DataError, match=r"images.txt.*IMAGE.camera"):
        read_cameras(tmp_path)
    with pytest.raises(DataError, match="no folder"):
        read_cameras(tmp_path / "missing")


def test_broken_binary_models_are_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    for name in ("cameras", "images", "points3D"):
        (tmp_path / f"{name}.bin").write_bytes(b"\x05\x00")
    with pytest.raises(DataError, match="not a readable COLMAP model"):
        read_cameras(tmp_path)


def test_the_shared_ground_truth_is_read(shared: Path) -> None:
    castle = read_cameras(shared / "data" / "strecha" / "castle-P19" / "cameras")
    assert len(castle) == 19 and {posed.camera.width for posed in castle.values()} == {1536}
    door = read_cameras(shared / "data" / "photos" / "lund_door" / "poses")
    assert len(door) == 12
