"""The relative pose of two cameras: from an essential matrix to rotation, direction, points in space, how sure."""

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np

from keypatch.colmap.cameras import Camera, to_rays
from keypatch.geometry.poses import Float64, Pose, cross_matrix, rotation_angle, rotation_by_vector

CONVENTION = (
    "x1 = R x0 + t: from the first photo's camera to the second's; t has unit length; K has pixel (0, 0) centred"
)
# A camera only turned if a turn explains this share of the matches within so many times the estimator's threshold, and
# not so many times worse than the pose does, in the median (2.5 for the same noise everywhere, for a turn leaves two
# residuals where a pose leaves one).
IN_PLACE, TOLERANCE, WORSE = 0.8, 2.0, 5.0
FINEST = 0.05  # pixels: keypoints are placed no better
# Errors of poses over what their residuals alone let one expect: the median over 65 pairs of the tuning scenes. Lenses
# and keypoints err in common, which no single residual tells.
COMMON_ERROR = 4.0
SURE_FOCAL = 0.02  # a focal length is refined if its residuals leave less than this share of it open (the same pairs)
LEAST_PARALLAX = 0.1  # degrees: below, a point is not triangulated


@dataclass(frozen=True, eq=False)
class RelativePose:
    """The pose of the second camera relative to the first: a point x0 in the first camera's frame is x1 = R x0 + t.

    The axes of a camera point right, down and forward. Two photos do not determine the length of t, which is set to 1.

    >>> matches = kp.match("a.jpg", "b.jpg", kp.Matching(model="E"), describer="rootsift")
    >>> matches.pose.rotation.shape, sorted(matches.pose.to_json())[:3]
    ((3, 3), ['K', 'R', 'convention'])
    """

    rotation: Float64  # (3, 3)
    translation: Float64 | None  # (3,) of length 1; None if the camera only turned
    cameras: tuple[Camera, Camera]
    sources: tuple[str, str]  # where their focal lengths come from
    points: Float64  # (m, 3) of the matches, in the first camera's space; nan where they are too far to tell
    parallax: float  # degrees: median angle between the rays of a match
    uncertainty: tuple[float, float]  # degrees: of the rotation and of the direction t, one standard deviation
    other: Pose | None = None  # another pose that fits as well, if the matches lie on a plane

    @property
    def degrees(self) -> float:
        """The rotation angle in degrees."""
        return rotation_angle(self.rotation, np.eye(3))

    def sentences(self) -> list[str]:
        """The pose as readable lines of text."""
        turn, direction = self.uncertainty
        focals = [
            f"{camera.focal[0]:.0f} px ({source})" for camera, source in zip(self.cameras, self.sources, strict=True)
        ]
        focal = f"focal lengths {focals[0]} and {focals[1]}" if focals[0] != focals[1] else f"focal length {focals[0]}"
        rotated = f"rotated by {self.degrees:.2f} degrees, give or take {turn:.2g}"
        if self.translation is None:
            moved = "no direction of motion: the camera turned in place, or everything is far away"
        else:
            x, y, z = self.translation
            moved = (
                f"moved along ({x:.3f}, {y:.3f}, {z:.3f}), give or take {direction:.2g} degrees; median "
                f"parallax {self.parallax:.2g} degrees, {np.isfinite(self.points[:, 0]).sum():,} points triangulated"
            )
        return [f"pose (x1 = R x0 + t): {rotated}; {moved}", f"from {focal}"]

    def to_json(self) -> dict[str, Any]:
        return {
            "convention": CONVENTION,
            "R": self.rotation.tolist(),
            "t": None if self.translation is None else self.translation.tolist(),
            "K": [camera.matrix.tolist() for camera in self.cameras],
            "distortion": [list(camera.distortion) for camera in self.cameras],
            "focal_from": list(self.sources),
            "other": self.other and {"R": self.other.rotation.tolist(), "t": self.other.translation.tolist()},
            "parallax_degrees": self.parallax,
            "uncertainty_degrees": {"rotation": self.uncertainty[0], "direction": self.uncertainty[1]},
        }


def relative_pose_of(
    essential: Float64,
    places: tuple[Float64, Float64],
    cameras: tuple[Camera, Camera],
    sources: tuple[str, str],
    threshold: float,
    plane: Float64 | None = None,
) -> RelativePose:
    """The pose that an essential matrix stands for, of the matches (m, 2), (m, 2) in pixels that agree with it.

    `plane` is the homography of the matches if they lie on a plane.
    """
    rays = [to_rays(place, camera) for place, camera in zip(places, cameras, strict=True)]
    views = _Views(rays[0], rays[1], float(np.mean([camera.focal for camera in cameras])))
    pose, turned = recover_pose(essential, rays[0], rays[1]), views.turn_in_place()
    left, best = views.errors_in_place(turned), float(np.median(np.abs(views.residuals(pose))))
    explained = np.mean(left <= TOLERANCE * threshold) >= IN_PLACE
    in_place = bool(explained and np.median(left) <= WORSE * max(best, FINEST))
    points, angles = views.triangulate(pose)
    return RelativePose(
        rotation=turned if in_place else pose.rotation,
        translation=None if in_place else pose.translation,
        cameras=cameras,
        sources=sources,
        points=np.full_like(points, np.nan) if in_place else points,
        parallax=0.0 if in_place else float(np.median(angles)),
        uncertainty=views.uncertainty(pose),
        other=None if in_place or plane is None else _other_pose(plane, pose, rays[0], cameras),
    )


def _other_pose(plane: Float64, pose: Pose, rays: Float64, cameras: tuple[Camera, Camera]) -> Pose | None:
    """The pose that explains a plane as well as this one: a homography has up to two with all of it in front."""
    of_rays = np.linalg.inv(cameras[1].matrix) @ plane @ cameras[0].matrix
    _, rotations, moves, normals = cv2.decomposeHomographyMat(of_rays, np.eye(3))
    whole = np.column_stack([rays, np.ones(len(rays))])
    found = [
        Pose(np.asarray(rotation, np.float64), np.asarray(move, np.float64)[:, 0] / np.linalg.norm(move))
        for rotation, move, normal in zip(rotations, moves, normals, strict=True)
        if np.linalg.norm(move) > 1e-9 and np.mean(whole @ np.asarray(normal) > 0) > 0.99
    ]
    apart = [rotation_angle(each.rotation, pose.rotation) for each in found]
    return found[int(np.argmax(apart))] if len(found) > 1 else None


def recover_pose(essential: Float64, here: Float64, there: Float64) -> Pose:
    """Of the four poses that an essential matrix stands for, the one with the most rays meeting before both cameras."""
    _, rotation, direction, _ = cv2.recoverPose(essential, here, there, np.eye(3))
    return Pose(np.asarray(rotation, np.float64), np.asarray(direction, np.float64)[:, 0])


@dataclass(frozen=True, eq=False)
class _Views:
    """Matches as the rays (x / z, y / z) of two cameras."""

    first: Float64  # (m, 2)
    second: Float64
    focal: float  # pixels that one unit of a ray stands for

    def turn_in_place(self) -> Float64:
        """The rotation that takes the rays of one camera closest to those of the other."""
        here, there = _unit(self.first), _unit(self.second)
        for _ in range(5):  # fewer and fewer of those that it does not fit
            u, _, v = np.linalg.svd(there.T @ here)
            rotation = u @ np.diag([1, 1, np.linalg.det(u @ v)]) @ v
            left = np.linalg.norm(there - here @ rotation.T, axis=1)
            fits = left <= np.median(left)
            if fits.sum() < 3:
                break
            here, there = here[fits], there[fits]
        return np.asarray(rotation)

    def errors_in_place(self, rotation: Float64) -> Float64:
        """(m,) pixels between where the second camera sees a match and where a turn alone would show it."""
        seen = _unit(self.first) @ rotation.T
        off = self.focal * np.linalg.norm(seen[:, :2] / np.maximum(seen[:, 2:], 1e-9) - self.second, axis=1)
        return np.asarray(np.where(seen[:, 2] > 0, off, np.inf))

    def triangulate(self, pose: Pose) -> tuple[Float64, Float64]:
        """(m, 3) points nearest to both rays, in the first camera's space, and (m,) the angles of the rays in degrees.

        nan where the rays are nearly parallel or meet behind a camera.
        """
        here, there = _unit(self.first), _unit(self.second) @ pose.rotation
        centre = pose.centre
        cosine = (here * there).sum(axis=1)
        angles = np.degrees(np.arctan2(np.linalg.norm(np.cross(here, there), axis=1), cosine))
        along, beside = here @ centre, there @ centre
        with np.errstate(divide="ignore", invalid="ignore"):
            depth0 = (along - cosine * beside) / (1 - cosine**2)
            depth1 = (cosine * along - beside) / (1 - cosine**2)
        points = (depth0[:, None] * here + depth1[:, None] * there + centre) / 2
        lost = (angles < LEAST_PARALLAX) | ~(depth0 > 0) | ~(depth1 > 0)
        points[lost] = np.nan
        return points, angles

    def residuals(self, pose: Pose, stretch: float = 1.0) -> Float64:
        """(m,) Sampson distances in pixels, if the focal length were `stretch` times what it is."""
        here, there = (np.column_stack([each / stretch, np.ones(len(each))]) for each in (self.first, self.second))
        essential = cross_matrix(pose.translation) @ pose.rotation
        lines, back = here @ essential.T, there @ essential
        slope = np.sqrt((lines[:, :2] ** 2).sum(axis=1) + (back[:, :2] ** 2).sum(axis=1))
        return np.asarray(self.focal * stretch * (there * lines).sum(axis=1) / np.maximum(slope, 1e-12))

    def covariance(self, pose: Pose, parameters: int = 5) -> Float64:
        """(parameters, parameters) of a turn (3) and of t across itself (2), in radians, and of the focal's log."""
        across = np.linalg.svd(pose.translation[None])[2][1:].T  # (3, 2)

        def residuals(change: Float64) -> Float64:
            moved = pose.translation + across @ change[3:5]
            turned = Pose(rotation_by_vector(change[:3]) @ pose.rotation, moved / np.linalg.norm(moved))
            return self.residuals(turned, float(np.exp(change[5])))

        step = 1e-6
        slopes = [(residuals(step * axis) - residuals(-step * axis)) / (2 * step) for axis in np.eye(6)[:parameters]]
        jacobian, spare = np.stack(slopes, axis=1), max(len(self.first) - parameters, 1)
        variance = float((self.residuals(pose) ** 2).sum()) / spare
        values, vectors = np.linalg.eigh(jacobian.T @ jacobian)
        known = np.maximum(values, 1e-12 * values.max(initial=1e-300))  # what nothing tells is open, not known exactly
        return np.asarray(variance * (vectors / known) @ vectors.T)

    def uncertainty(self, pose: Pose) -> tuple[float, float]:
        """Degrees: of the rotation and of the direction."""
        variances = np.diag(self.covariance(pose))
        turn, direction = (COMMON_ERROR * float(np.degrees(np.sqrt(part.sum()))) for part in np.split(variances, [3]))
        return min(turn, 180.0), min(direction, 90.0)


def _unit(rays: Float64) -> Float64:
    whole = np.column_stack([rays, np.ones(len(rays))])
    return np.asarray(whole / np.linalg.norm(whole, axis=1, keepdims=True))


def refine_focal(
    places: tuple[Float64, Float64], cameras: tuple[Camera, Camera], options: dict[str, Any]
) -> tuple[Camera, Camera] | None:
    """The cameras with the focal length that two photos of one camera tell; None where they do not tell it.

    `places` (m, 2), (m, 2) are matches in pixels, `options` those of poselib's estimators.
    """
    import poselib

    middle = cameras[0].matrix[:2, 2]
    pair, told = poselib.estimate_shared_focal_relative_pose(places[0], places[1], middle, options, {})
    agree, focal = np.asarray(told["inliers"], np.bool_), float(pair.camera1.params[0])
    if agree.sum() < 20 or not 0.2 < focal / max(cameras[0].width, cameras[0].height) < 10:
        return None
    refined = [replace(camera, params=(focal,) * (len(camera.params) - 2) + camera.params[-2:]) for camera in cameras]
    rays = [to_rays(place[agree], camera) for place, camera in zip(places, refined, strict=True)]
    pose = Pose(pair.pose.R, pair.pose.t / np.linalg.norm(pair.pose.t))
    open_share = np.sqrt(_Views(rays[0], rays[1], focal).covariance(pose, 6)[5, 5])
    return (refined[0], refined[1]) if open_share < SURE_FOCAL else None
