"""COLMAP databases: what we write is read by pycolmap, and what would harm COLMAP is refused."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keypatch.colmap import Camera, write_database
from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

pycolmap = pytest.importorskip("pycolmap")

CAMERA = Camera("PINHOLE", 640, 480, (500, 510, 320, 240))
PLACES = np.array([[0, 0], [10.25, 20.5], [639, 479], [3, 4]])


def write(folder: Path, **changes: object) -> Path:
    values: dict = {
        "cameras": {"a.jpg": CAMERA, "sub/b c.jpg": CAMERA},
        "keypoints": {"a.jpg": PLACES, "sub/b c.jpg": PLACES},
        "matches": {("sub/b c.jpg", "a.jpg"): np.array([[0, 1], [3, 2]])},
    } | changes
    return write_database(folder / "database.db", **values)


def test_pycolmap_reads_cameras_rigs_frames_keypoints_and_matches(tmp_path: Path) -> None:
    with pycolmap.Database.open(str(write(tmp_path))) as database:
        images = {image.name: image for image in database.read_all_images()}
        assert sorted(images) == ["a.jpg", "sub/b c.jpg"]
        assert database.num_cameras() == database.num_rigs() == database.num_frames() == 2
        assert all(frame.rig_id in (1, 2) for frame in database.read_all_frames())
        camera = database.read_camera(images["a.jpg"].camera_id)
        assert tuple(camera.params) == CAMERA.params and camera.has_prior_focal_length
        rows = database.read_keypoints(images["a.jpg"].image_id)
        assert rows.dtype == np.float32 and np.array_equal(rows, PLACES + 0.5)
        found = database.read_matches(images["sub/b c.jpg"].image_id, images["a.jpg"].image_id)
        assert np.array_equal(found, [[0, 1], [3, 2]])


@pytest.mark.parametrize("name", ["Screenshot at 3.04\u202fPM.png", "\u00a0\u200d\N{ROCKET}.jpg", "=a|b!.jpg"])
def test_unusual_names_are_names(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, cameras={name: CAMERA}, keypoints={name: PLACES}, matches={})
    with pycolmap.Database.open(str(path)) as database:
        assert [image.name for image in database.read_all_images()] == [name]


def test_equal_cameras_are_one_only_when_shared(tmp_path: Path) -> None:
    guess = Camera.from_focal("SIMPLE_RADIAL", (640, 480), 768, focal_known=False)
    cameras = {"a.jpg": CAMERA, "sub/b c.jpg": CAMERA, "d.jpg": guess}
    points = dict.fromkeys(cameras, PLACES)
    with pycolmap.Database.open(
        str(write(tmp_path, cameras=cameras, keypoints=points, share_cameras=True))
    ) as database:
        ids = {image.name: image.camera_id for image in database.read_all_images()}
        assert ids["a.jpg"] == ids["sub/b c.jpg"] != ids["d.jpg"]
        assert not database.read_camera(ids["d.jpg"]).has_prior_focal_length
        assert database.num_rigs() == 2 and database.num_frames() == 3


def test_only_images_that_are_named_share_a_camera(tmp_path: Path) -> None:
    names = ("a.jpg", "b.jpg", "c.jpg", "d.jpg")
    cameras, points = dict.fromkeys(names, CAMERA), dict.fromkeys(names, PLACES)
    path = write(tmp_path, cameras=cameras, keypoints=points, matches={}, share_cameras=["a.jpg", "d.jpg"])
    with pycolmap.Database.open(str(path)) as database:
        ids = {image.name: image.camera_id for image in database.read_all_images()}
    assert ids["a.jpg"] == ids["d.jpg"] and len(set(ids.values())) == 3


def test_a_place_hardly_outside_is_kept(tmp_path: Path) -> None:
    places = np.array([[-0.9, 3], [639.9, 479.9]])
    path = write(tmp_path, keypoints=dict.fromkeys(PAIR, places), matches={})
    with pycolmap.Database.open(str(path)) as database:
        assert np.allclose(database.read_keypoints(1), places + 0.5)


def test_nothing_is_left_beside_a_database_with_brackets_in_its_name(tmp_path: Path) -> None:
    with pytest.raises(KeypatchError):
        write_database(tmp_path / "[a].db", {"a.jpg": CAMERA}, {}, {})
    assert list(tmp_path.iterdir()) == []


def test_whole_keypoints_bring_their_scale_angle_and_shape(tmp_path: Path) -> None:
    plain = Keypoints([1, 2], [3, 4], [1.5, 2], [0.5, -1])
    sheared = Keypoints.from_frames([[5, 6]], [[[2, 0], [0.5, 1]]])
    empty = Keypoints([], [], [], [])
    cameras = dict.fromkeys(("plain", "sheared", "empty", "places"), CAMERA)
    keypoints = {"plain": plain, "sheared": sheared, "empty": empty, "places": np.empty((0, 2))}
    with pycolmap.Database.open(str(write(tmp_path, cameras=cameras, keypoints=keypoints, matches={}))) as database:
        rows = {image.name: database.read_keypoints(image.image_id) for image in database.read_all_images()}
    assert np.allclose(rows["plain"], [[1.5, 3.5, 1.5, 0.5], [2.5, 4.5, 2, -1]])
    assert np.allclose(rows["sheared"], [[5.5, 6.5, 2, 0, 0.5, 1]], atol=1e-6)
    assert len(rows["empty"]) == len(rows["places"]) == 0


PAIR = ("a.jpg", "sub/b c.jpg")
WRONG = {
    "itself": ({"matches": {("a.jpg", "a.jpg"): [[0, 1]]}}, ["a.jpg", "itself"]),
    "unknown": ({"matches": {("a.jpg", "z.jpg"): [[0, 1]]}}, ["z.jpg", "no image"]),
    "negative": ({"matches": {PAIR: [[0, -1]]}}, ["-1", "sub/b c.jpg"]),
    "beyond": ({"matches": {PAIR: [[4, 0]]}}, ["keypoint 4 of a.jpg", "has 4"]),
    "wrapped": ({"matches": {PAIR: np.array([[0, 4294967295]], np.uint32)}}, ["4294967295"]),
    "fraction": ({"matches": {PAIR: [[0.0, 1.5]]}}, ["float64"]),
    "three columns": ({"matches": {PAIR: [[0, 1, 2]]}}, ["(1, 3)"]),
    "one-sided": ({"matches": {PAIR: [[0, 1], [2, 1]]}}, ["keypoint 1 of sub/b c.jpg", "more than once"]),
    "twice": ({"matches": [(PAIR, [[0, 1]]), (PAIR[::-1], [[1, 0]])]}, ["given twice"]),
    "no keypoints": ({"keypoints": {"a.jpg": PLACES}}, ["sub/b c.jpg", "no keypoints"]),
    "nan": ({"keypoints": dict.fromkeys(PAIR, np.array([[1, np.nan]]))}, ["a.jpg", "keypoint 0", "finite"]),
    "columns": ({"keypoints": dict.fromkeys(PAIR, np.zeros((5, 3)))}, ["(5, 3)"]),
    "flat": ({"keypoints": dict.fromkeys(PAIR, np.zeros(4))}, ["(4,)"]),
    "text": ({"keypoints": dict.fromkeys(PAIR, np.array([["1", "2"]]))}, ["<U1"]),
    "too large": (
        {"keypoints": dict.fromkeys(PAIR, np.array([[1.0, 2], [900, 3]]))},
        ["keypoint 1", "900", "640 x 480"],
    ),
    "empty name": ({"cameras": {"": CAMERA}}, ["''"]),
    "line break": ({"cameras": {"a\nb.jpg": CAMERA}}, ["a\\nb.jpg"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_colmap_would_stumble_over_is_refused_and_nothing_is_written(tmp_path: Path, case: str) -> None:
    changes, words = WRONG[case]
    with pytest.raises(KeypatchError) as error:
        write(tmp_path, **changes)
    assert all(word in str(error.value) for word in words), error.value
    assert list(tmp_path.iterdir()) == []


def test_a_database_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "database.db").write_text("mine")
    with pytest.raises(KeypatchError, match="already exists"):
        write(tmp_path)
    assert (tmp_path / "database.db").read_text() == "mine"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="missing"):
        write(tmp_path / "missing")


def test_without_pycolmap_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pycolmap'] = None\n"
        "import numpy as np\n"
        "from keypatch.errors import MissingExtra\n"
        "from keypatch.colmap import Camera, write_database\n"
        "try: write_database(sys.argv[1], {'a': Camera('PINHOLE', 9, 9, (1, 1, 1, 1))}, {'a': np.zeros((0, 2))}, {})\n"
        "except MissingExtra as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code, tmp_path / "d.db"], capture_output=True, text=True, check=True)
    assert "pip install 'keypatch[colmap]'" in said.stdout
    assert list(tmp_path.iterdir()) == []
