"""Small copies of photos that a page carries inside."""

import io
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from keypatch.errors import DataError
from keypatch.reconstruction.photo_colours import read_colours

SIDES = (320, 160, 96, 64)  # pixels
MOST_BYTES = 2_000_000  # of all: most of 110 photos are 320 pixels long, of 350 160, of 800 96, of 1,400 64
LEAST_BYTES = 600  # of one; in fewer there is room for little more than the tables of a JPEG
QUALITY = 78


def make_thumbnails(photos: Mapping[str, Path]) -> dict[str, bytes]:
    """JPEGs by the photos' names, each the largest within an equal share of `MOST_BYTES`.

    Left out are photos that cannot be read, and those of which even the smallest is too large; where the share is below
    `LEAST_BYTES`, all are, and none is read.
    """
    share = MOST_BYTES // max(len(photos), 1)
    if share < LEAST_BYTES:
        return {}
    made = {}
    for name, path in photos.items():
        try:
            colours = read_colours(path, SIDES[0])
        except DataError:
            continue
        encoded = _largest(colours, share)
        if encoded is not None:
            made[name] = encoded
    return made


def _largest(colours: Image.Image, share: int) -> bytes | None:
    colours.info.clear()  # where and by whom it was taken is nobody's business
    for side in SIDES:
        colours.thumbnail((side, side))
        encoded = io.BytesIO()
        colours.save(encoded, "JPEG", quality=QUALITY, optimize=True)
        if encoded.tell() <= share:
            return encoded.getvalue()
    return None
