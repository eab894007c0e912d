"""A picture of a model: its points in the colours of the photos, its cameras as small pyramids."""

import io
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from keypatch.colmap.cameras import PosedCamera
from keypatch.colmap.models import Points
from keypatch.errors import DataError
from keypatch.files import write_atomically
from keypatch.images import read_colours
from keypatch.reconstruction.view import EDGES, FACE, Viewpoint, choose_viewpoint, frusta

Float64 = NDArray[np.float64]

SIZE = (1600, 1000)
FINER = 2  # everything is drawn this much larger and reduced: smooth edges
ABOVE, BELOW = np.array([38, 46, 61]), np.array([13, 16, 23])  # the background's colours
LINE, FACE_TINT = (255, 190, 105), (255, 190, 105, 60)
TEXT, MARGIN = (151, 162, 181), 28  # of the caption: its colour, and pixels from the edges
HAZE = 0.3  # how much of its colour the farthest point loses to the background
MIDDLE_GREY = 0.62  # points are lightened until half of them are as bright: masonry in the shade is hard to see


def write_picture(
    path: Path,
    points: Points,
    cameras: Mapping[str, PosedCamera],
    photos: Mapping[str, Path] | None = None,
    caption: str = "",
) -> None:
    """A PNG from the viewpoint that shows the most; with `photos`, each camera carries its own that can be read.

    The caption is one line below the model, cut off where it is too long.
    """
    drawn, encoded = draw_model(points, cameras, photos or {}), io.BytesIO()
    _write_caption(drawn, caption)
    drawn.save(encoded, "PNG")
    with write_atomically(path) as file:
        file.write(encoded.getvalue())


def draw_model(points: Points, cameras: Mapping[str, PosedCamera], photos: Mapping[str, Path]) -> Image.Image:
    width, height = SIZE[0] * FINER, SIZE[1] * FINER
    view = choose_viewpoint(points.xyz, [camera.pose for camera in cameras.values()], width / height)
    canvas = _background(width, height)
    _draw_points(canvas, points, view)
    image = Image.fromarray(np.rint(canvas).astype(np.uint8))
    _draw_cameras(image, cameras, photos, points, view)
    return image.resize(SIZE, Image.Resampling.BOX)


def _write_caption(image: Image.Image, caption: str) -> None:
    font = ImageFont.load_default(size=20)
    line = " ".join(caption.split())
    while font.getlength(line) > image.width - 2 * MARGIN:
        line = line.removesuffix("...")[:-1] + "..."
    ImageDraw.Draw(image).text((MARGIN, image.height - MARGIN), line, TEXT, font, anchor="ls")


def _background(width: int, height: int) -> Float64:
    down = np.linspace(0, 1, height)[:, None, None]
    return np.ascontiguousarray(np.broadcast_to(ABOVE + (BELOW - ABOVE) * down, (height, width, 3)))


def _project(xyz: Float64, view: Viewpoint, width: int, height: int) -> tuple[Float64, Float64]:
    """(n, 2) pixels and (n,) depths; a point behind the eye has a depth below 0."""
    seen = xyz @ view.pose.rotation.T + view.pose.translation
    depth = np.where(np.abs(seen[:, 2]) < 1e-12, 1e-12, seen[:, 2])
    return seen[:, :2] / depth[:, None] * (height / 2 / view.tangent) + (width / 2, height / 2), seen[:, 2]


def _draw_points(canvas: Float64, points: Points, view: Viewpoint) -> None:
    """Discs, the nearer the larger; of several at one pixel the nearest is seen."""
    height, width = canvas.shape[:2]
    xy, depth = _project(points.xyz, view, width, height)
    inside = np.flatnonzero((depth > 0) & (xy >= 0).all(axis=1) & (xy < (width, height)).all(axis=1))
    if not len(inside):
        return
    xy, depth, colours = xy[inside], depth[inside], lighten(points.colours[inside])
    near, far = np.percentile(depth, [2, 98])
    size = np.clip(2.2 * (3000 / len(inside)) ** 0.25, 0.8, 4.0)  # pixels: a few points are drawn larger than many
    radius = size * FINER * np.clip(math.sqrt(near * far) / depth, 0.5, 1.7)
    share = HAZE * np.clip((depth - near) / max(far - near, 1e-12), 0, 1)[:, None]
    colours = colours * (1 - share) + (ABOVE + BELOW) / 2 * share
    reach = int(np.ceil(radius.max()))
    rows, columns, nearness, chosen = [], [], [], []
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            covers = np.flatnonzero(dx**2 + dy**2 <= radius**2)
            columns.append(xy[covers, 0].astype(np.int64) + dx)
            rows.append(xy[covers, 1].astype(np.int64) + dy)
            nearness.append(-depth[covers])
            chosen.append(covers)
    row, column, point = np.concatenate(rows), np.concatenate(columns), np.concatenate(chosen)
    order = np.argsort(np.concatenate(nearness), kind="stable")
    order = order[(row[order] >= 0) & (row[order] < height) & (column[order] >= 0) & (column[order] < width)]
    canvas[row[order], column[order]] = colours[point[order]]  # the last one written to a pixel stays


def lighten(colours: NDArray[np.uint8]) -> Float64:
    """(n, 3) colours raised to the power that makes half of them as bright as a middle grey; never darker."""
    shares = colours / 255
    middle = float(np.clip(np.median(shares.mean(axis=1)), 0.05, MIDDLE_GREY)) if len(colours) else MIDDLE_GREY
    return np.asarray(255 * shares ** (math.log(MIDDLE_GREY) / math.log(middle)))


def _draw_cameras(
    image: Image.Image,
    cameras: Mapping[str, PosedCamera],
    photos: Mapping[str, Path],
    points: Points,
    view: Viewpoint,
) -> None:
    """Pyramids, the farthest first, each with its photo on the face where there is one."""
    xy, depth = _project(frusta(list(cameras.values()), points.xyz).reshape(-1, 3), view, *image.size)
    pixels, depths = xy.reshape(-1, 5, 2), depth.reshape(-1, 5)
    draw, names = ImageDraw.Draw(image, "RGBA"), list(cameras)
    for camera in np.argsort(-depths[:, 0]):
        if depths[camera].min() <= 0:
            continue
        face = pixels[camera, list(FACE)]
        if names[camera] not in photos or not _paste_photo(image, photos[names[camera]], face):
            draw.polygon([tuple(corner) for corner in face.tolist()], fill=FACE_TINT)
        for start, end in EDGES:
            draw.line([tuple(pixels[camera, end]) for end in (start, end)], fill=LINE, width=round(1.3 * FINER))


def _paste_photo(image: Image.Image, path: Path, corners: Float64) -> bool:
    """Draws the photo onto four corners: top left, top right, bottom right, bottom left; False if it is unreadable."""
    left, top = np.floor(corners.min(axis=0)).astype(int)
    right, bottom = np.ceil(corners.max(axis=0)).astype(int) + 1
    try:
        small = read_colours(path, 256)
    except DataError:
        return False
    width, height = small.size
    inside = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float64)
    try:
        coefficients = _perspective(corners - (left, top), inside)
    except np.linalg.LinAlgError:  # seen edge-on
        return True
    size = (int(right - left), int(bottom - top))
    drawn = small.transform(size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).polygon([tuple(corner) for corner in (corners - (left, top)).tolist()], fill=235)
    image.paste(drawn, (int(left), int(top)), mask)
    return True


def _perspective(source: Float64, target: Float64) -> list[float]:
    """The eight numbers with which Pillow finds the place in the target of each place in the source."""
    rows, values = [], []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.linalg.solve(np.array(rows), np.array(values)).tolist()  # type: ignore[no-any-return]
