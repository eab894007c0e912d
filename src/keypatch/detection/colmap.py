"""COLMAP's own SIFT detector, through pycolmap."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.package import load_pycolmap
from keypatch.detection.detector import Orientations, keep_orientations, require_grey
from keypatch.geometry import Keypoints, from_colmap

_WHAT = "The detector colmap"


@dataclass(frozen=True)
class ColmapSift:
    """The DoG points of COLMAP, on the CPU: "all" keeps its two directions of a place at most, "one" the stronger.

    COLMAP tells no strength and itself prefers large points: the response is the sigma.
    """

    name: ClassVar[str] = "colmap"

    peak_threshold: float = 0.02 / 3  # COLMAP's
    orientations: Orientations = "all"

    def __post_init__(self) -> None:
        load_pycolmap(_WHAT)  # its absence is told before any photograph is read

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        require_grey(image, "COLMAP's SIFT")
        pycolmap = load_pycolmap(_WHAT)
        options = pycolmap.FeatureExtractionOptions(use_gpu=False, num_threads=1)
        options.sift.peak_threshold = self.peak_threshold
        options.sift.max_num_features = image.size  # no limit
        options.sift.max_num_orientations = 2 if self.orientations == "all" else 1
        rows, _ = pycolmap.FeatureExtractor.create(options).extract(pycolmap.Bitmap.from_array(image))
        found = from_colmap(pycolmap.keypoints_to_matrix(rows).reshape(-1, 4))
        found = replace(found, response=found.sigma).take(np.argsort(-found.sigma, kind="stable"))
        return keep_orientations(found, self.orientations)
