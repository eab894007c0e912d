"""Keypoints, the one patch cutter, homographies and camera poses, in one convention.

The centre of the top-left pixel is (0, 0), x goes right and y down; scale is the sigma of the interest point; angles
are in radians from the x axis towards the y axis (clockwise on screen). Other conventions are converted at the border.
"""

from keypatch.geometry.converters import (
    from_colmap,
    from_hloc,
    from_laf,
    from_opencv,
    to_colmap,
    to_hloc,
    to_laf,
    to_opencv,
)
from keypatch.geometry.cutting import PatchCutter, cut_patches
from keypatch.geometry.homographies import View, ViewRange, apply_homography, random_homography, transform_keypoints
from keypatch.geometry.jitter import Jitter, frame_overlap, jitter_keypoints
from keypatch.geometry.keypoints import Keypoints
from keypatch.geometry.poses import Pose, Similarity, align, relative_pose, rotation_angle, translation_angle

__all__ = [
    "Jitter",
    "Keypoints",
    "PatchCutter",
    "Pose",
    "Similarity",
    "View",
    "ViewRange",
    "align",
    "apply_homography",
    "cut_patches",
    "frame_overlap",
    "from_colmap",
    "from_hloc",
    "from_laf",
    "from_opencv",
    "jitter_keypoints",
    "random_homography",
    "relative_pose",
    "rotation_angle",
    "to_colmap",
    "to_hloc",
    "to_laf",
    "to_opencv",
    "transform_keypoints",
    "translation_angle",
]
