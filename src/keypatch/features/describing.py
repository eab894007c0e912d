"""Photos become a feature file: what `keypatch describe` does."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.detection import Detector, Rule, make_detector
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features.extracting import Extraction, cut_settings, extract
from keypatch.features.feature_files import FORMAT, feature_attributes, read_features, write_features
from keypatch.features.features import Setting
from keypatch.features.growing_file import GrowingFile, Write, grow_file, require_output
from keypatch.features.keypoint_files import KeypointSource, open_keypoints
from keypatch.features.photos import PIXEL_LIMIT, Photo, find_photos, odd_orientations, read_header, read_photo
from keypatch.features.progress import Quiet, Reporter, counted
from keypatch.features.showing import show_patches
from keypatch.features.stamps import require_same_photos, stamp
from keypatch.files import hash_file
from keypatch.geometry import Keypoints
from keypatch.interrupting import StopWish
from keypatch.provenance import provenance
from keypatch.zoo.finding import find

_NAMED = 10  # photos listed in a message
_LOOK = 0.2  # seconds until a wish to stop is noticed


def describe(
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    descriptor: str | Path = "hynet-notredame",
    *,
    detector: str | Detector = "dog",
    keypoints: int | None = Extraction.keypoints,
    rule: Rule = Extraction.rule,
    max_size: int | None = Extraction.max_size,
    upright: bool = Extraction.upright,
    patch_sigmas: float | None = Extraction.patch_sigmas,
    keypoints_from: str | Path | None = None,
    sigma: float | None = None,
    root: str | Path | None = None,
    turn_by_exif: bool = False,
    pixel_limit: int = PIXEL_LIMIT,
    half: bool = False,
    workers: int = 1,
    show: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    reporter: Reporter | None = None,
) -> Path:
    """Describe photos and return the feature file, which plain h5py reads as hloc's (`feature_files`).

    images: images, folders, or .txt lists of names; names in the file are paths below the folder, or below `root`.
    out: photos that are in it already are skipped; other settings than it was begun with, or another photo of the same
        name, are an error.
    descriptor: a zoo name, run folder or weight file; `patch_sigmas` cuts wider or narrower than it was trained for.
    detector: a name or a Detector; the best `keypoints` (None: all) by the `rule`, found in the photo made `max_size`
        pixels long. `upright` takes every angle for 0.
    keypoints_from: hloc's h5, a COLMAP database or a csv instead of a detector: all of them, in their order; `sigma` is
        their scale where the file has none.
    turn_by_exif: turn the pixels as the EXIF tag says; else they, and the keypoints, are as stored in the file.
    half: keep descriptors as float16.
    workers: photos described at once, in threads that share the processor's cores evenly.
    show: write a picture of some cut patches there.

    Raises:
        DataError: photos could not be described; all others are in the file.
        Interrupted: Ctrl-C; what was done is in the file and the same call goes on.
    """
    if workers < 1:
        raise KeypatchError(f"{workers} workers were asked for; there must be at least one.")
    reporter = reporter or Quiet()
    photos = find_photos([images] if isinstance(images, str | Path) else images, root)
    require_output(Path(out), FORMAT)
    reporter.note(f"describing {counted(len(photos), 'photo')} with {descriptor}")  # torch takes seconds to come
    describer = find(descriptor, device, precision)
    chosen = make_detector(detector) if isinstance(detector, str) else detector
    extraction = Extraction(chosen, keypoints, rule, max_size, upright, patch_sigmas)
    _require_effect(extraction, keypoints_from is not None, sigma is not None)
    source = None if keypoints_from is None else open_keypoints(keypoints_from, sigma)
    settings = _settings(describer, extraction, keypoints_from, sigma) | {"turn_by_exif": turn_by_exif, "half": half}
    work = Work(describer, extraction, source, settings, turn_by_exif, pixel_limit, half)
    if not turn_by_exif:
        _warn_of_turned(photos, reporter)
    with grow_file(Path(out), feature_attributes(describer.name, settings, provenance())) as file, reporter:
        failures = _fill(file, photos, work, workers, reporter)
        try:
            if show is not None:
                _show_first(photos, file, work, Path(show))
        except KeypatchError as error:
            if not failures:
                raise
            reporter.say(str(error))
    _report_failures(failures, len(photos), Path(out))
    return Path(out)


@dataclass(frozen=True)
class Work:
    """What is done with a photo, up to writing its features."""

    describer: Describer
    extraction: Extraction
    source: KeypointSource | None
    settings: dict[str, Setting]
    turn_by_exif: bool
    pixel_limit: int
    half: bool

    def __call__(self, photo: Photo) -> Write:
        try:
            image = read_photo(photo.path, turn_by_exif=self.turn_by_exif, pixel_limit=self.pixel_limit)
            given = None if self.source is None else self.source.read(photo.name)
            if given is not None:
                _require_inside(given, photo.name, image.shape)
            features = extract(image, self.describer, self.extraction, given)
        except (cv2.error, MemoryError) as error:
            raise DataError(f"{photo.path} could not be described ({str(error).strip()}). Try --max-size.") from error
        features = replace(features, settings=self.settings)
        return partial(write_features, features=features, half=self.half, stamp=stamp(photo.path))


def _require_effect(extraction: Extraction, given: bool, sigma: bool) -> None:
    """KeypatchError for choices that would change nothing."""
    if sigma and not given:
        raise KeypatchError("--sigma is the scale of keypoints of a file; leave it out, or give --keypoints-from.")
    usual, names = Extraction(), ("detector", "keypoints", "rule", "max_size")
    idle = [f"--{name.replace('_', '-')}" for name in names if getattr(extraction, name) != getattr(usual, name)]
    if given and idle:
        raise KeypatchError(
            f"All keypoints of --keypoints-from are described; leave out {', '.join(idle)}, which would change nothing."
        )


def _settings(
    describer: Describer, extraction: Extraction, keypoints_from: str | Path | None, sigma: float | None
) -> dict[str, Setting]:
    weights = describer.weights_hash if isinstance(describer, HasWeights) else None
    named: dict[str, Setting] = {"descriptor": describer.name, "weights": weights}
    if keypoints_from is None:
        return named | extraction.settings(describer)
    origin: dict[str, Setting] = {"detector": "file", "detector.hash": hash_file(Path(keypoints_from))}
    cut = cut_settings(describer, extraction.patch_sigmas)
    return named | origin | {"detector.sigma": sigma, "upright": extraction.upright} | cut


def _fill(file: GrowingFile, photos: Sequence[Photo], work: Work, workers: int, reporter: Reporter) -> list[str]:
    """Describes what the file does not have; returns what went wrong, a sentence each."""
    require_same_photos(file.path, [photo for photo in photos if photo.name in file.keys])
    try:
        failures = _describe_all(photos, work, file, workers, reporter)
    finally:
        file.drop_if_empty()
    file.merge()
    return failures


def _describe_all(
    photos: Sequence[Photo], work: Work, file: GrowingFile, workers: int, reporter: Reporter
) -> list[str]:
    failures = dict[str, str]()
    waiting = iter([photo for photo in photos if photo.name not in file.keys])
    done = sum(photo.name in file.keys for photo in photos)
    reporter.count(done, len(photos))
    with StopWish() as stop, _pool(workers) as pool:
        running = dict[Future[Write], Photo]()
        stopping = False
        while True:
            while not stop and len(running) < 2 * workers and (photo := next(waiting, None)):
                running[pool.submit(work, photo)] = photo
            if stop and not stopping:
                stopping = True
                running = {future: photo for future, photo in running.items() if not future.cancel()}
                reporter.note("Stopping after the photos at work.")
            if not running:
                break
            for future in wait(running, _LOOK, FIRST_COMPLETED).done:
                photo = running.pop(future)
                try:
                    file.add(photo.name, future.result())
                except DataError as error:
                    failures[photo.name] = f"{photo.origin}: {error}" if photo.origin else str(error)
                done += 1
                reporter.count(done, len(photos))
        if stop:
            if not file.keys:
                raise Interrupted("Stopped; nothing was written. The same command begins again.")
            has = counted(len(file.keys), "photo")
            raise Interrupted(f"Stopped: {file.path} has {has}. The same command goes on.")
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


def _require_inside(keypoints: Keypoints, name: str, shape: tuple[int, ...]) -> None:
    height, width = shape
    outside = (keypoints.x < -1) | (keypoints.y < -1) | (keypoints.x > width) | (keypoints.y > height)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(
            f"{name}: keypoint {first} at ({keypoints.x[first]:g}, {keypoints.y[first]:g}) lies outside the photo of "
            f"{width} x {height} pixels. The keypoints are those of another size or of a turned photo."
        )


def _warn_of_turned(photos: Sequence[Photo], reporter: Reporter) -> None:
    orientations = dict[str, int]()
    for photo in photos:
        try:
            orientations[photo.name] = read_header(photo.path).orientation
        except DataError:
            continue  # told when it is read
    if len(set(orientations.values())) > 1:
        usual, others = odd_orientations(orientations)
        reporter.say(
            f"{len(others)} of {len(photos)} photos have another EXIF orientation than the rest ({usual}): "
            f"{_listed(others, ', ')}. Pixels are taken as stored; --turn-by-exif turns them."
        )


def _show_first(photos: Sequence[Photo], file: GrowingFile, work: Work, picture: Path) -> None:
    photo = next((photo for photo in photos if photo.name in file.keys), None)
    if photo is not None:
        image = read_photo(photo.path, turn_by_exif=work.turn_by_exif, pixel_limit=work.pixel_limit)
        show_patches(image, read_features(file.path, photo.name), picture, photo.name)


def _report_failures(failures: Sequence[str], total: int, out: Path) -> None:
    if len(failures) == total == 1:
        raise DataError(failures[0])
    if failures:
        sentence = f"{len(failures)} of {total} photos could not be described; {out} has the others."
        if len(failures) == total:
            sentence = f"None of the {total} photos could be described."
        raise DataError("\n".join([sentence, _listed(failures, "\n")]))


def _listed(items: Sequence[str], separator: str) -> str:
    more = [f"and {len(items) - _NAMED} more"] if len(items) > _NAMED else []
    return separator.join([*items[:_NAMED], *more])
