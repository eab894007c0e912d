"""A model as one HTML file to turn in the browser: nothing is loaded from elsewhere."""

import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.colmap.cameras import PosedCamera
from keypatch.colmap.models import Points
from keypatch.errors import DataError
from keypatch.files import write_text
from keypatch.images import read_colours
from keypatch.reconstruction.picture import lighten
from keypatch.reconstruction.view import choose_viewpoint, frusta, up_direction

MOST_POINTS = 200_000  # 20 bytes of base64 each: 4 MB
TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader(__package__), autoescape=True, undefined=jinja2.StrictUndefined
)
ASPECT = 1.6  # of the window the view is made for; a narrower one opens its angle


def write_model_page(
    path: Path,
    title: str,
    facts: Mapping[str, str],
    points: Points,
    cameras: Mapping[str, PosedCamera],
    photos: Mapping[str, Path] | None = None,
    sights: Mapping[str, int] | None = None,
) -> None:
    """A page with this title and facts beside the model; with `photos`, each camera shows its own that can be read.

    sights: how many points each photo sees; said beside its name.

    Of too many points the shortest tracks are left out; of many photos the small copies are smaller, or none.
    """
    cameras = dict(sorted(cameras.items()))
    if len(points.xyz) > MOST_POINTS:
        kept = np.sort(np.argsort(-points.track_lengths, kind="stable")[:MOST_POINTS])
        points = Points(points.xyz[kept], points.colours[kept], points.errors[kept], points.track_lengths[kept])
    seen = make_thumbnails({name: photo for name, photo in (photos or {}).items() if name in cameras})
    content = {
        "title": title,
        "facts": dict(facts),
        "names": list(cameras),
        "sights": [(sights or {}).get(name) for name in cameras],
        "thumbnails": [base64.b64encode(seen[name]).decode("ascii") if name in seen else None for name in cameras],
        **_model(points, cameras),
    }
    # inside a script element only "<" could end it; JSON may write it as an escape
    text = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    write_text(path, TEMPLATES.get_template("model.html").render(model=text))


def _model(points: Points, cameras: Mapping[str, PosedCamera]) -> dict[str, Any]:
    """Everything in a unit and from an origin of the scene's own, so that float32 is enough."""
    poses = [camera.pose for camera in cameras.values()]
    view = choose_viewpoint(points.xyz, poses, ASPECT)
    eye, forward = view.pose.centre, view.pose.rotation[2]
    middle = np.median(points.xyz, axis=0) if len(points.xyz) else eye + forward
    depth = max(float((middle - eye) @ forward), 1e-9)
    target = eye + depth * forward
    return {
        "xyz": _packed((points.xyz - target) / depth, np.float32),
        "colours": _packed(np.rint(lighten(points.colours)), np.uint8),
        "frusta": _packed((frusta(list(cameras.values()), points.xyz) - target) / depth, np.float32),
        "point_size": round(float(np.clip(4 * (3000 / max(len(points.xyz), 1)) ** 0.25, 1.5, 5)), 2),
        "view": {
            "eye": ((eye - target) / depth).tolist(),
            "target": [0.0, 0.0, 0.0],
            "up": up_direction(poses, points.xyz).tolist(),
            "tangent": view.tangent,
            "aspect": ASPECT,
            "depth": 1.0,
        },
    }


def _packed(values: NDArray[Any], kind: type[np.generic]) -> str:
    """Little-endian bytes in base64, as typed arrays of JavaScript read them on every machine of today."""
    return base64.b64encode(np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")


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
