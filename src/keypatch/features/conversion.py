"""A store of features or matches becomes one file, and one file a store."""

from collections.abc import Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from keypatch.errors import DataError, KeypatchError
from keypatch.features.feature_files import find_group, group_names, open_h5, read_attribute
from keypatch.features.growing_file import Write, grow_file
from keypatch.features.store import Store, begin_store, is_store, pack_groups, shard_name
from keypatch.progress import Callback, Progress
from keypatch.storage import Folder, Place, as_place

_SHARD_BYTES = 64 * 2**20  # of arrays: what is in memory at once
_EVERY = 0.5  # seconds between two parts of the file: what is copied in this time is in memory at once


def convert(
    source: str | PathLike[str], out: str | PathLike[str], progress: Progress | Callback | None = None
) -> Place:
    """Copy features or matches from a file into a store (a folder or an address), or from a store into a file.

    All arrays and attributes are copied unchanged. What is already in `out` is skipped, so the same call resumes.

    >>> features = kp.describe("photos", "features.h5", "rootsift")
    >>> kp.convert(features, "features")
    PosixPath('features')

    Raises:
        DataError: the source is damaged, or comes from another program and does not record its settings.
        KeypatchError: both are files or both are stores, or `out` has other settings.
    """
    place, target, telling = as_place(source), as_place(out), Progress.of(progress)
    with open_h5(place) as file:
        if isinstance(file, Store) == is_store(target):
            kind = "stores" if is_store(target) else "files"
            raise KeypatchError(f"{place} and {target} are both {kind}. A store is a folder; a file ends in .h5.")
        if read_attribute(place, file, "format") is None:
            raise DataError(f"{place} was not written by keypatch and does not record its settings. Describe again.")
        attributes = {name: file.attrs[name] for name in file.attrs}
        names = group_names(file)
        if isinstance(file, Store):
            with grow_file(Path(target), attributes, _EVERY) as whole:
                for done, (name, group) in enumerate(file.groups(), start=1):
                    if name not in whole.keys:
                        whole.add(name, partial(_fill, content=_content(group)))
                    telling.count(done, len(names), "groups")
        else:
            attributes = {name: _plain(value) for name, value in attributes.items()}
            with begin_store(target, attributes) as store:
                left = [name for name in names if name not in store.names]
            done = len(names) - len(left)
            for groups in _packed(place, file, left):
                Folder(target).write(shard_name(groups), pack_groups(attributes, groups))
                done += len(groups)
                telling.count(done, len(names), "groups")
            with Store(target) as store:
                store.save_index()
    return target


def _packed(place: Place, file: Any, names: list[str]) -> Iterator[dict[str, Write]]:
    """The groups, as many at a time as make a shard."""
    groups, size = dict[str, Write](), 0
    for name in names:
        content = _content(find_group(place, file, name))
        groups[name] = partial(_fill, content=content)
        size += sum(array.nbytes for array, _ in content[0].values())
        if size >= _SHARD_BYTES:
            yield groups
            groups, size = {}, 0
    if groups:
        yield groups


Content = tuple[dict[str, tuple[Any, dict[str, Any]]], dict[str, Any]]  # arrays and their attributes; the group's


def _content(group: Any) -> Content:
    arrays = {key: (group[key][()], dict(group[key].attrs)) for key in group if hasattr(group[key], "dtype")}
    return arrays, dict(group.attrs)


def _fill(group: Any, content: Content) -> None:
    arrays, attributes = content
    group.attrs.update(attributes)
    for key, (array, theirs) in arrays.items():
        group.create_dataset(key, data=array).attrs.update(theirs)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
