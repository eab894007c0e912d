"""Fingerprints of photographs: a copy is recognized, also smaller, saved again or in grey; the next photo is not.

The perceptual part is the signs of the low frequencies of the picture (a DCT hash, after Zauner 2010 and pHash): the
photo in grey as it is shown, reduced to 64x64; of its cosine transform the 24x24 lowest frequencies but the mean, a bit
each, set where the coefficient is positive. Enlarging, reducing, compression and another brightness move few of the
575 signs; a step of the camera moves many. Two photos with at most SAME differing bits are the same image.

How often that errs was measured by bench/fingerprints.py: docs/benchmarks/README.md has the table.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.files import hash_file
from keypatch.images import UNASKED_LIMIT, read_photo

SMALL, LOWEST = 64, 24  # side of the reduced photo, and of the square of frequencies that are kept
BITS = LOWEST * LOWEST - 1
SAME = 63  # of 575 bits: half-way between the farthest copy and the nearest neighbour of the scenes it was chosen on
_FLAT = 1e-3  # grey levels: a coefficient that is zero but for rounding has no sign
_CHUNK = 2048  # fingerprints compared at once


@dataclass(frozen=True)
class Fingerprint:
    """Exact and perceptual hash of a photograph, both in hexadecimal.

    >>> from keypatch.patches.fingerprints import fingerprint, same_images
    >>> prints = [fingerprint(path) for path in paths]  # doctest: +SKIP
    """

    sha256: str  # of the file
    perceptual: str  # 144 digits: 575 bits and a zero

    def __post_init__(self) -> None:
        for name, digits in (("sha256", 64), ("perceptual", (BITS + 1) // 4)):
            value = getattr(self, name)
            if not isinstance(value, str) or not re.fullmatch(rf"[0-9a-f]{{{digits}}}", value):
                raise ValueError(f"the {name} of a fingerprint should have {digits} hexadecimal digits: {value!r:.40}")

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Fingerprint":
        """The value of `to_json`; other entries are passed over. Raises KeyError or ValueError for anything else."""
        return cls(value["sha256"], value["perceptual"])


def fingerprint(path: Path, pixel_limit: int = UNASKED_LIMIT) -> Fingerprint:
    """The fingerprint of a photograph; raises DataError where it cannot be read."""
    return Fingerprint(hash_file(path), perceptual_hash(read_photo(path, turn_by_exif=True, pixel_limit=pixel_limit)))


def perceptual_hash(grey: NDArray[np.uint8]) -> str:
    """Of a grey image (h, w), in hexadecimal."""
    from scipy.fft import dctn

    small = Image.fromarray(grey).resize((SMALL, SMALL), Image.Resampling.LANCZOS)
    lowest = dctn(np.asarray(small, np.float64), norm="ortho")[:LOWEST, :LOWEST].ravel()[1:]
    return np.packbits(lowest > _FLAT).tobytes().hex()


def same_images(first: Sequence[Fingerprint], second: Sequence[Fingerprint]) -> NDArray[np.int64]:
    """(m, 2) positions in both of those that are the same image, by the file or by what it shows; sorted."""
    if not first or not second:
        return np.empty((0, 2), np.int64)
    there = _signs(second)
    by_file: dict[str, list[int]] = {}
    for position, each in enumerate(second):
        by_file.setdefault(each.sha256, []).append(position)
    found = [(here, there) for here, each in enumerate(first) for there in by_file.get(each.sha256, ())]
    pairs = [np.array(found, np.int64).reshape(-1, 2)]
    for start in range(0, len(first), _CHUNK):
        differing = (there.shape[1] - _signs(first[start : start + _CHUNK]) @ there.T) / 2
        pairs.append(np.argwhere(differing <= SAME) + np.array([start, 0]))
    return np.unique(np.concatenate(pairs), axis=0)


def _signs(fingerprints: Sequence[Fingerprint]) -> NDArray[np.float32]:
    """(n, 576) of -1 and 1: a product of two rows is what agrees less what differs, exactly."""
    packed = np.frombuffer(bytes.fromhex("".join(each.perceptual for each in fingerprints)), np.uint8)
    return np.unpackbits(packed.reshape(len(fingerprints), -1), axis=1).astype(np.float32) * 2 - 1
