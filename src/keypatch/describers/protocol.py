"""What every describer offers, and the checks all of them share."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.patches.sources import TrainingSet
from keypatch.progress import Callback, Progress

CHUNK = 4096  # patches copied out of a memory map at once: 16 MB of 64x64
_CHUNK_BYTES = CHUNK * 65 * 65  # of larger ones, such as whole images in colour, fewer


class Describer(Protocol):
    """Anything that turns patches into vectors; rows have unit length unless `unit_length` is False.

    >>> import numpy as np
    >>> describer: kp.Describer = kp.load("rootsift")
    >>> describer.describe(np.zeros((3, 64, 64), np.uint8)).shape
    (3, 128)
    """

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def patch_size(self) -> int:
        """The patch side in pixels that the describer works on; it resizes other patches."""

    @property
    def patch_sigmas(self) -> float:
        """The side of a patch as a multiple of the interest point's sigma."""

    @property
    def unit_length(self) -> bool: ...

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, side, side) grey patches to (n, dim) vectors; n may be 0."""


@runtime_checkable
class HasWeights(Protocol):
    """A describer that was learned: results name its weights."""

    @property
    def weights_hash(self) -> str:
        """SHA-256 of the weights, in hexadecimal."""


@runtime_checkable
class HasTraining(Protocol):
    """A describer that remembers the sets it was trained on: a score on their images is marked."""

    @property
    def training(self) -> Sequence[TrainingSet]: ...


@runtime_checkable
class HasChannels(Protocol):
    """A describer that may take images in colour; any other takes grey ones."""

    @property
    def channels(self) -> int:
        """1 for grey, 3 for arrays (n, 3, side, side) of red, green and blue."""


def channels_of(describer: Describer) -> int:
    return describer.channels if isinstance(describer, HasChannels) else 1


class PatchReader(Protocol):
    """The part of a patch set that describing needs."""

    def __len__(self) -> int: ...

    def take(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]: ...


def check_patches(patches: NDArray[np.uint8], channels: int = 1) -> None:
    """Raise KeypatchError unless the patches are a uint8 array (n, side, side), or in colour where 3 `channels` are."""
    if not isinstance(patches, np.ndarray) or patches.dtype != np.uint8:
        found = patches.dtype if isinstance(patches, np.ndarray) else type(patches).__name__
        raise KeypatchError(f"Patches must be a numpy array of uint8 (grey values 0 to 255), found {found}.")
    shape = patches.shape
    kind = patches.ndim == 3 or (channels == 3 and patches.ndim == 4 and shape[1] == 3)
    if not kind or shape[-2] != shape[-1] or shape[-1] == 0:
        colour = " or (n, 3, side, side)" if channels == 3 else ""
        raise KeypatchError(f"Patches must have the shape (n, side, side){colour}, found {shape}.")


def check_descriptors(describer: Describer, descriptors: NDArray[np.float32], count: int) -> None:
    """Raise KeypatchError unless the describer gave `count` finite rows of its own dimension."""
    if descriptors.shape != (count, describer.dim):
        raise KeypatchError(
            f"{describer.name} returned descriptors of shape {descriptors.shape} for {count} patches, "
            f"expected ({count}, {describer.dim})."
        )
    broken = np.flatnonzero(~np.isfinite(descriptors).all(axis=1))
    if broken.size:
        raise KeypatchError(
            f"{describer.name} returned non-finite descriptors for {broken.size} of {count} patches, first at position "
            f"{broken[0]}. Its weights are damaged or its training diverged."
        )


def describe_all(
    describer: Describer, patches: PatchReader, progress: Progress | Callback | None = None
) -> NDArray[np.float32]:
    """(n, dim) descriptors of a whole patch set, read chunk by chunk."""
    progress, count = Progress.of(progress), len(patches)
    progress.count(0, count, "patches")
    descriptors = np.empty((count, describer.dim), dtype=np.float32)
    at_once = CHUNK if not count else max(1, min(CHUNK, _CHUNK_BYTES // patches.take(np.arange(1)).nbytes))
    for start in range(0, count, at_once):
        stop = min(start + at_once, count)
        chunk = describer.describe(patches.take(np.arange(start, stop)))
        check_descriptors(describer, chunk, stop - start)
        descriptors[start:stop] = chunk
        progress.count(stop, count, "patches")
    return descriptors
