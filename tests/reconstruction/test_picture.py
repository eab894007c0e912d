"""The picture of a model, and where it is looked at from."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.colmap import Camera, PosedCamera
from keypatch.colmap.models import Points
from keypatch.geometry.poses import Pose
from keypatch.reconstruction import picture
from keypatch.reconstruction.picture import draw_model, lighten, write_picture
from keypatch.reconstruction.view import choose_viewpoint, frusta, up_direction

CAMERA = Camera("PINHOLE", 640, 480, (600, 600, 320, 240))


def looking(centre: np.ndarray, target: np.ndarray, down: np.ndarray | None = None) -> PosedCamera:
    down = np.array([0.0, 1, 0]) if down is None else down
    forward = (target - centre) / np.linalg.norm(target - centre)
    right = np.cross(down, forward)
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return PosedCamera(CAMERA, Pose(rotation, -rotation @ centre))


def ring(count: int = 8, radius: float = 6.0) -> dict[str, PosedCamera]:
    """Cameras on a half circle before a wall at z = 0, the world's y pointing down."""
    angles = np.linspace(-1, 1, count)
    centres = [np.array([radius * np.sin(a), -0.2, -radius * np.cos(a)]) for a in angles]
    return {f"{number}.jpg": looking(centre, np.zeros(3)) for number, centre in enumerate(centres)}


def wall(count: int = 2000, colour: tuple[int, int, int] = (200, 60, 60), seed: int = 0) -> Points:
    rng = np.random.default_rng(seed)
    xyz = rng.uniform((-3, -2, -0.1), (3, 2, 0.1), (count, 3))
    return Points(xyz, np.tile(np.uint8(colour), (count, 1)), np.zeros(count), np.full(count, 3))


def test_a_photo_that_cannot_be_read_leaves_its_pyramid_empty(tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"no photo")
    drawn = draw_model(wall(), ring(), {"3.jpg": tmp_path / "broken.jpg"})
    assert np.array_equal(np.asarray(drawn), np.asarray(draw_model(wall(), ring(), {})))


def test_a_photo_of_sixteen_bits_is_drawn_as_one_of_eight(tmp_path: Path) -> None:
    Image.fromarray(np.full((48, 64), 257 * 60, np.uint16)).save(tmp_path / "16.png")
    Image.fromarray(np.full((48, 64), 60, np.uint8)).save(tmp_path / "8.png")
    deep, flat = (draw_model(wall(), ring(), {"3.jpg": tmp_path / name}) for name in ("16.png", "8.png"))
    assert np.array_equal(np.asarray(deep), np.asarray(flat))


def test_up_is_against_the_cameras_y_axes() -> None:
    poses = [camera.pose for camera in ring().values()]
    assert up_direction(poses, wall().xyz) @ [0, -1, 0] > 0.999


def test_cameras_that_look_up_a_little_do_not_tilt_the_world() -> None:
    centres = [np.array([6 * np.sin(a), 1.0, -6 * np.cos(a)]) for a in np.linspace(-1, 1, 9)]
    poses = [looking(centre, np.array([0.0, -2, 0])).pose for centre in centres]  # 27 degrees upwards
    assert up_direction(poses, wall().xyz) @ [0, -1, 0] > 0.995


def test_cameras_turned_any_way_stand_above_what_they_see() -> None:
    """From the air, each photo turned differently: up is from the ground to the cameras."""
    ground = wall().xyz[:, [0, 2, 1]]  # in the plane y = 0
    poses = []
    for number in range(12):
        heading = np.array([np.cos(number * np.pi / 6), 0, np.sin(number * np.pi / 6)])
        poses.append(looking(np.array([0.1 * number, -5.0, 0]), np.array([0.1 * number, 0, 0]), heading).pose)
    assert up_direction(poses, ground) @ [0, -1, 0] > 0.999


@pytest.mark.parametrize("aspect", [1.6, 0.6])
def test_points_and_cameras_are_in_the_picture_and_strays_do_not_move_it(aspect: float) -> None:
    cameras, points = ring(), wall()
    stray = np.concatenate([points.xyz, [[500.0, 0, 0], [0, -900, 0]]])
    poses = [camera.pose for camera in cameras.values()]
    view = choose_viewpoint(stray, poses, aspect)
    seen = np.concatenate([points.xyz, [pose.centre for pose in poses]]) @ view.pose.rotation.T + view.pose.translation
    assert np.all(seen[:, 2] > 0)
    place = seen[:, :2] / seen[:, 2:] / (view.tangent * np.array([aspect, 1]))
    assert np.abs(place).max() < 1  # inside
    assert np.abs(place).max() > 0.7  # and not far away


def test_one_looks_with_the_cameras_and_from_above() -> None:
    poses = [camera.pose for camera in ring().values()]
    pose = choose_viewpoint(wall().xyz, poses, 1.6).pose
    assert pose.rotation[2] @ [0, 0, 1] > 0.5  # forward
    assert pose.centre[1] < -1  # y points down


def test_points_are_drawn_in_their_colour_and_cameras_over_them() -> None:
    drawn = np.asarray(draw_model(wall(), ring(), {})).astype(int)
    red = (drawn[..., 0] > 120) & (drawn[..., 1] < 0.6 * drawn[..., 0]) & (drawn[..., 2] < 0.6 * drawn[..., 0])
    orange = (drawn[..., 0] > 200) & (drawn[..., 1] > 140) & (drawn[..., 2] < 140)
    assert red.sum() > 5000 and orange.sum() > 1000
    assert red.any(axis=1).argmax() > 20 and not red[:, :20].any()  # a margin is left


def test_the_nearer_of_two_points_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red before blue on every line of sight: no blue is left."""
    red, blue = wall(4000, (255, 0, 0)), wall(4000, (0, 0, 255))
    cameras = ring()
    view = choose_viewpoint(red.xyz, [c.pose for c in cameras.values()], 1.6)
    monkeypatch.setattr(picture, "choose_viewpoint", lambda *_: view)
    behind = red.xyz + 0.3 * (red.xyz - view.pose.centre)  # the same pixel, farther and so no larger
    both = Points(
        np.concatenate([behind, red.xyz]),
        np.concatenate([blue.colours, red.colours]),
        np.zeros(8000),
        np.ones(8000, int),
    )
    drawn = np.asarray(draw_model(both, cameras, {})).astype(int)
    assert ((drawn[..., 2] > 150) & (drawn[..., 0] < 60)).sum() == 0


def test_each_camera_carries_its_photo(tmp_path: Path) -> None:
    photos = {}
    for number, name in enumerate(ring()):
        photos[name] = tmp_path / name
        Image.new("RGB", (640, 480), (0, 255, 0) if number % 2 else (0, 0, 255)).save(photos[name], quality=95)
    drawn = np.asarray(draw_model(wall(), ring(), photos)).astype(int)
    green = (drawn[..., 1] > 180) & (drawn[..., 0] < 60)
    blue = (drawn[..., 2] > 180) & (drawn[..., 0] < 60)
    assert green.sum() > 500 and blue.sum() > 500


def test_a_picture_of_next_to_nothing_is_drawn_too(tmp_path: Path) -> None:
    one = Points(np.zeros((1, 3)), np.zeros((1, 3), np.uint8), np.zeros(1), np.ones(1, int))
    write_picture(tmp_path / "one.png", one, dict(list(ring().items())[:2]))
    with Image.open(tmp_path / "one.png") as drawn:
        assert drawn.size == (1600, 1000)


@pytest.mark.parametrize(("caption", "most"), [("scene: 8 of 8 photos, 0.77 px", 400), ("name " * 400, 1600)])
def test_the_caption_is_one_line_below_the_model(tmp_path: Path, caption: str, most: int) -> None:
    for name, text in (("bare", ""), ("named", caption)):
        write_picture(tmp_path / f"{name}.png", wall(), ring(), caption=text)
    bare, named = (np.asarray(Image.open(tmp_path / f"{name}.png")).astype(int) for name in ("bare", "named"))
    rows, columns = np.nonzero(np.abs(bare - named).max(axis=2))
    assert rows.min() > 940 and rows.max() < 990 and np.ptp(rows) < 30
    assert 20 < columns.min() < 40 and most - 250 < columns.max() < most - 20


def test_cameras_far_around_small_things_are_large_enough_to_be_seen() -> None:
    def side(radius: float) -> float:
        _, first, second, *_ = frusta(list(ring(radius=radius).values()), wall().xyz)[0]
        return float(np.linalg.norm(second - first))

    assert side(60) > 4 * side(6) and side(60) < 0.2 * 60


def test_one_looks_from_lower_where_that_makes_the_points_larger() -> None:
    """Cameras one behind the other: seen from high above, their row would take most of the height."""
    row = [looking(np.array([0.3 * n, 0, -6 - n]), np.array([0.3 * n, 0, 0])).pose for n in range(0, 40, 5)]
    around = [camera.pose for camera in ring().values()]
    low, high = (choose_viewpoint(wall().xyz, poses, 1.6).pose.rotation[2, 1] for poses in (row, around))
    assert low < np.sin(np.radians(20)) < np.sin(np.radians(26)) < high  # y points down


def test_dark_colours_are_lightened_and_light_ones_are_not_darkened() -> None:
    dark = lighten(np.full((10, 3), 40, np.uint8))
    assert np.allclose(dark, 0.62 * 255)
    assert np.array_equal(lighten(np.full((10, 3), 220, np.uint8)), np.full((10, 3), 220.0))
    assert lighten(np.zeros((0, 3), np.uint8)).shape == (0, 3)


def test_a_pyramid_has_its_eye_at_the_centre_and_opens_forwards() -> None:
    camera = looking(np.array([0.0, 0, -6]), np.zeros(3))
    ((eye, *face),) = frusta([camera], wall().xyz)
    assert np.allclose(eye, [0, 0, -6])
    top_left, top_right, _, bottom_left = np.array(face) - eye
    assert top_left[0] < 0 < top_right[0] and top_left[1] < 0 < bottom_left[1]  # x right, y down, as in the photo
    assert np.all(np.array(face)[:, 2] > -6)
    across, down = np.linalg.norm(top_right - top_left), np.linalg.norm(bottom_left - top_left)
    assert across / down == pytest.approx(640 / 480)
    assert across / top_left[2] == pytest.approx(640 / 600)  # the angle of view
