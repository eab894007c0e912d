"""Features of a scene's photographs: a describer's, a feature file's, or those of a folder of the challenge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.photo_features import PhotoFeatures, most_keypoints, photo_features, refuse_idle_extraction
from keypatch.benchmarks.stages import BenchmarkExtraction
from keypatch.describers.protocol import Describer
from keypatch.detection import Rule
from keypatch.errors import DataError
from keypatch.features import Extraction, Features, Photo
from keypatch.features.feature_files import open_h5, read_array
from keypatch.features.store import has_store
from keypatch.files import hash_folder, reading
from keypatch.geometry.converters import from_hloc
from keypatch.images import read_header
from keypatch.progress import Progress
from keypatch.settings import other_default

FILES = ("keypoints.h5", "descriptors.h5")


@dataclass(frozen=True, repr=False)
class ChallengeExtraction(BenchmarkExtraction):
    """`Extraction` with the smaller of the challenge's two budgets, and the strongest keypoints."""

    rule: Rule = other_default(Extraction, "rule", "strongest")


def scene_features(
    source: Describer | str | Path, photos: Sequence[Photo], extraction: Extraction, progress: Progress | None = None
) -> PhotoFeatures:
    """As `photo_features`; a folder is taken for one of the challenge, and all of it is read at once.

    Raises:
        KeypatchError: features are given, and an extraction that would not act on them.
        DataError: the folder lacks a photo, or what it has of one is damaged or of another length.
    """
    refuse_idle_extraction(source, extraction)
    if isinstance(source, str | Path) and Path(source).is_dir() and not has_store(Path(source)):
        return _read_folder(Path(source), {photo.name: photo.path for photo in photos})
    return photo_features(source, photos, extraction, progress)


def _read_folder(folder: Path, photos: Mapping[str, Path]) -> PhotoFeatures:
    """keypoints.h5 and descriptors.h5 as the challenge has them: an array for each photo, named without its ending.

    Those of photos <scene>/<photo> lie in the folder <scene>. Scales and angles are not read: no score needs them.
    """
    descriptor = folder.absolute().name

    def read(name: str) -> Features:
        keypoints, descriptors = (_array(folder, name, kind) for kind in FILES)
        size = read_header(photos[name]).size
        with reading(f"{folder}: {name}", "set of features"):
            rows = np.ascontiguousarray(descriptors, np.float32)
            return Features(from_hloc(keypoints, sigma=1.0), rows, size, descriptor, {})

    settings = {"keypoints": most_keypoints({name: read(name).descriptors.shape for name in photos}, folder)}
    hashes = {
        "features": hash_folder({folder / PurePosixPath(name).parent / kind for name in photos for kind in FILES})
    }
    return PhotoFeatures(descriptor, settings, hashes, photos, read)


def _array(folder: Path, name: str, kind: str) -> NDArray[np.generic]:
    path, key = folder / PurePosixPath(name).parent / kind, PurePosixPath(name).stem
    with open_h5(path) as file:
        found = read_array(path, file, key)
    if found is None:
        raise DataError(f"{path} has no {key}. Describe all photos of the scene.")
    if not np.isfinite(found).all():
        raise DataError(f"{path}: {key} is not finite. Write the file again.")
    return found
