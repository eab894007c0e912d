"""Images in folders, one folder per class: omniglot's alphabet/character/drawing.png, products, faces.

A folder that holds images is a class, however deep it lies; its name is the path to it.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.patches.cache import Content, cached_array
from keypatch.patches.cards import read_card
from keypatch.patches.patch_set import PatchSet

SIDE = 64
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")


def read_image_folders(folder: str | Path, side: int = SIDE) -> PatchSet:
    """The images as grey squares, `point_id` = number of the class in the order of the names in card["class_names"].

    An image that is no square is squeezed into one, as Stanford Online Products are: all of it is seen, and no border
    is made up. The first call unpacks the images into a cache, later ones map it.

    Raises:
        DataError: images lie beside class folders, fewer than two classes have two images, or an image is unreadable.
    """
    folder = Path(folder)
    classes = find_classes(folder)
    images = [image for members in classes.values() for image in members]
    sizes = np.array([len(members) for members in classes.values()])
    if np.sum(sizes >= 2) < 2:
        raise DataError(
            f"{folder}: {np.sum(sizes >= 2)} of {len(sizes)} folders of images have two images or more, but at least "
            "two such classes are needed. Give every class a folder of its own."
        )

    def unpack() -> Content:
        return (len(images), side, side), (read_square(image, side) for image in images)

    return PatchSet(
        name=folder.resolve().name,
        patches=cached_array(folder, f"images-{side}", images, unpack),
        point_id=np.repeat(np.arange(len(sizes)), sizes),
        folder=folder,
        card={**read_card(folder), "class_names": list(classes)},
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
                f"{classes[above][0]} lies beside the folder of images {name}, so that its class is unclear. "
                "Move it into a folder of its own, or elsewhere."
            )
    if not classes:
        raise DataError(f"{folder} has no folders of images ({', '.join(SUFFIXES)}). Check the path.")
    return dict(sorted(classes.items()))


def has_class_folders(folder: Path) -> bool:
    """Whether images lie in folders below this one."""
    return any(place != folder for place, _ in _walk(folder))


def _walk(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Every folder that holds images, with them; links are followed, what is hidden is not."""
    for place, inner, names in os.walk(folder, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith((".", "__MACOSX")))
        images = sorted(name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith("."))
        if images:
            yield Path(place), [Path(place, name) for name in images]


def require_square(image: Image.Image, path: Path) -> None:
    """DataError of an image that `read_square` refuses by its head."""
    if image.mode.startswith(("I", "F")):
        raise DataError(f"{path} has more than 8 bits per channel (its mode is {image.mode}). Convert it.")
    if Image.MAX_IMAGE_PIXELS is not None and image.width * image.height > 2 * Image.MAX_IMAGE_PIXELS:
        raise _too_large(path)


def _too_large(path: Path) -> DataError:
    return DataError(f"{path} has too many pixels to be read. Make it smaller.")


def read_square(path: Path, side: int) -> NDArray[np.uint8]:
    """uint8 (1, side, side), transparent parts white."""
    try:
        with Image.open(path) as image:
            require_square(image, path)
            upright = ImageOps.exif_transpose(image)
            if "A" in upright.getbands() or "transparency" in upright.info:
                upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright.convert("RGBA"))
            return np.asarray(upright.convert("L").resize((side, side), Image.Resampling.BILINEAR))[None]
    except FileNotFoundError:
        raise DataError(f"{path} is missing. Copy it again.") from None
    except UnidentifiedImageError:
        raise DataError(f"{path} is not an image that can be read. Copy it again or remove it.") from None
    except Image.DecompressionBombError:  # Pillow's, above twice its limit
        raise _too_large(path) from None
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path} is cut off or damaged ({error}). Copy it again or remove it.") from error
