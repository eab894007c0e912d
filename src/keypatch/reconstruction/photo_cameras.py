"""Which camera took a photo: a known one, or what the file tells, its size and the focal length of its EXIF data."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from keypatch.errors import DataError
from keypatch.features.photos import Header, Photo, read_header
from keypatch.reconstruction.camera_models import GUESS, Camera

FILM_DIAGONAL = math.hypot(36, 24)  # mm; a focal length "in 35 mm film" has the same angle over the diagonal


def photo_camera(path: Path, model: str, focal: float | None = None) -> Camera:
    """The camera of a photo as stored in its file; `focal`, in pixels, goes before the EXIF data."""
    try:
        header = read_header(path)
    except DataError as error:
        raise DataError(f"{error} Leave it out to go on without it.") from error
    return header_camera(header, model, focal)


def header_camera(header: Header, model: str, focal: float | None = None) -> Camera:
    """The same of a header that was read before."""
    size, _, film = header
    if focal is not None:
        return Camera.from_focal(model, size, focal, focal_known=True)
    if film > 0:
        return Camera.from_focal(model, size, film / FILM_DIAGONAL * math.hypot(*size), focal_known=True)
    return Camera.from_focal(model, size, GUESS * max(size), focal_known=False)


def choose_cameras(
    photos: Sequence[Photo], known: Mapping[str, Camera], model: str, focal: float | None, shared: bool
) -> dict[str, Camera]:
    """A camera for each photo: the known one, else that of its file; `shared`: all photos were taken by one camera.

    Raises:
        DataError: a known camera, or the shared one, is of another size than the photo.
    """
    found = {photo.name: photo_camera(photo.path, model, focal) for photo in photos}
    if shared:
        first = next((camera for camera in found.values() if camera.focal_known), next(iter(found.values())))
        found = {name: _same_size(name, first, camera, "the shared camera") for name, camera in found.items()}
    return {name: _same_size(name, known.get(name, own), own, "its known camera") for name, own in found.items()}


def _same_size(name: str, camera: Camera, own: Camera, which: str) -> Camera:
    if (camera.width, camera.height) != (own.width, own.height):
        raise DataError(
            f"{name} has {own.width} x {own.height} pixels, {which} {camera.width} x {camera.height}. "
            "A camera belongs to photos of one size."
        )
    return camera
