"""What a descriptor is for, as a picture: an embedded photograph matched with a view of it from another side."""

import tempfile
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.geometry.keypoints import rotations
from keypatch.matching import match
from keypatch.patches.embedded_photos import TEST_PHOTOS, photo_path

KEYPOINTS, LINES = 500, 80
COLOURS = 64  # of the picture for a page: a third of the size, and nobody sees it


def draw_embedded_matches(descriptor: str | Path, out: Path) -> Path:
    """Match chelsea.png, which is not trained on, with a turned view of it; right matches are green, others red."""
    photo = next(photo_path(photo) for photo in TEST_PHOTOS if photo.file == "chelsea.png")
    with Image.open(photo) as image:
        pixels = np.asarray(image.convert("L"))
    view = _view(pixels.shape[1], pixels.shape[0])
    seen = cv2.warpPerspective(pixels, view, (pixels.shape[1], pixels.shape[0]), borderValue=235)
    with tempfile.TemporaryDirectory() as folder:
        turned = Path(folder, "turned.png")
        Image.fromarray(seen).save(turned)
        match(photo, turned, descriptor, draw=out, lines=LINES, homography=view, keypoints=KEYPOINTS)
    return out


def small_png(picture: Path) -> bytes:
    """The picture in few colours, as a PNG file."""
    file = BytesIO()
    with Image.open(picture) as image:
        image.quantize(COLOURS).save(file, "PNG", optimize=True)
    return file.getvalue()


def _view(width: int, height: int) -> NDArray[np.float64]:
    """The homography to a view turned by 25 degrees, smaller and from the side, with the same pixel in the middle."""
    view = np.eye(3)
    view[:2, :2], view[2, :2] = 0.8 * rotations(np.radians(25)), (2e-4, 1e-4)
    middle = np.array([width / 2, height / 2, 1.0])
    moved = view @ middle
    shift = np.eye(3)
    shift[:2, 2] = middle[:2] - moved[:2] / moved[2]
    return np.asarray(shift @ view)
