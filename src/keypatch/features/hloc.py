"""An extractor for hloc: what its BaseModel asks of a class, computed by keypatch."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keypatch.detection import make_detector
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction, extract_grey
from keypatch.geometry import to_hloc
from keypatch.zoo import load

_GREY = (0.299, 0.587, 0.114)  # of R, G and B, as OpenCV and Pillow weigh them


class Extractor:
    """The part of an hloc extractor that is not hloc's; `class Keypatch(Extractor, BaseModel)` makes it whole.

    Keypoints are in OpenCV's pixels, where the centre of the top-left pixel is (0, 0): hloc adds the half pixel to
    COLMAP's corner when it fills a database. `scales` are sigmas, `oris` degrees clockwise on screen.
    """

    default_conf: ClassVar[dict[str, Any]] = {
        "name": "keypatch",
        "descriptor": DESCRIPTOR,  # whatever keypatch.load takes
        "detector": "dog",
        "max_keypoints": 2048,  # -1: all
        "rule": Extraction.rule,
        "upright": False,
    }
    required_inputs: ClassVar[list[str]] = ["image"]
    detection_noise: ClassVar[float] = 1.0  # pixels; hloc writes it beside the keypoints

    def _init(self, conf: Mapping[str, Any]) -> None:
        unknown = ", ".join(sorted(conf.keys() - self.default_conf.keys()))
        if unknown:
            raise KeypatchError(
                f"The extractor has no setting {unknown}. Its settings: {', '.join(self.default_conf)}."
            )
        budget = None if conf["max_keypoints"] == -1 else conf["max_keypoints"]
        self.describer = load(conf["descriptor"])
        self.extraction = Extraction(make_detector(conf["detector"]), budget, conf["rule"], upright=conf["upright"])

    def _forward(self, data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """From data["image"], (1, 1 or 3, h, w) with values 0..1, to what hloc writes, each with a first axis of 1."""
        image = data["image"]
        features = extract_grey(_grey(image), self.describer, self.extraction)
        arrays = {  # keypoints (n, 2), scales, oris, scores (n,), descriptors (dim, n)
            "scores": np.zeros(len(features), np.float32),
            **to_hloc(features.keypoints.without_shape()),
            "descriptors": features.descriptors.T.copy(),
        }
        return {name: torch.from_numpy(array)[None].to(image.device) for name, array in arrays.items()}


def _grey(image: Tensor) -> NDArray[np.uint8]:
    if image.ndim != 4 or len(image) != 1 or image.shape[1] not in (1, 3):
        raise KeypatchError(f"Expected one image (1, 1 or 3, h, w), not an array of shape {tuple(image.shape)}.")
    if not (image.min() >= -1e-6 and image.max() <= 1 + 1e-6):
        raise KeypatchError(f"The image's values should be in 0..1, but range from {image.min():g} to {image.max():g}.")
    channels = image[0].float().cpu()
    grey = channels[0] if len(channels) == 1 else torch.einsum("chw,c->hw", channels, torch.tensor(_GREY))
    pixels: NDArray[np.uint8] = (255 * grey).round().clamp(0, 255).to(torch.uint8).numpy()
    return pixels
