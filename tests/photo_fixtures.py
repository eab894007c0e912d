"""A folder of small photographs, written by Pillow."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage import data

CROPS = {"a.png": "camera", "b.jpg": "astronaut", "sub/c.png": "coffee", "sub/d e.png": "brick"}


def crop(name: str, side: int = 200) -> NDArray[np.uint8]:
    """The middle of a photograph of scikit-image."""
    photo: NDArray[np.uint8] = getattr(data, name)()
    top, left = (photo.shape[0] - side) // 2, (photo.shape[1] - side) // 2
    return np.ascontiguousarray(photo[top : top + side, left : left + side])


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a.png (grey), b.jpg, sub/c.png and "sub/d e.png", 200 x 200 pixels each; never written to."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "sub").mkdir()
    for name, source in CROPS.items():
        Image.fromarray(crop(source)).save(folder / name)
    (folder / "notes.md").write_text("no photo")
    (folder / ".hidden.png").write_text("no photo")
    return folder


@pytest.fixture(scope="session")
def png() -> Callable[..., bytes]:
    """png(width, height, depth=8, pixels=b"") -> a colour file as the standard lays it out; pixels may be missing.

    `squeezed` are pixels that zlib has compressed already.
    """

    def made(width: int, height: int, depth: int = 8, pixels: bytes = b"", squeezed: bytes = b"") -> bytes:
        head = struct.pack(">2I5B", width, height, depth, 2, 0, 0, 0)
        chunks = [(b"IHDR", head), (b"IDAT", squeezed or zlib.compress(pixels)), (b"IEND", b"")]
        bodies = [struct.pack(">I", len(c)) + kind + c + struct.pack(">I", zlib.crc32(kind + c)) for kind, c in chunks]
        return b"\x89PNG\r\n\x1a\n" + b"".join(bodies)

    return made
