"""Approximate nearest neighbours by OpenCV's FLANN, as the Image Matching Challenge finds them."""

import cv2
import torch
from torch import Tensor

from keypatch.matching.tiles import Nearest

TREES, CHECKS = 4, 128  # of the challenge
KD_TREES = 1  # FLANN's number of this kind of index


def find_nearest_by_flann(a: Tensor, b: Tensor) -> tuple[Nearest, Nearest]:
    """What `find_nearest` gives, but now and then another than the nearest; the same for the same vectors."""
    return _search(a, b), _search(b, a)


def _search(queries: Tensor, others: Tensor) -> Nearest:
    cv2.setRNGSeed(0)  # trees are split at random
    index = cv2.flann.Index(others.numpy(), {"algorithm": KD_TREES, "trees": TREES})
    places, squares = index.knnSearch(queries.numpy(), min(2, len(others)), params={"checks": CHECKS})
    closeness = torch.from_numpy(squares) / -2
    none = closeness.new_full((len(queries),), -torch.inf)
    return Nearest(torch.from_numpy(places[:, 0]).long(), closeness[:, 0], closeness[:, 1] if len(others) > 1 else none)
