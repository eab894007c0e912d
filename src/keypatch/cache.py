"""The one cache: files and folders that can be made again, named by a hash of what they depend on.

An entry lies in the folder of its kind, there whole or not at all, whoever else writes it at the same time. A kind
stays below `LIMIT`: entries used longest ago make room, but no folder that another process may be working in.
"""

import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.lib import format as npy
from numpy.typing import NDArray
from platformdirs import user_cache_dir

from keypatch.errors import DataError, KeypatchError
from keypatch.files import LOCK, lock, reading, reason, write_atomically

Content = tuple[tuple[int, ...], Iterable[NDArray[np.uint8]]]  # a shape, and the parts along its first axis

LIMIT = 8 * 10**9  # bytes of a kind: features of 2,000 photos, 8,000 keypoints of 128 numbers in each
LAYOUT = 1  # of unpacked images: a new number unpacks all of them again
SECONDS_IN_USE = 86400  # a folder that was used since is left alone: another process may read it

_enabled = ContextVar("enabled", default=True)


def cache_folder() -> Path:
    """Where the cache lies: $KEYPATCH_CACHE, or the user's cache directory of the system.

    A user without a home folder, or with one that is not there, as in some containers, has a private one in the
    system's temporary folder.
    """
    chosen = os.environ.get("KEYPATCH_CACHE")
    try:
        usual = Path(chosen or user_cache_dir("keypatch", appauthor=False)).expanduser()
        if chosen or usual.exists() or os.access(_nearest(usual), os.W_OK):
            return usual
    except RuntimeError:  # "~" of a user without one
        if chosen:
            raise KeypatchError(
                f"KEYPATCH_CACHE is {chosen}, but you have no home folder. Write the full path."
            ) from None
    folder = Path(tempfile.gettempdir()) / f"keypatch-{os.geteuid()}"
    with suppress(OSError):
        folder.mkdir(0o700)
    if folder.exists() and not is_private(folder):
        raise KeypatchError(
            f"You have no home folder, and {folder} is open to other users. Set KEYPATCH_CACHE to a folder of your own."
        )
    return folder


def cache_key(depends: object) -> str:
    """The name of an entry that depends on these values of JSON."""
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def without_cache() -> Iterator[None]:
    """Neither read nor write the cache within this block."""
    token = _enabled.set(False)
    try:
        yield
    finally:
        _enabled.reset(token)


def is_cache_enabled() -> bool:
    """Whether results may be kept: not within `without_cache`."""
    return _enabled.get()


def is_cache_writable() -> bool:
    """Whether results computed now are still there for the next evaluation."""
    place = _nearest(cache_folder())
    return is_cache_enabled() and place.is_dir() and os.access(place, os.W_OK)


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that is there."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())


def keep_folder(kind: str, key: str, content: str) -> Path | None:
    """The cached folder of this kind and key; None, with a warning, if nothing can be written there."""
    folder = cache_folder() / kind / key
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        _warn(content, folder.parent, reason(error))
        return None
    _make_room(folder.parent)
    return folder


@contextmanager
def hold_kept_folder(kind: str, key: str, content: str) -> Iterator[Path]:
    """As `keep_folder`, for this process alone; where nothing may or can be kept, one that lasts as long as the block.

    Raises:
        KeypatchError: another process works in it.
    """
    kept = keep_folder(kind, key, content) if is_cache_enabled() else None
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="keypatch-") as temporary:
            yield Path(temporary)
    else:
        with lock(kept / LOCK, str(kept)):
            yield kept


def load_array(path: Path, dtype: type[np.generic]) -> NDArray[Any] | None:
    """The array of a .npy file, memory-mapped and read-only; None if it is not there, cut off or of another type."""
    array: NDArray[Any] | None = None
    with suppress(DataError), reading(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array is None or array.dtype != dtype:
        return None
    if path.is_relative_to(cache_folder()):
        with suppress(OSError):
            os.utime(path)  # it was used: others are older
    return array


def keep_array(path: Path, array: NDArray[Any], content: str) -> None:
    """Write an array into the folder of its kind; a warning if that is not possible."""
    if array.nbytes > LIMIT:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _make_room(path.parent, array.nbytes)
        _save_array(path, array.shape, array.dtype, [array])
    except (OSError, KeypatchError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        _warn(content, path.parent, reason(cause) if isinstance(cause, OSError) else str(error))


def unpack_once(folder: Path, label: str, images: Sequence[Path], unpack: Callable[[], Content]) -> NDArray[np.uint8]:
    """The unpacked images of a folder, memory-mapped and read-only; `unpack` is called only if they have changed since.

    The file lies beside the images or, where that is not possible, in the cache. `label` tells apart several of one
    folder. Changed images mean another name, so nobody replaces a file that another process has mapped.

    Raises:
        KeypatchError: there is no place to write the file, or the disk is full.
    """
    fingerprint = _fingerprint(folder, images)
    place = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    names = (folder / f"keypatch-{label}-*.npy", cache_folder() / "patches" / f"{place}-{label}-*.npy")
    paths = [name.with_name(name.name.replace("*", fingerprint)) for name in names]
    for path in paths:
        if (array := load_array(path, np.uint8)) is not None:
            return array
    shape, parts = unpack()
    chosen = _writable(paths, int(np.prod(shape)))
    if chosen == paths[1]:
        _make_room(chosen.parent, int(np.prod(shape)))
    _save_array(chosen, shape, np.dtype(np.uint8), parts)
    for other in chosen.parent.glob(names[paths.index(chosen)].name):
        if other != chosen:
            with suppress(OSError):  # another process may have it mapped or may have removed it
                other.unlink()
    array = load_array(chosen, np.uint8)
    if array is None:
        raise KeypatchError(f"{chosen} was written but cannot be read back. Check the disk.")
    return array


def make_once(path: Path, make: Callable[[Path], object], is_whole: Callable[[Path], bool] = Path.exists) -> Path:
    """A file or folder, made by the first process that wants it, at the place `make` is given, while others wait."""
    if is_whole(path):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        if not is_whole(path):
            unfinished = path.with_name(f"{path.name}.unfinished")
            _remove(unfinished)  # what a killed process left
            try:
                make(unfinished)
                _remove(path)  # damaged
                unfinished.rename(path)
            finally:
                _remove(unfinished)
    return path


def private_folder(kind: str) -> Path:
    """A folder for code that will be loaded, which nobody but this user can have put there.

    Windows has no modes to look at: there it lies in the user's profile, wherever the rest of the cache is.

    Raises:
        OSError: it cannot be made, or it is not this user's alone; then with a warning.
    """
    if os.name == "nt":
        folder = Path(user_cache_dir("keypatch", appauthor=False)) / kind
    else:
        folder = cache_folder() / f"{kind}-{os.geteuid()}"  # several users may share a cache
    folder.mkdir(0o700, parents=True, exist_ok=True)
    if not is_private(folder):
        warnings.warn(
            f"{folder} is open to other users, so no code is loaded from it. Remove it, or set KEYPATCH_CACHE to a "
            "folder of your own.",
            stacklevel=2,
        )
        raise PermissionError(f"{folder} is open to other users.")
    return folder


def is_private(path: Path) -> bool:
    """Whether a file or folder is there, is this user's and closed to all others; a symbolic link is not."""
    if os.name == "nt":
        return path.exists()
    try:
        found = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _fingerprint(folder: Path, images: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{LAYOUT}\n".encode())
    for image in images:
        try:
            stat = image.stat()
        except OSError as error:
            raise DataError(f"{image} is missing or cannot be read ({reason(error)}). Copy it again.") from None
        digest.update(
            f"{image.relative_to(folder).as_posix()} {stat.st_size} {stat.st_mtime_ns}\n".encode(
                errors="surrogateescape"
            )
        )
    return digest.hexdigest()[:16]


def _writable(paths: Sequence[Path], size: int) -> Path:
    """The first that lies in a folder which takes files and has `size` bytes free."""
    obstacles = []
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path.parent).close()
            free = shutil.disk_usage(path.parent).free
        except OSError as error:
            obstacles.append(f"{path.parent}: {reason(error)}")
            continue
        if free > size:
            return path
        obstacles.append(f"{path.parent}: {free / 1e6:.0f} MB free")
    raise KeypatchError(
        f"No room for the unpacked patches, which need {size / 1e6:.0f} MB of disk ({'; '.join(obstacles)}). "
        "Free some space, or set KEYPATCH_CACHE to a writable folder with enough room."
    )


def _save_array(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], parts: Iterable[NDArray[Any]]) -> None:
    # Plain writes, not a writable map: on a full disk a map kills the process, a write raises.
    try:
        with write_atomically(path) as file:
            head = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, head)
            for part in parts:
                file.write(np.ascontiguousarray(part).data)
    except KeypatchError:
        if not path.exists():  # it does if another process was faster and Windows keeps its mapped file
            raise


def _make_room(root: Path, size: int = 0) -> None:
    """Remove the entries used longest ago until `size` bytes fit below the limit."""
    entries = []
    for path in root.iterdir():
        with suppress(OSError):  # another process removed it
            files = path.rglob("*") if path.is_dir() else [path]
            entries.append((path.stat().st_mtime, sum(file.stat().st_size for file in files if file.is_file()), path))
    total = size + sum(length for _, length, _ in entries)
    for used, length, path in sorted(entries):
        if total <= LIMIT:
            return
        with suppress(OSError, KeypatchError):  # Windows keeps a mapped file; another process holds the folder
            if not path.is_dir():
                path.unlink()  # whoever has it mapped keeps it
            elif time.time() - used < SECONDS_IN_USE:
                continue
            else:
                with lock(path / LOCK, str(path)):
                    _remove(path)
            total -= length


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _warn(content: str, root: Path, why: str) -> None:
    warnings.warn(
        f"{content} cannot be cached in {root} ({why}), so the next evaluation will compute them again. "
        "Set KEYPATCH_CACHE to a writable folder with enough room.",
        stacklevel=4,
    )
