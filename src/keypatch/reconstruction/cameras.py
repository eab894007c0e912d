"""Known cameras: ground truth of benchmarks, and models that were made before."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.geometry.poses import Pose
from keypatch.reconstruction.camera_models import Camera, StandIn
from keypatch.reconstruction.strecha import SUFFIX, read_strecha
from keypatch.reconstruction.text_models import read_text_cameras


class PosedCamera(NamedTuple):
    """A camera and where it stood; `camera.matrix` is in our pixels, the pose goes from world to camera."""

    camera: Camera
    pose: Pose


def read_cameras(path: str | Path, *, stand_ins: bool = False) -> dict[str, PosedCamera]:
    """The known cameras by image name: a folder of Strecha's `.camera` files or a COLMAP model, text or binary.

    With `stand_ins`, a model may have cameras that cannot exist: `impossible_cameras` names them.

    Raises:
        DataError: the folder is neither, or a file in it is damaged.
    """
    folder = Path(path)
    require_folder(folder)
    strecha = sorted(folder.glob(f"*{SUFFIX}"))
    if (folder / "images.txt").is_file():
        found = read_text_cameras(folder, stand_ins=stand_ins)
    elif (folder / "images.bin").is_file():
        from keypatch.reconstruction.colmap import read_binary_cameras

        found = read_binary_cameras(folder, stand_ins=stand_ins)
    elif strecha:
        found = {file.name.removesuffix(SUFFIX): read_strecha(file) for file in strecha}
    else:
        raise DataError(
            f"{folder} holds no cameras. Give a COLMAP model (cameras.txt and images.txt, or .bin) or a folder of "
            "Strecha's files IMAGE.camera."
        )
    return {name: PosedCamera(*posed) for name, posed in found.items()}


def impossible_cameras(posed: Mapping[str, PosedCamera]) -> list[str]:
    """A sentence for each camera of a model that cannot exist."""
    photos: dict[StandIn, list[str]] = {}
    for name, (camera, _) in posed.items():
        if isinstance(camera, StandIn):
            photos.setdefault(camera, []).append(name)
    return [_impossible(camera, sorted(names)) for camera, names in photos.items()]


def _impossible(camera: StandIn, photos: list[str]) -> str:
    some = ", ".join(photos[:3]) + (f" and {len(photos) - 3} more" if len(photos) > 3 else "")
    numbers = ", ".join(f"{value:.6g}" for value in camera.found)
    rule = "a focal length is above 0" if np.isfinite(camera.found).all() else "parameters are finite numbers"
    return (
        f"Camera {camera.number} of the model ({camera.model}, of {some}) has the parameters {numbers}, but {rule}: do "
        "not trust its poses and points. Give the focal length if it is known, or let photos of one camera share it, "
        "and reconstruct again."
    )
