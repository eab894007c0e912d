"""Images unpacked once into one .npy file that is memory-mapped afterwards.

The file lies in the folder of the images or, where that cannot be written, in the user's cache directory. Its name
holds a fingerprint of the images' names, sizes and times of change: changed images mean another name, a file that is
there is whole and current, and nobody replaces a file that another process has mapped (Windows forbids that).
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import PARTIAL_SUFFIX, cache_folder, reason, write_atomically

Shape = tuple[int, ...]
Content = tuple[Shape, Iterable[NDArray[np.uint8]]]  # the whole shape, and the parts along its first axis

LAYOUT = 1  # part of the fingerprint: a new number makes all caches anew
SECONDS_UNTIL_ABANDONED = 3600  # a living writer touches its file many times a second


def cached_array(folder: Path, label: str, images: Sequence[Path], unpack: Callable[[], Content]) -> NDArray[np.uint8]:
    """The unpacked images, memory-mapped and read-only; `unpack` is called only where no current cache exists.

    `label` tells apart several caches of one folder.

    Raises:
        KeypatchError: there is no place to write the cache, or the disk is full.
    """
    name = f"keypatch-{label}-{_fingerprint(folder, images)}.npy"
    homes = (folder, cache_folder() / "patches" / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16])
    for home in homes:
        array = _open_mapped(home / name)
        if array is not None:
            return array
    shape, parts = unpack()
    path = _writable_home(homes, int(np.prod(shape))) / name
    _write(path, shape, parts)
    _remove_old(path, label)
    array = _open_mapped(path)
    if array is None:
        raise KeypatchError(f"{path} was written but cannot be read back. Check the disk.")
    return array


def _fingerprint(folder: Path, images: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{LAYOUT}\n".encode())
    for image in images:
        try:
            stat = image.stat()
        except OSError as error:
            raise DataError(f"{image} is missing or cannot be read ({reason(error)}). Copy it again.") from None
        digest.update(f"{image.relative_to(folder).as_posix()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _open_mapped(path: Path) -> NDArray[np.uint8] | None:
    """None if there is no such file or it is cut off, as after copying a folder halfway."""
    try:
        array: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array if array.dtype == np.uint8 else None


def _writable_home(homes: Sequence[Path], size: int) -> Path:
    """The first folder that takes files and has `size` bytes free."""
    obstacles = []
    for home in homes:
        try:
            home.mkdir(parents=True, exist_ok=True)
            probe = home / f".keypatch-probe-{time.time_ns()}"
            probe.touch()
            probe.unlink()
            free = shutil.disk_usage(home).free
        except OSError as error:
            obstacles.append(f"{home}: {reason(error)}")
            continue
        if free > size:
            return home
        obstacles.append(f"{home}: {free / 1e6:.0f} MB free")
    raise KeypatchError(
        f"The unpacked patches need {size / 1e6:.0f} MB of disk and found no place ({'; '.join(obstacles)}). "
        "Free some space or set KEYPATCH_CACHE to a folder with room that you may write to."
    )


def _write(path: Path, shape: Shape, parts: Iterable[NDArray[np.uint8]]) -> None:
    # Plain writes, not a writable map: on a full disk a map kills the process, a write raises.
    try:
        with write_atomically(path) as file:
            npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for part in parts:
                file.write(np.ascontiguousarray(part).data)
    except KeypatchError:
        if not path.exists():  # it does if another process was faster and Windows keeps its mapped file
            raise


def _remove_old(path: Path, label: str) -> None:
    """Caches of images that have changed since, and what killed writers left."""
    now = time.time()
    for other in path.parent.glob(f"keypatch-{label}-*.npy"):
        if other != path:
            with suppress(OSError):  # another process may have it mapped or may have removed it
                other.unlink()
    for partial in path.parent.glob(f".keypatch-{label}-*{PARTIAL_SUFFIX}"):
        with suppress(OSError):
            if now - partial.stat().st_mtime > SECONDS_UNTIL_ABANDONED:
                partial.unlink()
