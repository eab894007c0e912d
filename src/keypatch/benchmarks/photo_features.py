"""Features of a benchmark's photographs: a describer's, made once, or those of a feature file; read when used."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from keypatch.benchmarks.caching import GROUP, KeptFeatures
from keypatch.benchmarks.result import weights_of
from keypatch.benchmarks.stages import refuse_idle
from keypatch.describers.protocol import Describer
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, FeatureReader, Features, Photo
from keypatch.features.extraction import Setting
from keypatch.features.feature_files import hash_groups, require_same_photos
from keypatch.files import hash_file
from keypatch.images import read_header
from keypatch.progress import Progress
from keypatch.provenance import Provenance, provenance
from keypatch.settings import field_names


class Place(NamedTuple):
    """Where the features of a photograph lie."""

    file: Path
    group: str
    photo: Path


@dataclass(frozen=True, eq=False)
class PhotoFeatures(Mapping[str, Features]):
    """The features of photographs by their names; each is read from its files whenever it is asked for."""

    descriptor: str
    settings: Mapping[str, Setting]  # what they depend on beside the photographs and the descriptor
    hashes: Mapping[str, str]  # of the weights, or of the files
    names: Collection[str]
    read: Callable[[str], Features]
    kept: KeptFeatures | None = None  # the files may last as long as this object

    def __getitem__(self, name: str) -> Features:
        return replace(self.read(name), descriptor=self.descriptor, settings=self.settings)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def provenance(self, data_hash: str) -> Provenance:
        """The provenance of scores of these features on data with this hash."""
        return provenance(data=data_hash, **self.hashes)


def photo_features(
    source: Describer | str | Path,
    photos: Sequence[Photo],
    extraction: Extraction = Extraction(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
    short_side: int | None = None,
) -> PhotoFeatures:
    """The features of photographs: those of a describer, or those in a feature file, ours or hloc's.

    A describer's are kept in the cache (`caching`), where no photo is described twice. `progress` counts photos.
    With `short_side` they are of the photos made that small or large (`resized`).

    Raises:
        DataError: a photo cannot be read; or the feature file lacks it, or has another photo of this name.
    """
    if isinstance(source, str | Path):
        if short_side is not None:
            raise KeypatchError(
                f"{source} has features of the photos at full size. Leave out short_side, or give a descriptor."
            )
        return _features_in_file(Path(source), photos)
    kept = KeptFeatures(source, extraction, short_side=short_side)
    keys = {photo.name: hash_file(photo.path) for photo in photos}
    files = kept.files({photo.name: (photo.path, None) for photo in photos}, keys, progress)
    places = {photo.name: Place(files[photo.name], GROUP, photo.path) for photo in photos}
    return PhotoFeatures(source.name, kept.settings, weights_of(source), places, partial(read_place, places), kept)


def read_place(places: Mapping[str, Place], name: str) -> Features:
    """The features of a photograph by its name; its size is the photo's where the file does not say."""
    file, group, photo = places[name]
    with FeatureReader(file) as reader:
        features = reader.read(group)
    return features if all(features.image_size) else replace(features, image_size=read_header(photo).size)


def hash_features(features: Iterable[tuple[str, Features]]) -> str:
    """SHA-256 of names, keypoints and descriptors."""
    digest = hashlib.sha256()
    for name, each in features:
        points = each.keypoints
        digest.update(f"{name}\0{each.descriptors.shape}".encode())
        for array in (points.x, points.y, points.sigma, points.angle, each.descriptors):
            digest.update(array.tobytes())
    return digest.hexdigest()


def most_keypoints(shapes: Mapping[str, tuple[int, ...]], folder: Path) -> int:
    """The most keypoints of a photo, of descriptors (keypoints, dim); DataError if they are of several lengths."""
    dims = {columns: name for name, (rows, columns) in shapes.items() if rows}
    if len(dims) > 1:
        (first, one), (second, other) = list(dims.items())[:2]
        raise DataError(
            f"{folder}: {one} has {first}-dimensional descriptors, but {other} has {second}-dimensional ones. Describe "
            "the photos again."
        )
    return max(rows for rows, _ in shapes.values())


def refuse_idle_extraction(source: Describer | str | Path, extraction: Extraction) -> None:
    """KeypatchError if features that are given come with another extraction than the benchmark's own."""
    if isinstance(source, str | Path):
        why = f"{source} already has features, which are used as they are."
        refuse_idle("extraction", extraction, field_names(extraction), why, ", or give a descriptor")


def _features_in_file(path: Path, photos: Sequence[Photo]) -> PhotoFeatures:
    with FeatureReader(path) as reader:
        known = set(reader.names())
        missing = [photo.name for photo in photos if photo.name not in known]
        if missing:
            raise DataError(
                f"{path} lacks {len(missing)} of {len(photos)} photos, such as {missing[0]}. Describe all of "
                "them, with names relative to the data folder."
            )
        descriptor = path.stem if reader.descriptor == "unknown" else reader.descriptor
        settings = dict(reader.settings)
        if "keypoints" not in settings:  # a file of others does not say its budget, which every score depends on
            settings["keypoints"] = max((len(reader.keypoints(photo.name, sigma=1.0)) for photo in photos), default=0)
    require_same_photos(path, photos)
    places = {photo.name: Place(path, photo.name, photo.path) for photo in photos}
    return PhotoFeatures(descriptor, settings, {"features": hash_groups(path)}, places, partial(read_place, places))
