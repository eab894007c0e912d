"""Features: keypoints, patches cut at them and their descriptors, and the files they are kept in."""

from keypatch.features.extracting import Extraction, extract
from keypatch.features.feature_files import FeatureReader, read_features, read_names
from keypatch.features.features import Features
from keypatch.features.photos import Photo, find_photos, read_photo

__all__ = [
    "Extraction",
    "FeatureReader",
    "Features",
    "Photo",
    "extract",
    "find_photos",
    "read_features",
    "read_names",
    "read_photo",
]
