"""The card of a built set: what it was made from and how, what is in it, how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.building.noise import LabelNoise, describe_rows, estimate_label_noise, suspicion
from keypatch.building.observations import Found, Observations, Written, coinciding_points
from keypatch.building.tracks import widest_angles
from keypatch.describers.sift import SiftDescriber
from keypatch.metrics import fpr95
from keypatch.patches.patch_set import Pairs
from keypatch.patches.sources import SOURCES
from keypatch.provenance import provenance

Int64 = NDArray[np.int64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
QUARTER = 6.0  # sigmas: a quarter of a patch, within which two points show much of the same
SUSPICIOUS = 24  # points of which the card and the page tell
FEW_POINTS = 2_000  # our choice; the embedded training set has 4,751, nd-train 31,847
EASY = 0.005  # FPR95 of RootSIFT on the hard list: castle-test has 0.038, nd-test 0.060
NOISY = 0.05
NARROW = 5.0  # degrees


@dataclass(frozen=True, eq=False)
class Quality:
    """What was measured on the patches of one set."""

    noise: LabelNoise
    suspicious: Sequence[tuple[int, int, float]]  # points, the worst first, their oddest patch and how far it is
    rootsift: Mapping[str, float]  # FPR95 by pair list
    coinciding: Int64  # (m, 2) points that share much of a patch
    angles: NDArray[np.float64]  # (points,) widest angle between views, degrees; nan where it is not known
    scales: NDArray[np.float64]  # (points,) largest scale over the smallest


def measure(
    patches: NDArray[np.uint8], rows: Observations, lists: Sequence[Pairs], rng: np.random.Generator, found: Found
) -> Quality:
    """The quality of a set by RootSIFT, which learned from no photo and had no part in making it."""
    judge = SiftDescriber(root=True)
    first = np.unique(rows.point_id, return_index=True)[1]
    suspects = zip(*(each[:SUSPICIOUS].tolist() for each in suspicion(patches, rows.point_id, judge, rng)), strict=True)
    largest, smallest = (_of_points(reduce, rows) for reduce in (np.maximum, np.minimum))
    if found.exact:
        noise = LabelNoise.none(found.exact)
    else:
        changed = bool(found.facts.get("aligned"))
        noise = replace(estimate_label_noise(patches, rows.point_id, judge, rng, rows), changed=changed)
    return Quality(
        noise=noise,
        suspicious=list(suspects),
        rootsift={each.name: _fpr95(patches, each, judge) for each in lists},
        coinciding=coinciding_points(rows, QUARTER),
        angles=widest_angles(rows)[first],
        scales=largest / smallest,
    )


def _of_points(reduce: np.ufunc, rows: Observations) -> NDArray[np.float64]:
    starts = np.unique(rows.point_id, return_index=True)[1]  # the rows of a point lie together
    return np.asarray(reduce.reduceat(rows.keypoints.sigma.astype(np.float64), starts))


def _fpr95(patches: NDArray[np.uint8], pairs: Pairs, judge: SiftDescriber) -> float:
    first, second = (describe_rows(patches, each, judge) for each in (pairs.first, pairs.second))
    return round(float(fpr95(np.linalg.norm(first - second, axis=1), pairs.is_match)), 5)


def warnings_of(rows: Observations, quality: Quality) -> list[str]:
    """Why the set may be of little use, a sentence each."""
    told, points = list[str](), rows.points
    if points < FEW_POINTS:
        told.append(
            f"The set is small: a network learns little from {points:,} points. Add photos, use more points per photo "
            "(--keypoints, or --points for single photos), or train on it together with a larger set."
        )
    hard = next((value for name, value in quality.rootsift.items() if name.startswith("hard")), None)
    angle = float(np.median(quality.angles)) if np.isfinite(quality.angles).all() and points else None
    if hard is not None and hard < EASY:
        why = (
            f", and half of its points are seen within {angle:.1f} degrees"
            if angle is not None and angle < NARROW
            else ""
        )
        told.append(
            f"The set is easy: RootSIFT errs in {hard:.2%} of the hard list{why}. Photos from more viewpoints "
            "or in different light teach more."
        )
    if quality.noise.patches > NOISY and quality.noise.changed:
        told.append(
            f"{quality.noise.patches:.0%} of the patches do not look like the other one of their class. In aligned "
            "photos, the scene changed there or the alignment is wrong: look at the page."
        )
    elif quality.noise.patches > NOISY:
        told.append(
            f"About {quality.noise.patches:.0%} of the labels are wrong. Look at the most suspicious points on the "
            "page; --track-length 4 or a smaller --reprojection-error removes doubtful ones, --masks a moving "
            "background."
        )
    return told


def make_card(
    found: Found,
    rows: Observations,
    quality: Quality,
    sources: Mapping[int, Mapping[str, str]],
    settings: Mapping[str, Any],
    left_out: Mapping[str, int],
    part: str | None,
) -> dict[str, Any]:
    """Plain values, for card.json: of one part, whose rows these are."""
    sizes, counts = np.unique(np.unique(rows.point_id, return_counts=True)[1], return_counts=True)
    used = np.unique(rows.image_id // found.views).tolist()
    return {
        **card_head(settings, [sources[photo] for photo in used], part),
        "images": found.image_names(),  # by the numbers in info.txt
        "found": dict(found.facts),
        "counts": {
            "photos": len(used),
            "patches": len(rows),
            "classes": rows.points,
            "class_sizes": dict(zip(map(str, sizes.tolist()), counts.tolist(), strict=True)),
            "left_out": {name: count for name, count in left_out.items() if count},
        },
        "label_noise": quality.noise.to_json(),
        "viewing_angle_degrees": _quantiles(quality.angles),
        "scale_change": _quantiles(quality.scales),
        "near_duplicates": {
            "pairs_of_classes": len(quality.coinciding),
            "how": f"points seen within {QUARTER:g} sigmas, a quarter of a patch, of each other in some photo at about "
            "one scale; never a pair of the hard list",
        },
        "rootsift_fpr95": dict(quality.rootsift),
        "suspicious_classes": [
            {"point": point, "patch": patch, "distance": round(far, 3)} for point, patch, far in quality.suspicious
        ],
        "warnings": warnings_of(rows, quality),
        "provenance": provenance().to_json(),
    }


def make_strips_card(
    written: Written, sources: Sequence[Mapping[str, str]], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The same of a set in a layout of its method's own, which is not judged."""
    return {
        **card_head(settings, sources, None),
        "counts": {"photos": len(written.photos), **written.counts},
        "label_noise": LabelNoise.none(written.exact).to_json(),
        "viewing_angle_degrees": None,
        "scale_change": None,
        **written.entries,
        "warnings": [],
        "provenance": provenance().to_json(),
    }


def card_head(settings: Mapping[str, Any], sources: Sequence[Mapping[str, str]], part: str | None) -> dict[str, Any]:
    """What every card begins with: how the set was made, and of what."""
    return {
        "made_by": "keypatch build",
        "method": settings["method"],
        "part": part,
        "terms": settings["building.terms"] or "not stated",
        SOURCES: list(sources),
        "settings": {name: _without_folder(value) for name, value in settings.items()},
        "patch_sigmas": settings["building.patch_sigmas"],
    }


def _without_folder(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and ("/" in value or "\\" in value) else value


def _quantiles(values: NDArray[np.float64]) -> dict[str, float] | None:
    """By name, or None where the values are not known."""
    if not len(values) or not np.isfinite(values).all():
        return None
    return {f"{q:.0%}": round(float(np.quantile(values, q)), 3) for q in QUANTILES}
