"""Feature files: HDF5 in hloc's layout, with float32 keypoints and the convention recorded.

A group per photo holds keypoints (n, 2), descriptors (dim, n), scales (sigma), oris (degrees clockwise), scores and
image_size (width, height); keypoints that are sheared also have shapes (n, 2, 2). The attributes of a group say of
which photo its features are, those of the file what it is and how it was made. A folder or an address is a store of
such files (`store`), and is read as one.
"""

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

import h5py
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.features.extraction import Features, Setting
from keypatch.files import Format, hash_file, hash_folder, parse_json, reading, safe_name
from keypatch.geometry import Keypoints, from_hloc, to_hloc
from keypatch.images import Photo
from keypatch.provenance import Provenance
from keypatch.sandbox import lacks_memory, try_reading
from keypatch.storage import Place, as_place, is_address

Attributes = Mapping[str, str | int | float]

FEATURES = Format("keypatch-features", 1, "feature file")
MATCHES = Format("keypatch-matches", 1, "match file")
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_TOLD = 3  # settings


def make_head(kind: Format, settings: Mapping[str, Any], origin: Provenance) -> Attributes:
    """The attributes that every file of ours has."""
    return {
        **kind.head(),
        "settings": json.dumps(dict(settings), sort_keys=True),
        "provenance": json.dumps(origin.to_json(), sort_keys=True),
    }


def require_kind(path: Place, file: Any, kind: Format) -> bool:
    """Whether the file is of this kind, False where it says nothing, as hloc's; another or newer one is a DataError."""
    if read_attribute(path, file, "format") is None:
        return False
    name = read_word(path, file, "format")
    number = read_number(path, file, "format_number") if name == kind.name else None
    kind.check({"format": name, "format_number": number}, path)
    return True


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The settings that differ, few and short: "keypoints = 2048 (now 4096)"; empty where none does."""
    changed = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    told = ["descriptor"] if "descriptor" in changed else changed[:_TOLD]  # the others follow from it
    more = f" and {len(changed) - _TOLD} more" if len(told) == _TOLD < len(changed) else ""
    return ", ".join(f"{key} = {_short(before.get(key))} (now {_short(now.get(key))})" for key in told) + more


def read_number(path: Place, item: Any, name: str) -> int:
    """An attribute, of a file or a group, that is a whole number."""
    return int(_parsed(path, item, name, operator.index))


def read_word(path: Place, file: Any, name: str) -> str:
    """An attribute that is a string."""
    return str(_parsed(path, file, name, str.__str__))  # which takes nothing but a text


def read_settings(path: Place, file: Any) -> dict[str, Any]:
    settings: dict[str, Any] = _parsed(path, file, "settings", lambda text: dict(parse_json(text)))
    return settings


def _parsed(path: Place, item: Any, name: str, parse: Callable[[Any], Any]) -> Any:
    with reading(f'{path}, attribute "{name}"', "value"):
        return parse(item.attrs.get(name))


def read_attribute(path: Place, item: Any, name: str) -> Any:
    """An attribute of a file or a group, whatever it is; None where there is none."""
    with reading(path, "HDF5 file"):
        return item.attrs.get(name)


def _short(value: Any) -> str:
    """A setting as it is told; of a hash its beginning."""
    return _HASH.sub(lambda found: found[0][:8], str(value))


CONVENTION = (
    "keypoints: pixels, the centre of the top-left pixel is (0, 0); scales: sigma of the interest point in pixels; "
    "oris: degrees clockwise on screen from the x axis; pixels of the file as stored, unless settings.turn_by_exif"
)
_NAMED = 3  # photos
_SMALLEST_SHARE = 1000  # no compression of HDF5's makes an array smaller than this part of it


class FeatureReader:
    """A feature file, ours or hloc's, opened for reading; use it in a `with`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Raises DataError: the file is missing, damaged, of another kind, or of a newer format."""
        self.path = as_place(path)
        self._file = open_h5(self.path)
        try:
            ours = require_kind(self.path, self._file, FEATURES)
            if not ours:
                require_array(self.path, self._file, "keypoints", "feature file", "Write one with `keypatch describe`.")
            self.settings: dict[str, Setting] = read_settings(self.path, self._file) if ours else {}
            self.descriptor = read_word(self.path, self._file, "descriptor") if ours else "unknown"
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def names(self) -> Sequence[str]:
        """The photos in it, sorted; a name that leads out of a folder raises DataError."""
        found = group_names(self._file, "keypoints")
        return [safe_name(name, str(self.path)) for name in found] if isinstance(found, list) else found

    def require(self, names: Iterable[str]) -> None:
        """DataError if it lacks one of these photos."""
        known = self.names()
        kept = set(known) if isinstance(known, list) else known  # a store looks names up
        missing = min((name for name in names if name not in kept), default=None)
        if missing is not None:
            raise DataError(f"{self.path} has no features for {missing}. {_remedy(missing, known)}")

    def read(self, name: str) -> Features:
        """The features of a photo; keypoints of a foreign file without scales have the sigma 1."""
        group = find_group(self.path, self._file, name)
        keypoints = self.keypoints(name, sigma=1.0)
        descriptors = read_array(self.path, group, "descriptors")
        if descriptors is None:
            raise DataError(f"{self.path}: {name} has no descriptors. Describe the photo.")
        if descriptors.ndim != 2 or len(keypoints) not in descriptors.shape:
            raise DataError(
                f"{self.path}: {name} has {len(keypoints)} keypoints but descriptors of shape {descriptors.shape}; "
                f"expected (dim, {len(keypoints)}). Write the file again."
            )
        rows = descriptors.T if descriptors.shape[1] == len(keypoints) else descriptors
        if not np.isfinite(rows).all():
            raise DataError(f"{self.path}: {name} has descriptors that are not finite. Write the file again.")
        contiguous = np.ascontiguousarray(rows, np.float32)
        return Features(keypoints, contiguous, self.image_size(name), self.descriptor, self.settings)

    def keypoints(self, name: str, sigma: float | None = None) -> Keypoints:
        """The keypoints of a photo; `sigma` is theirs where the file has no scales, which is an error without it."""
        group = find_group(self.path, self._file, name)
        arrays = {key: read_array(self.path, group, key) for key in ("keypoints", "scales", "oris", "scores", "shapes")}
        shape = arrays.pop("shapes")
        with reading(f"{self.path}: {name}", "list of keypoints"):
            found = from_hloc(**arrays, sigma=sigma)  # type: ignore[arg-type]
            return Keypoints(found.x, found.y, found.sigma, found.angle, shape, found.response)  # type: ignore[arg-type]

    def image_size(self, name: str) -> tuple[int, int]:
        """(width, height) of a photo, or (0, 0) where the file does not say."""
        size = read_array(self.path, find_group(self.path, self._file, name), "image_size")
        if size is None:
            return 0, 0
        if size.shape != (2,) or not np.isfinite(size).all() or (size < 0).any():  # type: ignore[operator]
            raise DataError(f"{self.path}: the image_size of {name} is not a width and a height. Write the file again.")
        return int(size[0]), int(size[1])


def read_names(path: str | PathLike[str]) -> list[str]:
    """The names of the photos in a feature file."""
    with FeatureReader(path) as reader:
        return list(reader.names())


def read_features(path: str | PathLike[str], name: str) -> Features:
    """The features of one photo in a feature file, ours or hloc's.

    >>> features = kp.describe("photos", "features.h5", "rootsift", kp.Extraction(keypoints=500))
    >>> len(kp.read_features(features, "a.jpg"))
    500
    """
    with FeatureReader(path) as reader:
        return reader.read(name)


def feature_attributes(descriptor: str, settings: Mapping[str, Setting], origin: Provenance) -> Attributes:
    """What a file of features says about itself."""
    return {
        **make_head(FEATURES, settings, origin),
        "convention": CONVENTION,
        "descriptor": descriptor,
        "patch_sigmas": float(settings["patch_sigmas"] or 0),
    }


def write_features(
    group: Any, features: Features, *, half: bool = False, stamp: Mapping[str, str | int] | None = None
) -> None:
    """Fill the new group of a photo; `half` keeps descriptors alone as float16; `stamp` says of which photo."""
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


def open_h5(path: Place, kind: str = "feature file") -> Any:
    """The HDF5 file, for reading, as h5py's File, or a `Store`, which stands for one; DataError where it is neither."""
    if is_address(path) or Path(path).is_dir():
        from keypatch.features.store import ABOUT, Store, has_store

        if isinstance(path, Path) and not has_store(path):
            raise DataError(f"There is no {kind} {path}: it is a folder but not a store, which would have a {ABOUT}.")
        return Store(path)
    path = Path(path)
    if not path.is_file():
        raise DataError(f"There is no {kind} {path}.")
    try_reading(walk_h5, path)
    with reading(path, kind):
        return h5py.File(path, "r")


def walk_h5(path: Path) -> None:
    """Touch what a reader may touch: on damaged files HDF5 may hang, end the process or take too much memory."""
    with h5py.File(path, "r") as file:
        names = list[bytes]([b"/"])
        file.id.links.visit(
            lambda name, info: names.append(name) if info.type == h5py.h5l.TYPE_HARD else None, info=True
        )
        for name in names:
            try:
                item = h5py.h5o.open(file.id, name)
                if h5py.h5a.get_num_attrs(item):
                    dict(file[name].attrs)
                if isinstance(item, h5py.h5d.DatasetID) and item.get_create_plist().get_layout() == h5py.h5d.CHUNKED:
                    read_array(path, file[name].parent, name.rpartition(b"/")[2].decode())
            except Exception as error:
                if lacks_memory(error):
                    raise


def require_array(path: Place, file: Any, key: str, kind: str, remedy: str) -> None:
    """DataError if no group has an array of this name: so it is no file of that kind, whoever wrote it."""
    if not group_names(file, key):
        raise DataError(f'{path} is not a {kind}: it has no array "{key}". {remedy}')


def group_names(file: Any, key: str | None = None) -> Sequence[str]:
    """The groups that hold an array of this name, or any, sorted; a link anywhere in the file raises DataError."""
    if not isinstance(file, h5py.Group):  # a store, whose groups are all of one kind
        return cast(Sequence[str], file.names)
    path, links, found = Path(file.filename), list[tuple[bytes, int]](), set[str]()
    with reading(path, "HDF5 file"):  # h5py's own classes take four times as long, and lose what their visitor raises
        file.id.links.visit(lambda name, info: links.append((name, info.type)), info=True)
        for name, kind in links:
            _require_inside(path, name.decode(), kind == h5py.h5l.TYPE_HARD)
            group, _, array = name.decode().rpartition("/")
            if group and key in (None, array) and h5py.h5o.get_info(file.id, name).type == h5py.h5o.TYPE_DATASET:
                found.add(group)
    return sorted(found)


def _remedy(missing: str, known: Sequence[str]) -> str:
    """What to do about a name that is not among those known: another folder, or up to three of them to compare with."""
    for name in known:
        if name.endswith(f"/{missing}"):
            above = name.removesuffix(f"/{missing}")
            return f'It has "{name}": give the folder that contains {above}, or set --root to it.'
        if missing.endswith(f"/{name}"):
            return f'It has "{name}": give the folder {missing.removesuffix(f"/{name}")}, or set --root to it.'
    some = ", ".join(f'"{name}"' for name in known[:_NAMED]) or "none"
    more = f" and {len(known) - _NAMED:,} more" if len(known) > _NAMED else ""
    return f"It has {some}{more}. Describe it too, or leave it out."


def find_group(path: Place, file: Any, name: str) -> Any:
    """The group of a photo; a name that is not there, or that a link leads to, raises DataError."""
    group = get_group(path, file, name)
    if group is None:
        raise DataError(f'{path} has no photo "{name}".')
    return group


def get_group(path: Place, file: Any, name: str) -> Any:
    """The group of this name, or None; DataError where a link leads to it."""
    if not isinstance(file, h5py.Group):  # a store
        return file.group(name)
    group = file
    for part in name.split("/"):
        group = _child(path, group, part)
    return group if isinstance(group, h5py.Group) else None


def read_array(path: Place, group: Any, key: str) -> NDArray[np.generic] | None:
    """An array of numbers, or None where there is none; float16 becomes float32.

    Raises:
        DataError: it is damaged, or not in the file itself: HDF5 would read any other file that this one names.
    """
    item = _child(path, group, key)
    if item is None:
        return None
    with reading(path, "HDF5 file"):
        if not isinstance(item, h5py.Dataset) or item.dtype.kind not in "fiu":
            raise DataError(f"{path}: {group.name}/{key} is not an array of numbers. Write the file again.")
        if item.external is not None or item.is_virtual:
            raise DataError(f"{path}: {group.name}/{key} is stored in another file. Store it in this one.")
        size = Path(item.file.filename).stat().st_size
        stored = min(item.id.get_storage_size(), size)  # nothing is stored of values never written
        if item.nbytes > _SMALLEST_SHARE * stored:
            raise DataError(f"{path}: {group.name}/{key} claims {item.nbytes} bytes, more than the file can hold.")
        array = item[()]
        return np.asarray(array, np.float32 if array.dtype == np.float16 else array.dtype)


def _child(path: Place, group: Any, name: str) -> Any:
    """What lies under this name in the group, or None."""
    with reading(path, "HDF5 file"):
        link = group.get(name, getlink=True) if name and isinstance(group, h5py.Group) else None
        if link is None:
            return None
        _require_inside(path, name, isinstance(link, h5py.HardLink))
        return group[name]


def _require_inside(path: Place, name: str, inside: bool) -> None:
    if not inside:
        raise DataError(f'{path}: "{name}" is a link, which may point to other files. Store what it points to instead.')


BYTES, HASH = "photo_bytes", "photo_sha256"  # attributes of the photo's group


def stamp(path: Path) -> Mapping[str, str | int]:
    """The attributes of a group whose features are of this photo."""
    return {BYTES: path.stat().st_size, HASH: hash_file(path)}


def hash_groups(path: Path) -> str:
    """SHA-256 of a feature or match file, or of the files of a store."""
    return hash_folder(path.glob("*.h5")) if path.is_dir() else hash_file(path)


def require_same_photos(features: Path, photos: Iterable[Photo]) -> None:
    """DataError if the file has features of another photo of the same name; those without a stamp are believed."""
    with open_h5(features) as file:
        for name, path, *_ in photos:
            group = find_group(features, file, name)
            known = {each: read_attribute(features, group, each) for each in (BYTES, HASH)}
            if known[HASH] is not None and path.is_file() and not _same(path, known):
                raise DataError(
                    f"{name} in {features} is a different photo from {path}. Choose another output, or delete the file."
                )


def _same(path: Path, known: Mapping[str, object]) -> bool:
    return str(path.stat().st_size) == str(known[BYTES]) and hash_file(path) == str(known[HASH])
