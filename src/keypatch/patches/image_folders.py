"""Images in folders, one folder per class: omniglot's alphabet/character/drawing.png, products, faces.

A folder that holds images is a class, however deep it lies; its name is the path to it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.cache import Content, unpack_once
from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.images import SUFFIXES, UNASKED_LIMIT, as_grey, decode, open_image, require_readable
from keypatch.patches.patch_set import PatchSet, read_set_card

SIDE = 64


def read_image_folders(folder: str | Path, side: int = SIDE, channels: int = 1) -> PatchSet:
    """The images as squares, `point_id` = number of the class in the order of the names in card["class_names"].

    Grey, or with 3 `channels` red, green and blue. An image that is not square is squeezed into one, as is usual for
    Stanford Online Products: nothing is cropped or padded. The first call unpacks the images into a cache, later ones
    map it.

    Raises:
        DataError: images lie beside class folders, fewer than two classes have two images, or an image is unreadable.
    """
    folder = Path(folder)
    classes = find_classes(folder)
    images = [image for members in classes.values() for image in members]
    sizes = np.array([len(members) for members in classes.values()])
    if np.sum(sizes >= 2) < 2:
        raise DataError(
            f"{folder}: {np.sum(sizes >= 2)} of {len(sizes)} image folders have two or more images, but at least "
            "two such classes are needed. Give every class its own folder."
        )

    return PatchSet(
        name=folder.resolve().name,
        patches=unpack_squares(folder, "images", images, side, channels),
        point_id=np.repeat(np.arange(len(sizes)), sizes),
        folder=folder,
        card={**read_set_card(folder), "class_names": list(classes)},
    )


def find_classes(folder: Path) -> Mapping[str, list[Path]]:
    """The images of each class by its name, both sorted.

    Raises:
        DataError: there are none, or images lie in a folder above classes, so that their own class is unclear.
    """
    require_folder(folder)
    classes = {place.relative_to(folder).as_posix(): images for place, images in _walk(folder)}
    for name in classes:
        above = next((place for place in map(str, PurePosixPath(name).parents) if place in classes), None)
        if above is not None:
            raise DataError(
                f"{classes[above][0]} lies beside the image folder {name}, so its class is unclear. "
                "Move it into its own folder, or elsewhere."
            )
    if not classes:
        raise DataError(f"{folder} has no folders of images ({', '.join(sorted(SUFFIXES))}). Check the path.")
    return dict(sorted(classes.items()))


def has_class_folders(folder: Path) -> bool:
    """Whether images lie in folders below this one."""
    return any(place != folder for place, _ in _walk(folder))


def _walk(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Every folder that holds images, with them; links are followed, what is hidden is not."""
    for place, inner, names in os.walk(folder, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith((".", "__MACOSX")))
        images = sorted(name for name in names if name.lower().endswith(tuple(SUFFIXES)) and not name.startswith("."))
        if images:
            yield Path(place), [Path(place, name) for name in images]


def unpack_squares(folder: Path, label: str, images: Sequence[Path], side: int, channels: int = 1) -> NDArray[np.uint8]:
    """The images as uint8 (n, side, side), or (n, 3, side, side), unpacked once into a cache that `label` names."""
    shape = (side, side) if channels == 1 else (channels, side, side)

    def unpack() -> Content:
        return (len(images), *shape), (read_square(image, side, channels) for image in images)

    return unpack_once(folder, f"{label}-{side}" if channels == 1 else f"{label}-colour-{side}", images, unpack)


def read_square(path: Path, side: int, channels: int = 1) -> NDArray[np.uint8]:
    """uint8 (1, side, side), or (1, 3, side, side) in colour; transparent parts white."""
    with open_image(path) as image:
        require_readable(image, path, UNASKED_LIMIT)
        upright = decode(image, turn_by_exif=True)
        if "A" in upright.getbands() or "transparency" in upright.info:
            upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright.convert("RGBA"))
        if channels == 3 and not upright.mode.startswith("I"):
            colours = upright.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
            return np.asarray(colours).transpose(2, 0, 1)[None]
        grey = as_grey(upright if upright.mode.startswith("I") else upright.convert("L"))
        square = np.asarray(Image.fromarray(grey).resize((side, side), Image.Resampling.BILINEAR))
        return np.stack([square] * 3)[None] if channels == 3 else square[None]
