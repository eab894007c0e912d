"""Features for reconstructions: at keypoints given with a set, of its binary descriptor files, or of any photos."""

from functools import partial
from pathlib import Path

from keypatch.benchmarks.caching import GROUP, KeptFeatures
from keypatch.benchmarks.eth.data import SfmSet
from keypatch.benchmarks.eth.files import DESCRIPTORS, KEYPOINTS, image_file, read_eth_descriptors, read_eth_keypoints
from keypatch.benchmarks.photo_features import (
    PhotoFeatures,
    Place,
    most_keypoints,
    photo_features,
    read_place,
    refuse_idle_extraction,
)
from keypatch.benchmarks.result import weights_of
from keypatch.benchmarks.stages import refuse_idle
from keypatch.describers.protocol import Describer
from keypatch.errors import DataError
from keypatch.features import Extraction, Features
from keypatch.features.description import require_inside
from keypatch.features.extraction import Setting, cut_settings
from keypatch.features.store import has_store
from keypatch.files import hash_file, hash_folder
from keypatch.progress import Progress


def sfm_features(
    source: Describer | str | Path, scene: SfmSet, extraction: Extraction, progress: Progress | None = None
) -> PhotoFeatures:
    """The features of a set's photos: a describer's, at the given keypoints if the set has any; or those of files.

    Files are a feature file, or a folder with descriptors/IMAGE.bin, and keypoints/IMAGE.bin unless they are the set's.
    """
    if isinstance(source, str | Path):
        refuse_idle_extraction(source, extraction)
        path = Path(source)
        others = path.is_dir() and not has_store(path)
        return _read_folder(path, scene) if others else photo_features(path, scene.photos)
    if scene.keypoints:
        return _describe_given(source, scene, extraction, progress)
    return photo_features(source, scene.photos, extraction, progress)


def _describe_given(
    describer: Describer, scene: SfmSet, extraction: Extraction, progress: Progress | None
) -> PhotoFeatures:
    why = f"{scene.name} has keypoints of its own, which are all described."
    refuse_idle("extraction", extraction, ("detector", "keypoints", "rule", "max_size"), why)
    given = {photo.name: read_eth_keypoints(scene.keypoints[photo.name]) for photo in scene.photos}
    for name, keypoints in given.items():
        require_inside(keypoints, str(scene.keypoints[name]), (scene.cameras[name].width, scene.cameras[name].height))
    kept = KeptFeatures(describer, extraction, given=True)
    keys = {
        photo.name: f"{hash_file(photo.path)[:32]}-{hash_file(scene.keypoints[photo.name])[:32]}"
        for photo in scene.photos
    }
    files = kept.files({photo.name: (photo.path, given[photo.name]) for photo in scene.photos}, keys, progress)
    places = {photo.name: Place(files[photo.name], GROUP, photo.path) for photo in scene.photos}
    settings: dict[str, Setting] = {
        "detector": "given",
        "keypoints": max(map(len, given.values())),
        "upright": extraction.upright,
        **cut_settings(describer, extraction.patch_sigmas),
    }
    return PhotoFeatures(describer.name, settings, weights_of(describer), places, partial(read_place, places), kept)


def _read_folder(folder: Path, scene: SfmSet) -> PhotoFeatures:
    names = [photo.name for photo in scene.photos]
    descriptors = {name: image_file(folder / DESCRIPTORS, name) for name in names}
    keypoints = dict(scene.keypoints)
    if (folder / KEYPOINTS).is_dir() or not keypoints:
        keypoints = {name: image_file(folder / KEYPOINTS, name) for name in names}
    for file in [*descriptors.values(), *keypoints.values()]:
        if not file.is_file():
            raise DataError(
                f"{folder} has no descriptors for {scene.name}: there is no {file}. Give a feature file, or a folder "
                "with descriptors/IMAGE.bin and keypoints/IMAGE.bin."
            )

    def read(name: str) -> Features:
        points, camera = read_eth_keypoints(keypoints[name]), scene.cameras[name]
        rows = read_eth_descriptors(descriptors[name], len(points))
        return Features(points, rows, (camera.width, camera.height), folder.resolve().name, {})

    most = most_keypoints({name: read(name).descriptors.shape for name in names}, folder)
    hashes = {"features": hash_folder([*descriptors.values(), *keypoints.values()])}
    return PhotoFeatures(folder.resolve().name, {"detector": "given", "keypoints": most}, hashes, names, read)
