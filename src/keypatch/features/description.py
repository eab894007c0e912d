"""Photographs become a feature file: what `keypatch describe` does."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction, FileOptions, Setting, cut_settings, extract_grey
from keypatch.features.feature_files import (
    FEATURES,
    feature_attributes,
    read_features,
    read_names,
    require_same_photos,
    stamp,
    write_features,
)
from keypatch.features.growing_file import GrowingFile, Write, grow_file, require_output
from keypatch.features.keypoint_files import KeypointSource, open_keypoints
from keypatch.features.patch_picture import show_patches
from keypatch.files import hash_file, hash_folder
from keypatch.geometry import Keypoints
from keypatch.images import Photo, find_photos, listed, read_mask, read_photo, require_masks, turned_sentence
from keypatch.progress import Callback, Progress, StopWish, counted
from keypatch.provenance import provenance
from keypatch.zoo.loading import load

_LOOK = 0.2  # seconds until a wish to stop is noticed


@dataclass(frozen=True)
class Description(os.PathLike[str]):
    """What `describe` did; wherever a path is asked for, it is that of the feature file.

    >>> kp.describe(["photos/a.jpg"], "features.h5", "rootsift").described
    1
    """

    path: Path
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
    show: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> Description:
    """Describe photos into the feature file `out`, which plain h5py reads as hloc's (`feature_files`).

    images: images, folders, or .txt lists of names; names in the file are paths below the folder, or below the root.
    out: photos that are in it already are skipped; settings other than those it was started with, or another photo
        of the same name, are an error.
    describer: what `load` gives, or what it takes: a zoo name, run folder or weight file.
    keypoints_from: hloc's h5, a COLMAP database or a csv instead of a detector: all of them, in their order.
    show: write a picture of some cut patches there.

    >>> kp.describe("photos", "features.h5", "rootsift")
    Description(path=PosixPath('features.h5'), described=2, skipped=0)

    Raises:
        DataError: photos could not be described; all others are in the file.
        Interrupted: Ctrl-C; what was done is in the file and the same call resumes.
    """
    progress, out = Progress.of(progress), Path(out)
    photos = find_photos([images] if isinstance(images, str | Path) else images, files.root)
    require_output(out, FEATURES.name)
    there = set(read_names(out)) if out.exists() else set[str]()
    left = sum(photo.name not in there for photo in photos)
    if left:
        name = describer if isinstance(describer, str | Path) else describer.name
        progress.note(f"describing {counted(left, 'photo')} with {name}")  # torch takes seconds to come
    if isinstance(describer, str | Path):
        describer = load(describer, device, precision)
    _require_effect(extraction, keypoints_from is not None, files)
    if files.masks is not None:
        require_masks(Path(files.masks), [photo.name for photo in photos])
    source = None if keypoints_from is None else open_keypoints(keypoints_from, files.sigma)
    settings = _settings(describer, extraction, keypoints_from, files)
    work = _Work(describer, extraction, source, settings, files)
    if not files.turn_by_exif and (turned := turned_sentence({photo.name: photo.path for photo in photos})):
        progress.say(turned)
    with grow_file(out, feature_attributes(describer.name, settings, provenance())) as file:
        earlier = sum(photo.name in file.keys for photo in photos)
        failures = _fill(file, photos, work, progress)
        try:
            if show is not None:
                _show_first(photos, file, work, Path(show))
        except KeypatchError as error:
            if not failures:
                raise
            progress.say(str(error))
    _report_failures(failures, len(photos), out)
    return Description(out, len(photos) - earlier, earlier)


@dataclass(frozen=True)
class _Work:
    """What is done with a photo, up to writing its features."""

    describer: Describer
    extraction: Extraction
    source: KeypointSource | None
    settings: dict[str, Setting]
    files: FileOptions

    def read(self, photo: Photo) -> NDArray[np.uint8]:
        return read_photo(photo.path, turn_by_exif=self.files.turn_by_exif, pixel_limit=self.files.pixel_limit)

    def __call__(self, photo: Photo) -> Write:
        try:
            image = self.read(photo)
            given = None if self.source is None else self.source.read(photo.name)
            if given is not None:
                require_inside(given, photo.name, (image.shape[1], image.shape[0]))
            masks = self.files.masks
            mask = None if masks is None else read_mask(Path(masks), photo.name, image.shape)
            features = extract_grey(image, self.describer, self.extraction, given, mask)
        except (cv2.error, MemoryError) as error:
            raise DataError(f"{photo.path} could not be described ({str(error).strip()}). Try --max-size.") from error
        features = replace(features, settings=self.settings)
        return partial(write_features, features=features, half=self.files.half, stamp=stamp(photo.path))


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
    origin: dict[str, Setting] = {"detector": "file", "detector.hash": hash_file(Path(keypoints_from))}
    cut = cut_settings(describer, extraction.patch_sigmas)
    return named | origin | {"detector.sigma": files.sigma, "upright": extraction.upright} | cut


def _fill(file: GrowingFile, photos: Sequence[Photo], work: _Work, progress: Progress) -> list[str]:
    """Describes what the file does not have; returns what went wrong, a sentence each."""
    require_same_photos(file.path, [photo for photo in photos if photo.name in file.keys])
    try:
        failures = _describe_all(photos, work, file, progress)
    finally:
        file.drop_if_empty()
    file.merge()
    return failures


def _describe_all(photos: Sequence[Photo], work: _Work, file: GrowingFile, progress: Progress) -> list[str]:
    failures, workers = dict[str, str](), work.files.workers
    waiting = iter([photo for photo in photos if photo.name not in file.keys])
    done = sum(photo.name in file.keys for photo in photos)
    progress.count(done, len(photos), "photos")
    with StopWish() as stop, _pool(workers) as pool:
        running = dict[Future[Write], Photo]()
        stopping = False
        while True:
            while not stop and len(running) < 2 * workers and (photo := next(waiting, None)):
                running[pool.submit(work, photo)] = photo
            if stop and not stopping:
                stopping = True
                running = {future: photo for future, photo in running.items() if not future.cancel()}
                progress.note("Stopping after the current photos.")
            if not running:
                break
            for future in wait(running, _LOOK, FIRST_COMPLETED).done:
                photo = running.pop(future)
                try:
                    file.add(photo.name, future.result())
                except DataError as error:
                    failures[photo.name] = f"{photo.origin}: {error}" if photo.origin else str(error)
                done += 1
                progress.count(done, len(photos), "photos")
        if stop:
            has = counted(len(file.keys), "photo")
            raise Interrupted(f"{file.path} keeps the {has} described so far" if file.keys else "")
    return [failures[photo.name] for photo in photos if photo.name in failures]


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads among which the cores are shared evenly: operators of one photo are too short to share many."""
    import torch

    torch_threads, opencv_threads = torch.get_num_threads(), cv2.getNumThreads()
    cv2.setNumThreads(max(1, opencv_threads // workers))
    share: Callable[[int], None] = torch.set_num_threads
    try:
        with ThreadPoolExecutor(workers, initializer=share, initargs=(max(1, torch_threads // workers),)) as pool:
            yield pool
    finally:
        cv2.setNumThreads(opencv_threads)
        torch.set_num_threads(torch_threads)


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
            f"{width} x {height} pixels. They belong to a photo of another size or orientation."
        )


def _show_first(photos: Sequence[Photo], file: GrowingFile, work: _Work, picture: Path) -> None:
    photo = next((photo for photo in photos if photo.name in file.keys), None)
    if photo is not None:
        show_patches(work.read(photo), read_features(file.path, photo.name), picture, photo.name)


def _report_failures(failures: Sequence[str], total: int, out: Path) -> None:
    if len(failures) == total == 1:
        raise DataError(failures[0])
    if failures:
        count = f"{len(failures)} of {total} photos"
        sentence = f"{count} could not be described; fix them or leave them out. {out} has the others."
        if len(failures) == total:
            sentence = f"None of the {total} photos could be described."
        raise DataError("\n".join([sentence, listed(failures, "\n")]))
