"""Detectors: a grey photograph in, Keypoints out."""

from keypatch.detection.budget import RULES, Rule, spend
from keypatch.detection.colmap import ColmapSift
from keypatch.detection.detector import Detector, Orientations, keep_orientations
from keypatch.detection.detectors import DETECTOR_TYPES, DETECTORS, Dog, Grid, Orb, detect_dog, make_detector
from keypatch.detection.keynet import KeyNet

__all__ = [
    "DETECTORS",
    "DETECTOR_TYPES",
    "RULES",
    "ColmapSift",
    "Detector",
    "Dog",
    "Grid",
    "KeyNet",
    "Orb",
    "Orientations",
    "Rule",
    "detect_dog",
    "keep_orientations",
    "make_detector",
    "spend",
]
