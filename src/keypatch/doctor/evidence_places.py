"""Places: do the keypoints lie in the photograph, and how finely are they written?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from keypatch.doctor.stated import Floats, Stated

# the longer sides to which tools shrink photographs (hloc, COLMAP, image-matching benchmarks)
USUAL_SIDES = (480, 512, 640, 768, 800, 960, 1024, 1200, 1280, 1536, 1600, 1920, 2000, 2048, 2400, 3200)


@dataclass(frozen=True)
class Places:
    keypoints: int
    outside: int
    image_size: tuple[int, int]  # (width, height)
    rounding: float | None  # the largest error of float16 coordinates, pixels; None: they are finer than that


def look_at_places(xy: Floats, image_size: tuple[int, int]) -> Places:
    return Places(len(xy), int(np.sum(~is_inside(xy, image_size))), image_size, _float16_rounding(xy))


def is_inside(xy: Floats, image_size: tuple[int, int]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether points (n, 2) lie on the photograph's pixels, which reach half a pixel beyond their centres."""
    return np.asarray(((xy >= -0.5) & (xy <= np.array(image_size) - 0.5)).all(axis=1))


def other_places(stated: Stated, image_size: tuple[int, int]) -> Iterator[tuple[str, str, Stated]]:
    """(fault, remedy, keypoints) of every other reading of the places: swapped, or of a smaller copy of the photo."""
    yield "x and y are swapped", "Write x (the column) first.", replace(stated, xy=stated.xy[:, ::-1])
    for side in USUAL_SIDES:
        if side != max(image_size):
            yield _of_copy(stated, image_size, side)


def _of_copy(stated: Stated, image_size: tuple[int, int], side: int) -> tuple[str, str, Stated]:
    width, height = (round(side * each / max(image_size)) for each in image_size)
    grow = np.array(image_size) / (width, height)
    mean = float(np.sqrt(grow.prod()))
    return (
        f"keypoints are those of a copy of {width} x {height} px",
        f"Write (x + 0.5) * {mean:.4g} - 0.5, y likewise, and the scale times {mean:.4g}.",
        replace(
            stated,
            xy=(stated.xy + 0.5) * grow - 0.5,
            sigma=None if stated.sigma is None else stated.sigma * mean,
        ),
    )


def _float16_rounding(xy: Floats) -> float | None:
    with np.errstate(over="ignore"):
        halves = xy.astype(np.float16).astype(np.float64)
    is_whole = bool((xy == np.rint(xy)).all())  # whole pixels fit float16 too
    if not len(xy) or is_whole or not np.array_equal(halves, xy):
        return None
    return float(np.spacing(np.float16(np.abs(xy).max()))) / 2
