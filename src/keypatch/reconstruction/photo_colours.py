"""The colours of photos, for the points of a model and for its picture."""

import threading
from pathlib import Path

from PIL import Image

from keypatch.errors import DataError
from keypatch.features.photos import read_photo

_opening = threading.Lock()


def read_colours(path: Path, side: int | None = None) -> Image.Image:
    """A photo of any size as stored, in RGB of 8 bits; with `side` at most this many pixels long.

    Raises:
        DataError: the file is missing, no image or cut off, or memory does not suffice.
    """
    try:
        with _open(path) as photo:
            if photo.mode.startswith("I"):  # 16 bits, which Pillow's own conversion would cut off at 255
                colours = Image.fromarray(read_photo(path, pixel_limit=photo.width * photo.height)).convert("RGB")
            else:
                if side is not None:
                    photo.draft("RGB", (side, side))  # a JPEG is then read reduced
                colours = photo.convert("RGB")
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError) as error:
        raise DataError(f"{path} cannot be read ({error}).") from None
    if side is not None:
        colours.thumbnail((side, side))
    return colours


def _open(path: Path) -> Image.Image:
    with _opening:  # Pillow's limit is one for the whole process
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(path)
        finally:
            Image.MAX_IMAGE_PIXELS = limit
