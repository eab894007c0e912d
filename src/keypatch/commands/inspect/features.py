"""Looking at feature files and match files, ours and hloc's: counts, settings, and what would spoil their use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.commands.inspect.patches import Findings
from keypatch.doctor.evidence import are_near, measure_lengths
from keypatch.errors import DataError
from keypatch.features import FeatureReader
from keypatch.features.feature_files import find_group, group_names, open_h5, read_array, read_attribute
from keypatch.features.store import SHARD, Store
from keypatch.matching.match_files import MatchReader
from keypatch.storage import Place

_FRAMES = ("scales", "oris", "scores")
_NONE = -1  # the partner of a keypoint without a match
_LOOKED_AT = 1000  # photos or pairs of a store
_UNKNOWN = "not recorded; hloc counts pixels as OpenCV does"


@dataclass(frozen=True)
class _Photo:
    """What a file has of a photo."""

    keypoints: int
    dim: int | None  # None: no descriptors to tell it from
    kinds: dict[str, str]  # of number, by the name of the array
    faults: tuple[str, ...]  # the rest of a sentence that begins with the photo's name


def look_at_features(file: Place) -> Findings:
    photos = dict[str, _Photo]()
    with FeatureReader(file) as reader, open_h5(file) as h5:
        settings, descriptor, names = reader.settings, reader.descriptor, reader.names()
        yield "photos", f"{len(names):,}"
        yield from _shards(h5, len(names), "photos")
        convention = read_attribute(file, h5, "convention")
        for name in _some(h5, names):
            try:
                photos[name] = _look_at_photo(file, find_group(file, h5, name), ours=bool(settings))
            except DataError as error:
                yield error
    yield "keypoints", _spread([photo.keypoints for photo in photos.values()], "photo")
    dims = sorted({photo.dim for photo in photos.values() if photo.dim is not None})
    yield "descriptors", f"{' or '.join(map(str, dims))} numbers" if dims else "none"
    yield "descriptor", descriptor
    for key in ("keypoints", "descriptors"):
        yield f"{key} kept as", " or ".join(sorted({photo.kinds.get(key, "none") for photo in photos.values()}))
    known = [key for key in _FRAMES if all(key in photo.kinds for photo in photos.values())]
    yield "with each keypoint", ", ".join(known) or "only its position"
    yield "convention", _UNKNOWN if convention is None else str(convention)
    if settings:
        yield "settings", ", ".join(f"{key} = {value}" for key, value in settings.items())
    yield from _summed((name, fault) for name, photo in photos.items() for fault in photo.faults)
    if dims:
        bare = [name for name, photo in photos.items() if "descriptors" not in photo.kinds]
        yield from _summed((name, "has no descriptors. Describe the photo") for name in bare)
    if len(dims) > 1:
        yield DataError(
            f"{file} mixes descriptors of {' and '.join(map(str, dims))} dimensions. Describe all photos with the same "
            "descriptor."
        )


def look_at_matches(file: Place) -> Findings:
    with MatchReader(file) as reader, open_h5(file, "match file") as h5:
        yield "pairs", f"{len(reader):,}"
        yield from _shards(h5, len(reader), "pairs")
        pairs = {key: _partners(file, find_group(file, h5, key)) for key in _some(h5, group_names(h5))}
        yield "matches", _spread([int((partners >= 0).sum()) for partners in pairs.values()], "pair")
        models = [
            str(model)
            for key in pairs
            if (model := read_attribute(file, find_group(file, h5, key), "model")) is not None
        ]
        yield "verified", f"{len(models):,} pairs ({', '.join(sorted(set(models)))})" if models else "not recorded"
        kinds = sorted({str(partners.dtype) for partners in pairs.values()})
        limit = "; keypoint numbers above 32,767 do not fit" if "int16" in kinds else ""
        yield "numbers as", f"{', '.join(kinds)}{limit}"
    wrapped = "has negative keypoint indices: there are more keypoints than int16 can count. Match again with int32"
    yield from _summed((key, wrapped) for key, partners in pairs.items() if len(partners) and partners.min() < _NONE)


def _shards(file: Any, count: int, thing: str) -> Findings:
    """Of a store: how many files it has, and how much of it is looked at."""
    if isinstance(file, Store):
        indexed = "" if not file.fresh else f"; {len(file.fresh):,} {thing} not in the index yet"
        yield "files", f"{len(file.folder.names(SHARD)):,}{indexed}"
        if count > _LOOKED_AT:
            yield "looked at", f"{_LOOKED_AT:,} {thing}, evenly spread"


def _some(file: Any, names: Sequence[str]) -> Sequence[str]:
    """All of a file; of a large store names that are evenly spread."""
    if not isinstance(file, Store) or len(names) <= _LOOKED_AT:
        return names
    return [names[number * len(names) // _LOOKED_AT] for number in range(_LOOKED_AT)]


def _look_at_photo(file: Place, group: Any, *, ours: bool) -> _Photo:
    read = {key: read_array(file, group, key) for key in ("keypoints", "descriptors", "image_size", *_FRAMES)}
    arrays = {key: array for key, array in read.items() if array is not None}
    kinds = {key: str(group[key].dtype) for key in arrays}
    keypoints, descriptors = arrays["keypoints"], arrays.get("descriptors")
    if keypoints.ndim != 2 or keypoints.shape[1] < 2:
        raise DataError(f"{file}: the keypoints of {group.name[1:]} are not an (n, 2) array. Write the file again.")
    faults, dim = [*_keypoint_faults(arrays, kinds)], None
    if descriptors is not None:
        faults += _descriptor_faults(descriptors, len(keypoints), ours=ours)
        if descriptors.ndim == 2 and len(keypoints) in descriptors.shape:
            dim = descriptors.shape[0 if descriptors.shape[1] == len(keypoints) else 1]
    return _Photo(len(keypoints), dim, kinds, tuple(faults))


def _keypoint_faults(arrays: dict[str, NDArray[Any]], kinds: dict[str, str]) -> Iterator[str]:
    xy, size, scales = arrays["keypoints"][:, :2], arrays.get("image_size"), arrays.get("scales")
    if kinds["keypoints"] == "float16":
        yield "has float16 keypoints, which are rounded to whole pixels beyond 1024. Write them as float32"
    if not np.isfinite(xy).all():
        yield "has keypoints that are not finite. Leave them out"
    elif size is not None and size.shape == (2,) and ((xy < -1) | (xy > size)).any():
        yield "has keypoints outside its image_size. They belong to a copy of the photo in another size or orientation"
    if scales is not None and not (np.isfinite(scales) & (scales > 0)).all():
        yield "has scales that are not above 0. Are they padding? Leave out those keypoints"


def _descriptor_faults(descriptors: NDArray[Any], count: int, *, ours: bool) -> Iterator[str]:
    if descriptors.ndim != 2 or count not in descriptors.shape:
        yield f"has different numbers of descriptors and keypoints. Expected the shape (dim, {count})"
        return
    transposed = descriptors.shape[1] != count
    if transposed:
        yield "has descriptors in rows (n, dim); hloc expects columns (dim, n). Transpose them"
    rows = descriptors if transposed else descriptors.T
    if not np.isfinite(rows).all():
        yield "has descriptors that are not finite. Describe it again"
    elif count and not ours and not are_near(measure_lengths(rows.astype(np.float64)), 1.0):  # ours may be raw
        yield "has descriptors whose length is not 1. Divide each by its Euclidean length"


def _summed(faults: Iterator[tuple[str, str]]) -> Findings:
    """A fault of several photos or pairs as one sentence."""
    owners = dict[str, list[str]]()
    for name, fault in faults:
        owners.setdefault(fault, []).append(name)
    for fault, names in owners.items():
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        yield DataError(f"{names[0]}{others} {fault}.")


def _partners(file: Place, group: Any) -> NDArray[Any]:
    partners = read_array(file, group, "matches0")
    if partners is None or partners.ndim != 1 or partners.dtype.kind not in "iu":
        raise DataError(f"{file}: {group.name} has no integer array matches0. Write the file again.")
    return partners


def _spread(counts: Sequence[int], each: str) -> str:
    if not counts:
        return "none"
    return f"{sum(counts):,}, {min(counts):,} to {max(counts):,} a {each} (mean {np.mean(counts):,.1f})"
