"""Features for reconstructions: at keypoints given with a set, of its binary descriptor files, or of any photos."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from keypatch.benchmarks.feature_cache import GROUP, KeptFeatures
from keypatch.benchmarks.photo_features import PhotoFeatures, Place, photo_features, refuse_idle_extraction
from keypatch.benchmarks.result import weights_of
from keypatch.benchmarks.sfm_data import SfmSet
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, Features, read_photo
from keypatch.features.eth_files import DESCRIPTORS, KEYPOINTS, image_file, read_eth_descriptors, read_eth_keypoints
from keypatch.features.extracting import cut_settings
from keypatch.features.features import Setting
from keypatch.files import hash_file, hash_folder
from keypatch.geometry import Keypoints

MARGIN = 1.0  # pixels outside the photo: detectors refine places, some of them over the border


@dataclass(frozen=True, eq=False)
class EthFeatures(Mapping[str, Features]):
    """The features of a set in the benchmark's own files; each is read whenever it is asked for."""

    descriptor: str
    settings: Mapping[str, Setting]
    hashes: Mapping[str, str]
    keypoints: Mapping[str, Path]
    descriptors: Mapping[str, Path]
    sizes: Mapping[str, tuple[int, int]]

    def __getitem__(self, name: str) -> Features:
        keypoints = read_eth_keypoints(self.keypoints[name])
        rows = read_eth_descriptors(self.descriptors[name], len(keypoints))
        return Features(keypoints, rows, self.sizes[name], self.descriptor, self.settings)

    def __iter__(self) -> Iterator[str]:
        return iter(self.descriptors)

    def __len__(self) -> int:
        return len(self.descriptors)


def sfm_features(
    source: Describer | str | Path, scene: SfmSet, extraction: Extraction, progress: Progress | None = None
) -> PhotoFeatures | EthFeatures:
    """The features of a set's photos: a describer's, at the given keypoints if the set has any; or those of files.

    Files are a feature file, or a folder with descriptors/IMAGE.bin, and keypoints/IMAGE.bin unless they are the set's.
    """
    if isinstance(source, str | Path):
        refuse_idle_extraction(source, extraction)
        path = Path(source)
        return _read_folder(path, scene) if path.is_dir() else photo_features(path, scene.photos)
    if scene.keypoints:
        return _describe_given(source, scene, extraction, progress)
    return photo_features(source, scene.photos, extraction, progress)


def _describe_given(
    describer: Describer, scene: SfmSet, extraction: Extraction, progress: Progress | None
) -> PhotoFeatures:
    usual = Extraction()
    idle = [
        name
        for name in ("detector", "keypoints", "rule", "max_size")
        if getattr(extraction, name) != getattr(usual, name)
    ]
    if idle:
        raise KeypatchError(
            f"{scene.name} has keypoints of its own, which are all described. Leave out extraction.{idle[0]}, which "
            "would change nothing."
        )
    given = {photo.name: _inside(scene, photo.name) for photo in scene.photos}
    kept, places = KeptFeatures(describer, extraction, given=True), dict[str, Place]()
    for number, photo in enumerate(scene.photos):
        key = f"{hash_file(photo.path)[:32]}-{hash_file(scene.keypoints[photo.name])[:32]}"
        places[photo.name] = Place(
            kept.file(key, partial(read_photo, photo.path), given[photo.name]), GROUP, photo.path
        )
        if progress is not None:
            progress(number + 1, len(scene.photos))
    settings: dict[str, Setting] = {
        "detector": "given",
        "keypoints": max(map(len, given.values())),
        "upright": extraction.upright,
        **cut_settings(describer, extraction.patch_sigmas),
    }
    return PhotoFeatures(describer.name, settings, weights_of(describer), places, kept)


def _inside(scene: SfmSet, name: str) -> Keypoints:
    """The given keypoints of a photo; DataError if they cannot be its own."""
    keypoints, camera = read_eth_keypoints(scene.keypoints[name]), scene.cameras[name]
    limits = np.array([camera.width, camera.height]) - 1 + MARGIN
    outside = np.flatnonzero(((keypoints.xy < -MARGIN) | (keypoints.xy > limits)).any(axis=1))
    if outside.size:
        x, y = keypoints.xy[outside[0]]
        raise DataError(
            f"{scene.keypoints[name]}: keypoint {outside[0]} at ({x:g}, {y:g}) lies outside the photo of "
            f"{camera.width} x {camera.height} pixels. The keypoints are those of another photo, or of another size."
        )
    return keypoints


def _read_folder(folder: Path, scene: SfmSet) -> EthFeatures:
    names = [photo.name for photo in scene.photos]
    descriptors = {name: image_file(folder / DESCRIPTORS, name) for name in names}
    keypoints = dict(scene.keypoints)
    if (folder / KEYPOINTS).is_dir() or not keypoints:
        keypoints = {name: image_file(folder / KEYPOINTS, name) for name in names}
    for file in [*descriptors.values(), *keypoints.values()]:
        if not file.is_file():
            raise DataError(
                f"{folder} does not hold the descriptors of {scene.name}: there is no {file}. Give a feature file, or "
                "a folder with descriptors/IMAGE.bin and keypoints/IMAGE.bin."
            )
    sizes = {name: (camera.width, camera.height) for name, camera in scene.cameras.items()}
    hashes = {"features": hash_folder([*descriptors.values(), *keypoints.values()])}
    features = EthFeatures(folder.resolve().name, {}, hashes, keypoints, descriptors, sizes)
    shapes = [features[name].descriptors.shape for name in names]
    dims = {columns for _, columns in shapes}
    if len(dims) > 1:
        raise DataError(
            f"{folder / DESCRIPTORS} has descriptors of {min(dims)} and of {max(dims)} numbers. Describe again."
        )
    return replace(features, settings={"detector": "given", "keypoints": max(rows for rows, _ in shapes)})
