"""Photographs of planes with known homographies: HPatches sequences and Oxford as they were released."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.geometry.homographies import Matrix, read_matrix
from keypatch.images import SUFFIXES, Photo, read_header, resized_size

# HPatches sequences of very large photographs, which everybody leaves out since D2-Net
LARGE = {
    *("i_contruction", "i_crownnight", "i_dc", "i_pencils", "i_whitebuilding"),
    *("v_artisans", "v_astronautis", "v_talent"),
}
HPATCHES = 116  # sequences of the release, with those
_HOMOGRAPHY = re.compile(r"H_1_(\d+)|H1to(\d+)p")  # HPatches; Oxford
_PHOTO = re.compile(r"(?:img)?(\d+)")


@dataclass(frozen=True, eq=False)
class PlanarSequence:
    """One plane in several photographs; the k-th homography leads from the first photograph to the (k + 1)-th."""

    name: str
    photos: tuple[Photo, ...]
    homographies: tuple[Matrix, ...]
    files: tuple[Path, ...]  # everything that the scores depend on

    def resized(self, short_side: int) -> "PlanarSequence":
        """The homographies between the photographs made that small or large."""
        sizes = [read_header(photo.path).size for photo in self.photos]
        to = [_scaling(size, resized_size(size, short_side)) for size in sizes]
        back = np.linalg.inv(to[0])
        pairs = zip(to[1:], self.homographies, strict=True)
        return replace(self, homographies=tuple(scale @ homography @ back for scale, homography in pairs))


def read_planar_sequences(folder: str | Path) -> list[PlanarSequence]:
    """The sequences in a folder: 1.ppm and so on with H_1_2 and so on (HPatches), img1.ppm ... with H1to2p (Oxford).

    Photos are named as `describe` names those of the same folder: boat/img1.png.

    Raises:
        DataError: there is no sequence; or one lacks a photo or a homography, or a homography is none.
    """
    folder = Path(folder)
    require_folder(folder)
    sequences = [_read_sequence(path, folder) for path in sorted(folder.iterdir()) if path.is_dir() and _named(path)]
    if not sequences:
        raise DataError(
            f"{folder} has no sequences (folders with img1.png or 1.ppm etc. and H_1_2 etc.). Check the path."
        )
    return sequences


def _named(folder: Path) -> bool:
    """Whether a folder has a photo or a homography of a sequence in it."""
    return any(_HOMOGRAPHY.fullmatch(path.name) or _photo_number(path) is not None for path in folder.iterdir())


def _photo_number(path: Path) -> int | None:
    """The place of a photo in its sequence; None for any other file."""
    found = _PHOTO.fullmatch(path.stem) if path.suffix.lower() in SUFFIXES else None
    return int(found[1]) if found else None


def _read_sequence(folder: Path, root: Path) -> PlanarSequence:
    photos, homographies = dict[int, Photo](), dict[int, Path]()
    for path in sorted(folder.iterdir()):
        if found := _HOMOGRAPHY.fullmatch(path.name):
            homographies[int(found[1] or found[2])] = path
        elif (number := _photo_number(path)) is not None:
            if number in photos:
                raise DataError(f"{photos[number].path} and {path} are both photo {number}. Remove one of them.")
            photos[number] = Photo(path.relative_to(root).as_posix(), path)
    if lacking := {1, 2, *homographies} - set(photos):
        number = min(lacking)
        raise DataError(f"{folder} has no photo {number} (img{number}.png, {number}.ppm or the like). Copy it there.")
    if lacking := set(photos) - {1, *homographies}:
        number = min(lacking)
        raise DataError(f"{folder} has a photo {number} but no homography H_1_{number} or H1to{number}p.")
    numbers = sorted(homographies)
    chosen, paths = [photos[number] for number in [1, *numbers]], [homographies[number] for number in numbers]
    files = (*(photo.path for photo in chosen), *paths)
    return PlanarSequence(folder.name, tuple(chosen), tuple(map(read_matrix, paths)), files)


def _scaling(before: tuple[int, int], after: tuple[int, int]) -> Matrix:
    """Where resizing takes a point: the photo's corner, half a pixel from the first centre, stays in place."""
    across, down = after[0] / before[0], after[1] / before[1]
    return np.array([[across, 0, across / 2 - 0.5], [0, down, down / 2 - 0.5], [0, 0, 1]])
