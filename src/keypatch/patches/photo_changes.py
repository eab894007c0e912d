"""What happens to a photograph between two visits: viewpoint, focus, light, noise and compression."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.geometry import View


@dataclass(frozen=True)
class PhotoChanges:
    """Ranges of random changes; every value is drawn uniformly (gain and gamma in the logarithm)."""

    blur: float = 1.0  # largest sigma, pixels
    gain: tuple[float, float] = (0.5, 1.2)  # a larger one would only burn out bright places
    gamma: tuple[float, float] = (0.7, 1.4)
    slope: float = 0.4  # light falls off by up to this part from the centre to an edge
    noise: float = 6.0  # largest standard deviation, grey levels
    quality: tuple[int, int] = (30, 95)  # of JPEG


def render_view(photo: NDArray[np.uint8], view: View) -> NDArray[np.uint8]:
    """The photograph as this view shows it; what lies beyond its edges is its mirror image."""
    height, width = photo.shape
    depth = view.homography[2] @ ((width - 1) / 2, (height - 1) / 2, 1)
    shrink = math.sqrt(depth**3 / np.linalg.det(view.homography))  # of lengths at the centre
    if shrink > 1.01:  # against aliasing: half a pixel of blur in the view, as it has in the photograph
        photo = _grey(cv2.GaussianBlur(photo, (0, 0), 0.5 * math.sqrt(shrink**2 - 1)))
    return _grey(
        cv2.warpPerspective(photo, view.homography, view.size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    )


def change_photo(photo: NDArray[np.uint8], changes: PhotoChanges, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The photograph (h, w) with random blur, light, noise and compression, in the order of a camera."""
    blur, slope, noise = rng.uniform(0, (changes.blur, changes.slope, changes.noise))
    gain, gamma = np.exp(rng.uniform(*np.log([changes.gain, changes.gamma]).T))
    light = photo.astype(np.float32) / 255
    if blur > 0.3:  # a smaller one changes nothing
        light = cv2.GaussianBlur(light, (0, 0), blur).astype(np.float32)
    light = gain * light**gamma * (1 - slope * _ramp(photo.shape, rng.uniform(0, 2 * math.pi)))
    pixels = 255 * light + noise * rng.standard_normal(photo.shape, np.float32)
    grey = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    quality = int(rng.integers(*changes.quality))
    return _grey(cv2.imdecode(cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_GRAYSCALE))


def _ramp(shape: tuple[int, ...], direction: float) -> NDArray[np.float32]:
    """-1..1 across an image of this shape (h, w), rising in the direction given."""
    y, x = np.linspace(-1, 1, shape[0], dtype=np.float32), np.linspace(-1, 1, shape[1], dtype=np.float32)
    ramp = math.cos(direction) * x[None, :] + math.sin(direction) * y[:, None]
    return np.asarray(ramp / (abs(math.cos(direction)) + abs(math.sin(direction))), np.float32)


def _grey(image: object) -> NDArray[np.uint8]:
    return np.asarray(image, np.uint8)  # OpenCV's functions are typed for any array
