"""Draw docs/match.png: `python docs/match_picture.py`; a photograph of scikit-image beside a turned view of it."""

import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
import skimage
from PIL import Image

import keypatch
from keypatch.cli.main import answer
from keypatch.geometry.keypoints import rotations

OUT = Path(__file__).parent / "match.png"


def main() -> None:
    photo = skimage.data.astronaut()
    view = np.eye(3)
    view[:2, :2], view[:2, 2], view[2, :2] = 0.8 * rotations(np.radians(30)), (180, -20), (2e-4, 1e-4)
    turned = cv2.warpPerspective(photo, view, (560, 520), borderValue=(235, 235, 235))
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "photo.png"), Path(folder, "turned.png")
        for path, pixels in zip(paths, (photo, turned), strict=True):
            Image.fromarray(pixels).save(path)
        result = keypatch.match(paths[0], paths[1], keypatch.Matching(model="H"))
        result.save(OUT, lines=80)
    print("\n".join(result.sentences()))


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
