"""A picture of cut patches beside the photo they come from: a wrong angle, scale or place is seen at a glance."""

import colorsys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from keypatch.features.features import Features
from keypatch.features.progress import counted
from keypatch.files import write_atomically
from keypatch.geometry import Keypoints, cut_patches

_COLUMNS, _ROWS, _SIDE, _GAP, _LINE = 8, 6, 96, 8, 16
_CELL = _SIDE + _LINE + _GAP  # a patch and the line below it
_HEIGHT, _WIDEST = _ROWS * _CELL, 1600  # of the photo in the picture
_DEFAULT_SIGMAS = 24.0
_PAPER, _INK = "white", (40, 40, 40)

Colour = tuple[int, int, int]


def show_patches(image: NDArray[np.uint8], features: Features, path: Path) -> None:
    """Write a PNG: the photo with the squares of 48 of its keypoints, small ones first, and the patches cut there.

    A square and its patch have one number and colour; the line in a square points along the patch's x axis, to its
    right edge. Sigma and angle stand below each patch, what they mean below all.
    """
    keypoints, sigmas = features.keypoints, float(features.settings.get("patch_sigmas") or _DEFAULT_SIGMAS)
    spread = np.linspace(0, len(keypoints) - 1, min(len(keypoints), _COLUMNS * _ROWS)).round().astype(np.int64)
    some = keypoints.take(np.argsort(keypoints.sigma, kind="stable")[spread])
    colours = [_colour(number / max(1, len(some))) for number in range(len(some))]
    photo = _photo_with_squares(image, some, sigmas, colours)
    patches = _patches_with_lines(image, some, sigmas, colours)
    caption = _caption(len(some), len(keypoints), sigmas, image.shape)
    picture = _together(photo, patches, caption)
    with write_atomically(path) as file:
        picture.save(file, "PNG")


def _photo_with_squares(
    image: NDArray[np.uint8], keypoints: Keypoints, sigmas: float, colours: list[Colour]
) -> Image.Image:
    height, width = image.shape
    zoom = min(_HEIGHT / height, _WIDEST / width)
    photo = Image.fromarray(image).resize((max(1, round(width * zoom)), max(1, round(height * zoom)))).convert("RGB")
    draw = ImageDraw.Draw(photo)
    outline = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * sigmas / 2
    places = list[tuple[float, float]]()
    for xy, frame, colour in zip(keypoints.xy, keypoints.frames(), colours, strict=True):
        centre, edge = xy + 0.5, xy + 0.5 + frame @ np.array([sigmas / 2, 0])
        corners = (xy + 0.5 + outline @ frame.T) * zoom
        draw.line([tuple(corner) for corner in corners], fill=colour, width=2)
        draw.line([tuple(centre * zoom), tuple(edge * zoom)], fill=colour, width=2)
        places.append(tuple(corners[0]))
    for number, (place, colour) in enumerate(zip(places, colours, strict=True), start=1):  # above all squares
        _number(draw, number, place, photo.size, colour)
    return photo


def _number(
    draw: ImageDraw.ImageDraw, number: int, place: tuple[float, float], size: tuple[int, int], colour: Colour
) -> None:
    """The number at the patch's top left corner, or as near to it as the photo goes."""
    text, font = str(number), ImageFont.load_default(size=12)
    left, top, right, bottom = draw.textbbox((0, 0), text, font, stroke_width=2)
    x, y = min(max(place[0], -left), size[0] - right), min(max(place[1], -top), size[1] - bottom)
    draw.text((x, y), text, colour, font, stroke_width=2, stroke_fill="black")


def _patches_with_lines(
    image: NDArray[np.uint8], keypoints: Keypoints, sigmas: float, colours: list[Colour]
) -> Image.Image:
    """The patches row by row, below each its number, sigma and angle."""
    columns = min(_COLUMNS, len(keypoints))
    sheet = Image.new("RGB", (columns * (_SIDE + _GAP), -(-len(keypoints) // _COLUMNS) * _CELL), _PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=11)
    across, down = keypoints.frames()[:, :, 0].T  # the x axis; a shape may turn it
    degrees = np.rint(np.degrees(np.arctan2(down, across))).astype(int) % 360
    for number, patch in enumerate(cut_patches(image, keypoints, sigmas, _SIDE)):
        left, top = number % _COLUMNS * (_SIDE + _GAP) + _GAP // 2, number // _COLUMNS * _CELL + _GAP // 2
        sheet.paste(Image.fromarray(patch), (left, top))
        draw.rectangle((left - 2, top - 2, left + _SIDE + 1, top + _SIDE + 1), outline=colours[number], width=2)
        below = f"{number + 1}:  {keypoints.sigma[number]:.1f} px, {degrees[number]}\N{DEGREE SIGN}"
        draw.text((left, top + _SIDE + 3), below, _INK, font)
    return sheet


def _caption(shown: int, total: int, sigmas: float, shape: tuple[int, ...]) -> str:
    height, width = shape
    if not total:
        return f"No keypoints in this photo of {width} x {height} pixels."
    which = f"{shown} of {total:,} keypoints" if shown < total else counted(total, "keypoint")
    return (
        f"{which} of a photo of {width} x {height} pixels, from the smallest to the largest.\n"
        f"A square is what its patch shows, {sigmas:g} sigmas wide. The line in it points to the patch's right edge.\n"
        "Below a patch: its number in the photo, sigma in pixels of the photo, and the angle of that line, clockwise "
        "from the right."
    )


def _together(photo: Image.Image, patches: Image.Image, caption: str) -> Image.Image:
    font = ImageFont.load_default(size=14)
    _, _, right, bottom = ImageDraw.Draw(photo).multiline_textbbox((_GAP, _GAP), caption, font)
    top = max(photo.height, patches.height)
    width = max(photo.width + _GAP + patches.width, round(right) + _GAP)
    picture = Image.new("RGB", (width, top + round(bottom) + _GAP), _PAPER)
    picture.paste(photo, (0, 0))
    picture.paste(patches, (photo.width + _GAP, 0))
    ImageDraw.Draw(picture).multiline_text((_GAP, top + _GAP), caption, _INK, font)
    return picture


def _colour(share: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(share, 0.65, 1.0)  # light: also a blue number is legible
    return round(255 * red), round(255 * green), round(255 * blue)
