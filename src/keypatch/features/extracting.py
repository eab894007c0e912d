"""From a photograph to features: detect, choose, cut, describe."""

from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import CHUNK, Describer, check_descriptors
from keypatch.describers.sift import SiftDescriber
from keypatch.detection import RULES, Detector, Dog, Rule, keep_orientations, spend
from keypatch.errors import KeypatchError
from keypatch.features.features import Features, Setting
from keypatch.files import hash_file
from keypatch.geometry import Keypoints, PatchCutter

# SIFT as OpenCV computes it in a photograph: the keypoint's own sigma is 1.6 pixels there, which is also the blur; the
# window goes beyond the grid of 12 sigmas, for it interpolates between cells; and an odd side has a pixel in the
# centre, to which OpenCV rounds. Mean cosine with OpenCV's own 0.994 (64 pixels for 12 sigmas, as patch sets: 0.94).
_SIFT_SIDE, _SIFT_SIGMAS = 29, 18.0


@dataclass(frozen=True)
class Extraction:
    """Which keypoints of a photograph are described, and how much of it each descriptor sees."""

    detector: Detector = field(default_factory=Dog)
    keypoints: int | None = 2048  # None: all
    rule: Rule = "spread"
    max_size: int | None = None  # detect in the photo made this small, in pixels of its longer side
    upright: bool = False  # all angles 0, for photos that are not turned
    patch_sigmas: float | None = None  # None: the describer's own

    def __post_init__(self) -> None:
        if self.keypoints is not None and self.keypoints < 0:
            raise KeypatchError(f"{self.keypoints} keypoints were asked for; the number cannot be below 0.")
        if self.rule not in RULES:
            raise KeypatchError(f'There is no budget rule "{self.rule}". The rules: {", ".join(RULES)}.')
        if self.max_size is not None and self.max_size < 1:
            raise KeypatchError(f"The size to detect at, {self.max_size}, must be above 0.")
        if self.patch_sigmas is not None and not 0 < self.patch_sigmas < np.inf:
            raise KeypatchError(f"patch_sigmas {self.patch_sigmas} must be above 0: the side of a patch in sigmas.")

    def settings(self, describer: Describer) -> dict[str, Setting]:
        """Everything that the features depend on, as plain values by name."""
        fields: dict[str, Any] = asdict(self.detector) if is_dataclass(self.detector) else {}
        return {
            "detector": self.detector.name,
            **{f"detector.{name}": _setting(value) for name, value in fields.items()},
            "keypoints": self.keypoints,
            "rule": self.rule,
            "max_size": self.max_size,
            "upright": self.upright,
            **cut_settings(describer, self.patch_sigmas),
        }


def extract(
    image: NDArray[np.uint8],
    describer: Describer,
    extraction: Extraction = Extraction(),  # noqa: B008  a frozen value
    keypoints: Keypoints | None = None,
) -> Features:
    """The features of a grey photograph (h, w), at its own keypoints or at those given, which are all kept in order."""
    if keypoints is None:
        keypoints = detect(image, extraction)
    elif extraction.upright:
        keypoints = replace(keypoints, angle=np.zeros_like(keypoints.angle))
    descriptors = describe_keypoints(image, keypoints, describer, extraction.patch_sigmas)
    height, width = image.shape
    return Features(keypoints, descriptors, (width, height), describer.name, extraction.settings(describer))


def detect(image: NDArray[np.uint8], extraction: Extraction) -> Keypoints:
    """The keypoints to describe, in the pixels of the photograph also where they were found in a smaller one."""
    found = _detect_small(image, extraction)
    if extraction.upright:
        found = keep_orientations(found, "upright")
    return found if extraction.keypoints is None else spend(found, extraction.keypoints, extraction.rule)


def describe_keypoints(
    image: NDArray[np.uint8], keypoints: Keypoints, describer: Describer, patch_sigmas: float | None = None
) -> NDArray[np.float32]:
    """(n, dim) descriptors of the patches around the keypoints, cut and described chunk by chunk."""
    describer, cutter = for_photos(describer), PatchCutter(image)
    sigmas = patch_sigmas or describer.patch_sigmas
    descriptors = np.empty((len(keypoints), describer.dim), np.float32)
    for start in range(0, len(keypoints), CHUNK):
        some = keypoints.take(slice(start, start + CHUNK))
        rows = describer.describe(cutter.cut(some, sigmas, describer.patch_size))
        check_descriptors(describer, rows, len(some))
        descriptors[start : start + CHUNK] = rows
    return descriptors


def for_photos(describer: Describer) -> Describer:
    """The describer as photographs need it: SIFT sees what lies beyond its grid, as it does in OpenCV."""
    if isinstance(describer, SiftDescriber):
        return replace(describer, patch_size=_SIFT_SIDE, patch_sigmas=_SIFT_SIGMAS)
    return describer


def cut_settings(describer: Describer, patch_sigmas: float | None) -> dict[str, Setting]:
    """How patches are cut for a describer, and whether it gives unit vectors."""
    describer = for_photos(describer)
    return {
        "patch_sigmas": patch_sigmas or describer.patch_sigmas,
        "patch_size": describer.patch_size,
        "unit_length": describer.unit_length,
    }


def _setting(value: Any) -> Setting:
    """A field of a detector; a file counts by its content, wherever it lies."""
    return hash_file(value) if isinstance(value, Path) else value


def _detect_small(image: NDArray[np.uint8], extraction: Extraction) -> Keypoints:
    height, width = image.shape
    if extraction.max_size is None or max(height, width) <= extraction.max_size:
        return extraction.detector(image)
    shrink = extraction.max_size / max(height, width)
    small = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    found = extraction.detector(np.asarray(cv2.resize(image, small, interpolation=cv2.INTER_AREA), np.uint8))
    across, down = width / small[0], height / small[1]
    return replace(
        found,
        x=(found.x + 0.5) * across - 0.5,  # the corner of the image, not the centre of its first pixel, stays in place
        y=(found.y + 0.5) * down - 0.5,
        sigma=found.sigma * np.sqrt(across * down),
    )
