"""Grey 8-bit images as arrays, with a sentence for every way in which a file is not one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from keypatch.errors import DataError


def read_grey(path: Path) -> NDArray[np.uint8]:
    """uint8 (height, width).

    Raises:
        DataError: the file is missing, not an image, cut off, or not 8-bit grey.
    """
    with _opened(path) as image:
        return np.asarray(image)


def read_grey_size(path: Path) -> tuple[int, int]:
    """(height, width), from the head of the file alone; raises as `read_grey`."""
    with _opened(path) as image:
        return image.height, image.width


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        with Image.open(path) as image:
            if image.mode != "L":
                raise DataError(f"{path} is not an 8-bit grey image (its mode is {image.mode}). Convert it to grey.")
            yield image
    except FileNotFoundError:
        raise DataError(f"{path} is missing. Copy it again.") from None
    except UnidentifiedImageError:
        kind = "not an image that can be read" if path.stat().st_size else "empty"
        raise DataError(f"{path} is {kind}. Copy it again.") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} is cut off or damaged ({error}). Copy it again.") from error
