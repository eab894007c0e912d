"""Features of a scene's photographs: a describer's, a feature file's, or those of a folder of the challenge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.photo_features import PhotoFeatures, photo_features, refuse_idle_extraction
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, Features, Photo
from keypatch.features.feature_files import open_h5, read_array
from keypatch.features.features import Setting
from keypatch.features.photos import read_header
from keypatch.files import hash_folder
from keypatch.geometry.converters import from_hloc
from keypatch.provenance import Provenance, provenance

KEYPOINTS, DESCRIPTORS = "keypoints.h5", "descriptors.h5"
EXTRACTION = Extraction(keypoints=2048, rule="strongest")  # the smaller of the challenge's two budgets


@dataclass(frozen=True, eq=False)
class ChallengeFeatures(Mapping[str, Features]):
    """keypoints.h5 and descriptors.h5 as the challenge has them: an array for each photo, named without its ending.

    Those of photos <scene>/<photo> lie in the folder <scene>. Scales and angles are not read: no score needs them.
    """

    folder: Path
    photos: Mapping[str, Path]
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def descriptor(self) -> str:
        return self.folder.absolute().name

    def __getitem__(self, name: str) -> Features:
        keypoints, descriptors = self._read(name, KEYPOINTS), self._read(name, DESCRIPTORS)
        try:
            places = from_hloc(keypoints, sigma=1.0)
            rows = np.ascontiguousarray(descriptors, np.float32)
            return Features(places, rows, read_header(self.photos[name]).size, self.descriptor, self.settings)
        except KeypatchError as error:
            raise DataError(f"{self.folder}: {name}: {error}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.photos)

    def __len__(self) -> int:
        return len(self.photos)

    def provenance(self, data_hash: str) -> Provenance:
        """The provenance of scores of these features on data with this hash."""
        files = {path for name in self.photos for path in (self._file(name, KEYPOINTS), self._file(name, DESCRIPTORS))}
        return provenance(data=data_hash, features=hash_folder(files))

    def _file(self, name: str, kind: str) -> Path:
        return self.folder / PurePosixPath(name).parent / kind

    def _read(self, name: str, kind: str) -> NDArray[np.generic]:
        path = self._file(name, kind)
        with open_h5(path) as file:
            found = read_array(path, file, PurePosixPath(name).stem)
        if found is None:
            raise DataError(f"{path} has no {PurePosixPath(name).stem}. Describe all photos of the scene.")
        if not np.isfinite(found).all():
            raise DataError(f"{path}: {PurePosixPath(name).stem} is not finite. Write the file again.")
        return found


def scene_features(
    source: Describer | str | Path, photos: Sequence[Photo], extraction: Extraction, progress: Progress | None = None
) -> PhotoFeatures | ChallengeFeatures:
    """As `photo_features`; a folder is taken for one of the challenge, and all of it is read at once.

    Raises:
        KeypatchError: features are given, and an extraction that would not act on them.
        DataError: the folder lacks a photo, or what it has of one is damaged or of another length.
    """
    refuse_idle_extraction(source, extraction, EXTRACTION)
    if isinstance(source, str | Path) and Path(source).is_dir():
        return _read_folder(Path(source), {photo.name: photo.path for photo in photos})
    return photo_features(source, photos, extraction, progress)


def _read_folder(folder: Path, photos: Mapping[str, Path]) -> ChallengeFeatures:
    features = ChallengeFeatures(folder, photos)
    shapes = {name: each.descriptors.shape for name, each in features.items()}
    dims = {columns: name for name, (rows, columns) in shapes.items() if rows}
    if len(dims) > 1:
        (first, one), (second, other) = list(dims.items())[:2]
        raise DataError(
            f"{folder}: the descriptors of {one} have {first} numbers and those of {other} {second}. Describe again."
        )
    return replace(features, settings={"keypoints": max(rows for rows, _ in shapes.values())})
