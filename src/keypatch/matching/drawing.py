"""A picture of matches that a person can judge: two photographs side by side and lines between them."""

import colorsys
import math
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from keypatch.geometry import Keypoints
from keypatch.matching.matches import Matches

LINES = 200  # as many as can be told apart
EPIPOLAR_LINES = 24  # they cross the whole photo
_SIDE = 1000  # pixels: at most this high, and three times as wide
_GAP, _PAPER, _INK = 12, (255, 255, 255), (60, 60, 60)
_RIGHT, _WRONG = (60, 224, 122), (242, 66, 54)
_SHIFT = 4  # OpenCV takes coordinates in 1/16 pixels

Photo = NDArray[np.uint8]  # (h, w) grey
Style = Literal["lines", "epipolar", "overlay"]


def draw_matches(
    photos: tuple[Photo, Photo],
    keypoints: tuple[Keypoints, Keypoints],
    matches: Matches,
    caption: str = "",
    right: NDArray[np.bool_] | None = None,
    lines: int = LINES,
) -> Image.Image:
    """Both photos at one height with at most `lines` of the matches, spread over the first one.

    Where `right` (m,) says which matches are right, those are green and the others red, in their true proportion. Else
    the colour tells where in the first photo a line begins, so that a match that goes astray stands out at its end.
    A caption stands below, and after it how many are drawn and what their colours mean.
    """
    height = _height(photos)
    scales = [height / photo.shape[0] for photo in photos]
    panels = [_prepared(photo, height) for photo in photos]
    gap = np.full((height, _GAP, 3), 255, np.uint8)
    canvas = np.concatenate([panels[0], gap, panels[1]], axis=1)
    starts, ends = (
        (points.xy[matches.indices[:, side]] + 0.5) * scale - 0.5
        for side, (points, scale) in enumerate(zip(keypoints, scales, strict=True))
    )
    ends[:, 0] += panels[0].shape[1] + _GAP
    shown = _shown(starts, right, lines)
    colours = _colours(starts, panels[0].shape) if right is None else np.where(right[:, None], _RIGHT, _WRONG)
    _draw_lines(canvas, starts[shown], ends[shown], colours[shown])
    if caption and len(shown):
        caption = f"{caption}\n{_legend(len(shown), len(matches), right is not None)}"
    return _with_caption(Image.fromarray(canvas), caption)


def draw_epipolar_lines(
    photos: tuple[Photo, Photo],
    places: tuple[NDArray[np.float64], NDArray[np.float64]],
    fundamental: NDArray[np.float64],
    caption: str = "",
    lines: int = EPIPOLAR_LINES,
) -> Image.Image:
    """Both photos at one height with some of the matches (m, 2), (m, 2), and the line on which each must lie.

    A match lies on the line of its own colour if it agrees with the fundamental matrix, x1.F.x0 = 0.
    """
    height = _height(photos)
    panels = [_prepared(photo, height) for photo in photos]
    shown = _spread(places[0], np.arange(len(places[0])), min(lines, EPIPOLAR_LINES))
    colours = _colours(places[0][shown], photos[0].shape).tolist()
    for side, (panel, photo) in enumerate(zip(panels, photos, strict=True)):
        scale = height / photo.shape[0]
        other = np.column_stack([places[1 - side][shown], np.ones(len(shown))])
        equations = other @ (fundamental.T if side else fundamental)  # the lines l.x = 0 in this photo
        for line, place, colour in zip(equations, places[side][shown], colours, strict=True):
            ends = _line_ends(line, photo.shape)
            if ends is not None:
                start, end = _sixteenths(ends, scale)
                cv2.line(panel, start, end, colour, 1, cv2.LINE_AA, _SHIFT)
            (centre,) = _sixteenths(place[None], scale)
            cv2.circle(panel, centre, 80, (20, 20, 20), -1, cv2.LINE_AA, _SHIFT)
            cv2.circle(panel, centre, 56, colour, -1, cv2.LINE_AA, _SHIFT)
    gap = np.full((height, _GAP, 3), 255, np.uint8)
    told = f"{caption}\n{len(shown):,} matches with their epipolar lines" if caption else ""
    return _with_caption(Image.fromarray(np.concatenate([panels[0], gap, panels[1]], axis=1)), told)


def _sixteenths(places: NDArray[np.float64], scale: float) -> list[list[int]]:
    """Places (n, 2) in a photo drawn at this scale, as OpenCV takes them."""
    drawn: list[list[int]] = np.rint(((places + 0.5) * scale - 0.5) * 2**_SHIFT).astype(int).tolist()
    return drawn


def _line_ends(line: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """(2, 2) where the line a x + b y + c = 0 enters and leaves a photo; None if it passes it by."""
    height, width = shape[:2]
    a, b, c = line
    ends = [(x, -(a * x + c) / b) for x in (0, width - 1) if b] + [(-(b * y + c) / a, y) for y in (0, height - 1) if a]
    inside = [(x, y) for x, y in ends if -0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5]
    return np.array([min(inside), max(inside)]) if len(inside) >= 2 else None


def draw_overlay(photos: tuple[Photo, Photo], homography: NDArray[np.float64], caption: str = "") -> Image.Image:
    """The first photo carried by the homography, x1 ~ H x0, and laid over the second: red over cyan.

    Where both agree the picture is grey; what is shifted has coloured edges.
    """
    first, second = photos
    height, width = second.shape
    scale = _height((second, second)) / height
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    shrink = np.array([[scale, 0, scale / 2 - 0.5], [0, scale, scale / 2 - 0.5], [0, 0, 1]])
    carried = cv2.warpPerspective(first, shrink @ homography, size, flags=cv2.INTER_AREA)
    covered = cv2.warpPerspective(np.full_like(first, 255), shrink @ homography, size) > 0
    below = cv2.resize(second, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    red = np.where(covered, carried, below)
    told = f"{caption}\nthe first photo in red over the second in cyan: grey where they agree" if caption else ""
    return _with_caption(Image.fromarray(np.stack([red, below, below], axis=2).astype(np.uint8)), told)


def _legend(shown: int, total: int, judged: bool) -> str:
    colours = "green is right, red is wrong" if judged else "a line's colour tells where in the first photo it begins"
    return f"{shown:,} of {total:,} are drawn: {colours}"


def _height(photos: tuple[Photo, Photo]) -> int:
    """The larger photo's height, if the whole is not too large then."""
    wide = sum(photo.shape[1] / photo.shape[0] for photo in photos)
    return int(max(1, min(_SIDE, max(photo.shape[0] for photo in photos), round(3 * _SIDE / wide))))


def _prepared(photo: Photo, height: int) -> NDArray[np.uint8]:
    """The photo at this height (height, width, 3), darker and with less contrast, so that lines stand out from it."""
    width = max(1, round(photo.shape[1] * height / photo.shape[0]))
    method = cv2.INTER_AREA if height < photo.shape[0] else cv2.INTER_CUBIC
    sized = cv2.resize(photo, (width, height), interpolation=method)
    dimmed = cv2.convertScaleAbs(sized, alpha=0.7, beta=16)
    return np.asarray(cv2.cvtColor(dimmed, cv2.COLOR_GRAY2RGB), np.uint8)


def _shown(starts: NDArray[np.float64], right: NDArray[np.bool_] | None, lines: int) -> NDArray[np.int64]:
    """Which matches are drawn: wrong ones first, below the others."""
    if right is None:
        return _spread(starts, np.arange(len(starts)), lines)
    wrong_lines = round(lines * (1 - right.mean())) if len(right) > lines else lines
    good, bad = np.flatnonzero(right), np.flatnonzero(~right)
    return np.concatenate(
        [_spread(starts, bad, wrong_lines), _spread(starts, good, lines - min(wrong_lines, len(bad)))]
    )


def _spread(places: NDArray[np.float64], chosen: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """At most `count` of the chosen places, each as far as can be from those taken before."""
    if len(chosen) <= count:
        return chosen
    candidates = places[chosen]
    distance, taken = np.full(len(chosen), np.inf), [0]
    while len(taken) < count:
        distance = np.minimum(distance, np.sum((candidates - candidates[taken[-1]]) ** 2, axis=1))
        taken.append(int(distance.argmax()))
    return chosen[taken[:count]]


def _colours(places: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """(m, 3) colours: the hue goes round the middle of the photo, pale there and strong at its border."""
    x, y = (places / [shape[1] / 2, shape[0] / 2] - 1).T
    hue, strength = np.arctan2(y, x) / (2 * np.pi) % 1, np.clip(0.45 + 0.5 * np.hypot(x, y), 0, 0.95)
    rgb = [colorsys.hsv_to_rgb(h, s, 1.0) for h, s in zip(hue, strength, strict=True)]
    return np.round(255 * np.array(rgb).reshape(-1, 3)).astype(np.int64)


def _draw_lines(
    canvas: NDArray[np.uint8], starts: NDArray[np.float64], ends: NDArray[np.float64], colours: NDArray[np.int64]
) -> None:
    lined = canvas.copy()
    segments = [np.rint(places * 2**_SHIFT).astype(int).tolist() for places in (starts, ends)]
    for start, end, colour in zip(*segments, colours.tolist(), strict=True):
        cv2.line(lined, start, end, colour, 1, cv2.LINE_AA, _SHIFT)
    opacity = min(0.8, 6.5 / math.sqrt(max(len(starts), 1)))  # the photo shines through, and more under many lines
    cv2.addWeighted(lined, opacity, canvas, 1 - opacity, 0, dst=canvas)
    for places in segments:
        for place, colour in zip(places, colours.tolist(), strict=True):
            cv2.circle(canvas, place, 56, (20, 20, 20), -1, cv2.LINE_AA, _SHIFT)
            cv2.circle(canvas, place, 40, colour, -1, cv2.LINE_AA, _SHIFT)


def _with_caption(picture: Image.Image, caption: str) -> Image.Image:
    if not caption:
        return picture
    font = ImageFont.load_default(size=max(11, min(24, picture.width // 75)))
    _, top, right, bottom = ImageDraw.Draw(picture).multiline_textbbox((0, 0), caption, font)
    margin = 10
    whole = Image.new(
        "RGB",
        (max(picture.width, round(right) + 2 * margin), picture.height + round(bottom - top) + 2 * margin),
        _PAPER,
    )
    whole.paste(picture, (0, 0))
    ImageDraw.Draw(whole).multiline_text((margin, picture.height + margin - top), caption, _INK, font)
    return whole
