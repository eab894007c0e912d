"""The embedded data: patch sets made on this machine from the photographs inside scikit-image, without download."""

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock

from keypatch.errors import KeypatchError
from keypatch.files import cache_folder, hash_file, reason, write_json
from keypatch.geometry import Jitter
from keypatch.patches.embedded_classes import PATCH_SIGMAS, MadeClasses, Making, make_classes
from keypatch.patches.embedded_pairs import make_pairs
from keypatch.patches.embedded_photos import TEST_PHOTOS, TRAIN_PHOTOS, Photo, photo_path, read_photo
from keypatch.patches.phototour import write_phototour
from keypatch.provenance import provenance

VERSION = 1  # other patches for the same seed need another number: it is part of the folder's name
FILE_SIZES = "files.json"  # written last: the name and size of every file of a whole set


@dataclass(frozen=True)
class Split:
    """One of the two sets: its photographs, how classes are made of them, how many matches its pair lists have."""

    number: int  # enters the seed, so that no split repeats the other's random numbers
    photos: tuple[Photo, ...]
    making: Making
    matches: int


SPLITS: dict[str, Split] = {
    "train": Split(0, TRAIN_PHOTOS, Making(), matches=0),
    "test": Split(
        1,
        TEST_PHOTOS,
        # The errors make a median overlap of 0.72 with the true frame, that of HPatches' "hard" patches.
        Making(points=350, contrast=0.025, overlap=0.35, jitter=Jitter(math.radians(15), 0.3, 0.3, 2.1)),
        matches=4000,
    ),
}


def embedded_folder(split: Literal["train", "test"], seed: int = 0) -> Path:
    """The folder of the embedded set in PhotoTour layout, in the user's cache directory; made if it is not there whole.

    The same seed gives the same patches. A second process waits until the first has made the set.
    """
    if split not in SPLITS:
        raise KeypatchError(f'The embedded data have no split "{split}". Choose one of: {", ".join(SPLITS)}.')
    if seed < 0:
        raise KeypatchError(f"The seed of the embedded data is {seed}; it cannot be below 0.")
    folder = cache_folder() / f"embedded-v{VERSION}-{split}-{seed}"
    if _is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not _is_whole(folder):
                _make(folder, SPLITS[split], seed)
    except OSError as error:
        raise KeypatchError(
            f"The embedded data cannot be written to {folder}: {reason(error)}. Free some space there (300 MB), "
            "or set KEYPATCH_CACHE to another folder."
        ) from error
    return folder


def write_embedded(folder: Path, split: Split, seed: int) -> None:
    """Makes patches and pair lists and writes them into a folder that holds no set yet."""
    made = make_classes([read_photo(photo) for photo in split.photos], split.making, [seed, split.number])
    rng = np.random.default_rng([seed, split.number])
    lists = make_pairs(made, split.matches, rng) if split.matches else ()
    write_phototour(
        folder,
        made.patches,
        made.point_id,
        image_id=made.image_id,
        keypoints=made.keypoints,
        pairs=lists,
        card=_card(split, seed, made),
    )


def _make(folder: Path, split: Split, seed: int) -> None:
    """Writes the set beside its place and moves it there whole; whatever damaged set lies there is removed."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # what a killed process left
    try:
        write_embedded(unfinished, split, seed)
        write_json(unfinished / FILE_SIZES, {path.name: path.stat().st_size for path in sorted(unfinished.iterdir())})
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_whole(folder: Path) -> bool:
    try:
        sizes = json.loads((folder / FILE_SIZES).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):  # not there, cut off, or not what we wrote
        return False


def _card(split: Split, seed: int, made: MadeClasses) -> Mapping[str, Any]:
    return {
        "made_from": "photographs inside the package scikit-image; author and terms as it documents them",
        "photographs": [{**asdict(photo), "sha256": hash_file(photo_path(photo))} for photo in split.photos],
        "version": VERSION,
        "seed": seed,
        "patch_sigmas": PATCH_SIGMAS,
        "classes": int(made.is_reference.sum()),
        "making": asdict(split.making),
        "median_overlap": round(float(np.median(made.overlap[~made.is_reference])), 4),
        "provenance": provenance().to_json(),
    }
