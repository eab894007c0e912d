"""Which keypoints to keep when there are more than asked for."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

Rule = Literal["strongest", "largest", "spread"]
RULES: tuple[Rule, ...] = get_args(Rule)

CLEARLY = 0.9  # Brown, Szeliski and Winder 2005: a stronger neighbour counts if it still is with this factor


def spend(keypoints: Keypoints, count: int, rule: Rule) -> Keypoints:
    """At most `count` of the keypoints, the best first, those of equal rank in the order they came.

    "strongest" ranks by response, "largest" by sigma, "spread" by the distance to the nearest clearly stronger point
    (adaptive non-maximal suppression). So a smaller budget keeps the beginning of what a larger one keeps.
    """
    rank: NDArray[np.floating] | None = keypoints.sigma if rule == "largest" else keypoints.response
    if rank is None:
        raise KeypatchError(f'The rule "{rule}" needs responses, which these keypoints lack. Use "largest".')
    if rule == "spread":
        rank = suppression_radius(keypoints.xy, rank)
    return keypoints.take(np.argsort(-rank, kind="stable")[:count])


def suppression_radius(xy: NDArray[np.float64], response: NDArray[np.floating]) -> NDArray[np.float64]:
    """(n,) distances from each place (n, 2) to the nearest whose response times 0.9 exceeds its own; inf without one.

    Responses below 0 count as 0. Exact, in O(n log^2 n) whatever the responses are.
    """
    from scipy.spatial import KDTree  # a quarter of a second, which help texts need not wait

    strength = np.maximum(response.astype(np.float64), 0)
    order = np.argsort(-strength, kind="stable")
    strength, places = strength[order], xy[order]
    # Those clearly stronger than a point are a prefix of the order: blocks of sizes 2^level, one for each bit of its
    # length. All blocks of one size are searched in one tree, in storeys of a third axis too far apart to be confused.
    stronger = np.searchsorted(-CLEARLY * strength, -strength, side="left")
    storey = 1 + np.ptp(xy, axis=0).sum() if len(xy) else 1.0
    radius = np.full(len(xy), np.inf)
    for level in range(len(xy).bit_length()):
        asking = np.flatnonzero(stronger >> level & 1)
        if len(asking):
            tree = KDTree(np.column_stack([places, (np.arange(len(xy)) >> level) * storey]), balanced_tree=False)
            block = (stronger[asking] >> level) - 1
            nearest, _ = tree.query(np.column_stack([places[asking], block * storey]))
            radius[asking] = np.minimum(radius[asking], nearest)
    unsorted = np.empty_like(radius)
    unsorted[order] = radius
    return unsorted
