"""Stores: folders of HDF5 files that are read as one, with an index of what lies in which.

A shard is a feature or match file like any other, written once, whole, and never changed. The shards are the truth and
the index a table made of them: names in order and the number of each one's shard, mapped into memory, so that opening
it costs the same for ten names and for ten million. Shards that it does not know yet are looked into when the store is
opened. So any number of processes may write into one folder at once without a lock, on file systems where SQLite's
locks do not hold, and on object stores, where it cannot write at all.
"""

import hashlib
import json
import shutil
import struct
import tempfile
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import merge
from io import BytesIO
from pathlib import Path
from typing import Any, overload

import h5py
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.features.feature_files import Attributes, differences, get_group, group_names, open_h5
from keypatch.files import Format, parse_json, reading, safe_name, write_atomically
from keypatch.storage import Folder, Place, is_address

STORE = Format("keypatch-store", 1, "store of features or matches")
ABOUT, INDEX, SHARD = "store.json", "index.safetensors", ".h5"
_OPEN = 16  # shards held open at once
_FEW = 32  # shards that are not worth an index of their own
_MANY = 500_000  # names that are looked up in memory, some 100 MB, before they go to the index
_LONGEST_HEAD = 2**28  # bytes


class Index(Sequence[str]):
    """Names in order, each with its shard, in a mapped file: no more of it is in memory than was looked at.

    A safetensors file: `names`, all of them in UTF-8; `ends`, where each ends; `shards`, the number of its shard. The
    header lists the shards.
    """

    def __init__(self, path: Path) -> None:
        """Raises DataError: it is damaged."""
        self.path = path
        with reading(path, "index", "Delete it; it will be made again."):
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                if length > _LONGEST_HEAD:
                    raise ValueError("its header is too long")
                head = parse_json(file.read(length).decode())
            self.shard_names = [str(each) for each in parse_json(head.pop("__metadata__")["shards"])]
            self._names, self._ends, self._shards = (
                _mapped(path, head[key], kind, 8 + length)
                for key, kind in (("names", np.uint8), ("ends", np.int64), ("shards", np.int32))
            )
            if len(self._ends) != len(self._shards) or (len(self._ends) and self._ends[-1] != len(self._names)):
                raise ValueError("its parts do not belong together")

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        start = int(self._ends[number - 1]) if number else 0
        with reading(self.path, "index", "Delete it; it will be made again."):
            return self._names[start : int(self._ends[number])].tobytes().decode()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.shard(name) is not None

    def position(self, name: str) -> int:
        """How many names come before it."""
        return bisect_left(self, name)

    def shard(self, name: str) -> str | None:
        """The file that has it, or None."""
        place = self.position(name)
        if place == len(self) or self[place] != name:
            return None
        number = int(self._shards[place])
        if not 0 <= number < len(self.shard_names):
            raise DataError(f"{self.path} is damaged: it has no shard {number}. Delete it; it will be made again.")
        return self.shard_names[number]

    def rows(self) -> Iterator[tuple[str, int]]:
        """Every name with the number of its shard, in order; read in blocks, which is faster than one by one."""
        for start in range(0, len(self), 65536):
            ends, shards = (np.asarray(each[start : start + 65536]) for each in (self._ends, self._shards))
            first = int(self._ends[start - 1]) if start else 0
            block, begin = self._names[first : int(ends[-1])].tobytes(), 0
            for end, shard in zip((ends - first).tolist(), shards.tolist(), strict=True):
                yield block[begin:end].decode(), shard
                begin = end


def _mapped(path: Path, entry: Mapping[str, Any], kind: type[np.generic], begin: int) -> NDArray[Any]:
    start, end = (int(each) for each in entry["data_offsets"])
    size = np.dtype(kind).itemsize
    if not 0 <= start <= end <= path.stat().st_size - begin or (end - start) % size:
        raise ValueError("it is cut off")
    if start == end:
        return np.empty(0, kind)
    return np.memmap(path, kind, "r", begin + start, ((end - start) // size,))


def write_index(path: Path, rows: Iterable[tuple[str, int]], shard_names: Sequence[str]) -> None:
    """The index of names that come in order, each once; in memory are 12 bytes for each."""
    ends, shards, length = array("q"), array("i"), 0
    with tempfile.TemporaryFile(dir=path.parent) as names:
        for name, shard in rows:
            length += names.write(name.encode())
            ends.append(length)
            shards.append(shard)
        head, start = dict[str, Any](), 0
        parts = (("ends", "I64", len(ends), 8), ("shards", "I32", len(shards), 4), ("names", "U8", length, 1))
        for key, kind, items, size in parts:
            head[key] = {"dtype": kind, "shape": [items], "data_offsets": [start, start + items * size]}
            start += items * size
        head["__metadata__"] = {**{k: str(v) for k, v in STORE.head().items()}, "shards": json.dumps(list(shard_names))}
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        names.seek(0)
        with write_atomically(path) as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.write(memoryview(ends))
            file.write(memoryview(shards))
            shutil.copyfileobj(names, file, 2**20)


class Names(Sequence[str]):
    """The names of an index and of shards that it does not know yet, together in order; each is a plain path."""

    def __init__(self, source: str, index: Sequence[str], fresh: Mapping[str, str]) -> None:
        self._source, self._index, self._fresh = source, index, sorted(fresh)
        self._at = [bisect_left(index, name) + number for number, name in enumerate(self._fresh)]
        self._known = fresh

    def __len__(self) -> int:
        return len(self._index) + len(self._fresh)

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._index

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        before = bisect_left(self._at, number)
        is_fresh = before < len(self._at) and self._at[before] == number
        return safe_name(self._fresh[before] if is_fresh else self._index[number - before], self._source)

    def __iter__(self) -> Iterator[str]:
        known = (name for name, _ in self._index.rows()) if isinstance(self._index, Index) else iter(self._index)
        return (safe_name(name, self._source) for name in merge(known, self._fresh))


class Store:
    """A store opened for reading; in the functions of `feature_files` it stands for an HDF5 file."""

    def __init__(self, place: Place) -> None:
        """Raises DataError: it is missing, of another kind or a newer format, or lacks shards that it had."""
        self.path, self.folder = place, Folder(place)
        self.attrs = read_about(self.folder)
        self._copies: tempfile.TemporaryDirectory[str] | None = None
        self._files = OrderedDict[str, Any]()
        self._index: Index | None = None
        self.fresh = dict[str, str]()  # the shard of each name that the index does not know
        self.fresh_shards = list[str]()
        try:
            self._look()
        except BaseException:
            self.close()
            raise
        self.names = Names(str(place), () if self._index is None else self._index, self.fresh)

    def _look(self) -> None:
        """What is in which shard: by the index, and for those that it does not know by looking into them."""
        present = self.folder.names(SHARD)
        if self.folder.has(INDEX):
            self._index = Index(self._local(INDEX))
        indexed = set() if self._index is None else set(self._index.shard_names)
        if missing := sorted(indexed - present):
            raise DataError(
                f"{self.path} lacks {len(missing)} of its {len(indexed)} files, such as {missing[0]}. Copy them again, "
                f"or delete {INDEX} to make what was in them again."
            )
        for shard in sorted(present - indexed):
            self.fresh_shards.append(shard)
            for name in group_names(self._open(shard)):
                if self._index is None or name not in self._index:  # a worker may die when its shard is written
                    self.fresh.setdefault(name, shard)
            if len(self.fresh) >= _MANY:
                self._shrink()
        if len(self.fresh_shards) > max(_FEW, len(indexed)):
            self._shrink()

    def _shrink(self) -> None:
        """Bring fresh names into the index, so that they leave the memory; not in a store that is read-only."""
        with suppress(KeypatchError, OSError):
            self.save_index()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        if self._copies is not None:
            self._copies.cleanup()

    def group(self, name: str) -> Any:
        """The group of this name, as h5py's, or None."""
        shard = self.fresh.get(name) or (None if self._index is None else self._index.shard(name))
        if shard is None:
            return None
        file = self._open(shard)
        group = get_group(self._local(shard), file, name)
        if group is None:
            raise DataError(f"{self.folder.at(INDEX)} does not match {shard}. Delete the index; it will be made again.")
        return group

    def shard(self, name: str) -> Any:
        """One of its files, as h5py's."""
        return self._open(name)

    def groups(self) -> Iterator[tuple[str, Any]]:
        """Every name with its group, shard by shard, so that each is opened once."""
        known = [] if self._index is None else self._index.shard_names
        for shard in [*known, *self.fresh_shards]:
            for name in group_names(self._open(shard)):
                found = self.fresh.get(name) or (None if self._index is None else self._index.shard(name))
                if found == shard:  # the same name may be in two
                    yield name, get_group(self._local(shard), self._open(shard), name)

    def save_index(self) -> None:
        """Bring what the index does not know into it."""
        if not self.fresh_shards:
            return
        known = [] if self._index is None else self._index.shard_names
        shards = [*known, *self.fresh_shards]
        numbers = {name: number for number, name in enumerate(shards)}
        fresh = ((name, numbers[shard]) for name, shard in sorted(self.fresh.items()))
        rows = merge(() if self._index is None else self._index.rows(), fresh)
        with tempfile.TemporaryDirectory(prefix="keypatch-") as scratch:
            here = self.path / INDEX if isinstance(self.path, Path) else Path(scratch) / INDEX
            write_index(here, rows, shards)
            if not isinstance(self.path, Path):
                self.folder.write(INDEX, here.read_bytes())
                with suppress(FileNotFoundError):
                    (Path(self._copies.name) / INDEX).unlink() if self._copies else None
        self._index, self.fresh_shards = Index(self._local(INDEX)), []
        self.fresh.clear()

    def _local(self, name: str) -> Path:
        if isinstance(self.path, Path):
            return self.path / name
        if self._copies is None:
            self._copies = tempfile.TemporaryDirectory(prefix="keypatch-")
        return self.folder.fetch(name, Path(self._copies.name))

    def _open(self, shard: str) -> Any:
        if shard not in self._files:
            while len(self._files) >= _OPEN:
                old, file = self._files.popitem(last=False)
                file.close()
                if not isinstance(self.path, Path):
                    self._local(old).unlink()
            self._files[shard] = open_h5(self._local(shard))
        self._files.move_to_end(shard)
        return self._files[shard]


def is_store(place: Place) -> bool:
    """Whether a store is or would be there: an address, a folder, or a new name without an ending."""
    if is_address(place):
        return True
    path = Path(place)
    return path.is_dir() or (not path.exists() and not path.suffix)


def has_store(path: Path) -> bool:
    """Whether a store lies in this folder."""
    return (path / ABOUT).is_file()


def read_about(folder: Folder) -> dict[str, Any]:
    """What a store says about itself; DataError where it is none."""
    if not folder.has(ABOUT):
        raise DataError(f"{folder.place} is not a store of features or matches: it has no {ABOUT}.")
    with reading(folder.at(ABOUT), "JSON file"):
        about = parse_json(folder.read(ABOUT).decode())
        STORE.check(about, folder.at(ABOUT))
        return dict(about["attributes"])


def begin_store(place: Place, attributes: Attributes) -> Store:
    """The store at this place, new or begun before with these settings; KeypatchError where it cannot be."""
    folder = Folder(place)
    if not folder.has(ABOUT):
        if folder.exists() and (isinstance(place, str) or any(place.iterdir())) and folder.names(""):
            raise KeypatchError(f"{place} is a folder with other contents. Name a new folder, or a file in it (.h5).")
        folder.make()
        about = {**STORE.head(), "attributes": dict(attributes)}
        folder.write(ABOUT, json.dumps(about, indent=2).encode())
    before, now = (_settings(each, folder) for each in (read_about(folder), attributes))
    if changed := differences(before, now):
        raise KeypatchError(
            f"{place} was started with other settings: {changed}. Choose another output, or delete {place}."
        )
    return Store(place)


def _settings(attributes: Mapping[str, Any], folder: Folder) -> dict[str, Any]:
    with reading(folder.at(ABOUT), "JSON file"):
        known = {name: attributes[name] for name in ("format", "format_number")}
        return {**known, **json.loads(str(attributes["settings"]))}


def shard_name(keys: Iterable[str]) -> str:
    """Of a shard with these groups: the same whoever writes it, so that work done again replaces itself."""
    return f"{hashlib.sha256(chr(0).join(sorted(keys)).encode()).hexdigest()[:24]}{SHARD}"


def pack_groups(attributes: Attributes, groups: Mapping[str, Any]) -> memoryview:
    """An HDF5 file with these groups, each filled by its function.

    In memory: where a write fails, HDF5 ends the process.
    """
    image = BytesIO()
    with h5py.File(image, "w") as h5:
        h5.attrs.update(attributes)
        for key, write in groups.items():
            write(h5.create_group(key))
    return image.getbuffer()
