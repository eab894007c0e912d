"""An HDF5 file that grows group by group and is whole at every moment, whenever the process is killed.

HDF5 files break when their writer dies. So new groups first go to small files of their own in a hidden folder beside
the output, and now and then all of them are merged into a copy of the output, which takes its place at once.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from itertools import count
from pathlib import Path
from typing import Any

import h5py

from keypatch.errors import DataError, KeypatchError
from keypatch.features.feature_files import (
    FEATURES,
    MATCHES,
    Attributes,
    differences,
    group_names,
    open_h5,
    read_attribute,
    read_number,
    read_settings,
    read_word,
    walk_h5,
)
from keypatch.features.store import is_store, pack_groups
from keypatch.files import PARTIAL_SUFFIX, hidden_path, lock, make_folder, require_place, write_atomically
from keypatch.images import LIST_SUFFIX, SUFFIXES
from keypatch.sandbox import trust
from keypatch.storage import Place

Write = Callable[[Any], None]  # fills a new group of h5py

_OTHERS = {*SUFFIXES, LIST_SUFFIX, ".csv", ".json"}
_TITLES = {each.name: each.title for each in (FEATURES, MATCHES)}
_FEW = 32  # groups: not worth a merge before the end
_TABLES = 512  # bytes a group takes at most in HDF5's tables of names, which a merge may lay out anew


class GrowingFile:
    """The groups of a file, those in parts that wait to be merged into it, and those not yet on the disk."""

    def __init__(self, path: Path, parts: Path, attributes: Attributes, every: float = 0.0) -> None:
        self.path, self.parts, self.attributes, self.every = path, parts, attributes, every
        self.keys, self.is_new = set[str](), not path.exists()
        self._numbers = count(1)
        self._unsaved = dict[str, Write]()
        self._saved_at, self._merged, self._waiting = time.monotonic(), 0, 0
        self._adopt()

    def add(self, key: str, write: Write) -> None:
        """A new group; on the disk at the latest when the next one is added `every` seconds later."""
        self._unsaved[key] = write
        self.keys.add(key)
        if time.monotonic() - self._saved_at >= self.every:
            self.save()

    def save(self) -> None:
        """Bring everything to the disk."""
        if self._unsaved:
            self._create(self.parts / f"{next(self._numbers):08d}.h5", self._unsaved)
            self._waiting += len(self._unsaved)
            self._unsaved = {}
        self._saved_at = time.monotonic()
        if self._waiting > max(self._merged, _FEW):  # at every doubling: twice the file is copied at most in all
            self.merge()

    def merge(self) -> None:
        """Bring all parts into the file."""
        parts = sorted(self.parts.glob("*.h5"))
        if not parts:
            return
        with write_atomically(self.path) as file:
            with self.path.open("rb") as old:
                shutil.copyfileobj(old, file)
            file.flush()
            if hasattr(os, "posix_fallocate"):  # not on macOS and Windows; HDF5 would not survive a full disk
                more = sum(part.stat().st_size for part in parts) + _TABLES * len(self.keys)
                os.posix_fallocate(file.fileno(), file.tell(), more)
            with h5py.File(file.name, "r+") as whole:
                for part in parts:
                    _copy_new(part, whole)
        trust(walk_h5, self.path)
        for part in parts:
            part.unlink()
        self._merged, self._waiting = len(self.keys) - len(self._unsaved), 0

    def drop_if_empty(self) -> None:
        """Leave no file behind that was not there before and has nothing in it."""
        if self.is_new and not self.keys:
            self.path.unlink(missing_ok=True)

    def _create(self, path: Path, groups: Mapping[str, Write]) -> None:
        with write_atomically(path) as file:
            file.write(pack_groups(self.attributes, groups))
        trust(walk_h5, path)

    def _adopt(self) -> None:
        """Make sure of a readable file with these settings, and take over what a killed process left."""
        leftovers = f"{escape(hidden_path(self.path, '.').name)}*{PARTIAL_SUFFIX}"
        for stale in [*self.parts.glob(f".*{PARTIAL_SUFFIX}"), *self.path.parent.glob(leftovers)]:
            stale.unlink()
        if self.is_new:
            self._create(self.path, {})
        elif changed := differences(_settings_of(self.path), _settings_in(self.attributes)):
            raise KeypatchError(
                f"{self.path} was started with other settings: {changed}. Choose another output, or delete {self.path}."
            )
        for part in self.parts.glob("*.h5"):  # of a file that was deleted since, perhaps with other settings
            if _settings_of(part) != _settings_in(self.attributes):
                part.unlink()
        self.keys = _keys_in(self.path).union(*map(_keys_in, self.parts.glob("*.h5")))
        self._merged = len(self.keys)
        self.merge()


@contextmanager
def grow_file(path: Path, attributes: Attributes, every: float = 0.0) -> Iterator[GrowingFile]:
    """The file, new or begun before, for this process alone; at the end everything is merged.

    `attributes` are what it says about itself: "format" and its number, "settings" (JSON; none of these may change) and
    others.

    Raises:
        KeypatchError: other settings, another process, or a folder or disk that cannot be written to.
    """
    require_place(path)
    require_output(path, str(attributes["format"]))
    parts = make_folder(hidden_path(path, ".parts"))
    with lock(parts / "lock", str(path)):
        try:
            file = GrowingFile(path, parts, attributes, every)
            try:
                yield file
            finally:
                file.save()
                file.merge()
        finally:
            if not any(parts.glob("*.h5")):
                with suppress(OSError):
                    (parts / "lock").unlink()
                    parts.rmdir()


def require_output(place: Place, kind: str) -> None:
    """KeypatchError unless a file of this kind can lie there: a new one under a fitting name, or one to add to.

    A store says so itself when it is begun.
    """
    if is_store(place):
        return
    path = Path(place)
    require_place(path)
    if path.suffix.lower() in _OTHERS:
        raise KeypatchError(f"{path} would be an HDF5 file, not {path.suffix}. Choose a name that ends in .h5.")
    if path.exists():
        with open_h5(path) as file:
            if str(read_attribute(path, file, "format")) != kind:
                raise DataError(
                    f"{path} exists and is not a {_TITLES[kind]} written by keypatch. Choose another output."
                )


def _copy_new(part: Path, whole: Any) -> None:
    with open_h5(part) as one:
        for key in group_names(one):
            if key not in whole:  # it is, if the process was killed between the merge and the removal of the parts
                one.copy(key, whole, key)


def _keys_in(path: Path) -> set[str]:
    with open_h5(path) as file:
        return set(group_names(file))


def _settings_in(attributes: Attributes) -> dict[str, Any]:
    known = {name: attributes[name] for name in ("format", "format_number")}
    return {**known, **json.loads(str(attributes["settings"]))}


def _settings_of(path: Path) -> dict[str, Any]:
    with open_h5(path) as file:
        known = {"format": read_word(path, file, "format"), "format_number": read_number(path, file, "format_number")}
        return {**known, **read_settings(path, file)}
