"""The photographs inside the scikit-image package: which ones train, which ones test, and whose they are."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.errors import MissingExtra
from keypatch.files import reason


@dataclass(frozen=True)
class Photo:
    """A photograph by its file name in skimage/data, with author and terms as scikit-image documents them."""

    file: str
    author: str
    terms: str


TRAIN_PHOTOS = (
    Photo("astronaut.png", "NASA", "public domain"),
    Photo("brick.png", "CC0Textures (Bricks25)", "CC0"),
    Photo("coins.png", "Brooklyn Museum", "no known copyright restrictions"),
    Photo("grass.png", "linolafett, DeviantArt", "CC0"),
    Photo("hubble_deep_field.jpg", "NASA, HubbleSite", "public domain"),
    Photo("ihc.png", "Center for Microscopy And Molecular Imaging", "no known copyright restrictions"),
    Photo("moon.png", "not stated", "not stated"),
    # The right half of the stereo pair shows the same places: as other classes they would contradict these.
    Photo("motorcycle_left.png", "D. Scharstein et al., Middlebury stereo benchmark 2014", "not stated"),
    Photo("page.png", "not stated", "not stated"),
    Photo("retina.jpg", "Mikael Häggström", "CC0"),
    Photo("text.png", "Wikipedia, File:Corner.png", "public domain"),
)

TEST_PHOTOS = (
    Photo("camera.png", "Lav Varshney", "CC0"),
    Photo("chelsea.png", "Stefan van der Walt", "CC0"),
    Photo("coffee.png", "Rachel Michetti, courtesy of Pikolo Espresso Bar", "CC0"),
    Photo("gravel.png", "CC0Textures (Gravel04)", "CC0"),
    Photo("rocket.jpg", "SpaceX", "public domain"),
)


def photo_path(photo: Photo) -> Path:
    """Where the photograph lies on this machine."""
    package = find_spec("skimage")  # found, not imported: only its files are wanted
    if package is None or package.origin is None:
        raise MissingExtra("The embedded photographs come from the package scikit-image. Run: pip install scikit-image")
    return Path(package.origin).parent / "data" / photo.file


def read_photo(photo: Photo) -> NDArray[np.uint8]:
    """The photograph in grey, uint8 (h, w); no network is needed."""
    path = photo_path(photo)
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("L"))
    except OSError as error:
        raise MissingExtra(f"{path} cannot be read: {reason(error)}. Install scikit-image again.") from error
