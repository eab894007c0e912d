"""Folders of the cache, each named after what its files depend on; those not used for longest make room for others."""

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from keypatch.benchmarks.caching import keeps_descriptors
from keypatch.errors import KeypatchError
from keypatch.files import cache_folder, lock, reason

LOCK = ".lock"
LIMIT = 8 * 10**9  # bytes of all folders of a kind: features of 2,000 photos, 8,000 keypoints of 128 numbers in each
SECONDS_IN_USE = 86400  # a folder that was used since is left alone: another process may read it


def kept_folder(kind: str, name: str, content: str) -> Path | None:
    """The folder `name` among those of its kind; None, with a warning, if nothing can be written there."""
    root = cache_folder() / kind
    folder = root / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        warnings.warn(
            f"{content} cannot be kept in {root} ({reason(error)}), so the next evaluation computes them again. "
            "Set KEYPATCH_CACHE to a folder with room that you may write to.",
            stacklevel=4,
        )
        return None
    _make_room(root)
    return folder


@contextmanager
def hold_kept_folder(kind: str, name: str, content: str) -> Iterator[Path]:
    """As `kept_folder`, for this process alone; where nothing may or can be kept, one that lasts as long as the block.

    Raises:
        KeypatchError: another process works in it.
    """
    kept = kept_folder(kind, name, content) if keeps_descriptors() else None
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="keypatch-") as temporary:
            yield Path(temporary)
    else:
        with lock(kept / LOCK, str(kept)):
            yield kept


@contextmanager
def hold_chosen_folder(folder: Path) -> Iterator[Path]:
    """A folder of the user's, made if it is not there, for this process alone.

    Raises:
        KeypatchError: it cannot be made, or another process works in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise KeypatchError(f"{folder} is a file, not a folder. Choose another name.") from None
    except OSError as error:
        raise KeypatchError(f"{folder} cannot be made: {reason(error)}. Set folder to one that can.") from error
    with lock(folder / LOCK, str(folder)):
        yield folder


def is_cache_writable() -> bool:
    """Whether what an evaluation computes is still there for the next one."""
    return keeps_descriptors() and cache_folder().is_dir() and os.access(cache_folder(), os.W_OK)


def _make_room(root: Path) -> None:
    """Remove the folders used longest ago, but none used of late or held, until the rest is below the limit."""
    used, sizes = dict[Path, float](), dict[Path, int]()
    for folder in root.iterdir():
        with suppress(OSError):  # another process removed it
            used[folder] = folder.stat().st_mtime
            sizes[folder] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    for folder in sorted(sizes, key=lambda each: used[each]):
        if sum(sizes.values()) <= LIMIT or time.time() - used[folder] < SECONDS_IN_USE:
            return
        with suppress(KeypatchError), lock(folder / LOCK, str(folder)):
            shutil.rmtree(folder, ignore_errors=True)
            del sizes[folder]
