"""Points projected into photos of the model in which the detector missed them, as the first PhotoTour had them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from keypatch.building.observations import Observations
from keypatch.colmap.cameras import Camera, PosedCamera, project, to_rays
from keypatch.geometry import Keypoints

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEAR_VIEW = 25.0  # degrees from a view that has seen the point: how much it may have turned away
NEIGHBOURS = 3  # points seen in the photo around it, by whose depth it is judged
AROUND = 36.0  # sigmas within which they lie: one and a half patches
BEHIND, BEFORE = 1.03, 0.9  # of their depth: farther away it is hidden, nearer it is not on their surface
SMALLEST = 0.8  # sigma, pixels: what a detector finds at least
FOLDED = 1e-3  # on the image plane: a lens that bends far outside the photo may bring back what is not there


def add_projections(rows: Observations, cameras: Mapping[int, PosedCamera]) -> Observations:
    """The rows, and one for every point in every photo, given with its camera, that shows it unseen by the detector.

    A photo shows a point that a near view has seen, if the three points around it that it did see are not before it.
    The scale and angle are those of the nearest view, carried over.
    """
    points, first, inverse = np.unique(rows.point_id, return_index=True, return_inverse=True)
    place, added = rows.place[first], [rows]
    for image, (camera, pose) in sorted(cameras.items()):
        local = place @ pose.rotation.T + pose.translation
        towards = pose.centre - place
        ray = towards / np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-12)
        nearest, angle = _nearest_views(rows, inverse, ray)
        reach = np.maximum(local[:, 2], 1e-12) / np.sqrt(camera.focal[0] * camera.focal[1])
        sigma = rows.keypoints.sigma[nearest] * rows.reach[nearest] / reach
        seen = np.zeros(len(points), np.bool_)
        here = rows.image_id == image
        seen[inverse[here]] = True
        xy = project(local, camera)
        candidate = ~seen & (angle <= NEAR_VIEW) & (sigma >= SMALLEST) & _is_in_view(xy, local, camera)
        candidate[candidate] = _is_before(
            xy[candidate], local[candidate, 2], sigma[candidate], rows.keypoints.xy[here], local[inverse[here], 2]
        )
        chosen = np.flatnonzero(candidate)
        if len(chosen):
            step = 0.5 * (sigma * reach)[chosen, None] * rows.upward[nearest[chosen]]
            ahead = project((place[chosen] + step) @ pose.rotation.T + pose.translation, camera) - xy[chosen]
            added.append(_rows(rows, points, chosen, image, xy, sigma, ahead, ray, reach, place, nearest))
    joined = [np.concatenate([getattr(each, name) for each in added]) for name in _COLUMNS]
    return Observations(Keypoints.join([each.keypoints.without_shape() for each in added]), *joined)


_COLUMNS = ("point_id", "image_id", "error", "place", "scene", "ray", "upward", "reach")


def _rows(
    rows: Observations,
    points: Int64,
    chosen: Int64,
    image: int,
    xy: Float64,
    sigma: Float64,
    ahead: Float64,
    ray: Float64,
    reach: Float64,
    place: Float64,
    nearest: Int64,
) -> Observations:
    upward = rows.upward[nearest[chosen]]
    upward = upward - np.sum(upward * ray[chosen], axis=1, keepdims=True) * ray[chosen]
    upward /= np.maximum(np.linalg.norm(upward, axis=1, keepdims=True), 1e-12)
    angle = np.arctan2(ahead[:, 1], ahead[:, 0])
    columns = (each.astype(np.float32) for each in (*xy[chosen].T, sigma[chosen], angle))
    return Observations(
        Keypoints(*columns),
        points[chosen],
        np.full(len(chosen), image, np.int64),
        np.full(len(chosen), np.inf),  # what was seen goes before what was not
        place[chosen],
        rows.scene[nearest[chosen]],
        ray[chosen],
        upward,
        reach[chosen],
    )


def _nearest_views(rows: Observations, inverse: Int64, ray: Float64) -> tuple[Int64, Float64]:
    """(points,) each point's row that saw it along the line nearest to `ray` (points, 3), and the degrees apart."""
    along = np.sum(rows.ray * ray[inverse], axis=1)
    order = np.lexsort((-along, inverse))
    nearest = order[np.unique(inverse[order], return_index=True)[1]]
    return nearest, np.degrees(np.arccos(np.clip(along[nearest], -1, 1)))


def _is_in_view(xy: Float64, local: Float64, camera: Camera) -> Mask:
    """(n,) before the camera, inside the photo, and where the lens does not fold."""
    size = np.array([camera.width, camera.height])
    inside = np.isfinite(xy).all(axis=1) & (local[:, 2] > 0)
    inside[inside] = np.all((xy[inside] > 0) & (xy[inside] < size - 1), axis=1)
    if camera.model.endswith("FISHEYE"):
        return inside
    plane = local[inside, :2] / local[inside, 2:]
    inside[inside] = np.linalg.norm(to_rays(xy[inside], camera) - plane, axis=1) < FOLDED
    return inside


def _is_before(xy: Float64, depth: Float64, sigma: Float64, seen: Float64, seen_depth: Float64) -> Mask:
    """(n,) whether places are about as far away as the points that the photo saw around them."""
    if len(seen) < NEIGHBOURS or not len(xy):
        return np.zeros(len(xy), np.bool_)
    apart, near = cKDTree(seen).query(xy, NEIGHBOURS)
    around = seen_depth[near]
    close = apart[:, -1] <= AROUND * sigma
    return np.asarray(close & (depth <= BEHIND * around.min(axis=1)) & (depth >= BEFORE * around.max(axis=1)))
