"""The page of a built set: its numbers, and contact sheets of random and of the most suspicious points."""

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.building.observations import Observations
from keypatch.building.summary import tell_noise, tell_strips
from keypatch.files import write_text
from keypatch.reports.page import render_page

RANDOM = 36  # points
MOST_PATCHES = 8  # of a point
GAP = 2  # pixels between patches

Part = Mapping[str, Any]  # what the template shows of a set


class Strip(NamedTuple):
    """The patches of a point as a PNG inside the page."""

    label: str
    source: str
    width: int
    height: int


class Bar(NamedTuple):
    """Of a histogram."""

    label: str
    number: int
    share: float  # of the highest


def write_build_page(path: Path, title: str, parts: Sequence[Part], skipped: Sequence[str]) -> None:
    """One HTML file; nothing is loaded from elsewhere."""
    page = render_page(
        "build.html", "keypatch.building", command="build", title=title, skipped=list(skipped), parts=list(parts)
    )
    write_text(path, page)


def show_part(card: Mapping[str, Any], patches: NDArray[np.uint8], rows: Observations, seed: int) -> Part:
    """A set of judged patches: the most suspicious points and random ones."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(rows.points)[:RANDOM])
    images = card["images"]
    return {
        "part": card["part"],
        "warnings": card["warnings"],
        "facts": _facts(card),
        "left_out": card["counts"]["left_out"],
        "sizes": _bars(card["counts"]["class_sizes"]),
        "suspicious": [
            _strip(each["point"], patches, rows, images, f"{each['distance']:.2f}", each["patch"])
            for each in card["suspicious_classes"]
        ],
        "random": [_strip(point, patches, rows, images) for point in chosen.tolist()],
    }


def show_strips(card: Mapping[str, Any], shown: Sequence[tuple[str, NDArray[np.uint8]]]) -> Part:
    """A set in a layout of its own: the patches (n, h, w) of some points, by their labels."""
    return {
        "part": card["part"],
        "warnings": card["warnings"],
        "facts": _facts(card),
        "left_out": card["counts"]["left_out"],
        "sizes": _bars(card["counts"]["class_sizes"]),
        "suspicious": [],
        "random": [_picture(label, patches) for label, patches in shown],
    }


def _facts(card: Mapping[str, Any]) -> dict[str, str]:
    counts, noise = card["counts"], card["label_noise"]
    facts = {
        "Patches": f"{counts['patches']:,} in {counts['classes']:,} classes, from {counts['photos']:,} photos",
        "Method": str(card["method"]),
        "Terms of the photos": str(card["terms"]),
        "Label noise": tell_noise(noise) + (f" and {noise['descriptor']}" if noise["descriptor"] else ""),
    }
    if noise["by_angles"]:
        facts["Label noise by angles"] = f"{noise['by_angles']['patches']:.1%} of patches"
    for title, key, unit in (
        ("Viewing angle", "viewing_angle_degrees", "°"),
        ("Scale change", "scale_change", " times"),
    ):
        if card[key]:
            facts[title] = ", ".join(f"{value:.3g}{unit} ({name})" for name, value in card[key].items())
    if "near_duplicates" in card:
        facts["Near-duplicate classes"] = f"{card['near_duplicates']['pairs_of_classes']:,} pairs"
    facts |= dict(tell_strips(card))
    for name, value in card.get("rootsift_fpr95", {}).items():
        facts[f"RootSIFT on {name}"] = f"FPR95 {value:.2%}"
    return facts


def _bars(sizes: Mapping[str, int]) -> list[Bar]:
    highest = max(sizes.values())
    return [Bar(size, count, round(100 * count / highest, 2)) for size, count in sizes.items()]


def _strip(
    point: int,
    patches: NDArray[np.uint8],
    rows: Observations,
    images: Sequence[str],
    note: str = "",
    oddest: int | None = None,
) -> Strip:
    """Some patches of a point, the oddest last."""
    start, end = (int(each) for each in np.searchsorted(rows.point_id, [point, point + 1]))
    members = [row for row in range(start, end) if row != oddest][: MOST_PATCHES - (oddest is not None)]
    members += [] if oddest is None else [oddest]
    first = rows.keypoints.take([members[0]])
    where = f"{images[int(rows.image_id[members[0]])]} ({first.x[0]:.0f}, {first.y[0]:.0f})"
    more = f", {end - start} patches" if end - start > MOST_PATCHES else ""
    label = f"{point}{more} · {where}" + (f" · {note}" if note else "")
    return _picture(label, patches[members])


def _picture(label: str, patches: NDArray[np.uint8]) -> Strip:
    """Patches (n, h, w) side by side."""
    side = patches.shape[1]
    sheet = np.full((side, len(patches) * (side + GAP) - GAP), 255, np.uint8)
    for place, patch in enumerate(patches):
        sheet[:, place * (side + GAP) : place * (side + GAP) + side] = patch
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "PNG", optimize=True)
    source = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
    return Strip(label, source, sheet.shape[1], side)
