"""Detectors: a grey photograph in, Keypoints out."""

from keypatch.detection.dog import detect_dog

__all__ = ["detect_dog"]
