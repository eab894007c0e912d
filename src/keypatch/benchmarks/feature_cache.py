"""Features of images kept from one evaluation to the next, a small feature file for each.

A file is there whole or not at all, so that several processes may fill the same folder. Folders are named after what
their features depend on.
"""

import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import cv2
import h5py
import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import describer_identity, keeps_descriptors
from keypatch.benchmarks.kept_folders import kept_folder
from keypatch.describers.protocol import Describer
from keypatch.errors import DataError
from keypatch.features import Extraction, FeatureReader, Features, extract
from keypatch.features.feature_files import feature_attributes, write_features
from keypatch.features.features import Setting
from keypatch.files import write_atomically
from keypatch.geometry import Keypoints
from keypatch.provenance import provenance

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
        identity = describer_identity(describer) if keeps_descriptors() else None
        name = None if identity is None else _folder_name(identity, self.settings)
        kept = None if name is None else kept_folder("features", name, "Features")
        self.folder = kept or Path(tempfile.mkdtemp(prefix="keypatch-"))
        if kept is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, key: str, image: Callable[[], NDArray[np.uint8]], keypoints: Keypoints | None = None) -> Path:
        """The feature file of the image (h, w) with this key, whose only group is GROUP; at given keypoints, if any.

        The key has to change with them too.
        """
        path = self.folder / f"{key}.h5"
        if not _is_whole(path):
            features = extract(image(), self.describer, self.extraction, keypoints)
            _write(path, replace(features, settings=self.settings))
        return path

    def read(self, key: str, image: Callable[[], NDArray[np.uint8]]) -> Features:
        """The features of the image with this key."""
        with FeatureReader(self.file(key, image)) as reader:
            return reader.read(GROUP)


def _folder_name(identity: str, settings: Mapping[str, Setting]) -> str:
    """Other versions of keypatch or OpenCV may find other keypoints, so theirs lie elsewhere."""
    depends = [identity, dict(settings), provenance().version, cv2.__version__]
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:32]


def _is_whole(path: Path) -> bool:
    """Whether the file is there and not cut off."""
    try:
        with FeatureReader(path) as reader:
            return reader.names() == [GROUP]
    except DataError:
        return False


def _write(path: Path, features: Features) -> None:
    """The features as a file of their own. Made in memory: where a write fails, HDF5 ends the process."""
    content = BytesIO()
    with h5py.File(content, "w") as h5:
        h5.attrs.update(feature_attributes(features.descriptor, features.settings, provenance()))
        write_features(h5.create_group(GROUP), features)
    with write_atomically(path) as file:
        file.write(content.getbuffer())
