"""Keypoints and matches out of feature and match files, ours or hloc's, for photos that are at hand."""

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.features import FeatureReader
from keypatch.features.feature_files import open_h5
from keypatch.features.growing_file import keys_of
from keypatch.features.heads import differences
from keypatch.geometry import Keypoints
from keypatch.matching.match_files import MatchReader, mangled, require_distinct_keys
from keypatch.reconstruction.camera_models import Camera


def read_keypoints(path: Path, cameras: Mapping[str, Camera]) -> dict[str, Keypoints]:
    """The keypoints of every photo that has a camera.

    Raises:
        DataError: a photo is not in the file, or its features were found in a copy of another size or in a turned one.
    """
    found = {}
    with FeatureReader(path) as reader:
        if reader.settings.get("turn_by_exif"):
            raise DataError(f"{path} is of photos turned by EXIF, COLMAP's are as stored. Describe without turning.")
        reader.require(cameras)
        for name, camera in cameras.items():
            size = reader.image_size(name)
            if size not in ((0, 0), (camera.width, camera.height)):
                raise DataError(
                    f"{path}: {name} was described with {size[0]} x {size[1]} pixels, the photo has {camera.width} x "
                    f"{camera.height}. Describe these photos."
                )
            found[name] = reader.keypoints(name, sigma=1.0)
    return found


def require_match_file(path: Path) -> None:
    """DataError if it is none, or is damaged."""
    with MatchReader(path):
        pass


def require_one_run(features: Path, matches: Path) -> None:
    """DataError if the match file says that its features were of another descriptor or other settings."""
    with FeatureReader(features) as described, MatchReader(matches) as matched:
        if not matched.settings:  # hloc's
            return
        settings = matched.settings.get("features", {})
        if bool(described.settings) != bool(settings):  # only files of keypatch say how they were made
            those, these = ("were", "were not") if settings else ("were not", "were")
            changed = f"those {those} written by keypatch, these {these}"
        else:
            now = {"descriptor": described.descriptor} | described.settings
            changed = differences({"descriptor": matched.settings.get("descriptor")} | settings, now)
        if changed:
            raise DataError(f"{matches} has matches of other features than {features}: {changed}. Match these.")


def read_matched_pairs(path: Path, counts: Mapping[str, int]) -> Iterator[tuple[tuple[str, str], NDArray[np.int32]]]:
    """The pairs of photos that a match file has, with keypoint numbers (m, 2); `counts` is of keypoints, by photo."""
    names = list(counts)
    require_distinct_keys(names)
    with open_h5(path, "match file") as file:
        keys = set(keys_of(file))
    pairs = [pair for pair in combinations(names, 2) if keys.intersection(_possible_keys(*pair))]
    if not pairs:
        raise DataError(f"{path} has no matches of any two of these {len(names)} photos. Were they called otherwise?")
    with MatchReader(path) as reader:
        for pair in pairs:
            yield pair, reader.read(*pair, counts).indices


def _possible_keys(first: str, second: str) -> list[str]:
    """As hloc writes a pair of names, now and earlier, either way round."""
    orders = ((mangled(first), mangled(second)), (mangled(second), mangled(first)))
    return [separator.join(order) for separator, order in product("/_", orders)]
