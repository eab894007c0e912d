"""Feature files: HDF5 in hloc's layout, with float32 keypoints and the convention recorded.

A group per photo holds keypoints (n, 2), descriptors (dim, n), scales (sigma), oris (degrees clockwise), scores and
image_size (width, height); keypoints that are sheared also have shapes (n, 2, 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.features.features import Features, Setting
from keypatch.features.heads import Attributes, make_head, read_settings, read_text, require_kind
from keypatch.files import reason, safe_name
from keypatch.geometry import Keypoints
from keypatch.geometry.converters import from_hloc, to_hloc
from keypatch.provenance import Provenance

FORMAT, NUMBER = "keypatch-features", 1
CONVENTION = (
    "keypoints: pixels, the centre of the top-left pixel is (0, 0); scales: sigma of the interest point in pixels; "
    "oris: degrees clockwise on screen from the x axis; pixels of the file as stored, unless settings.turn_by_exif"
)
_NAMED = 3  # photos
_SMALLEST_SHARE = 1000  # no compression of HDF5's makes an array smaller than this part of it


class FeatureReader:
    """A feature file, ours or hloc's, opened for reading; use it in a `with`."""

    def __init__(self, path: str | Path) -> None:
        """Raises DataError: the file is missing, damaged, of another kind, or of a newer format."""
        self.path = Path(path)
        self._file = open_h5(self.path)
        try:
            self.settings, self.descriptor = _read_head(self.path, self._file)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def names(self) -> list[str]:
        """The photos in it, sorted; a name that leads out of a folder raises DataError."""
        return [safe_name(name, str(self.path)) for name in group_names(self._file)]

    def require(self, names: Iterable[str]) -> None:
        """DataError if it lacks one of these photos."""
        known = self.names()
        missing = min(set(names).difference(known), default=None)
        if missing is not None:
            raise DataError(f"{self.path} has no features of {missing}. {_remedy(missing, known)}")

    def read(self, name: str) -> Features:
        """The features of a photo; keypoints of a foreign file without scales have the sigma 1."""
        group = self._group(name)
        keypoints = self.keypoints(name, sigma=1.0)
        descriptors = self._array(group, "descriptors")
        if descriptors is None:
            raise DataError(f"{self.path}: {name} has no descriptors. Describe the photo.")
        if descriptors.ndim != 2 or len(keypoints) not in descriptors.shape:
            raise DataError(
                f"{self.path}: {name} has {len(keypoints)} keypoints but descriptors of the shape {descriptors.shape}; "
                f"(dim, {len(keypoints)}) was expected. Write the file again."
            )
        rows = descriptors.T if descriptors.shape[1] == len(keypoints) else descriptors
        if not np.isfinite(rows).all():
            raise DataError(f"{self.path}: {name} has descriptors that are not finite. Write the file again.")
        contiguous = np.ascontiguousarray(rows, np.float32)
        return Features(keypoints, contiguous, self.image_size(name), self.descriptor, self.settings)

    def keypoints(self, name: str, sigma: float | None = None) -> Keypoints:
        """The keypoints of a photo; `sigma` is theirs where the file has no scales, which is an error without it."""
        group = self._group(name)
        arrays = {key: self._array(group, key) for key in ("keypoints", "scales", "oris", "scores", "shapes")}
        shape = arrays.pop("shapes")
        try:
            found = from_hloc(**arrays, sigma=sigma)  # type: ignore[arg-type]
            return Keypoints(found.x, found.y, found.sigma, found.angle, shape, found.response)  # type: ignore[arg-type]
        except KeypatchError as error:
            raise DataError(f"{self.path}: {name}: {error}") from error

    def image_size(self, name: str) -> tuple[int, int]:
        """(width, height) of a photo, or (0, 0) where the file does not say."""
        size = self._array(self._group(name), "image_size")
        if size is None:
            return 0, 0
        if size.shape != (2,) or not np.isfinite(size).all() or (size < 0).any():  # type: ignore[operator]
            raise DataError(f"{self.path}: the image_size of {name} is not a width and a height. Write the file again.")
        return int(size[0]), int(size[1])

    def _group(self, name: str) -> Any:
        return find_group(self.path, self._file, name)

    def _array(self, group: Any, key: str) -> NDArray[np.generic] | None:
        return read_array(self.path, group, key)


def read_names(path: str | Path) -> list[str]:
    """The names of the photos in a feature file."""
    with FeatureReader(path) as reader:
        return reader.names()


def read_features(path: str | Path, name: str) -> Features:
    """The features of one photo in a feature file, ours or hloc's."""
    with FeatureReader(path) as reader:
        return reader.read(name)


def feature_attributes(descriptor: str, settings: Mapping[str, Setting], origin: Provenance) -> Attributes:
    """What a file of features says about itself."""
    return {
        **make_head(FORMAT, NUMBER, settings, origin),
        "convention": CONVENTION,
        "descriptor": descriptor,
        "patch_sigmas": float(settings["patch_sigmas"] or 0),
    }


def write_features(
    group: Any, features: Features, *, half: bool = False, stamp: Mapping[str, str | int] | None = None
) -> None:
    """Fill the new group of a photo; `half` keeps descriptors, and nothing else, as float16; `stamp` as in `stamps`."""
    group.attrs.update(stamp or {})
    keypoints = features.keypoints
    for key, array in to_hloc(keypoints.without_shape()).items():
        group.create_dataset(key, data=array)
    if keypoints.shape is not None:
        group.create_dataset("shapes", data=keypoints.shape)
    group.create_dataset("descriptors", data=features.descriptors.T.astype(np.float16 if half else np.float32))
    group.create_dataset("image_size", data=np.array(features.image_size, np.int32))
    largest = features.settings.get("max_size")
    shrunk = max(features.image_size) / float(largest) if largest else 1.0
    group["keypoints"].attrs["uncertainty"] = max(1.0, shrunk)  # hloc: pixels, grows with the shrinking


def open_h5(path: Path, kind: str = "feature file") -> Any:
    """The HDF5 file, for reading, as h5py's File; DataError where it is none."""
    if not path.is_file():
        raise DataError(f"There is no {kind} {path}.")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        why = reason(error) if error.errno else "it is cut off, damaged or no HDF5 file"
        raise DataError(f"{path} cannot be read: {why}.") from error


def require_array(path: Path, file: Any, key: str, kind: str, remedy: str) -> None:
    """DataError if no group has an array of this name: so it is no file of that kind, whoever wrote it."""

    def is_one(name: str, item: object) -> bool | None:
        return True if isinstance(item, h5py.Dataset) and name.endswith(f"/{key}") else None  # None goes on

    if not file.visititems(is_one):
        raise DataError(f'{path} is no {kind}: it has no array "{key}" of a photo. {remedy}')


def group_names(file: Any) -> list[str]:
    """The groups that hold keypoints, sorted; links to elsewhere are not followed."""
    found = list[str]()

    def note(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and name.endswith("/keypoints"):
            found.append(name.removesuffix("/keypoints"))

    file.visititems(note)
    return sorted(found)


def _remedy(missing: str, known: Sequence[str]) -> str:
    """What to do about a name that is not among those known: another folder, or up to three of them to compare with."""
    for name in known:
        if name.endswith(f"/{missing}"):
            above = name.removesuffix(f"/{missing}")
            return f'It has "{name}": give the folder that holds {above}, or it as --root.'
        if missing.endswith(f"/{name}"):
            return f'It has "{name}": give the folder {missing.removesuffix(f"/{name}")}, or it as --root.'
    some = ", ".join(f'"{name}"' for name in known[:_NAMED]) or "none"
    more = f" and {len(known) - _NAMED:,} more" if len(known) > _NAMED else ""
    return f"It has {some}{more}. Describe it too, or leave it out."


def find_group(path: Path, file: Any, name: str) -> Any:
    """The group of a photo; a name that is not there, or that a link leads to, raises DataError."""
    group = file
    for part in name.split("/"):
        link = group.get(part, getlink=True) if part and isinstance(group, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            raise DataError(f'{path} has no photo "{name}".')
        group = group[part]
    if not isinstance(group, h5py.Group):
        raise DataError(f'{path} has no photo "{name}".')
    return group


def read_array(path: Path, group: Any, key: str) -> NDArray[np.generic] | None:
    """An array of numbers, or None where there is none; float16 becomes float32."""
    if not isinstance(group.get(key, getlink=True), h5py.HardLink):
        return None
    item = group[key]
    if not isinstance(item, h5py.Dataset) or item.dtype.kind not in "fiu":
        raise DataError(f"{path}: {group.name}/{key} is not an array of numbers. Write the file again.")
    stored = min(item.id.get_storage_size(), path.stat().st_size)  # nothing is stored of values never written
    if item.nbytes > _SMALLEST_SHARE * stored:
        raise DataError(f"{path}: {group.name}/{key} claims {item.nbytes} bytes, more than the file can hold.")
    try:
        array = item[()]
    except OSError as error:
        raise DataError(f"{path}: {group.name}/{key} is damaged ({error}). Write the file again.") from error
    return np.asarray(array, np.float32 if array.dtype == np.float16 else array.dtype)


def _read_head(path: Path, file: Any) -> tuple[dict[str, Setting], str]:
    if not require_kind(path, file, FORMAT, NUMBER):
        require_array(path, file, "keypoints", "feature file", "Write one with `keypatch describe`.")
        return {}, "unknown"
    return read_settings(path, file), read_text(path, file, "descriptor")
