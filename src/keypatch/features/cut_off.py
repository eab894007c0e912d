"""Whether the file of a photo was cut off, told by how its format ends and without decoding a pixel."""

import math
import os
from mmap import ACCESS_READ, mmap
from pathlib import Path

from PIL import ExifTags, Image, TiffImagePlugin

_OFFSETS_AND_LENGTHS = (  # of the pieces that a TIFF's pixels are kept in
    (ExifTags.Base.StripOffsets, ExifTags.Base.StripByteCounts),
    (ExifTags.Base.TileOffsets, ExifTags.Base.TileByteCounts),
)


def is_cut_off(image: Image.Image, path: Path) -> bool:
    """True of a JPEG, PNG or TIFF whose end is missing. Of other formats it is not told, unless Pillow fails to open.

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
    tags = image.tag_v2
    pieces = [zip(tags.get(start, ()), tags.get(length, ()), strict=False) for start, length in _OFFSETS_AND_LENGTHS]
    return max((start + length for piece in pieces for start, length in piece), default=math.inf)


def _lacks_end_of_image(content: mmap) -> bool:
    """Of a JPEG: whether no end follows its pixels. A preview in the EXIF data, which has an end too, lies before."""
    place = 2
    while content[place : place + 2] != b"\xff\xda":  # until the pixels begin
        if content[place : place + 1] != b"\xff":
            return False  # a file that Pillow forgives
        place += 2 + int.from_bytes(content[place + 2 : place + 4])
    return content.rfind(b"\xff\xd9", place) < 0
