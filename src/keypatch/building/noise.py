"""How many labels of a set are wrong: estimated from its patches, without knowing the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.building.observations import Observations
from keypatch.building.tracks import turns
from keypatch.describers.protocol import Describer

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

SAMPLE = 4000  # points; one pair of patches of each
HALF = 0.5  # of all pairs of different points are nearer than a pair that counts as unlike
TURNED = 60.0  # degrees: two of three pairs of unrelated keypoints differ by more
MOST_DESCRIBED = 100_000  # patches among which the most suspicious points are looked for
Z = 1.96  # of a 95 % interval

HOW = (
    "One pair of patches of each sampled point, described by {descriptor}. A pair with a wrong label is as far apart "
    "as two different points, so half of such pairs are farther apart than the median pair of different points, and "
    "hardly any true pair is: twice the share of pairs beyond that median is the share of wrong pairs w, and "
    "1 - sqrt(1 - w) the share of patches with a wrong label. Wrong patches that look alike (windows of one facade) "
    "are not seen."
)
CHANGED = (
    " These photos were aligned and cut at the same places whatever they show: a changed appearance counts as wrong "
    "here, so this is the most that can be wrong, not an estimate."
)
HOW_TURNED = (
    "The same pairs by what the reconstruction did not use: the angles of both keypoints, carried into space, differ "
    "by more than 60 degrees in two of three unrelated pairs and hardly ever in true ones."
)


@dataclass(frozen=True)
class LabelNoise:
    """Shares from 0 to 1 of patches whose label is wrong."""

    patches: float
    interval: tuple[float, float]  # of 95 %
    pairs: int  # the sample
    descriptor: str
    turned: float | None  # the same by angles in space; None where views are not known
    changed: bool = False  # patches of a point may look different by intent: then `patches` is the most it can be
    exact: str = ""  # why nothing was estimated

    @classmethod
    def none(cls, why: str) -> "LabelNoise":
        """Of labels that are known to be right."""
        return cls(0.0, (0.0, 0.0), 0, "", None, exact=why)

    def to_json(self) -> dict[str, Any]:
        check = {"patches": self.turned, "how": HOW_TURNED}
        return {
            "patches": self.patches,
            "interval": list(self.interval),
            "pairs": self.pairs,
            "descriptor": self.descriptor,
            "at_most": self.changed,
            "exact": bool(self.exact),
            "how": self.exact or HOW.format(descriptor=self.descriptor) + (CHANGED if self.changed else ""),
            "by_angles": None if self.turned is None else check,
        }


def estimate_label_noise(
    patches: NDArray[np.uint8],
    point_id: Int64,
    describer: Describer,
    rng: np.random.Generator,
    rows: Observations | None = None,
) -> LabelNoise:
    """The share of wrong labels among patches (n, 64, 64), by a sample of pairs; `rows` know their views."""
    first, second = _sample_pairs(point_id, rng)
    near = describe_rows(patches, first, describer)
    far = describe_rows(patches, second, describer)
    within = np.linalg.norm(near - far, axis=1)
    between = np.linalg.norm(near - np.roll(far, 1, axis=0), axis=1)  # each with the next point's
    unlike = int(np.sum(within > np.median(between)))
    turned = None
    if rows is not None:
        turn = np.degrees(np.abs(turns(rows, first, second)))
        if np.isfinite(turn).all():
            turned = _of_patches(float(np.mean(turn > TURNED)) / (1 - TURNED / 180))
    low, high = _wilson(unlike, len(first))
    share, *ends = (_of_patches(each / (1 - HALF)) for each in (unlike / max(len(first), 1), low, high))
    return LabelNoise(share, (ends[0], ends[1]), len(first), describer.name, turned)


def _of_patches(wrong_pairs: float) -> float:
    """A pair is right if both its patches are."""
    return round(float(1 - np.sqrt(1 - np.clip(wrong_pairs, 0, 1))), 4)


def _wilson(count: int, total: int) -> tuple[float, float]:
    if not total:
        return 0.0, 1.0
    share, square = count / total, Z**2 / total
    middle, half = share + square / 2, Z * np.sqrt(share * (1 - share) / total + square / (4 * total))
    return float((middle - half) / (1 + square)), float((middle + half) / (1 + square))


def _sample_pairs(point_id: Int64, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Two different patches of each of up to `SAMPLE` points."""
    order = np.argsort(point_id, kind="stable")
    _, starts, sizes = np.unique(point_id[order], return_index=True, return_counts=True)
    chosen = np.flatnonzero(sizes >= 2)
    chosen = np.sort(rng.permutation(chosen)[:SAMPLE])
    first = rng.integers(0, sizes[chosen])
    second = (first + rng.integers(1, sizes[chosen])) % sizes[chosen]
    return order[starts[chosen] + first], order[starts[chosen] + second]


def describe_rows(
    patches: NDArray[np.uint8], rows: Int64, describer: Describer, chunk: int = 1024
) -> NDArray[np.float32]:
    """(m, dim) descriptors of some of the patches, of any length; a few at a time."""
    parts = [describer.describe(np.asarray(patches[rows[i : i + chunk]])) for i in range(0, len(rows), chunk)]
    return np.concatenate(parts) if parts else np.empty((0, describer.dim), np.float32)


def suspicion(
    patches: NDArray[np.uint8], point_id: Int64, describer: Describer, rng: np.random.Generator
) -> tuple[Int64, Int64, Float64]:
    """Points, the most suspicious first, their oddest patch, and how far it is from their middle one.

    Of a large set a sample of points. The distance is in units of the median distance of two different points.
    """
    points, sizes = np.unique(point_id, return_counts=True)
    some = rng.permutation(len(points))
    some = np.sort(some[np.cumsum(sizes[some]) <= max(MOST_DESCRIBED, int(sizes.max(initial=0)))])
    rows = np.flatnonzero(np.isin(point_id, points[some]))
    rows = rows[np.argsort(point_id[rows], kind="stable")]
    described = describe_rows(patches, rows, describer)
    scale = float(np.median(np.linalg.norm(described - np.roll(described, len(rows) // 2, axis=0), axis=1)))
    starts = np.unique(point_id[rows], return_index=True)[1]
    worst, oddest = np.empty(len(some)), np.empty(len(some), np.int64)
    for number, (members, here) in enumerate(
        zip(np.split(described, starts[1:]), np.split(rows, starts[1:]), strict=True)
    ):
        apart = np.linalg.norm(members[:, None] - members[None], axis=2)
        middle = apart[int(np.argmin(apart.sum(axis=1)))]
        worst[number], oddest[number] = middle.max(), here[int(np.argmax(middle))]
    order = np.argsort(-worst, kind="stable")
    return points[some][order], oddest[order], worst[order] / max(scale, 1e-9)
