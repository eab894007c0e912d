"""A picture of cut patches beside the photo they come from: a wrong angle, scale or place is seen at a glance."""

import colorsys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from keypatch.features.features import Features
from keypatch.files import write_atomically
from keypatch.geometry import Keypoints, cut_patches

_COLUMNS, _ROWS, _SIDE, _GAP = 8, 6, 96, 4
_HEIGHT = _ROWS * (_SIDE + _GAP) + _GAP
_DEFAULT_SIGMAS = 24.0


def show_patches(image: NDArray[np.uint8], features: Features, path: Path) -> None:
    """Write a PNG: the photo with the squares of 48 of its keypoints, small ones first, and the patches cut there.

    A square and its patch have one colour; the line in a square points along the patch's x axis, to its right edge.
    """
    keypoints, sigmas = features.keypoints, float(features.settings.get("patch_sigmas") or _DEFAULT_SIGMAS)
    spread = np.linspace(0, len(keypoints) - 1, min(len(keypoints), _COLUMNS * _ROWS)).round().astype(np.int64)
    some = keypoints.take(np.argsort(keypoints.sigma, kind="stable")[spread])
    colours = [_colour(number / max(1, len(some))) for number in range(len(some))]
    photo = _photo_with_squares(image, some, sigmas, colours)
    picture = Image.new("RGB", (photo.width + _COLUMNS * (_SIDE + _GAP) + _GAP, _HEIGHT), "white")
    picture.paste(photo, (0, 0))
    draw = ImageDraw.Draw(picture)
    for number, patch in enumerate(cut_patches(image, some, sigmas, _SIDE)):
        left = photo.width + _GAP + number % _COLUMNS * (_SIDE + _GAP)
        top = _GAP + number // _COLUMNS * (_SIDE + _GAP)
        picture.paste(Image.fromarray(patch), (left, top))
        draw.rectangle((left - 2, top - 2, left + _SIDE + 1, top + _SIDE + 1), outline=colours[number], width=2)
    with write_atomically(path) as file:
        picture.save(file, "PNG")


def _photo_with_squares(
    image: NDArray[np.uint8], keypoints: Keypoints, sigmas: float, colours: list[tuple[int, int, int]]
) -> Image.Image:
    height, width = image.shape
    zoom = _HEIGHT / height
    photo = Image.fromarray(image).resize((max(1, round(width * zoom)), _HEIGHT)).convert("RGB")
    draw = ImageDraw.Draw(photo)
    outline = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * sigmas / 2
    for xy, frame, colour in zip(keypoints.xy, keypoints.frames(), colours, strict=True):
        centre, edge = xy + 0.5, xy + 0.5 + frame @ np.array([sigmas / 2, 0])
        corners = (xy + 0.5 + outline @ frame.T) * zoom
        draw.line([tuple(corner) for corner in corners], fill=colour, width=2)
        draw.line([tuple(centre * zoom), tuple(edge * zoom)], fill=colour, width=2)
    return photo


def _colour(share: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb(share, 0.9, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)
