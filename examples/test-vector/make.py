"""Makes the test vector of the patch cutter in this folder: `python examples/test-vector/make.py`.

image.pgm is a photograph (a part of scikit-image's "camera" by Lav Varshney, CC0), keypoints.csv its keypoints, and
patches.pgm the patches of 32x32 that keypatch cuts at `patch_sigmas` 24, one below the other in the order of the
keypoints. docs/conventions.md, "The cutter in full", says how to cut them.
"""

import csv
import sys
from pathlib import Path

import cv2
import numpy as np
from skimage.data import camera

from keypatch.geometry import Keypoints, cut_patches

HERE = Path(__file__).parent
SIDE, PATCH_SIGMAS = 32, 24.0
# Every image of the pyramid from the photograph to the one halved three times and softened, all quarters of the turn,
# patches that reach over each border, one wholly outside, and two sheared ones. x, y, sigma, angle, shape:
KEYPOINTS = [
    (80.3, 60.1, 1.35, 0.0),  # a patch pixel is hardly more than a pixel: the photograph itself
    (71.25, 52.5, 0.75, 0.5),
    (101.7, 44.1, 1.1, -2.2),
    (64.3, 70.9, 1.5, 3.0),
    (90.4, 33.6, 2.1, -0.7),
    (50.2, 88.8, 2.9, 1.9),
    (110.6, 58.3, 3.5, -1.2),
    (83.9, 62.2, 4.4, 2.4),
    (40.5, 40.5, 5.9, -2.9),
    (75.0, 75.0, 8.2, 0.1),
    (88.8, 51.7, 12.5, 1.1),
    (79.4, 61.3, 17.0, -0.4),
    (2.2, 3.1, 2.4, 0.9),
    (157.5, 117.2, 3.2, -1.7),
    (-60.0, 30.0, 1.7, 0.3),
    (66.6, 49.9, 2.0, 0.6, (1.25, 0.3, 0.2, 0.848)),
    (95.1, 72.4, 3.3, -1.0, (0.8, -0.25, 0.1, 1.21875)),
]


def main() -> None:
    image = np.ascontiguousarray(camera()[100:220, 150:310])
    rows = [(*row[:4], *(row[4] if len(row) > 4 else (1.0, 0.0, 0.0, 1.0))) for row in KEYPOINTS]
    x, y, sigma, angle, *shape = np.array(rows, np.float32).T
    keypoints = Keypoints(x, y, sigma, angle, np.stack(shape, axis=1).reshape(-1, 2, 2))
    patches = cut_patches(image, keypoints, PATCH_SIGMAS, SIDE)
    cv2.imwrite(str(HERE / "image.pgm"), image)
    cv2.imwrite(str(HERE / "patches.pgm"), patches.reshape(-1, SIDE))
    with (HERE / "keypoints.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["x", "y", "sigma", "angle", "s11", "s12", "s21", "s22"])
        writer.writerows(rows)
    print(f"{len(rows)} patches, keypatch with OpenCV {cv2.__version__}: written to {HERE}")


if __name__ == "__main__":
    sys.exit(main())
