"""Key.Net, a learned detector, through kornia and a file of its weights."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keypatch.detection.detector import no_keypoints, require_grey
from keypatch.errors import MissingExtra
from keypatch.files import reading
from keypatch.geometry import Keypoints, from_laf

PATCH_SIGMAS = 24  # kornia describes the whole frame of a Key.Net point, and 24 sigmas of a DoG point
SMALLEST = 22  # pixels a side: in smaller photographs kornia's finest level is all border, and it fails below 19


@dataclass(frozen=True)
class KeyNet:
    """Maxima of Key.Net's response on a pyramid, with the dominant gradient as their direction.

    The weights are a safetensors file with the names of kornia's KeyNet. Places are whole pixels of a level.
    """

    name: ClassVar[str] = "keynet"

    weights: Path

    def __post_init__(self) -> None:
        _load(self.weights)  # a wrong file is told before any photograph is read

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        require_grey(image, "Key.Net")
        if min(image.shape) < SMALLEST:
            return no_keypoints()
        from kornia.feature import LAFOrienter

        detector = copy(_load(self.weights))  # threads may ask for different numbers of maxima
        grey = next(detector.parameters()).new_tensor(image.copy())[None, None] / 255  # (1, 1, h, w); 0 to 1
        detector.num_features = image.size // 8  # no limit: maxima of a level are 8 pixels apart
        frames, response = detector(grey)
        found = response > 0  # the rest fills up the number asked for
        if not found.any():
            return no_keypoints()
        frames, response = frames[found][None], response[found]
        # kornia multiplies a level's pixels by its factor f, which puts their centres (f - 1) / 2 too far left and up.
        frames[..., 2] += (frames[..., 0, :1] / detector.mr_size - 1) / 2
        oriented = LAFOrienter().requires_grad_(False)(frames, grey)
        return replace(from_laf(oriented.numpy(), PATCH_SIGMAS).without_shape(), response=response.numpy())


@cache
def _load(weights: Path) -> Any:
    """kornia's detector with these weights, read once; nobody changes it."""
    try:
        from kornia.feature import KeyNetDetector
    except ImportError as error:
        raise MissingExtra.of("The detector keynet needs kornia", "kornia") from error
    from safetensors.torch import load_file

    detector: Any = KeyNetDetector(pretrained=False).eval().requires_grad_(False)
    with reading(weights, "file of Key.Net's weights under kornia's names"):
        detector.model.load_state_dict(load_file(weights))
    return detector
