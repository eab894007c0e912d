"""A card in a few lines: what the command, the page and `inspect` say of a built set."""

from collections.abc import Iterator, Mapping
from typing import Any


def tell_card(card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    yield "label noise", tell_noise(card["label_noise"])
    if angle := card["viewing_angle_degrees"]:
        yield "viewing angle", f"{angle['50%']:.1f}° median, {angle['95%']:.1f}° at the 95th percentile"
    if scale := card["scale_change"]:
        yield "scale change", f"{scale['50%']:.2f} median, {scale['95%']:.2f} at the 95th percentile"
    yield from tell_strips(card)


def tell_strips(card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each sequence of strips, where it is a set of such."""
    for name, facts in card.get("strips", {}).items():
        overlap = ", ".join(f"{level} {value:.2f}" for level, value in facts["median_overlap"].items())
        yield name, f"{facts['points']:,} points, median overlap {overlap}"


def tell_noise(noise: Mapping[str, Any]) -> str:
    if noise.get("exact"):
        return str(noise["how"])
    (low, high), most = noise["interval"], "at most " if noise["at_most"] else ""
    return f"{most}{noise['patches']:.1%} of patches ({low:.1%} to {high:.1%}), estimated from {noise['pairs']:,} pairs"
