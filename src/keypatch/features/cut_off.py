"""Whether the file of a photo was cut off, told by how its format ends and without decoding a pixel."""

import math
import os
from collections.abc import Iterable
from mmap import ACCESS_READ, mmap
from pathlib import Path

from PIL import ExifTags, Image, TiffImagePlugin

_OFFSETS = (ExifTags.Base.StripOffsets, ExifTags.Base.TileOffsets)  # of the pieces that a TIFF's pixels are kept in
_LENGTHS = (ExifTags.Base.StripByteCounts, ExifTags.Base.TileByteCounts)
_RAW = 1  # how a TIFF calls pixels that are not compressed


def is_cut_off(image: Image.Image, path: Path) -> bool:
    """True of a JPEG, PNG or TIFF whose end is missing. Of other formats it is not told, unless Pillow fails to open.

    Where nothing but the mark of the end is missing, the pixels may be whole and such a file still be decoded.

    image: the file at `path`, opened by Pillow.
    """
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        return _last_byte(image) > os.path.getsize(path)
    if image.format in ("JPEG", "MPO", "PNG"):
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return content.rfind(b"IEND") < 0 if image.format == "PNG" else _lacks_end_of_image(content)
    return False


def _last_byte(image: TiffImagePlugin.TiffImageFile) -> float:
    """Where the pixels end; infinity where the tags that say so are missing, for they too may lie at the end."""
    starts, lengths = _numbers(image, _OFFSETS), _numbers(image, _LENGTHS)
    if not lengths and image.tag_v2.get(ExifTags.Base.Compression, _RAW) == _RAW:
        lengths = [0] * len(starts)  # that pixels which are not compressed can do without
    return max((start + length for start, length in zip(starts, lengths, strict=False)), default=math.inf)


def _numbers(image: TiffImagePlugin.TiffImageFile, tags: Iterable[int]) -> list[int]:
    """The values of those tags; a damaged one may be a text, bytes or fractions, which count as none."""
    return [value for tag in tags for value in image.tag_v2.get(tag, ()) if isinstance(value, int)]


def _lacks_end_of_image(content: mmap) -> bool:
    """Of a JPEG: whether no end follows its pixels. A preview in the EXIF data, which has an end too, lies before."""
    place = 2
    while (marker := content[place : place + 2]) != b"\xff\xda":  # until the pixels begin
        if marker[:1] != b"\xff":
            return False  # a file that Pillow forgives
        fills = marker == b"\xff\xff"  # a byte that may stand before any marker
        place += 1 if fills else 2 + int.from_bytes(content[place + 2 : place + 4])
    return content.rfind(b"\xff\xd9", place) < 0
