"""Classes of patches from single photographs: one interest point seen in several random views."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.detection import detect_dog
from keypatch.geometry import (
    Jitter,
    Keypoints,
    View,
    ViewRange,
    cut_patches,
    frame_overlap,
    jitter_keypoints,
    random_homography,
    transform_keypoints,
)

SIDE = 64


@dataclass(frozen=True)
class PhotoChanges:
    """Ranges of random changes; every value is drawn uniformly (gain and gamma in the logarithm)."""

    blur: float = 1.0  # largest sigma, pixels
    gain: tuple[float, float] = (0.5, 1.2)  # a larger one would only burn out bright places
    gamma: tuple[float, float] = (0.7, 1.4)
    slope: float = 0.4  # light falls off by up to this part from the centre to an edge
    noise: float = 6.0  # largest standard deviation, grey levels
    quality: tuple[int, int] = (30, 95)  # of JPEG


@dataclass(frozen=True)
class Making:
    """How classes are made of photographs."""

    views: int = 6  # patches of a class: the photograph itself and its random views
    points: int = 700  # at most, of one photograph
    smallest_sigma: float = 1.2  # a patch of 29 pixels
    contrast: float = 0.015  # threshold of the detector
    overlap: float = 0.5  # the most that the discs of two classes share (intersection over union)
    jitter: Jitter = field(default_factory=lambda: Jitter(math.radians(15), 0.2, 0.15, 1.0))
    view_range: ViewRange = field(default_factory=ViewRange)
    changes: PhotoChanges = field(default_factory=PhotoChanges)
    patch_sigmas: float = 24.0  # the side of a patch


@dataclass(frozen=True, eq=False)
class MadeClasses:
    """Patches (n, 64, 64), class by class, the reference first; overlap (n,) of the frame used with the true one."""

    patches: NDArray[np.uint8]
    point_id: NDArray[np.int64]
    image_id: NDArray[np.int64]
    keypoints: Keypoints
    overlap: NDArray[np.float64]
    is_reference: NDArray[np.bool_]


def make_classes(photos: Sequence[NDArray[np.uint8]], making: Making, seed: Sequence[int]) -> MadeClasses:
    """The classes of all photographs; a photograph's random numbers depend on the seed and its position alone."""
    made = [_classes_of_photo(photo, making, [*seed, number]) for number, photo in enumerate(photos)]
    first_point = np.cumsum([0, *(int(m.is_reference.sum()) for m in made[:-1])])
    return MadeClasses(
        patches=np.concatenate([m.patches for m in made]),
        point_id=np.concatenate([m.point_id + first for m, first in zip(made, first_point, strict=True)]),
        image_id=np.concatenate([m.image_id + number * making.views for number, m in enumerate(made)]),
        keypoints=_joined([m.keypoints for m in made]),
        overlap=np.concatenate([m.overlap for m in made]),
        is_reference=np.concatenate([m.is_reference for m in made]),
    )


def find_points(
    photo: NDArray[np.uint8], making: Making, suits: Callable[[Keypoints], NDArray[np.bool_]] | None = None
) -> Keypoints:
    """Interest points whose patches lie inside the photograph, the strongest first, no two of them the same place.

    `suits` says which of some points may be taken at all.
    """
    found = detect_dog(photo, contrast_threshold=making.contrast, orientations="one")
    corners = making.patch_sigmas / 2 * np.array([[-1, -1, 1, 1], [-1, 1, 1, -1]])
    reached = found.xy[:, :, None] + found.frames() @ corners  # (n, 2, 4)
    height, width = photo.shape
    inside = np.all((reached >= 0) & (reached <= np.array([[width - 1], [height - 1]])), axis=(1, 2))
    found = found.take(inside & (found.sigma >= making.smallest_sigma))
    found = found.take(suits(found)) if suits else found
    kept: list[int] = []
    for i in range(len(found)):
        if np.all(_disc_overlap(found, i, np.array(kept, np.int64), making.patch_sigmas / 2) <= making.overlap):
            kept.append(i)
        if len(kept) == making.points:
            break
    return found.take(kept)


def _classes_of_photo(photo: NDArray[np.uint8], making: Making, seed: Sequence[int]) -> MadeClasses:
    points = find_points(photo, making)
    height, width = photo.shape
    patches, frames = [cut_patches(photo, points, making.patch_sigmas, SIDE)], [points]
    overlaps = [np.ones(len(points))]
    for number in range(1, making.views):
        rng = np.random.default_rng([*seed, number])
        view = random_homography(rng, (width, height), making.view_range)
        image = change_photo(render_view(photo, view), making.changes, rng)
        exact = transform_keypoints(view.homography, points)
        used = jitter_keypoints(exact, making.jitter, rng)
        patches.append(cut_patches(image, used, making.patch_sigmas, SIDE))
        frames.append(used)
        overlaps.append(frame_overlap(exact, used, making.patch_sigmas / 2))
    by_class = np.arange(making.views * len(points)).reshape(making.views, -1).T.ravel()  # a point's views together
    view_number = np.repeat(np.arange(making.views), len(points))[by_class]
    return MadeClasses(
        patches=np.concatenate(patches)[by_class],
        point_id=np.repeat(np.arange(len(points)), making.views),
        image_id=view_number,
        keypoints=_joined(frames).take(by_class),
        overlap=np.concatenate(overlaps)[by_class],
        is_reference=view_number == 0,
    )


def _joined(parts: Sequence[Keypoints]) -> Keypoints:
    return Keypoints.from_frames(np.concatenate([p.xy for p in parts]), np.concatenate([p.frames() for p in parts]))


def _disc_overlap(keypoints: Keypoints, one: int, others: NDArray[np.int64], reach: float) -> NDArray[np.float64]:
    """Intersection over union of one keypoint's disc of `reach` sigmas with those of others."""
    radius = reach * keypoints.sigma.astype(np.float64)
    a, b = radius[one], radius[others]
    apart = np.hypot(keypoints.x[others] - keypoints.x[one], keypoints.y[others] - keypoints.y[one]).astype(np.float64)
    apart = np.clip(apart, np.abs(a - b) + 1e-9, a + b)  # one inside the other, or separate: the same area as touching
    half_a = np.arccos(np.clip((apart**2 + a**2 - b**2) / (2 * apart * a), -1, 1))
    half_b = np.arccos(np.clip((apart**2 + b**2 - a**2) / (2 * apart * b), -1, 1))
    shared = a**2 * (half_a - np.sin(2 * half_a) / 2) + b**2 * (half_b - np.sin(2 * half_b) / 2)
    return np.asarray(shared / (math.pi * (a**2 + b**2) - shared))


def render_view(photo: NDArray[np.uint8], view: View) -> NDArray[np.uint8]:
    """The photograph as this view shows it; what lies beyond its edges is its mirror image."""
    height, width = photo.shape
    depth = view.homography[2] @ ((width - 1) / 2, (height - 1) / 2, 1)
    shrink = math.sqrt(depth**3 / np.linalg.det(view.homography))  # of lengths at the centre
    if shrink > 1.01:  # against aliasing: half a pixel of blur in the view, as it has in the photograph
        photo = _grey(cv2.GaussianBlur(photo, (0, 0), 0.5 * math.sqrt(shrink**2 - 1)))
    return _grey(
        cv2.warpPerspective(photo, view.homography, view.size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    )


def change_photo(photo: NDArray[np.uint8], changes: PhotoChanges, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The photograph (h, w) with random blur, light, noise and compression, in the order of a camera."""
    blur, slope, noise = rng.uniform(0, (changes.blur, changes.slope, changes.noise))
    gain, gamma = np.exp(rng.uniform(*np.log([changes.gain, changes.gamma]).T))
    light = photo.astype(np.float32) / 255
    if blur > 0.3:  # a smaller one changes nothing
        light = cv2.GaussianBlur(light, (0, 0), blur).astype(np.float32)
    light = gain * light**gamma * (1 - slope * _ramp(photo.shape, rng.uniform(0, 2 * math.pi)))
    pixels = 255 * light + noise * rng.standard_normal(photo.shape, np.float32)
    grey = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    quality = int(rng.integers(*changes.quality))
    return _grey(cv2.imdecode(cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_GRAYSCALE))


def _ramp(shape: tuple[int, ...], direction: float) -> NDArray[np.float32]:
    """-1..1 across an image of this shape (h, w), rising in the direction given."""
    y, x = np.linspace(-1, 1, shape[0], dtype=np.float32), np.linspace(-1, 1, shape[1], dtype=np.float32)
    ramp = math.cos(direction) * x[None, :] + math.sin(direction) * y[:, None]
    return np.asarray(ramp / (abs(math.cos(direction)) + abs(math.sin(direction))), np.float32)


def _grey(image: object) -> NDArray[np.uint8]:
    return np.asarray(image, np.uint8)  # OpenCV's functions are typed for any array
