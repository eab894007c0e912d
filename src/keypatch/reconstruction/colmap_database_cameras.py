"""The images of a COLMAP database and their cameras."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from keypatch.errors import DataError, KeypatchError
from keypatch.features.colmap_database import open_colmap_database
from keypatch.files import safe_name
from keypatch.reconstruction.camera_models import Camera

# COLMAP's numbers of the models that we know
_NUMBERS = {
    0: "SIMPLE_PINHOLE",
    1: "PINHOLE",
    2: "SIMPLE_RADIAL",
    3: "RADIAL",
    4: "OPENCV",
    5: "OPENCV_FISHEYE",
    6: "FULL_OPENCV",
    8: "SIMPLE_RADIAL_FISHEYE",
    9: "RADIAL_FISHEYE",
    10: "THIN_PRISM_FISHEYE",
}
_ASK = """
    SELECT name, camera_id, model, width, height, params, prior_focal_length
    FROM images LEFT JOIN cameras USING (camera_id) ORDER BY name
"""


class NumberedCamera(NamedTuple):
    """A camera and its number in the database: images with the same number share it."""

    number: int
    camera: Camera


def read_database_cameras(path: Path) -> dict[str, NumberedCamera]:
    """The camera of every image by its name, from a database of any version of COLMAP, which stays as it is.

    Raises:
        DataError: the file is no database of COLMAP's, or an image has no camera that is understood.
    """
    with open_colmap_database(path) as database:
        rows = database.ask(_ASK)
    found = {}
    for name, number, model, width, height, params, known in rows:
        if model not in _NUMBERS:
            missing = "no camera" if model is None else f"a camera of the model {model}, which is not known here"
            raise DataError(f"{path}: {name} has {missing}. Make the database again with another camera model.")
        try:
            values = tuple(np.frombuffer(params, "<f8").tolist())
            camera = Camera(_NUMBERS[model], int(width), int(height), values, focal_known=bool(known))
        except (KeypatchError, TypeError, ValueError) as error:
            raise DataError(f"{path}: the camera of {name} is damaged ({error}). Make the database again.") from error
        found[safe_name(str(name), str(path))] = NumberedCamera(number, camera)
    return found
