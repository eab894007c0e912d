"""Descriptors and features kept from one evaluation to the next, so that a changed metric does not run the network.

Descriptors of patches are one .npy file in the cache for each describer and data, features of photos a small feature
file for each, in a folder named after what they depend on. A file is there whole or not at all, so that several
processes may work at once; whatever cannot be read, written or believed costs a second describing and nothing else.
"""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.cache import cache_folder, cache_key, is_cache_enabled, keep_array, keep_folder, load_array
from keypatch.describers.protocol import CHUNK, Describer, HasWeights, PatchReader, channels_of, describe_all
from keypatch.describers.sift import SiftDescriber
from keypatch.engines import run, used
from keypatch.errors import DataError
from keypatch.features import Extraction, FeatureReader, Features, extract_grey
from keypatch.features.extraction import Setting
from keypatch.features.feature_files import feature_attributes, walk_h5, write_features
from keypatch.features.store import pack_groups
from keypatch.files import write_atomically
from keypatch.geometry import Keypoints
from keypatch.images import read_photo, resized_size
from keypatch.progress import Progress
from keypatch.provenance import provenance
from keypatch.sandbox import trust

PROBE_SIDES = (64, 65)  # of PhotoTour's and HPatches' patches: one that is halved, one that is resampled
PROBES = 8  # of each side: rounding to bfloat16 hides a small change in one of them


def describe_cached(
    describer: Describer, patches: PatchReader, data_hash: str, progress: Progress | None = None
) -> NDArray[np.float32]:
    """(n, dim) descriptors of all patches, read-only: those of an earlier call with the same `data_hash`, or new ones.

    `data_hash` has to change with the patches, as they are handed to the describer, and with their order.
    """
    identity = describer_identity(describer) if is_cache_enabled() else None
    if identity is None:
        return describe_all(describer, patches, progress)
    path = cache_folder() / "descriptors" / f"{identity[:16]}-{data_hash[:16]}.npy"
    kept = load_array(path, np.float32)
    if kept is not None and kept.shape == (len(patches), describer.dim):
        parts = (kept[start : start + CHUNK] for start in range(0, len(kept), CHUNK))
        if all(np.isfinite(part).all() for part in parts):
            return np.asarray(kept)
    descriptors = describe_all(describer, patches, progress)
    descriptors.flags.writeable = False  # as a mapped file's
    keep_array(path, descriptors, "Descriptors")
    return descriptors


def describer_identity(describer: Describer) -> str | None:
    """SHA-256 that is the same only for describers that give the same numbers; None if that cannot be known.

    Known are SIFT and whatever has weights. Beside the weights it covers what the describer makes of some patches of
    noise, hence everything else that acts on the numbers: preprocessing, precision, device, versions.
    """
    if not isinstance(describer, HasWeights | SiftDescriber):
        return None
    weights = describer.weights_hash if isinstance(describer, HasWeights) else ""
    digest = hashlib.sha256(f"{weights} {describer.dim} {describer.patch_size} {describer.patch_sigmas}".encode())
    rng, planes = np.random.default_rng(0), (3,) * (channels_of(describer) == 3)
    for side in PROBE_SIDES:
        for _ in range(PROBES):
            noise = rng.integers(0, 256, (1, *planes, side, side), np.uint8)
            digest.update(describer.describe(noise).tobytes())
    return digest.hexdigest()


GROUP = "photo"  # the only one of a file


class KeptFeatures:
    """Features of one describer with one extraction.

    They stay in the cache folder; within `without_cache`, or if it cannot be known what the describer depends on, or
    nothing can be written there, they last as long as this object.
    """

    def __init__(self, describer: Describer, extraction: Extraction, **more: Setting) -> None:
        """`more` is what else the images that will be given depend on."""
        self.describer, self.extraction = describer, extraction
        self.settings = {**extraction.settings(describer), **more}
        identity = describer_identity(describer) if is_cache_enabled() else None
        # other versions of keypatch or OpenCV may find other keypoints, so theirs lie elsewhere
        key = cache_key([identity, self.settings, provenance().version, cv2.__version__])
        kept = None if identity is None else keep_folder("features", key, "Features")
        self.folder = kept or Path(tempfile.mkdtemp(prefix="keypatch-"))
        if kept is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def files(
        self, images: Mapping[str, tuple[Path, Keypoints | None]], keys: Mapping[str, str], progress: Progress | None
    ) -> dict[str, Path]:
        """The feature files, whose only group is GROUP, of photos by their names; at given keypoints, if any.

        `keys` has to change with the photo and with these. What is not there yet is described on the engine that the
        evaluation uses.
        """
        places = {name: self._path(key) for name, key in keys.items()}
        telling, work = Progress.of(progress), _Extracting(self.describer, self.extraction, self.settings)
        left = [(name, *images[name]) for name in places if not _is_whole(places[name])]
        done = len(places) - len(left)
        telling.count(done, len(places), "photos")
        for made in run(work, left, used(), telling, name=itemgetter(0)):
            if made.error is not None:
                raise made.error
            for (name, *_), features in zip(made.items, made.result or (), strict=True):
                _write(places[name], features)
                done += 1
                telling.count(done, len(places), "photos")
        return places

    def file(self, key: str, image: Callable[[], NDArray[np.uint8]]) -> Path:
        """The feature file of the image (h, w) with this key."""
        path = self._path(key)
        if not _is_whole(path):
            features = extract_grey(image(), self.describer, self.extraction)
            _write(path, replace(features, settings=self.settings))
        return path

    def read(self, key: str, image: Callable[[], NDArray[np.uint8]]) -> Features:
        """The features of the image with this key."""
        with FeatureReader(self.file(key, image)) as reader:
            return reader.read(GROUP)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.h5"


@dataclass(frozen=True)
class _Extracting:
    """Photos to features, in a worker; `settings` may have a short side that they are resized to."""

    describer: Describer
    extraction: Extraction
    settings: Mapping[str, Setting]

    @contextmanager
    def open(self) -> Iterator[Callable[[tuple[tuple[str, Path, Keypoints | None], ...]], list[Features]]]:
        yield lambda batch: [self._extract(path, keypoints) for _, path, keypoints in batch]

    def _extract(self, path: Path, keypoints: Keypoints | None) -> Features:
        side = self.settings.get("short_side")
        image = resized(read_photo(path), None if side is None else int(side))
        return replace(extract_grey(image, self.describer, self.extraction, keypoints), settings=self.settings)


def resized(image: NDArray[np.uint8], short_side: int | None) -> NDArray[np.uint8]:
    """The grey photo (h, w) with a shorter side of so many pixels: bilinear, made smaller without aliasing."""
    if short_side is None:
        return image
    size = resized_size((image.shape[1], image.shape[0]), short_side)
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))


def _is_whole(path: Path) -> bool:
    """Whether the file is there and not cut off."""
    try:
        with FeatureReader(path) as reader:
            return reader.names() == [GROUP]
    except DataError:
        return False


def _write(path: Path, features: Features) -> None:
    """The features as a file of their own."""
    attributes = feature_attributes(features.descriptor, features.settings, provenance())
    with write_atomically(path) as file:
        file.write(pack_groups(attributes, {GROUP: partial(write_features, features=features)}))
    trust(walk_h5, path)
