"""Scenes: photographs with known cameras, in the layout of Strecha, COLMAP or the Image Matching Challenge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap import Camera, PosedCamera, read_cameras
from keypatch.errors import DataError
from keypatch.features import Photo, find_photos
from keypatch.features.feature_files import open_h5, read_array
from keypatch.files import reading, require_folder
from keypatch.geometry.poses import Pose
from keypatch.images import read_header

SUFFIX, PREFIX = ".h5", "calibration_"
SIZES = {"K": 9, "R": 9, "T": 3}
CAMERA_FOLDERS = ("cameras", "poses", "calibration")  # beside images/
CHALLENGE_FOLDER = "set_100"  # of a scene of the challenge, with everything in it
# Beside photos and cameras: which pairs see the same, and which photos make a bag
LISTS = ("images.txt", "visibility.txt", "visibility/*", "new-vis-pairs/*.npy", "sub_set/*.txt")
# Photos of the challenge that do not count, nor do pairs and bags with them: of london_bridge, withdrawn by its authors
DEPRECATED = {"21416139_3508932720", "50666539_5168136646", "61662402_4816310161", "92273298_5039274514"}


@dataclass(frozen=True, eq=False)
class PosedScene:
    """Photographs in the order of their names, and the camera of each by its name."""

    name: str
    folder: Path
    photos: tuple[Photo, ...]
    cameras: Mapping[str, PosedCamera]
    lists: tuple[Path, ...] = ()  # of cameras, and of what LISTS names

    @property
    def names(self) -> list[str]:
        return [photo.name for photo in self.photos]

    @property
    def by_stem(self) -> dict[str, str]:
        """Names of photographs by what the challenge calls them: without folder and ending."""
        return {PurePosixPath(name).stem: name for name in self.names}

    def pairs(self, reach: int | None = None) -> list[tuple[str, str]]:
        """The names of every photograph with each one after it, or with the `reach` next ones."""
        names, last = self.names, len(self.photos) if reach is None else reach
        return [(first, second) for i, first in enumerate(names) for second in names[i + 1 : i + 1 + last]]

    @property
    def files(self) -> list[Path]:
        """Everything that the scores depend on."""
        return [*(photo.path for photo in self.photos), *self.lists]


def read_posed_scenes(folder: str | Path) -> list[PosedScene]:
    """The scene in a folder, or those in the folders below it; then photos are named <scene>/<photo>."""
    folder = Path(folder)
    require_folder(folder)
    if _is_scene(folder):
        return [read_posed_scene(folder)]
    below = [path for path in sorted(folder.iterdir()) if path.is_dir() and _is_scene(path)]
    if not below:
        raise DataError(
            f"{folder} is not a scene: it has no folder images with {', '.join(CAMERA_FOLDERS[:-1])} or "
            f"{CAMERA_FOLDERS[-1]} beside it, and neither does any folder in it."
        )
    return [read_posed_scene(path, f"{path.name}/") for path in below]


def read_posed_scene(folder: str | Path, prefix: str = "") -> PosedScene:
    """The photos in images/ that have a camera in cameras/, poses/ or calibration/; their names begin with `prefix`.

    The cameras are Strecha's files, a COLMAP model or the challenge's h5 files, which every photo must have.

    Raises:
        DataError: no cameras, a camera without its photo, or fewer than two photos with one.
    """
    given = Path(folder)
    inside = given / CHALLENGE_FOLDER
    folder = inside if inside.is_dir() else given
    known = next((folder / name for name in CAMERA_FOLDERS if (folder / name).is_dir()), None)
    if known is None:
        raise DataError(f"{folder} has no cameras: expected a folder {' or '.join(CAMERA_FOLDERS)} beside images.")
    photos = sorted(find_photos([folder / "images"]))
    cameras = read_calibrations(known, photos) if any(known.glob(f"*{SUFFIX}")) else read_cameras(known)
    alone = sorted(set(cameras) - {photo.name for photo in photos})
    if alone:
        raise DataError(
            f"{known} has a camera for {alone[0]}, but {folder / 'images'} has no such photo "
            f"({len(alone)} of {len(cameras)} cameras have no photo). Copy the photo, or remove the camera."
        )
    kept = [photo for photo in photos if photo.name in cameras and photo.path.stem not in DEPRECATED]
    used = tuple(photo._replace(name=prefix + photo.name) for photo in kept)
    if len(used) < 2:
        raise DataError(f"{folder} has {len(used)} photos with a camera in {known.name}, but a pair needs two.")
    patterns = [f"{known.name}/*", *LISTS]
    lists = tuple(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    name = given.absolute().parent.name if given.name == CHALLENGE_FOLDER else given.absolute().name
    return PosedScene(name, folder, used, {prefix + name: camera for name, camera in cameras.items()}, lists)


def _is_scene(folder: Path) -> bool:
    places = (folder, folder / CHALLENGE_FOLDER)
    return any((place / "images").is_dir() and any((place / n).is_dir() for n in CAMERA_FOLDERS) for place in places)


def read_calibrations(folder: Path, photos: Sequence[Photo]) -> dict[str, PosedCamera]:
    """The camera of each photo by its name; K is in our pixels, as the challenge applies it.

    Raises:
        DataError: a photo has no file, a file no photo, or one is damaged.
    """
    files = {path.stem.removeprefix(PREFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    missing = [photo for photo in photos if photo.path.stem not in files]
    if missing:
        name = f"{PREFIX}{missing[0].path.stem}{SUFFIX}"
        raise DataError(
            f"{folder} has no {name}, the camera of {missing[0].name}; {len(missing)} photos lack a camera."
        )
    for stem in files.keys() - {photo.path.stem for photo in photos}:
        raise DataError(f"{files[stem]} is a camera without a photo: {stem} is not in images. Copy the photo there.")
    return {photo.name: _read(files[photo.path.stem], photo.path) for photo in photos}


def _read(path: Path, photo: Path) -> PosedCamera:
    with open_h5(path, "calibration") as file:
        values = {key: _numbers(path, read_array(path, file, key), key) for key in SIZES}
    size = read_header(photo).size
    with reading(path, "calibration"):
        camera = Camera.from_matrix(values["K"].reshape(3, 3), size)
        return PosedCamera(camera, Pose(values["R"].reshape(3, 3), values["T"].ravel()))


def _numbers(path: Path, array: NDArray[np.generic] | None, key: str) -> NDArray[np.float64]:
    if array is None or array.size != SIZES[key]:
        raise DataError(f"{path} should hold {key} with {SIZES[key]} numbers. Copy it again.")
    numbers = np.asarray(array, np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"{path}: {key} is not finite. Copy it again.")
    return numbers
