"""Keypoints, the one patch cutter and homographies, in one convention.

The centre of the top-left pixel is (0, 0), x goes right and y down; scale is the sigma of the interest point; angles
are in radians from the x axis towards the y axis (clockwise on screen). Other conventions are converted at the border.
"""

from keypatch.geometry.cutting import cut_patches
from keypatch.geometry.homographies import View, ViewRange, apply_homography, random_homography, transform_keypoints
from keypatch.geometry.jitter import Jitter, frame_overlap, jitter_keypoints
from keypatch.geometry.keypoints import Keypoints

__all__ = [
    "Jitter",
    "Keypoints",
    "View",
    "ViewRange",
    "apply_homography",
    "cut_patches",
    "frame_overlap",
    "jitter_keypoints",
    "random_homography",
    "transform_keypoints",
]
