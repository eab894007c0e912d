"""From where a model looks best: its upright direction, a side to stand on, and a distance that shows all of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.cameras import PosedCamera
from keypatch.geometry.poses import Pose

Float64 = NDArray[np.float64]

ELEVATIONS = np.radians([18, 28])
AZIMUTHS = np.radians(np.arange(0, 360, 10))
ENOUGH = 2000  # points to choose a side by
# What need not be in the picture: points farther from the middle than 85 of 100 are, and a quarter more; cameras four
# times as far as half of them.
MOST_POINTS, MOST_CAMERAS = (0.85, 1.25), (0.5, 4.0)


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """A pose to look from, and the tangent of half the angle of view over the height of the picture."""

    pose: Pose
    tangent: float


def up_direction(poses: Sequence[Pose], xyz: Float64) -> Float64:
    """(3,) the direction that is up in the world, for people who hold cameras level and rarely upside down.

    The cameras' x axes are horizontal and their y axes point down on the average; both are weighed in one least-squares
    sum. Where cameras are turned any way, up is from the points' plane to the cameras.
    """
    across, down = np.array([pose.rotation[0] for pose in poses]), np.array([pose.rotation[1] for pose in poses])
    mean_up = -down.mean(axis=0)
    if np.linalg.norm(mean_up) > 0.4:
        up = np.linalg.solve(across.T @ across / len(across) + 0.05 * np.eye(3), mean_up)
    else:
        centre = np.median(xyz, axis=0)
        up = np.linalg.svd(xyz - centre, full_matrices=False)[2][2]
        up = up * (1 if np.mean([(pose.centre - centre) @ up for pose in poses]) >= 0 else -1)
    return np.asarray(up / np.linalg.norm(up))


def framed(places: Float64, share: float, margin: float) -> NDArray[np.bool_]:
    """(n,) whether each is within `margin` times the distance from the middle that this share of them keeps."""
    if not len(places):
        return np.empty(0, np.bool_)
    away = np.linalg.norm(places - np.median(places, axis=0), axis=1)
    return np.asarray(away <= margin * np.quantile(away, share))


def choose_viewpoint(xyz: Float64, poses: Sequence[Pose], aspect: float, tangent: float = 0.32) -> Viewpoint:
    """Where to look from at points (n, 3) and cameras; `aspect` is the picture's width over its height.

    Of two circles of places above the scene the one is taken from where the points fill the most of the picture, the
    cameras do not hide behind each other, and one looks with the cameras rather than against them.
    """
    up = up_direction(poses, xyz)
    shown = xyz[framed(xyz, *MOST_POINTS)]
    centres = np.array([pose.centre for pose in poses])
    centres = centres[framed(centres, *MOST_CAMERAS)]
    ahead = np.mean([pose.rotation[2] for pose in poses], axis=0)
    some = shown[:: -(-len(shown) // ENOUGH)] if len(shown) else shown
    poses_around = [
        _step_back(np.concatenate([some, centres]), _looking(up, azimuth, elevation), aspect, tangent)
        for elevation in ELEVATIONS
        for azimuth in AZIMUTHS
    ]
    scores = [_spread(_seen(some, pose)) + 0.5 * _spread(_seen(centres, pose)) for pose in poses_around]
    scores = [s / max(scores) + 0.9 * float(p.rotation[2] @ ahead) for s, p in zip(scores, poses_around, strict=True)]
    best = poses_around[int(np.argmax(scores))].rotation
    return Viewpoint(_step_back(np.concatenate([shown, centres]), best, aspect, tangent), tangent)


def _looking(up: Float64, azimuth: float, elevation: float) -> Float64:
    """(3, 3) rows right, down, forward of someone who looks down at the scene from this side."""
    start = np.eye(3)[np.argmin(np.abs(up))]
    east = np.cross(up, start)
    east = east / np.linalg.norm(east)
    level = math.cos(azimuth) * east + math.sin(azimuth) * np.cross(up, east)
    forward = math.cos(elevation) * level - math.sin(elevation) * up
    right = np.cross(forward, up)
    right = right / np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def _seen(xyz: Float64, pose: Pose) -> Float64:
    """(n, 2) where the points are in the picture, in units of its focal length."""
    seen = xyz @ pose.rotation.T + pose.translation
    return np.asarray(seen[:, :2] / seen[:, 2:])


def _spread(places: Float64) -> float:
    """The area that places in the picture cover: root of the determinant of their covariance."""
    if len(places) < 3:
        return 1e-12
    return math.sqrt(max(float(np.linalg.det(np.cov(places.T))), 1e-24))


def _step_back(xyz: Float64, turn: Float64, aspect: float, tangent: float) -> Pose:
    """The pose with this rotation that has all points in view and in the middle, as near as that goes."""
    limits = np.array([0.94 * tangent * aspect, 0.86 * tangent])  # a margin, more of it above and below
    turned = xyz @ turn.T
    middle = (turned.min(axis=0) + turned.max(axis=0)) / 2
    for _ in range(20):
        offset = turned - middle
        distance = float(np.max(np.abs(offset[:, :2]) / limits - offset[:, 2:])) + 1e-9
        seen = offset[:, :2] / (offset[:, 2:] + distance)
        middle[:2] += (seen.min(axis=0) + seen.max(axis=0)) / 2 * distance
    return Pose(turn, -middle + np.array([0, 0, distance]))


FACE = (1, 2, 3, 4)  # corners of the photo: top left, top right, bottom right, bottom left; 0 is the eye
EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1))


def frusta(cameras: Sequence[PosedCamera], xyz: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 5, 3) the five corners of each camera's pyramid in the world, all of one size that suits the scene (m, 3)."""
    depth = _depth(np.array([camera.pose.centre for camera in cameras]), xyz)
    return np.array([_frustum(camera, depth) for camera in cameras])


def _frustum(posed: PosedCamera, size: float) -> NDArray[np.float64]:
    camera, pose = posed
    (f_x, f_y), side = camera.focal, max(camera.width, camera.height)
    half = np.array([camera.width, camera.height]) / side * size / 2  # the longer side of the photo is `size`
    depth = size * min((f_x + f_y) / 2 / side, 1.2)
    corners = [(0, 0, 0), *((x * half[0], y * half[1], depth) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1)))]
    return np.asarray(np.array(corners) @ pose.rotation + pose.centre)


def _depth(centres: NDArray[np.float64], xyz: NDArray[np.float64]) -> float:
    """Small beside the scene, not so large that neighbours hide each other, and seen where they stand far around it."""
    if not len(xyz):
        return 0.25
    middle = np.median(xyz, axis=0)
    scene, away = (float(np.median(np.linalg.norm(places - middle, axis=1))) for places in (xyz, centres))
    if len(centres) < 2:
        return 0.25 * scene
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.clip(0.7 * np.median(apart.min(axis=1)), 0.08 * scene, max(0.25 * scene, 0.09 * away)))
