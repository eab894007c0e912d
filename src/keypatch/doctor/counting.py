"""How many keypoints a pipeline finds again in a changed photograph, and how many of those it matches correctly."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.geometry import Keypoints, apply_homography, transform_keypoints

ROWS = 1024  # keypoints compared at once with all of the other photograph: 65 MB with 8,000 of them


@dataclass(frozen=True)
class SameFrame:
    """How far two frames may differ and still count as the same; the place in pixels of the changed photograph."""

    pixels: float = 3.0
    octaves: float = 0.25
    degrees: float = 15.0


@dataclass(frozen=True)
class Count:
    """What became of a photograph's keypoints in a changed one."""

    keypoints: int  # in the photograph
    found_again: int  # those of them for which the changed photograph has the same frame
    matched: int  # those found again that are matched with the same frame
    matches: int  # all matches given
    right: int  # matches whose places fit, whatever their frames

    @property
    def share(self) -> float:
        """matched / found_again; nan if nothing was found again."""
        return self.matched / self.found_again if self.found_again else float("nan")


def count(
    first: Keypoints, second: Keypoints, homography: ArrayLike, matches: ArrayLike, same: SameFrame | None = None
) -> Count:
    """Judge the matches (m, 2), indices into the keypoints of the photograph and of the changed one."""
    same = same or SameFrame()
    pairs = np.asarray(matches, np.int64).reshape(-1, 2)
    again = {tuple(pair) for pair in same_frames(first, second, homography, same).tolist()}
    apart = apply_homography(homography, first.xy[pairs[:, 0]]) - second.xy[pairs[:, 1]]
    return Count(
        keypoints=len(first),
        found_again=len({one for one, _ in again}),
        matched=len({one for one, other in pairs.tolist() if (one, other) in again}),
        matches=len(pairs),
        right=int(np.sum(np.hypot(*apart.T) <= same.pixels)),
    )


def same_frames(
    first: Keypoints, second: Keypoints, homography: ArrayLike, same: SameFrame | None = None
) -> NDArray[np.int64]:
    """All pairs (m, 2) of keypoints whose frames are the same once the homography has carried the first ones over."""
    same = same or SameFrame()
    carried = transform_keypoints(homography, first)
    pairs = [np.empty((0, 2), np.int64)]
    for start in range(0, len(carried), ROWS):
        rows = slice(start, start + ROWS)
        near = np.hypot(carried.x[rows, None] - second.x, carried.y[rows, None] - second.y) <= same.pixels
        one, other = np.nonzero(near)
        pairs.append(np.stack([one + start, other], axis=1))
    found = np.concatenate(pairs)
    octaves = np.log2(carried.sigma[found[:, 0]] / second.sigma[found[:, 1]])
    turns = np.degrees(carried.angle[found[:, 0]] - second.angle[found[:, 1]]).astype(np.float64)
    turned = np.abs((turns + 180) % 360 - 180)
    return np.asarray(found[(np.abs(octaves) <= same.octaves) & (turned <= same.degrees)])
