"""One entry point to all patch sets: the layout is detected from the files."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.patches.hpatches import is_sequence, read_hpatches
from keypatch.patches.image_folders import SIDE, has_class_folders, read_image_folders
from keypatch.patches.online_products import has_product_lists, list_name, read_online_products
from keypatch.patches.patch_set import PatchSet
from keypatch.patches.phototour import read_phototour

Layout = Literal["phototour", "hpatches", "images"]
EMBEDDED: dict[str, Literal["train", "test"]] = {"embedded": "train", "embedded-test": "test"}


def open_patches(
    path: str | Path, split: str | None = None, allow_partial: bool = False, side: int = SIDE, channels: int = 1
) -> PatchSet:
    """The patch set of a folder (PhotoTour or HPatches layout, class folders of images), or "embedded(-test)" by name.

    A text file is a list of Stanford Online Products.

    `split` selects the training part of an HPatches split; `allow_partial` accepts an incomplete PhotoTour set. Whole
    images are read as squares of `side` pixels, grey or, with 3 `channels`, in colour.

    >>> patches = kp.open_patches("liberty")  # doctest: +SKIP
    >>> patches.patches.shape, len(patches.classes())  # doctest: +SKIP

    Raises:
        DataError: there is no such folder, it contains no patch set, or the patch set is malformed.
    """
    part = EMBEDDED.get(str(path))
    folder = Path(path) if part is None else _embedded(part)
    layout = "products" if folder.suffix == ".txt" and folder.is_file() else find_layout(folder)
    if layout == "hpatches":
        return read_hpatches(folder, split)
    if split is not None:
        raise DataError(f'{path} is not in HPatches layout and has no splits. Leave out "--split {split}".')
    if layout == "products":
        return read_online_products(folder, side, channels)
    if layout == "images":
        return read_image_folders(folder, side, channels)
    patches = read_phototour(folder, allow_partial)
    return patches if part is None else replace(patches, name=str(path))


def find_layout(folder: Path) -> Layout:
    """The layout of a folder, by the names in it; raises DataError if it is none of them."""
    require_folder(folder)
    entries = sorted(folder.iterdir())
    if any(entry.name == "info.txt" or entry.suffix.lower() == ".bmp" for entry in entries):
        return "phototour"
    if is_sequence(folder) or any(is_sequence(entry) for entry in entries if entry.is_dir()):
        return "hpatches"
    sets = [entry.name for entry in entries if (entry / "info.txt").exists() or any(entry.glob("patches*.bmp"))]
    if sets:
        raise DataError(
            f"{folder} holds the patch sets {', '.join(sets)}. Give one of them, such as {folder / sets[0]}."
        )
    if has_product_lists(folder):
        raise DataError(
            f"{folder} holds both halves of Stanford Online Products. Give the list of one: "
            f"{folder / list_name('train')} or {folder / list_name('test')}."
        )
    if has_class_folders(folder):
        return "images"
    raise DataError(
        f"{folder} is not a patch set: neither sheets and info.txt (PhotoTour) nor folders with strips ref.png, e1.png "
        "and so on (HPatches) nor a folder of images per class. Check the path."
    )


def _embedded(part: Literal["train", "test"]) -> Path:
    from keypatch.patches.embedded import embedded_folder

    return embedded_folder(part)
