"""A picture of cut patches beside the photo they come from: a wrong angle, scale or place is seen at a glance."""

import colorsys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from keypatch.features.extraction import Features
from keypatch.files import write_atomically
from keypatch.geometry import Keypoints, cut_patches
from keypatch.progress import counted

_COLUMNS, _ROWS, _SIDE, _GAP, _LINE = 8, 6, 96, 8, 16
_CELL = _SIDE + _LINE + _GAP  # a patch and the line below it
_HEIGHT, _WIDEST = _ROWS * _CELL, 1600  # of the photo in the picture
_LARGE = 150  # pixels of the picture: wider squares have thin lines, for there are others below
_DEFAULT_SIGMAS = 24.0
_PAPER, _INK = "white", (40, 40, 40)

Colour = tuple[int, int, int]


def draw_patches(image: NDArray[np.uint8], features: Features, name: str = "") -> Image.Image:
    """The photo with the squares of 48 of its keypoints, small ones first, and the patches cut there.

    They are chosen to have sigmas of all sizes, and to lie in the photo where enough do. A square and its patch have
    one number and colour; the line in a square points along the patch's x axis, to its right edge. Sigma and angle
    stand below each patch, what they mean below all.
    """
    keypoints, sigmas = features.keypoints, float(features.settings.get("patch_sigmas") or _DEFAULT_SIGMAS)
    some = keypoints.take(_choice(keypoints, sigmas, image.shape, _COLUMNS * _ROWS))
    colours = [_colour(number / max(1, len(some))) for number in range(len(some))]
    photo = _photo_with_squares(image, some, sigmas, colours)
    patches = _patches_with_lines(image, some, sigmas, colours)
    return _together(photo, patches, _caption(name, image.shape, features, len(some), sigmas))


def show_patches(image: NDArray[np.uint8], features: Features, path: Path, name: str = "") -> None:
    """Write the picture to a PNG file."""
    with write_atomically(path) as file:
        draw_patches(image, features, name).save(file, "PNG")


def _choice(keypoints: Keypoints, sigmas: float, shape: tuple[int, ...], count: int) -> NDArray[np.int64]:
    """At most `count` keypoints, small ones first, whose sigmas differ by as large factors as can be."""
    within = np.flatnonzero(_share_within(keypoints, sigmas, shape) > 0.5)
    chosen = within if len(within) >= count else np.arange(len(keypoints))
    chosen = chosen[np.argsort(keypoints.sigma[chosen], kind="stable")]
    sizes = np.log(keypoints.sigma[chosen].astype(np.float64))
    apart, taken = np.full(len(chosen), np.inf), list[int]()
    while len(taken) < min(count, len(chosen)):
        taken.append(int(apart.argmax()))
        apart = np.minimum(apart, np.abs(sizes - sizes[taken[-1]]))
        apart[taken] = -1  # not again, also among equal sigmas
    return np.asarray(chosen[sorted(taken)])


def _share_within(keypoints: Keypoints, sigmas: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(n,) how much of each square lies in the photo, by the share of 6 x 6 places in it."""
    steps = (np.arange(6) - 2.5) / 6 * sigmas
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    places = keypoints.xy[:, None] + 0.5 + grid @ keypoints.frames().transpose(0, 2, 1)
    height, width = shape
    return np.asarray(((places >= 0) & (places <= (width, height))).all(axis=2).mean(axis=1))


def _photo_with_squares(
    image: NDArray[np.uint8], keypoints: Keypoints, sigmas: float, colours: list[Colour]
) -> Image.Image:
    height, width = image.shape
    zoom = min(_HEIGHT / height, _WIDEST / width)
    photo = Image.fromarray(image).resize((max(1, round(width * zoom)), max(1, round(height * zoom)))).convert("RGB")
    draw = ImageDraw.Draw(photo)
    outline = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * sigmas / 2
    squares = (keypoints.xy[:, None] + 0.5 + outline @ keypoints.frames().transpose(0, 2, 1)) * zoom
    for corners, colour in reversed(list(zip(squares, colours, strict=True))):  # small ones above large ones
        centre, edge = (corners[0] + corners[2]) / 2, (corners[1] + corners[2]) / 2
        width = 1 if np.ptp(corners, axis=0).max() > _LARGE else 2
        draw.line([tuple(corner) for corner in corners], fill=colour, width=width)
        draw.line([tuple(centre), tuple(edge)], fill=colour, width=width)
    for number, (corners, colour) in enumerate(zip(squares, colours, strict=True), start=1):  # above all squares
        _number(draw, number, tuple(corners[0]), photo.size, colour)
    return photo


def _number(
    draw: ImageDraw.ImageDraw, number: int, place: tuple[float, float], size: tuple[int, int], colour: Colour
) -> None:
    """The number at the patch's top left corner, or as near to it as the photo goes."""
    text, font = str(number), ImageFont.load_default(size=13)
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


def _caption(name: str, shape: tuple[int, ...], features: Features, shown: int, sigmas: float) -> str:
    (height, width), total, detector = shape, len(features), features.settings.get("detector")
    photo = f"{name or 'A photo'}, {width} x {height} pixels"
    found = "" if detector is None else " from a file" if detector == "file" else f" of {detector}"
    if not total:
        return f"{photo}: no keypoints{found}."
    which = f"{shown} of {total:,} keypoints" if shown < total else counted(total, "keypoint")
    return (
        f"{photo}: {which}{found}, described by {features.descriptor}, from the smallest to the largest.\n"
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
    red, green, blue = colorsys.hsv_to_rgb(share, 0.5, 1.0)  # light: also a blue number is legible
    return round(255 * red), round(255 * green), round(255 * blue)
