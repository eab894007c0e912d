"""A model as one HTML file to turn in the browser: nothing is loaded from elsewhere."""

import base64
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.files import write_text
from keypatch.reconstruction.cameras import PosedCamera
from keypatch.reconstruction.frusta import frusta
from keypatch.reconstruction.picture import lighten
from keypatch.reconstruction.text_models import Points
from keypatch.reconstruction.thumbnails import make_thumbnails
from keypatch.reconstruction.viewpoint import choose_viewpoint, upright

MOST_POINTS = 200_000  # 20 bytes of base64 each: 4 MB
SCRIPTS = ("page_view.js", "page_drawing.js", "page_acting.js")  # one after the other, as one script
ASPECT = 1.6  # of the window the view is made for; a narrower one opens its angle


def write_page(
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
    seen = make_thumbnails({name: photo for name, photo in (photos or {}).items() if name in cameras})
    content = {
        "title": title,
        "facts": dict(facts),
        "names": list(cameras),
        "sights": [(sights or {}).get(name) for name in cameras],
        "thumbnails": [base64.b64encode(seen[name]).decode("ascii") if name in seen else None for name in cameras],
        **_model(_most_seen(points), cameras),
    }
    # inside a script element only "<" could end it; JSON may write it as an escape
    text = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    page = _part("page_template.html").replace("KEYPATCH_STYLE", _part("page.css"))
    page = page.replace("KEYPATCH_SCRIPT", "\n\n".join(map(_part, SCRIPTS)))
    write_text(path, page.replace("KEYPATCH_MODEL", text, 1))  # last: a name may be any text


def _part(name: str) -> str:
    return files("keypatch.reconstruction").joinpath(name).read_text(encoding="utf-8").strip()


def _most_seen(points: Points) -> Points:
    if len(points.xyz) <= MOST_POINTS:
        return points
    kept = np.sort(np.argsort(-points.track_lengths, kind="stable")[:MOST_POINTS])
    return Points(points.xyz[kept], points.colours[kept], points.errors[kept], points.track_lengths[kept])


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
            "up": upright(poses, points.xyz).tolist(),
            "tangent": view.tangent,
            "aspect": ASPECT,
            "depth": 1.0,
        },
    }


def _packed(values: NDArray[Any], kind: type[np.generic]) -> str:
    """Little-endian bytes in base64, as typed arrays of JavaScript read them on every machine of today."""
    return base64.b64encode(np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
