"""A part of a set held out by scene or region: no patch of one part shows what a patch of the other is centred on."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from keypatch.building.observations import Observations
from keypatch.errors import KeypatchError

TEST, BORDER = 1, -1


def split_points(rows: Observations, share: float, patch_sigmas: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) 0 of rows to train on, 1 of those held out, -1 of points at the border, which belong to neither.

    Whole scenes if there are several, else what lies on one side of a plane across the scene's longest extent.

    Raises:
        KeypatchError: one of the parts would have fewer than two points.
    """
    scenes, sizes = np.unique(rows.scene, return_counts=True)
    if len(scenes) > 1:
        chosen = _choose_scenes(scenes, sizes, share, rng)
        part = np.isin(rows.scene, chosen).astype(np.int64)
    else:
        part = _beyond_plane(rows, share).astype(np.int64)
        part[np.isin(rows.point_id, _across(rows, part, patch_sigmas))] = BORDER
    points = [len(np.unique(rows.point_id[part == side])) for side in (0, TEST)]
    if min(points) < 2:
        raise KeypatchError(
            f"Holding out {share:g} of the points leaves {points[0]} to train on and {points[1]} to test on. Choose "
            "another --held-out, or build from more photos."
        )
    return part


def _choose_scenes(
    scenes: NDArray[np.int64], sizes: NDArray[np.int64], share: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Scenes in random order until they have the share, at least one and not all; the last only if it brings nearer."""
    order = rng.permutation(len(scenes))
    total = np.cumsum(sizes[order])
    best = int(np.argmin(np.abs(total[:-1] - share * total[-1])))
    return scenes[order[: best + 1]]


def _beyond_plane(rows: Observations, share: float) -> NDArray[np.bool_]:
    """(n,) the share of points farthest along the direction in which the middle nine tenths of them extend most."""
    points, first, inverse = np.unique(rows.point_id, return_index=True, return_inverse=True)
    place = rows.place[first]
    away = np.linalg.norm(place - np.median(place, axis=0), axis=1)
    core = place[away <= np.quantile(away, 0.9)]
    axis = np.linalg.svd(core - core.mean(axis=0), full_matrices=False)[2][0]
    along = place @ (axis * np.sign(axis[int(np.argmax(np.abs(axis)))]))
    test = np.zeros(len(points), np.bool_)
    test[np.argsort(-along, kind="stable")[: round(share * len(points))]] = True
    return np.asarray(test[inverse])


def _across(rows: Observations, part: NDArray[np.int64], patch_sigmas: float) -> NDArray[np.int64]:
    """Points to train on that are within a patch of a held-out point in some photo."""
    found = list[NDArray[np.int64]]()
    for _, here in rows.by_image():
        train, test = here[part[here] == 0], here[part[here] == TEST]
        if not len(train) or not len(test):
            continue
        xy, reach = rows.keypoints.xy, patch_sigmas / 2 * rows.keypoints.sigma.astype(np.float64)
        for reaching, reached, back in ((train, test, False), (test, train, True)):
            near = cKDTree(xy[reached]).query_ball_point(xy[reaching], reach[reaching])
            if back:
                found.append(reached[sorted({j for each in near for j in each})])
            else:
                found.append(reaching[[i for i, each in enumerate(near) if each]])
    rows_near = np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)
    return np.asarray(np.unique(rows.point_id[rows_near]), np.int64)
