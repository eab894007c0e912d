"""Detectors: a grey photograph in, Keypoints out."""

from keypatch.detection.budget import RULES, Rule, spend
from keypatch.detection.colmap import ColmapSift
from keypatch.detection.dog import Dog, detect_dog
from keypatch.detection.grid import Grid
from keypatch.detection.keynet import KeyNet
from keypatch.detection.orb import Orb
from keypatch.detection.orientations import Orientations, keep_orientations
from keypatch.detection.protocol import Detector
from keypatch.detection.table import DETECTORS, make_detector

__all__ = [
    "DETECTORS",
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
