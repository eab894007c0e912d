"""Camera poses: from one camera to another, how far two differ, and whole sets of them laid over each other."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pose:
    """Where a camera stands: world point X has the camera coordinates rotation @ X + translation."""

    rotation: Float64  # (3, 3)
    translation: Float64  # (3,)

    def __post_init__(self) -> None:
        rotation, translation = np.asarray(self.rotation, np.float64), np.asarray(self.translation, np.float64)
        if rotation.shape != (3, 3) or translation.shape != (3,):
            raise KeypatchError(
                f"A pose needs a rotation (3, 3) and a translation (3,), not {rotation.shape} and {translation.shape}."
            )
        # files print rotations with few digits; a mirroring or a scaled matrix is far off
        is_rotation = np.abs(rotation @ rotation.T - np.eye(3)).max() < 1e-3 and np.linalg.det(rotation) > 0
        if not (is_rotation and np.isfinite(translation).all()):
            raise KeypatchError("The pose's matrix is not a rotation, or its translation is not finite.")
        object.__setattr__(self, "rotation", rotation)
        object.__setattr__(self, "translation", translation)

    @property
    def centre(self) -> Float64:
        """The camera's place in the world (3,)."""
        return np.asarray(-self.rotation.T @ self.translation)


@dataclass(frozen=True, eq=False)
class Similarity:
    """From one world to another: X becomes scale * rotation @ X + translation."""

    scale: float
    rotation: Float64  # (3, 3)
    translation: Float64  # (3,)

    def apply(self, points: ArrayLike) -> Float64:
        """The points (n, 3) in the other world."""
        return np.asarray(self.scale * np.asarray(points, np.float64) @ self.rotation.T + self.translation)

    def inverse(self) -> "Similarity":
        """From the other world back."""
        back = self.rotation.T
        return Similarity(1 / self.scale, back, -back @ self.translation / self.scale)

    def carry(self, pose: Pose) -> Pose:
        """The same camera in the other world, its coordinates in that world's unit."""
        rotation = pose.rotation @ self.rotation.T
        return Pose(rotation, self.scale * pose.translation - rotation @ self.translation)


def relative_pose(first: Pose, second: Pose) -> Pose:
    """From the first camera's coordinates to the second's."""
    rotation = second.rotation @ first.rotation.T
    return Pose(rotation, second.translation - rotation @ first.translation)


def quaternion_rotation(quaternion: ArrayLike) -> Float64:
    """(3, 3) the rotation of a quaternion w, x, y, z."""
    values = np.asarray(quaternion, np.float64)
    norm = float(np.linalg.norm(values))
    if not 0.9 < norm < 1.1:
        raise KeypatchError(f"The quaternion has length {norm}, not 1.")
    w, *axis = values / norm
    cross = cross_matrix(axis)
    return np.asarray(np.eye(3) + 2 * w * cross + 2 * cross @ cross)


def rotation_by_vector(vector: ArrayLike) -> Float64:
    """The rotation (3, 3) about a vector (3,), by its length in radians (Rodrigues)."""
    axis = cross_matrix(vector)
    angle = float(np.linalg.norm(np.asarray(vector, np.float64)))
    if angle < 1e-12:
        return np.eye(3) + axis
    return np.asarray(np.eye(3) + np.sin(angle) / angle * axis + (1 - np.cos(angle)) / angle**2 * axis @ axis)


def cross_matrix(vector: ArrayLike) -> Float64:
    """The matrix (3, 3) whose product with x is the cross product of a vector (3,) and x."""
    x, y, z = np.asarray(vector, np.float64)
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def rotation_angle(first: ArrayLike, second: ArrayLike) -> float:
    """Degrees, 0 to 180, of the turn between two rotations (3, 3)."""
    turn = np.asarray(first, np.float64).T @ np.asarray(second, np.float64)
    axis = turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]
    # sine and cosine of the angle, twice; unlike the cosine alone they tell small angles apart
    return math.degrees(math.atan2(math.hypot(*axis), np.trace(turn) - 1))


def translation_angle(first: ArrayLike, second: ArrayLike) -> float:
    """Degrees, 0 to 90, between the lines along two translations (3,).

    An essential matrix leaves the sign open, so it is ignored. No translation has no direction: 90, the worst.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if not (a.any() and b.any()):
        return 90.0
    return math.degrees(math.atan2(np.linalg.norm(np.cross(a, b)), abs(a @ b)))


def align(centres: ArrayLike, target: ArrayLike) -> Similarity:
    """The similarity that brings camera centres (n, 3) nearest to the target's (n, 3), by least squares (Umeyama 1991).

    Fewer than three centres, or all of them on one line, leave a turn open: KeypatchError.
    """
    source, goal = np.asarray(centres, np.float64), np.asarray(target, np.float64)
    if source.ndim != 2 or source.shape[1] != 3 or source.shape != goal.shape:
        raise KeypatchError(f"Camera centres to align must both be (n, 3), not {source.shape} and {goal.shape}.")
    if not (np.isfinite(source).all() and np.isfinite(goal).all()):
        raise KeypatchError("Camera centres to align must be finite. Leave out cameras without a pose.")
    if len(source) < 3:
        raise KeypatchError(f"Aligning needs at least three cameras, not {len(source)}.")
    source_mean, goal_mean = source.mean(axis=0), goal.mean(axis=0)
    source_offsets, goal_offsets = source - source_mean, goal - goal_mean
    left, stretch, right = np.linalg.svd(goal_offsets.T @ source_offsets)
    if not stretch[1] > 1e-9 * stretch[0]:
        raise KeypatchError("The cameras to align lie on one line or at one point, so the rotation is undetermined.")
    mirror = np.array([1.0, 1.0, np.sign(np.linalg.det(left) * np.linalg.det(right))])
    rotation = left * mirror @ right
    scale = float(stretch @ mirror / np.square(source_offsets).sum())
    return Similarity(scale, rotation, goal_mean - scale * rotation @ source_mean)
