"""Stanford Online Products (Song et al. 2016): lists Ebay_train.txt and Ebay_test.txt of images in folders beside them.

Ebay_*.txt   a line `image_id class_id super_class_id path`, then one such line for every image; a class is a product
"""

from pathlib import Path
from typing import Literal

import numpy as np

from keypatch.errors import DataError
from keypatch.files import safe_name
from keypatch.patches.image_folders import SIDE, unpack_squares
from keypatch.patches.patch_set import PatchSet, classes_of
from keypatch.patches.tables import is_row_of_integers, read_lines

Half = Literal["train", "test"]
HEADER = ["image_id", "class_id", "super_class_id", "path"]


def read_online_products(path: Path, side: int = SIDE, channels: int = 1) -> PatchSet:
    """The images of a list in its order, as squares, like images in class folders; `point_id` = class_id.

    Raises:
        DataError: the list has another header or no images, a line is malformed, names an image twice or one outside
            the list's folder; an image is missing or unreadable; fewer than two products have two images.
    """
    folder = path.parent
    classes = _read_list(path)
    images = [folder / name for name in classes]
    point_id = np.array(list(classes.values()), np.int64)
    classes_of(point_id, str(path))  # raises where too few products have two images

    return PatchSet(
        name=path.stem,
        patches=unpack_squares(folder, f"products-{path.stem}", images, side, channels),
        point_id=point_id,
        folder=folder,
    )


def has_product_lists(folder: Path) -> bool:
    return any((folder / list_name(half)).exists() for half in ("train", "test"))


def choose_list(place: str | Path, half: Half) -> str | Path:
    """The list of one half, where the place is the folder of the products; any other place as it is."""
    return Path(place) / list_name(half) if has_product_lists(Path(place)) else place


def list_name(half: str) -> str:
    return f"Ebay_{half}.txt"


def _read_list(path: Path) -> dict[str, int]:
    """The class of each image, by its path below the folder of the list."""
    head, *rows = read_lines(path) or [""]
    if head.split() != HEADER:
        raise DataError(
            f'{path}, line 1: expected "{" ".join(HEADER)}", as lists of Stanford Online Products begin, found '
            f'"{head.strip()[:60]}". Give Ebay_train.txt or Ebay_test.txt as released.'
        )
    if not rows:
        raise DataError(f"{path} lists no images; it has only its first line. Copy it again.")
    classes: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):
        words = row.split(maxsplit=3)
        if len(words) < 4 or not is_row_of_integers(row, 3):
            raise DataError(
                f"{path}, line {number}: expected three integers and a path ({', '.join(HEADER)}), found "
                f'"{row.strip()[:60]}". Fix the line or copy the file again.'
            )
        name = safe_name(words[3].rstrip(), f"{path}, line {number}")
        if name in classes:
            raise DataError(f"{path}, line {number}: {name} is listed twice. Remove one of the two lines.")
        classes[name] = int(words[1])
    return classes
