"""The embedded data: patch sets made on this machine from the photographs inside scikit-image, without download."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keypatch.cache import cache_folder, make_once
from keypatch.errors import DataError, KeypatchError, MissingExtra
from keypatch.files import read_json, reading, reason, write_json
from keypatch.geometry import Jitter
from keypatch.images import as_grey, open_image
from keypatch.patches.fingerprints import fingerprint
from keypatch.patches.pair_lists import NEAR_RANKS, Indices, another_point, listed, small_pixels
from keypatch.patches.patch_set import Pairs
from keypatch.patches.phototour import write_phototour
from keypatch.patches.single_photos import MadeClasses, Making, make_classes
from keypatch.patches.sources import SOURCES, Source
from keypatch.provenance import provenance

VERSION = 2  # other patches or another card for the same seed need another number: it is part of the folder's name
FILE_SIZES = "files.json"  # written last: the name and size of every file of a whole set


@dataclass(frozen=True)
class EmbeddedPhoto:
    """A photograph by its file name in skimage/data, with author and terms as scikit-image documents them."""

    file: str
    author: str
    terms: str


TRAIN_PHOTOS = (
    EmbeddedPhoto("astronaut.png", "NASA", "public domain"),
    EmbeddedPhoto("brick.png", "CC0Textures (Bricks25)", "CC0"),
    EmbeddedPhoto("coins.png", "Brooklyn Museum", "no known copyright restrictions"),
    EmbeddedPhoto("grass.png", "linolafett, DeviantArt", "CC0"),
    EmbeddedPhoto("hubble_deep_field.jpg", "NASA, HubbleSite", "public domain"),
    EmbeddedPhoto("ihc.png", "Center for Microscopy And Molecular Imaging", "no known copyright restrictions"),
    EmbeddedPhoto("moon.png", "not stated", "not stated"),
    # The right half of the stereo pair shows the same places: as other classes they would contradict these.
    EmbeddedPhoto("motorcycle_left.png", "D. Scharstein et al., Middlebury stereo benchmark 2014", "not stated"),
    EmbeddedPhoto("page.png", "not stated", "not stated"),
    EmbeddedPhoto("retina.jpg", "Mikael Häggström", "CC0"),
    EmbeddedPhoto("text.png", "Wikipedia, File:Corner.png", "public domain"),
)

TEST_PHOTOS = (
    EmbeddedPhoto("camera.png", "Lav Varshney", "CC0"),
    EmbeddedPhoto("chelsea.png", "Stefan van der Walt", "CC0"),
    EmbeddedPhoto("coffee.png", "Rachel Michetti, courtesy of Pikolo Espresso Bar", "CC0"),
    EmbeddedPhoto("gravel.png", "CC0Textures (Gravel04)", "CC0"),
    EmbeddedPhoto("rocket.jpg", "SpaceX", "public domain"),
)


@dataclass(frozen=True)
class EmbeddedSplit:
    """One of the two sets: its photographs, how classes are made of them, how many matches its pair lists have."""

    number: int  # enters the seed, so that no split repeats the other's random numbers
    photos: tuple[EmbeddedPhoto, ...]
    making: Making
    matches: int


SPLITS: dict[str, EmbeddedSplit] = {
    "train": EmbeddedSplit(0, TRAIN_PHOTOS, Making(), matches=0),
    "test": EmbeddedSplit(
        1,
        TEST_PHOTOS,
        # The errors make a median overlap of 0.72 with the true frame, as HPatches' "hard" patches have.
        Making(points=350, contrast=0.025, overlap=0.35, jitter=Jitter(math.radians(15), 0.3, 0.3, 2.1)),
        matches=4000,
    ),
}


def embedded_folder(split: Literal["train", "test"], seed: int = 0) -> Path:
    """The folder of the embedded set in PhotoTour layout, in the user's cache directory; made if it is not there whole.

    The same seed gives the same patches. A second process waits until the first has made the set.
    """
    folder = cache_folder() / f"embedded-v{VERSION}-{split}-{seed}"
    try:
        return make_once(folder, lambda place: write_embedded(place, SPLITS[split], seed), _is_whole)
    except OSError as error:
        raise KeypatchError(
            f"The embedded data cannot be written to {folder}: {reason(error)}. Free some space there (300 MB), "
            "or set KEYPATCH_CACHE to another folder."
        ) from error


def write_embedded(folder: Path, split: EmbeddedSplit, seed: int) -> None:
    """Makes patches and pair lists and writes them into a folder that holds no set yet."""
    made = make_classes([read_embedded_photo(photo) for photo in split.photos], split.making, [seed, split.number])
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
    write_json(folder / FILE_SIZES, {path.name: path.stat().st_size for path in sorted(folder.iterdir())})


def _is_whole(folder: Path) -> bool:
    with suppress(DataError), reading(folder):  # not there, cut off, or not what we wrote
        sizes = read_json(folder / FILE_SIZES)
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    return False


def _card(split: EmbeddedSplit, seed: int, made: MadeClasses) -> Mapping[str, Any]:
    return {
        "made_from": "photographs inside the package scikit-image; author and terms as it documents them",
        SOURCES: [{**_source(photo).to_json(), "author": photo.author} for photo in split.photos],
        "version": VERSION,
        "seed": seed,
        "patch_sigmas": split.making.patch_sigmas,
        "classes": int(made.is_reference.sum()),
        "making": asdict(split.making),
        "median_overlap": round(float(np.median(made.overlap[~made.is_reference])), 4),
        "provenance": provenance().to_json(),
    }


def _source(photo: EmbeddedPhoto) -> Source:
    return Source(photo.file, fingerprint(photo_path(photo)), photo.terms)


def photo_path(photo: EmbeddedPhoto) -> Path:
    """Where the photograph lies on this machine."""
    package = find_spec("skimage")  # found, not imported: only its files are wanted
    if package is None or package.origin is None:
        raise MissingExtra("The embedded photographs come from the package scikit-image. Run: pip install scikit-image")
    return Path(package.origin).parent / "data" / photo.file


def read_embedded_photo(photo: EmbeddedPhoto) -> NDArray[np.uint8]:
    """The photograph in grey, uint8 (h, w); no network is needed."""
    with open_image(photo_path(photo)) as image:
        return as_grey(image)


def make_pairs(made: MadeClasses, matches: int, rng: np.random.Generator) -> tuple[Pairs, Pairs]:
    """A hard and an easy list, each with up to this many matches and as many negatives.

    A pair is a reference patch and a patch of a random view. Both lists have the same matches. Of the hard list's
    negatives one half is near in pixels, the easy list's are all random.
    """
    patches, point_id, is_reference = made.patches, made.point_id, made.is_reference
    others = np.flatnonzero(~is_reference)
    second = rng.permutation(others)[:matches]
    reference_of = dict(zip(point_id[is_reference].tolist(), np.flatnonzero(is_reference).tolist(), strict=True))
    first = np.array([reference_of[point] for point in point_id[second].tolist()], np.int64)
    hard_negatives = another_point(first, others, point_id, rng)
    hard_half = np.arange(0, len(first), 2)
    hard_negatives[hard_half] = _near_in_pixels(patches, first[hard_half], others, point_id, rng)
    random_negatives = another_point(first, others, point_id, rng)
    order = rng.permutation(2 * len(first))
    return listed("hard", first, second, hard_negatives, order), listed("m50", first, second, random_negatives, order)


def _near_in_pixels(
    patches: NDArray[np.uint8], first: Indices, others: Indices, point_id: Indices, rng: np.random.Generator
) -> Indices:
    """For each patch one of its nearest among `others` of other points, by small normalized pixels."""
    likeness = small_pixels(patches, first) @ small_pixels(patches, others).T
    likeness[point_id[first][:, None] == point_id[others]] = -np.inf
    nearest = np.argsort(-likeness, axis=1, kind="stable")[:, slice(*NEAR_RANKS)]
    return others[nearest[np.arange(len(first)), rng.integers(0, nearest.shape[1], len(first))]]
