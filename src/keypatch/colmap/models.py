"""COLMAP's models, read by pycolmap: cameras and poses, points, and which image sees which point."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.cameras import Camera, PosedCamera, camera_of_model
from keypatch.colmap.package import load_pycolmap
from keypatch.files import reading
from keypatch.geometry.converters import COLMAP_CORNER
from keypatch.geometry.poses import Pose, quaternion_rotation
from keypatch.sandbox import try_reading


@dataclass(frozen=True, eq=False)
class Points:
    """The 3D points of a model."""

    xyz: NDArray[np.float64]  # (n, 3)
    colours: NDArray[np.uint8]  # (n, 3) red, green, blue
    errors: NDArray[np.float64]  # (n,) reprojection, pixels
    track_lengths: NDArray[np.int64]  # (n,)


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A model in memory; an observation is a place in an image that belongs to a point."""

    cameras: Mapping[str, PosedCamera]  # of the registered images, in the order of their names
    points: Points  # in the order of their numbers
    seen_by: NDArray[np.int64]  # (m,) the image of every observation, its position among the cameras
    seen: NDArray[np.int64]  # (m,) the point of every observation, its position among the points
    keypoint: NDArray[np.int64]  # (m,) the number of its keypoint in the image
    place: NDArray[np.float64]  # (m, 2) where that is, in our pixels

    @property
    def poses(self) -> dict[str, Pose]:
        return {name: posed.pose for name, posed in self.cameras.items()}

    @property
    def observations(self) -> dict[str, int]:
        """The number of points that each image sees."""
        return dict(zip(self.cameras, np.bincount(self.seen_by, minlength=len(self.cameras)).tolist(), strict=True))


def read_model(folder: str | Path, *, stand_ins: bool = False, text: bool = False) -> SparseModel:
    """The model in a folder; with `stand_ins` cameras may be impossible.

    If it is there in both forms the binary one is read, or with `text` the other, whose names end at a blank.

    Raises:
        DataError: it is damaged, or a camera is impossible or of a model that is not known here.
        MissingExtra: pycolmap is not installed.
    """
    load_pycolmap("Reading a COLMAP model")
    try_reading(load_model, Path(folder), text)
    with reading(folder, "COLMAP model"):
        return _in_memory(load_model(Path(folder), text), folder, stand_ins)


def load_model(folder: Path, text: bool) -> Any:
    """pycolmap's own value; of some damaged files it is never done."""
    model = load_pycolmap().Reconstruction()
    (model.read_text if text else model.read)(str(folder))
    return model


def _in_memory(model: Any, folder: str | Path, stand_ins: bool) -> SparseModel:
    images = sorted((image for image in model.images.values() if image.has_pose), key=lambda image: str(image.name))
    cameras = {number: _camera(model, number, folder, stand_ins) for number in {image.camera_id for image in images}}
    places = {image.image_id: place for place, image in enumerate(images)}
    points = [point for _, point in sorted(model.points3D.items())]
    tracks = [point.track.elements for point in points]
    lengths = np.array([len(track) for track in tracks], np.int64)
    rows = {image.image_id: image.points2D for image in images}
    seen_at = [rows[element.image_id][element.point2D_idx].xy for track in tracks for element in track]
    return SparseModel(
        {image.name: PosedCamera(cameras[image.camera_id], _pose(image)) for image in images},
        Points(
            np.array([point.xyz for point in points], np.float64).reshape(-1, 3),
            np.array([point.color for point in points], np.uint8).reshape(-1, 3),
            np.array([point.error for point in points], np.float64),
            lengths,
        ),
        np.array([places[element.image_id] for track in tracks for element in track], np.int64),
        np.repeat(np.arange(len(points)), lengths),
        np.array([element.point2D_idx for track in tracks for element in track], np.int64),
        np.array(seen_at, np.float64).reshape(-1, 2) - COLMAP_CORNER,
    )


def _camera(model: Any, number: int, folder: str | Path, stand_ins: bool) -> Camera:
    row = model.cameras[number]
    size, params = (row.width, row.height), tuple(map(float, row.params))
    with reading(f"{folder}, camera {number}", "camera"):
        return camera_of_model(number, row.model_name, size, params, stand_ins=stand_ins)


def _pose(image: Any) -> Pose:
    motion = image.cam_from_world()
    x, y, z, w = motion.rotation.quat
    return Pose(quaternion_rotation([w, x, y, z]), motion.translation)
