"""Finds wrong conventions by measuring: known changes of a photograph, and what lies at the stated keypoints."""

from keypatch.features.extraction import Extraction

EXTRACTION = Extraction(keypoints=1000)
