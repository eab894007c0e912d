"""Features: keypoints, patches cut at them and their descriptors, and the files they are kept in."""

from keypatch.features.extraction import Extraction, Features, extract, extract_grey
from keypatch.features.feature_files import FeatureReader, read_features, read_names
from keypatch.images import Photo, find_photos, read_photo

__all__ = [
    "Extraction",
    "FeatureReader",
    "Features",
    "Photo",
    "extract",
    "extract_grey",
    "find_photos",
    "read_features",
    "read_names",
    "read_photo",
]
