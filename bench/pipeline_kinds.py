"""Pipelines from a grey photograph to features: ours, OpenCV's SIFT at the same keypoints, and ALIKED."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.detection import Dog, Rule, spend
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Extraction, Features
from keypatch.features.extraction import Setting, describe_keypoints
from keypatch.files import hash_file
from keypatch.geometry import Keypoints, from_opencv

Image = NDArray[np.uint8]


class Laps:
    """Seconds of each step of one photograph, from when this is made."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def end(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step], self._last = now - self._last, now


class Pipeline(Protocol):
    """Anything that finds and describes keypoints."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Everything that the features depend on."""

    def __call__(self, image: Image, laps: Laps) -> Features: ...


@dataclass(frozen=True)
class PatchPipeline:
    """DoG keypoints, a budget spent by a rule, patches cut and described."""

    describer: Describer
    budget: int
    rule: Rule
    detector: Dog = field(default_factory=Dog)

    @property
    def name(self) -> str:
        return f"{self.describer.name}, {self.rule}"

    @property
    def settings(self) -> Mapping[str, Setting]:
        weights = self.describer.weights_hash if isinstance(self.describer, HasWeights) else None
        return {"weights": weights} | Extraction(self.detector, self.budget, self.rule).settings(self.describer)

    def __call__(self, image: Image, laps: Laps) -> Features:
        found = self.detector(image)
        laps.end("detect")
        chosen = spend(found, self.budget, self.rule)
        laps.end("select")
        descriptors = describe_keypoints(image, chosen, self.describer)
        laps.end("describe")
        return Features(chosen, descriptors, (image.shape[1], image.shape[0]), self.name)


@dataclass(frozen=True)
class OpencvPipeline:
    """The same keypoints described by OpenCV's own SIFT, as SIFT or RootSIFT.

    OpenCV's pyramid depends on the octave that only its own KeyPoint holds, so it detects once more.
    """

    root: bool
    budget: int
    rule: Rule
    detector: Dog = field(default_factory=Dog)

    @property
    def name(self) -> str:
        return f"opencv {'rootsift' if self.root else 'sift'}, {self.rule}"

    @property
    def settings(self) -> Mapping[str, Setting]:
        contrast = self.detector.contrast_threshold
        return {"budget": self.budget, "rule": self.rule, "contrast": contrast, "root": self.root, "patch_sigmas": None}

    def __call__(self, image: Image, laps: Laps) -> Features:
        sift = cv2.SIFT.create(contrastThreshold=self.detector.contrast_threshold, enable_precise_upscale=True)
        found = sorted(sift.detect(image, None), key=lambda point: -point.response)
        laps.end("detect")
        places = from_opencv(found)
        numbered = {frame: number for number, frame in enumerate(_frames(places))}
        chosen = [numbered[frame] for frame in _frames(spend(places, self.budget, self.rule))]
        laps.end("select")
        kept, rows = sift.compute(image, [found[number] for number in chosen])
        descriptors = np.zeros((0, 128), np.float32) if rows is None else np.asarray(rows, np.float32)
        if self.root:
            descriptors = np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1))
        laps.end("describe")
        return Features(from_opencv(kept), descriptors, (image.shape[1], image.shape[0]), self.name)


@dataclass(frozen=True)
class AlikedPipeline:
    """ALIKED by kornia's module: detector and descriptor in one network, from a weight file."""

    weights: Path  # named after the model: aliked-n16rot.safetensors
    budget: int

    @property
    def name(self) -> str:
        return self.weights.stem

    @property
    def settings(self) -> Mapping[str, Setting]:
        return {"weights": hash_file(self.weights), "budget": self.budget, "patch_sigmas": None}

    @cached_property
    def _network(self) -> Any:
        try:
            from kornia.feature import ALIKED
        except ImportError:
            raise MissingExtra.of("ALIKED needs kornia", "kornia") from None
        from safetensors.torch import load_file

        network = ALIKED(self.weights.stem, max_num_keypoints=self.budget, detection_threshold=0.0).eval()
        try:
            missing, unexpected = network.load_state_dict(load_file(self.weights), strict=False)
        except RuntimeError:  # tensors of other sizes
            missing, unexpected = [], ["other sizes"]
        if unexpected or set(missing) - {"dkd.hw_grid"}:  # that one is computed
            raise KeypatchError(f"{self.weights} does not hold the weights of {self.weights.stem}.")
        return network

    def __call__(self, image: Image, laps: Laps) -> Features:
        import torch

        network = self._network
        laps.end("load")
        with torch.inference_mode():
            [found] = network(torch.from_numpy(image.copy())[None, None] / 255.0)
        xy = found.keypoints.numpy()
        ones = np.ones(len(xy), np.float32)
        response = found.keypoint_scores.numpy().reshape(-1)
        keypoints = Keypoints(xy[:, 0], xy[:, 1], ones, 0 * ones, None, response)
        laps.end("describe")
        return Features(keypoints, found.descriptors.numpy(), (image.shape[1], image.shape[0]), self.name)


def _frames(keypoints: Keypoints) -> list[tuple[float, ...]]:
    return list(zip(keypoints.x, keypoints.y, keypoints.sigma, keypoints.angle, strict=True))
