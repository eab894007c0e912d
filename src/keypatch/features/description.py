"""Photographs become a feature file or a store of them: what `keypatch describe` does."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.engines import Parallel, Shard
from keypatch.errors import DataError, KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction, FileOptions, Setting, cut_settings, extract_grey
from keypatch.features.feature_files import (
    FEATURES,
    FeatureReader,
    feature_attributes,
    hash_groups,
    read_features,
    require_same_photos,
    stamp,
    write_features,
)
from keypatch.features.filling import Group, fill, open_output
from keypatch.features.growing_file import require_output
from keypatch.features.keypoint_files import KeypointSource, open_keypoints
from keypatch.features.patch_picture import show_patches
from keypatch.features.store import is_store
from keypatch.files import hash_folder
from keypatch.geometry import Keypoints
from keypatch.images import (
    Photo,
    find_photos,
    listed,
    orientation_of,
    read_mask,
    read_photo,
    require_masks,
    turned_sentence,
)
from keypatch.progress import Callback, Progress, counted
from keypatch.provenance import provenance
from keypatch.storage import Place, as_place, fetched, is_address
from keypatch.zoo.loading import load


@dataclass(frozen=True)
class Description(os.PathLike[str]):
    """What `describe` did; it can be passed wherever the path of the feature file is expected.

    >>> kp.describe(["photos/a.jpg"], "features.h5", "rootsift").described
    1
    """

    path: Place
    described: int  # photos
    skipped: int  # photos that were in the file already

    def __fspath__(self) -> str:
        return str(self.path)


def describe(
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008  a frozen value
    *,
    keypoints_from: str | Path | None = None,
    files: FileOptions = FileOptions(),  # noqa: B008
    parallel: Parallel = Parallel(),  # noqa: B008
    shard: Shard | str | None = None,
    show: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> Description:
    """Describe photos into the feature file `out`, which plain h5py reads as hloc's (`feature_files`).

    images: images, folders, or .txt lists of names; names in the file are paths relative to the folder, or to the
        root. An image or a folder may be an address that fsspec understands.
    out: photos already in it are skipped; settings other than those it was started with, or another photo of the
        same name, are an error. A folder or an address is a store of many files (`store`), whose photos are not
        checked again.
    parallel: processes or a Ray cluster to describe on, with the same result.
    shard: "2/8" describes the second of eight shards of the photos, into a store that the tasks share.
    describer: what `load` returns or accepts: a zoo name, run folder or weight file.
    keypoints_from: an hloc .h5, COLMAP database or .csv whose keypoints are described, all of them and in their
        order, instead of detecting keypoints.
    show: write a picture of some cut patches there.

    >>> kp.describe("photos", "features.h5", "rootsift")
    Description(path=PosixPath('features.h5'), described=2, skipped=0)

    Raises:
        DataError: photos could not be described; all others are in the file.
        Interrupted: Ctrl-C; finished photos are in the file and the same call resumes.
    """
    progress, out = Progress.of(progress), as_place(out)
    part = Shard.parse(shard) if isinstance(shard, str) else shard
    given = [images] if isinstance(images, str | Path) else images
    keep = (lambda name: True) if part is None else part.has
    photos = find_photos(given, files.root, keep, remote=True)
    require_output(out, FEATURES.name)
    left = len(photos) - _count_there(out, photos)
    if left:
        name = describer if isinstance(describer, str | Path) else describer.name
        progress.note(f"describing {counted(left, 'photo')} with {name}")  # torch takes seconds to come
    if isinstance(describer, str | Path):
        describer = load(describer, device, precision)
    _require_effect(extraction, keypoints_from is not None, files)
    if files.masks is not None:
        require_masks(Path(files.masks), [photo.name for photo in photos])
    if keypoints_from is not None:
        open_keypoints(keypoints_from, files.sigma)  # what is wrong with it is told before workers start
    settings = _settings(describer, extraction, keypoints_from, files)
    work = _Work(describer, extraction, keypoints_from, settings, files)
    with open_output(out, feature_attributes(describer.name, settings, provenance()), shard=part) as output:
        waiting = [photo for photo in photos if photo.name not in output.keys]
        if isinstance(out, Path) and not out.is_dir():
            require_same_photos(out, [photo for photo in photos if photo.name in output.keys])
        filled = fill(output, work, waiting, len(photos), parallel, progress, "photos", "photos described so far")
    failures = {photo.name: f"{photo.origin}: {said}" if photo.origin else said for photo, said in filled.failures}
    tags = {name: int(tag) for name, tag in sorted(filled.notes.items())}
    if turned := turned_sentence(tags, len(waiting), filled.noted):
        progress.say(turned)
    try:
        if show is not None:
            _show_first([photo for photo in photos if photo.name not in failures], out, work, Path(show))
    except KeypatchError as error:
        if not failures:
            raise
        progress.say(str(error))
    _report_failures([failures[photo.name] for photo in waiting if photo.name in failures], len(photos), out)
    return Description(out, len(waiting), len(photos) - len(waiting))


def _count_there(out: Place, photos: Sequence[Photo]) -> int:
    """How many of the photos a file or store has already."""
    if not is_address(out) and not Path(out).exists():
        return 0
    try:
        with FeatureReader(out) as reader:
            names = reader.names()
            there = set(names) if isinstance(names, list) else names
            return sum(photo.name in there for photo in photos)
    except DataError:
        if is_store(out):  # an empty folder, or an address where nothing is yet
            return 0
        raise


@dataclass(frozen=True)
class _Work:
    """What is done with a photo, up to writing its features."""

    describer: Describer
    extraction: Extraction
    keypoints_from: str | Path | None
    settings: dict[str, Setting]
    files: FileOptions

    def key(self, photo: Photo) -> str:
        return photo.name

    @contextmanager
    def open(self) -> Iterator[Callable[[Photo], Group]]:
        given = None if self.keypoints_from is None else open_keypoints(self.keypoints_from, self.files.sigma)
        yield partial(self.describe, source=given)

    def read(self, photo: Photo) -> NDArray[np.uint8]:
        return read_photo(photo.path, turn_by_exif=self.files.turn_by_exif, pixel_limit=self.files.pixel_limit)

    def describe(self, photo: Photo, source: KeypointSource | None) -> Group:
        with _at_hand(photo) as here:
            try:
                image = self.read(here)
                given = None if source is None else source.read(photo.name)
                if given is not None:
                    require_inside(given, photo.name, (image.shape[1], image.shape[0]))
                masks = self.files.masks
                mask = None if masks is None else read_mask(Path(masks), photo.name, image.shape)
                features = extract_grey(image, self.describer, self.extraction, given, mask)
            except (cv2.error, MemoryError) as error:
                raise DataError(
                    f"{here.path} could not be described ({str(error).strip()}). Try --max-size."
                ) from error
            features = replace(features, settings=self.settings)
            write = partial(write_features, features=features, half=self.files.half, stamp=stamp(here.path))
            tag = 1 if self.files.turn_by_exif else orientation_of(here.path)
        return Group(write, "" if tag == 1 else str(tag))


@contextmanager
def _at_hand(photo: Photo) -> Iterator[Photo]:
    """The photo on a disk of this machine."""
    if not photo.address:
        yield photo
        return
    with fetched(photo.address) as path:
        yield photo._replace(path=path)


def _require_effect(extraction: Extraction, given: bool, files: FileOptions) -> None:
    """KeypatchError for choices that would change nothing."""
    if files.sigma is not None and not given:
        raise KeypatchError("--sigma is the scale of keypoints from a file. Leave it out, or add --keypoints-from.")
    usual, names = Extraction(), ("detector", "keypoints", "rule", "max_size")
    idle = [f"--{name.replace('_', '-')}" for name in names if getattr(extraction, name) != getattr(usual, name)]
    if given and files.masks is not None:
        idle.append("--masks")
    if given and idle:
        raise KeypatchError(
            f"All keypoints of --keypoints-from are described. Leave out {', '.join(idle)}, which would have no effect."
        )


def _settings(
    describer: Describer, extraction: Extraction, keypoints_from: str | Path | None, files: FileOptions
) -> dict[str, Setting]:
    weights = describer.weights_hash if isinstance(describer, HasWeights) else None
    named: dict[str, Setting] = {"descriptor": describer.name, "weights": weights}
    named |= {"turn_by_exif": files.turn_by_exif, "half": files.half}
    if files.masks is not None:
        named["masks"] = hash_folder(Path(files.masks).rglob("*.png"))
    if keypoints_from is None:
        return named | extraction.settings(describer)
    origin: dict[str, Setting] = {"detector": "file", "detector.hash": hash_groups(Path(keypoints_from))}
    cut = cut_settings(describer, extraction.patch_sigmas)
    return named | origin | {"detector.sigma": files.sigma, "upright": extraction.upright} | cut


def require_inside(keypoints: Keypoints, name: str, size: tuple[int, int]) -> None:
    """DataError if keypoints lie more than a pixel outside a photo of this size, so that they cannot be its own.

    Detectors refine places, some of them over the border.
    """
    width, height = size
    outside = (keypoints.x < -1) | (keypoints.y < -1) | (keypoints.x > width) | (keypoints.y > height)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(
            f"{name}: keypoint {first} at ({keypoints.x[first]:g}, {keypoints.y[first]:g}) lies outside the photo of "
            f"{width} x {height} pixels. The keypoints belong to a photo of another size or orientation."
        )


def _show_first(photos: Sequence[Photo], out: Place, work: _Work, picture: Path) -> None:
    for photo in photos[:1]:
        with _at_hand(photo) as here:
            show_patches(work.read(here), read_features(out, photo.name), picture, photo.name)


def _report_failures(failures: Sequence[str], total: int, out: Place) -> None:
    if len(failures) == total == 1:
        raise DataError(failures[0])
    if failures:
        count = f"{len(failures)} of {total} photos"
        sentence = f"{count} could not be described; fix them or leave them out. {out} has the others."
        if len(failures) == total:
            sentence = f"None of the {total} photos could be described."
        raise DataError("\n".join([sentence, listed(failures, "\n")]))
