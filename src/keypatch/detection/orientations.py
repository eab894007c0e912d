"""How many directions a place keeps: all that were found, one, or none."""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

Orientations = Literal["all", "one", "upright"]

SAME_SIGMA = 1e-5  # relative; COLMAP's scale comes out of a matrix and differs in the last bits between two directions


def keep_orientations(keypoints: Keypoints, orientations: Orientations) -> Keypoints:
    """Every direction of a place ("all"), the first of them ("one"), or the place once with angle 0 ("upright").

    A place is one x, y and sigma. Upright copies of it would be equal features, of which mutual matching finds none.
    """
    if orientations not in get_args(Orientations):
        raise KeypatchError(f'A place keeps "all" its orientations, "one" or "upright", not "{orientations}".')
    if orientations == "all" or len(keypoints) == 0:
        return keypoints
    order = np.lexsort([keypoints.sigma, keypoints.y, keypoints.x])  # stable: of one place the first stays first
    x, y, sigma = (column[order] for column in (keypoints.x, keypoints.y, keypoints.sigma))
    new = (np.diff(x) != 0) | (np.diff(y) != 0) | (np.diff(sigma) > SAME_SIGMA * sigma[1:])
    first = np.minimum.reduceat(order, np.flatnonzero(np.concatenate([[True], new])))
    kept = keypoints.take(np.sort(first))
    return replace(kept, angle=np.zeros_like(kept.angle)) if orientations == "upright" else kept
