"""What a reconstruction is given beside the photos, read and checked: features, matches, known cameras."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap import Camera, PosedCamera, read_cameras
from keypatch.errors import DataError
from keypatch.features import FeatureReader
from keypatch.features.feature_files import differences, group_names, open_h5
from keypatch.geometry import Keypoints
from keypatch.images import Photo
from keypatch.matching.match_files import MatchReader, mangled, require_distinct_keys
from keypatch.matching.pairs import find_pairs
from keypatch.reconstruction.mapping import Inputs


def read_inputs(inputs: Inputs, cameras: dict[str, Camera]) -> dict[str, Keypoints] | None:
    """The keypoints of given features; DataError if a given file is damaged, or two of them do not belong together."""
    found = None if inputs.features is None else read_keypoints(Path(inputs.features), cameras)
    if inputs.matches is None:
        find_pairs(inputs.pairs, sorted(cameras))
    elif inputs.features is None:
        with MatchReader(inputs.matches):
            pass  # opening it is the check
    else:
        require_one_run(Path(inputs.features), Path(inputs.matches))
    return found


def read_known_cameras(path: Path, photos: Sequence[Photo]) -> dict[str, PosedCamera]:
    """The known cameras of these photos; DataError if there is none with a photo's name."""
    cameras, names = read_cameras(path), {photo.name for photo in photos}
    known = {name: camera for name, camera in cameras.items() if name in names}
    if not known:
        theirs, ours = next(iter(cameras), "none"), min(names)
        raise DataError(f'{path} has cameras for other photos, such as "{theirs}", but none for "{ours}".')
    return known


def read_keypoints(path: Path, cameras: Mapping[str, Camera]) -> dict[str, Keypoints]:
    """The keypoints of every photo that has a camera.

    Raises:
        DataError: a photo is not in the file, or it was described at another size or rotated by its EXIF tag.
    """
    found = {}
    with FeatureReader(path) as reader:
        if reader.settings.get("turn_by_exif"):
            raise DataError(
                f"{path} has photos rotated by EXIF; COLMAP uses them as stored. Describe without --turn-by-exif."
            )
        reader.require(cameras)
        for name, camera in cameras.items():
            size = reader.image_size(name)
            if size not in ((0, 0), (camera.width, camera.height)):
                raise DataError(
                    f"{path}: {name} was described at {size[0]} x {size[1]} pixels, but the photo has {camera.width} x "
                    f"{camera.height}. Describe these photos again."
                )
            found[name] = reader.keypoints(name, sigma=1.0)
    return found


def require_one_run(features: Path, matches: Path) -> None:
    """DataError if the match file was made from features of another descriptor or with other settings."""
    with FeatureReader(features) as described, MatchReader(matches) as matched:
        if not matched.settings:  # hloc's
            return
        settings = matched.settings.get("features", {})
        if bool(described.settings) != bool(settings):  # only files of keypatch say how they were made
            those, these = ("were", "were not") if settings else ("were not", "were")
            changed = f"its features {those} written by keypatch, these {these}"
        else:
            now = {"descriptor": described.descriptor} | described.settings
            changed = differences({"descriptor": matched.settings.get("descriptor")} | settings, now)
        if changed:
            raise DataError(f"{matches} was not made from {features}: {changed}. Match these features again.")


def read_matched_pairs(path: Path, counts: Mapping[str, int]) -> Iterator[tuple[tuple[str, str], NDArray[np.int32]]]:
    """The pairs of photos in a match file, with keypoint numbers (m, 2); `counts` has the keypoints of each photo."""
    names = list(counts)
    require_distinct_keys(names)
    with open_h5(path, "match file") as file:
        keys = set(group_names(file))
    pairs = [
        pair
        for pair in combinations(names, 2)
        if any(separator.join(map(mangled, each)) in keys for separator, each in product("/_", (pair, pair[::-1])))
    ]
    if not pairs:
        raise DataError(f"{path} has no matches between any two of these {len(names)} photos. Were they renamed?")
    with MatchReader(path) as reader:
        for pair in pairs:
            yield pair, reader.read(*pair, counts).indices
