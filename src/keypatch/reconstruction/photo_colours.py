"""The colours of photos, for the points of a model and for its picture."""

import struct
import threading
from pathlib import Path
from typing import IO

from PIL import Image

from keypatch.errors import DataError
from keypatch.features.photos import read_header, read_photo

_TURNS_BACK = {  # by the EXIF orientation that an image was turned by
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
_DAMAGE = (AttributeError, EOFError, LookupError, OSError, SyntaxError, TypeError, ValueError, struct.error)
_TOO_LARGE = (Image.DecompressionBombError, MemoryError)
_opening = threading.Lock()


def read_colours(path: Path, side: int | None = None) -> Image.Image:
    """A photo of any size as stored, in RGB of 8 bits; with `side` at most this many pixels long.

    Raises:
        DataError: the file is missing, no image, cut off or damaged, or memory does not suffice.
    """
    try:
        with path.open("rb") as file, _open(file) as photo:  # given a path, Pillow mixes up a TIFF that is turned
            if photo.mode.startswith("I"):  # 16 bits, which Pillow's own conversion would cut off at 255
                colours = Image.fromarray(read_photo(path, pixel_limit=photo.width * photo.height)).convert("RGB")
            else:
                if side is not None:
                    photo.draft("RGB", (side, side))  # a JPEG is then read reduced
                colours = _as_stored(photo.convert("RGB"), photo.format, path)
    except (*_DAMAGE, *_TOO_LARGE) as error:
        raise DataError(f"{path} cannot be read ({error}).") from None
    if side is not None:
        colours.thumbnail((side, side))
    return colours


def _as_stored(decoded: Image.Image, kind: str | None, path: Path) -> Image.Image:
    """Pillow turns a TIFF, and nothing else, as its EXIF tag says."""
    tag = read_header(path).orientation if kind == "TIFF" else 1
    return decoded if tag == 1 else decoded.transpose(_TURNS_BACK[tag])


def _open(file: IO[bytes]) -> Image.Image:
    with _opening:  # Pillow's limit is one for the whole process
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(file)
        finally:
            Image.MAX_IMAGE_PIXELS = limit
