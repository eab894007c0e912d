"""Keypoints to and from the conventions of OpenCV, COLMAP, hloc and kornia: the only place that knows them.

Whatever a convention cannot hold is refused, never dropped: sheared keypoints go to OpenCV, hloc and COLMAP's rows of
two and four columns only after Keypoints.without_shape().
"""

from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.keypoints import Keypoints

COLMAP_CORNER = 0.5  # COLMAP counts from the top-left corner of the image, we from the centre of its first pixel
ROUND = 1e-5  # entries of a shape this near to the identity's are rounding of float32 rows

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def from_opencv(keypoints: Sequence[cv2.KeyPoint], *, upright: bool = False) -> Keypoints:
    """From OpenCV: sigma = size / 2, angle in degrees clockwise.

    A keypoint without an angle (OpenCV's -1) raises KeypatchError, unless all are taken upright, with angle 0.
    """
    rows = np.array([(*k.pt, k.size, k.angle, k.response) for k in keypoints], np.float32).reshape(-1, 5)
    x, y, size, degrees, response = rows.T
    unset = np.flatnonzero(degrees == -1)
    if len(unset) and not upright:
        raise KeypatchError(
            f"{len(unset)} of {len(rows)} OpenCV keypoints have no angle (-1), the first is keypoint {unset[0]}. "
            "Compute angles, or make all keypoints upright."
        )
    angle = np.zeros_like(degrees) if upright else np.radians(degrees)
    return Keypoints(x, y, size * np.float32(0.5), angle, None, response)


def to_opencv(keypoints: Keypoints) -> list[cv2.KeyPoint]:
    """To OpenCV: size = 2 sigma, angle in degrees in [0, 360), response 0 where there is none."""
    _refuse_shapes(keypoints, "OpenCV's KeyPoint")
    degrees = np.degrees(keypoints.angle) % 360
    degrees[degrees >= 360] = 0  # a tiny negative angle rounds up to 360
    response = np.zeros(len(keypoints)) if keypoints.response is None else keypoints.response
    rows = zip(keypoints.x, keypoints.y, 2 * keypoints.sigma, degrees, response, strict=True)
    return [cv2.KeyPoint(*(float(v) for v in row)) for row in rows]


def from_colmap(rows: ArrayLike, sigma: float | None = None) -> Keypoints:
    """From COLMAP's rows: (n, 2) x y, (n, 4) x y scale orientation, or (n, 6) x y a11 a12 a21 a22.

    The orientation is in radians clockwise, the scale is sigma, the matrix of six columns is the frame. Rows of two
    columns have neither scale nor angle: they become upright keypoints of the sigma given.
    """
    table = _numbers(rows, "COLMAP's keypoints")
    if table.ndim != 2 or table.shape[1] not in (2, 4, 6):
        raise KeypatchError(f"COLMAP's keypoints must have 2, 4 or 6 columns, not shape {table.shape}.")
    xy = table[:, :2] - COLMAP_CORNER
    if table.shape[1] == 6:
        return _from_frames(xy, table[:, 2:].reshape(-1, 2, 2))
    if table.shape[1] == 4:
        return _keypoints(xy, table[:, 2], table[:, 3])
    return _keypoints(xy, _one_sigma(len(xy), sigma, "COLMAP's rows of two columns"))


def to_colmap(keypoints: Keypoints, columns: Literal[2, 4, 6] = 4) -> Float32:
    """To COLMAP's rows (n, columns); two columns hold only the places, six also the shapes."""
    xy = keypoints.xy + COLMAP_CORNER
    if columns == 6:
        return np.hstack([xy, keypoints.frames().reshape(-1, 4)]).astype(np.float32)
    if columns == 2:
        return xy.astype(np.float32)
    _refuse_shapes(keypoints, "a COLMAP row of four columns (six hold it)")
    return np.column_stack([xy, keypoints.sigma, keypoints.angle]).astype(np.float32)


def from_hloc(
    keypoints: ArrayLike,
    scales: ArrayLike | None = None,
    oris: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    *,
    sigma: float | None = None,
) -> Keypoints:
    """From the arrays of hloc's feature files: keypoints (n, 2), scales = sigma, oris in degrees clockwise, scores.

    Without oris they are upright; without scales they get the one sigma given. hloc's own `dog` files lie half a pixel
    off (docs/conventions.md).
    """
    xy = _numbers(keypoints, "hloc's keypoints")
    if xy.ndim != 2 or xy.shape[1] < 2:
        raise KeypatchError(f"hloc's keypoints must have shape (n, 2), not {xy.shape}.")
    if scales is None:
        scale = _one_sigma(len(xy), sigma, "hloc's keypoints without scales")
    else:
        scale = _numbers(scales, "hloc's scales")
    angle = None if oris is None else np.radians(_numbers(oris, "hloc's oris"))
    return _keypoints(xy, scale, angle, None if scores is None else _numbers(scores, "hloc's scores"))


def to_hloc(keypoints: Keypoints) -> dict[str, Float32]:
    """To hloc's arrays by name: keypoints (n, 2), scales, oris, and scores where the keypoints have a response."""
    _refuse_shapes(keypoints, "an hloc file")
    arrays = {
        "keypoints": np.stack([keypoints.x, keypoints.y], axis=1),
        "scales": keypoints.sigma,
        "oris": np.degrees(keypoints.angle),
    }
    return arrays if keypoints.response is None else {**arrays, "scores": keypoints.response}


def from_laf(laf: ArrayLike, patch_sigmas: float) -> Keypoints:
    """From kornia's local affine frames (n, 2, 3) or (1, n, 2, 3), whose [-1, 1] square is patch_sigmas sigmas a side.

    kornia's orientations turn the other way; the matrices themselves are the same. Its padding, frames of zeros, is
    refused like every flat frame.
    """
    # a tensor may carry a gradient or lie on a GPU, and numpy takes neither
    frames = _numbers(laf.detach().cpu() if hasattr(laf, "detach") else laf, "kornia's frames")
    if frames.ndim == 4 and len(frames) == 1:
        frames = frames[0]
    if frames.ndim != 3 or frames.shape[1:] != (2, 3):
        raise KeypatchError(f"kornia's frames must have shape (n, 2, 3), for one image, not {frames.shape}.")
    return _from_frames(frames[:, :, 2], frames[:, :, :2] / _half_side(patch_sigmas))


def to_laf(keypoints: Keypoints, patch_sigmas: float) -> Float32:
    """To kornia's local affine frames (n, 2, 3), whose [-1, 1] square is patch_sigmas sigmas a side."""
    axes = keypoints.frames() * _half_side(patch_sigmas)
    return np.concatenate([axes, keypoints.xy[:, :, None]], axis=2).astype(np.float32)


def _keypoints(xy: Float64, sigma: Float64, angle: Float64 | None = None, response: Float64 | None = None) -> Keypoints:
    turn = np.zeros(len(xy)) if angle is None else angle
    x, y, scale, angle32 = (column.astype(np.float32) for column in (xy[:, 0], xy[:, 1], sigma, turn))
    return Keypoints(x, y, scale, angle32, None, None if response is None else response.astype(np.float32))


def _from_frames(xy: Float64, frames: Float64) -> Keypoints:
    """Keypoints of these frames, without shapes where every frame only turns and scales."""
    keypoints = Keypoints.from_frames(xy, frames)
    sheared = keypoints.shape is not None and np.abs(keypoints.shape - np.eye(2)).max(initial=0) > ROUND
    return keypoints if sheared else keypoints.without_shape()


def _numbers(value: ArrayLike, what: str) -> Float64:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise KeypatchError(f"{what} are not an array of numbers.") from None


def _one_sigma(n: int, sigma: float | None, what: str) -> Float64:
    if sigma is None:
        raise KeypatchError(f"{what} have no scale. Pass sigma, in pixels, to use for all of them.")
    return np.full(n, sigma, np.float64)


def _half_side(patch_sigmas: float) -> float:
    if not 0 < patch_sigmas < np.inf:
        raise KeypatchError(f"patch_sigmas, the side of a patch in sigmas, must be above 0, not {patch_sigmas}.")
    return patch_sigmas / 2


def _refuse_shapes(keypoints: Keypoints, where: str) -> None:
    if keypoints.shape is not None:
        raise KeypatchError(f"{where} cannot hold the keypoints' shapes. Drop them with without_shape().")
