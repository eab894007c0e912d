"""Descriptors kept from one evaluation to the next, so that a changed metric does not run the network again.

One .npy file for each describer and data, in the cache folder. A file is there whole or not at all, whoever else writes
it at the same time; whatever cannot be read, written or believed costs a second describing and nothing else.
"""

import hashlib
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import CHUNK, Describer, HasWeights, PatchReader, Progress, describe_all
from keypatch.describers.sift import SiftDescriber
from keypatch.errors import KeypatchError
from keypatch.files import PARTIAL_SUFFIX, cache_folder, reason, write_atomically

LIMIT = 4 * 10**9  # bytes of all files; those not used for longest go first
SECONDS_UNTIL_ABANDONED = 3600  # a living writer touches its file many times a second
PROBE_SIDES = (64, 65)  # of PhotoTour's and HPatches' patches: one that is halved, one that is resampled

_keeps = ContextVar("keeps", default=True)


def describe_cached(
    describer: Describer, patches: PatchReader, data_hash: str, progress: Progress | None = None
) -> NDArray[np.float32]:
    """(n, dim) descriptors of all patches, read-only: those of an earlier call with the same `data_hash`, or new ones.

    `data_hash` has to change with the patches, as they are handed to the describer, and with their order.
    """
    identity = describer_identity(describer) if keeps_descriptors() else None
    if identity is None:
        return describe_all(describer, patches, progress)
    path = _folder() / f"{identity[:16]}-{data_hash[:16]}.npy"
    descriptors = _read(path, (len(patches), describer.dim))
    if descriptors is None:
        descriptors = describe_all(describer, patches, progress)
        descriptors.flags.writeable = False  # as a mapped file's
        _keep(path, descriptors)
    return descriptors


def describer_identity(describer: Describer) -> str | None:
    """SHA-256 that is the same only for describers that give the same numbers; None if that cannot be known.

    Known are SIFT and whatever has weights. Beside the weights it covers what the describer makes of two patches of
    noise, hence everything else that acts on the numbers: preprocessing, precision, device, versions.
    """
    if not isinstance(describer, HasWeights | SiftDescriber):
        return None
    weights = describer.weights_hash if isinstance(describer, HasWeights) else ""
    digest = hashlib.sha256(f"{weights} {describer.dim} {describer.patch_size} {describer.patch_sigmas}".encode())
    rng = np.random.default_rng(0)
    for side in PROBE_SIDES:
        digest.update(describer.describe(rng.integers(0, 256, (1, side, side), np.uint8)).tobytes())
    return digest.hexdigest()


@contextmanager
def without_cache() -> Iterator[None]:
    """Within it nothing is taken from the cache and nothing kept."""
    token = _keeps.set(False)
    try:
        yield
    finally:
        _keeps.reset(token)


def keeps_descriptors() -> bool:
    """Whether the cache may be used: not within `without_cache`."""
    return _keeps.get()


def _folder() -> Path:
    return cache_folder() / "descriptors"


def _read(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """The file, memory-mapped; None if there is none, or it is damaged or of another kind."""
    try:
        found = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError):
        return None
    if found.dtype != np.float32 or found.shape != shape:
        return None
    if not all(np.isfinite(found[start : start + CHUNK]).all() for start in range(0, len(found), CHUNK)):
        return None
    with suppress(OSError):
        os.utime(path)  # it was used: others are older
    return found


def _keep(path: Path, descriptors: NDArray[np.float32]) -> None:
    if descriptors.nbytes > LIMIT:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _make_room(path.parent, descriptors.nbytes)
        with write_atomically(path) as file:
            np.save(file, descriptors, allow_pickle=False)
    except (OSError, KeypatchError) as error:
        if path.exists():  # another process was faster, and Windows keeps a file that is mapped
            return
        cause = error if isinstance(error, OSError) else error.__cause__
        why = reason(cause) if isinstance(cause, OSError) else str(error)
        warnings.warn(
            f"Descriptors cannot be kept in {path.parent} ({why}), so the next evaluation computes them again. "
            "Set KEYPATCH_CACHE to a folder with room that you may write to.",
            stacklevel=3,
        )


def _make_room(folder: Path, size: int) -> None:
    """Remove the files used longest ago until `size` bytes fit below the limit, and what killed writers left."""
    stats = []
    for path in folder.iterdir():
        with suppress(OSError):  # another process removed it
            stat = path.stat()
            stats.append((stat.st_mtime, stat.st_size, path))
    for modified, _, path in stats:
        if path.name.endswith(PARTIAL_SUFFIX) and time.time() - modified > SECONDS_UNTIL_ABANDONED:
            with suppress(OSError):
                path.unlink()
    kept = sorted(entry for entry in stats if entry[2].suffix == ".npy")
    total = size + sum(entry[1] for entry in kept)
    for _, length, path in kept:
        if total <= LIMIT:
            return
        with suppress(OSError):  # on Windows a mapped file stays
            path.unlink()
            total -= length
