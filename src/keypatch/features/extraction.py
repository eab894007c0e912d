"""From a photograph to features: detect, choose, cut, describe."""

from __future__ import annotations  # help() shows types as they are written

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.describers.protocol import CHUNK, Describer, check_descriptors
from keypatch.describers.sift import SiftDescriber
from keypatch.detection import Detector, Dog, Rule, keep_orientations, make_detector, spend
from keypatch.errors import KeypatchError
from keypatch.files import hash_file
from keypatch.geometry import Keypoints, PatchCutter
from keypatch.images import PIXEL_LIMIT, ImageLike, as_grey, as_png
from keypatch.settings import CheckedFields, brief, option

DESCRIPTOR = "hynet-notredame"  # the descriptor that is used unless another is named

Setting = str | int | float | bool | None


@dataclass(frozen=True, eq=False)
class Features:
    """The keypoints of one photograph and a descriptor for each, row by row.

    >>> kp.extract("a.jpg", "rootsift", kp.Extraction(keypoints=1000))
    Features(1,000 keypoints of 400 x 300 pixels, rootsift in 128 dimensions)
    """

    keypoints: Keypoints  # in the pixels of the photograph as it is stored
    descriptors: NDArray[np.float32]  # (n, dim)
    image_size: tuple[int, int]  # (width, height); (0, 0) where a foreign file does not say
    descriptor: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    image: NDArray[np.uint8] | None = None  # the photograph in grey, for pictures; None where it is not at hand

    def __post_init__(self) -> None:
        if self.descriptors.ndim != 2 or len(self.descriptors) != len(self.keypoints):
            raise KeypatchError(
                f"{len(self.keypoints)} keypoints need descriptors of shape ({len(self.keypoints)}, dim), "
                f"not {self.descriptors.shape}."
            )

    def __len__(self) -> int:
        return len(self.keypoints)

    def __repr__(self) -> str:
        width, height = self.image_size
        dim = self.descriptors.shape[1]
        return f"Features({len(self):,} keypoints of {width} x {height} pixels, {self.descriptor} in {dim} dimensions)"

    def draw(self) -> Image.Image:
        """The photograph with some of its keypoints as squares, and the patches cut there."""
        from keypatch.features.patch_picture import draw_patches

        if self.image is None:
            raise KeypatchError("These features come without their image. Extract them from the image to draw them.")
        return draw_patches(self.image, self)

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows; None, and it shows the text, without the photograph."""
        return None if self.image is None else as_png(self.draw())


# SIFT as OpenCV computes it in a photograph: the keypoint's own sigma is 1.6 pixels there, which is also the blur; the
# window goes beyond the grid of 12 sigmas, for it interpolates between cells; and an odd side has a pixel in the
# centre, to which OpenCV rounds. Mean cosine with OpenCV's own 0.994 (64 pixels for 12 sigmas, as patch sets: 0.94).
_SIFT_SIDE, _SIFT_SIGMAS = 29, 18.0


@dataclass(frozen=True)
class Extraction(CheckedFields):
    """Which keypoints of a photograph are described, and how large the patch around each one is.

    A detector given by name has its default settings; the detector classes are in `keypatch.detection`.

    >>> kp.Extraction(keypoints=4096, upright=True).rule
    'spread'
    >>> kp.Extraction("orb").detector
    Orb(fast_threshold=20)
    """

    detector: Detector = option(factory=Dog, about="Keypoint detector.")
    keypoints: int | None = option(4096, "Maximum number of keypoints per photo; none keeps all.", least=1)
    rule: Rule = option("spread", "How to choose the keypoints to keep.")
    max_size: int | None = option(
        None, "Shrink photos to this many pixels on the longer side before detection.", above=0
    )
    upright: bool = option(False, "Set every angle to 0, for photos that are all upright.")
    patch_sigmas: float | None = option(None, "Patch side in sigmas, instead of the descriptor's own.", above=0)

    __repr__ = brief

    def __post_init__(self) -> None:
        if isinstance(self.detector, str):
            object.__setattr__(self, "detector", make_detector(self.detector))
        super().__post_init__()

    def settings(self, describer: Describer) -> dict[str, Setting]:
        """Everything the features depend on, as plain values by name."""
        fields: dict[str, Any] = asdict(self.detector) if is_dataclass(self.detector) else {}
        return {
            "detector": self.detector.name,
            **{  # a file counts by its content, wherever it lies
                f"detector.{name}": hash_file(value) if isinstance(value, Path) else value
                for name, value in fields.items()
            },
            "keypoints": self.keypoints,
            "rule": self.rule,
            "max_size": self.max_size,
            "upright": self.upright,
            **cut_settings(describer, self.patch_sigmas),
        }


@dataclass(frozen=True)
class FileOptions(CheckedFields):
    """How photographs are read and features are written.

    >>> kp.FileOptions(turn_by_exif=True).half
    False
    """

    root: str | Path | None = option(None, "Image names are paths relative to this folder.")
    turn_by_exif: bool = option(False, "Rotate photos by their EXIF tag; otherwise pixels are used as stored.")
    pixel_limit: int = option(PIXEL_LIMIT, "Refuse photos with more pixels than this.")
    sigma: float | None = option(None, "Scale in pixels for keypoints from a file without scales.", above=0)
    masks: str | Path | None = option(
        None, "Folder of masks, such as a.jpg.png for a.jpg; black areas get no keypoints, as in COLMAP."
    )
    half: bool = option(False, "Store descriptors as float16, which halves the file.")


def extract(
    image: ImageLike,
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008  a frozen value
    keypoints: Keypoints | None = None,
) -> Features:
    """Detect and describe the keypoints of an image; a notebook shows them as a picture.

    image: a path, a PIL image, or an array (h, w) or (h, w, 3) in RGB order.
    describer: what `load` returns or accepts: a zoo name, run folder, checkpoint or weight file.
    keypoints: describe these, all of them and in this order, instead of detecting keypoints.

    >>> features = kp.extract("a.jpg", "rootsift", kp.Extraction(keypoints=500))
    >>> features.keypoints.xy.shape, features.descriptors.shape
    ((500, 2), (500, 128))
    """
    from keypatch.zoo.loading import load  # torch, which help texts of the options here need not wait for

    grey = as_grey(image)
    chosen = load(describer) if isinstance(describer, str | Path) else describer
    return replace(extract_grey(grey, chosen, extraction, keypoints), image=grey)


def extract_grey(
    image: NDArray[np.uint8],
    describer: Describer,
    extraction: Extraction = Extraction(),  # noqa: B008  a frozen value
    keypoints: Keypoints | None = None,
    mask: NDArray[np.bool_] | None = None,
) -> Features:
    """The features of a grey photograph (h, w), which they do not hold: for many photographs.

    mask: True (h, w) where keypoints are looked for.
    """
    if keypoints is None:
        keypoints = detect(image, extraction, mask)
    elif extraction.upright:
        keypoints = replace(keypoints, angle=np.zeros_like(keypoints.angle))
    descriptors = describe_keypoints(image, keypoints, describer, extraction.patch_sigmas)
    height, width = image.shape
    return Features(keypoints, descriptors, (width, height), describer.name, extraction.settings(describer))


def detect(image: NDArray[np.uint8], extraction: Extraction, mask: NDArray[np.bool_] | None = None) -> Keypoints:
    """The keypoints to describe, in the pixels of the photograph also where they were found in a smaller one."""
    found = _detect_small(image, extraction)
    if mask is not None:
        found = found.take(is_inside_mask(found, mask))
    if extraction.upright:
        found = keep_orientations(found, "upright")
    return found if extraction.keypoints is None else spend(found, extraction.keypoints, extraction.rule)


def is_inside_mask(keypoints: Keypoints, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,) which keypoints lie on a pixel where the mask (h, w) is True."""
    column, row = (np.rint(each).astype(np.int64) for each in (keypoints.x, keypoints.y))
    height, width = mask.shape
    return np.asarray(mask[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)])


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
