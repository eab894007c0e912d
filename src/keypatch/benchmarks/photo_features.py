"""Features of a benchmark's photographs: a describer's, made once, or those of a feature file; read when used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.feature_cache import GROUP, KeptFeatures
from keypatch.benchmarks.result import weights_of
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, FeatureReader, Features, Photo, read_photo
from keypatch.features.features import Setting
from keypatch.features.photos import read_header
from keypatch.features.stamps import require_same_photos
from keypatch.files import hash_file
from keypatch.provenance import Provenance, provenance


class Place(NamedTuple):
    """Where the features of a photograph lie."""

    file: Path
    group: str
    photo: Path


@dataclass(frozen=True, eq=False)
class PhotoFeatures(Mapping[str, Features]):
    """The features of photographs by their names; each is read from its file whenever it is asked for."""

    descriptor: str
    settings: Mapping[str, Setting]  # what they depend on beside the photographs and the descriptor
    hashes: Mapping[str, str]  # of the weights, or of the feature file
    places: Mapping[str, Place]
    kept: KeptFeatures | None = None  # the files may last as long as this object

    def __getitem__(self, name: str) -> Features:
        file, group, photo = self.places[name]
        with FeatureReader(file) as reader:
            features = reader.read(group)
        size = features.image_size if all(features.image_size) else read_header(photo).size
        return replace(features, image_size=size, descriptor=self.descriptor, settings=self.settings)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

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

    A describer's are kept in the cache (`feature_cache`), where no photo is described twice. `progress` counts photos.
    With `short_side` they are of the photos made that small or large (`resized`).

    Raises:
        DataError: a photo cannot be read; or the feature file lacks it, or has another photo of this name.
    """
    if isinstance(source, str | Path):
        if short_side is not None:
            raise KeypatchError(
                f"{source} has features of the photos at their own size. Leave short_side out, or give a descriptor."
            )
        return _features_in_file(Path(source), photos)
    kept = KeptFeatures(source, extraction, short_side=short_side)
    places = dict[str, Place]()
    for number, photo in enumerate(photos):
        file = kept.file(hash_file(photo.path), partial(_read, photo.path, short_side))
        places[photo.name] = Place(file, GROUP, photo.path)
        if progress is not None:
            progress(number + 1, len(photos))
    return PhotoFeatures(source.name, kept.settings, weights_of(source), places, kept)


def refuse_idle_extraction(
    source: Describer | str | Path,
    extraction: Extraction,
    usual: Extraction = Extraction(),  # noqa: B008  a frozen value
) -> None:
    """KeypatchError if features that are given come with another extraction than the benchmark's usual one."""
    idle = [each.name for each in fields(usual) if getattr(extraction, each.name) != getattr(usual, each.name)]
    if idle and isinstance(source, str | Path):
        raise KeypatchError(
            f"{source} has features already, which are taken as they are. Leave out extraction.{idle[0]}, which would "
            "change nothing, or give a descriptor."
        )


def resized(image: NDArray[np.uint8], short_side: int | None) -> NDArray[np.uint8]:
    """The grey photo (h, w) with a shorter side of so many pixels: bilinear, made smaller without aliasing."""
    if short_side is None:
        return image
    size = resized_size((image.shape[1], image.shape[0]), short_side)
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))


def resized_size(size: tuple[int, int], short_side: int) -> tuple[int, int]:
    """(width, height) of a photo of this size after `resized`; the longer side is rounded down."""
    width, height = size
    if width < height:
        return short_side, short_side * height // width
    return short_side * width // height, short_side


def _read(path: Path, short_side: int | None) -> NDArray[np.uint8]:
    return resized(read_photo(path), short_side)


def _features_in_file(path: Path, photos: Sequence[Photo]) -> PhotoFeatures:
    with FeatureReader(path) as reader:
        known = set(reader.names())
        missing = [photo.name for photo in photos if photo.name not in known]
        if missing:
            raise DataError(
                f"{path} lacks {len(missing)} of {len(photos)} photos, the first is {missing[0]}. Describe all of "
                "them; names are paths below the data folder."
            )
        descriptor = path.stem if reader.descriptor == "unknown" else reader.descriptor
        settings = dict(reader.settings)
        if "keypoints" not in settings:  # a file of others does not say its budget, which every score depends on
            settings["keypoints"] = max((len(reader.keypoints(photo.name, sigma=1.0)) for photo in photos), default=0)
    require_same_photos(path, photos)
    places = {photo.name: Place(path, photo.name, photo.path) for photo in photos}
    return PhotoFeatures(descriptor, settings, {"features": hash_file(path)}, places)
