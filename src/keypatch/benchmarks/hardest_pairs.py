"""Pictures of the pairs that a descriptor gets most wrong: matches that are far apart, non-matches that are near."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from keypatch.metrics import RankedPairs
from keypatch.patches.patch_set import Pairs, PatchSet

PAIRS, COLUMNS = 12, 3
_SIDE, _GAP, _CAPTION = 48, 8, 14  # pixels
_INK = (128, 255)  # readable on white and on black, since the paper is transparent


def hardest_pairs(patch_set: PatchSet, pairs: Pairs, ranked: RankedPairs) -> dict[str, bytes]:
    """PNG files by title: the matching pairs with the largest distances, the non-matching ones with the smallest."""
    match = ranked.match == 1
    hardest = {"matching": ranked.order[match][::-1][:PAIRS], "non-matching": ranked.order[~match][:PAIRS]}
    return {
        f"hardest {kind} pairs, {pairs.name}": draw_pairs(
            patch_set.take(np.stack([pairs.first[chosen], pairs.second[chosen]], axis=1))
        )
        for kind, chosen in hardest.items()
        if len(chosen)
    }


def draw_pairs(patches: NDArray[np.uint8]) -> bytes:
    """Pairs of patches (n, 2, side, side) side by side in rows, each with its number from 1 below, as a PNG file."""
    width, height = 2 * _SIDE + _GAP, _SIDE + _CAPTION
    columns, rows = min(COLUMNS, len(patches)), -(-len(patches) // COLUMNS)
    sheet = Image.new("LA", (columns * width - _GAP, rows * height), (0, 0))
    draw = ImageDraw.Draw(sheet)
    for number, pair in enumerate(patches):
        row, column = divmod(number, COLUMNS)
        left, top = column * width, row * height
        for k, patch in enumerate(pair):
            sheet.paste(Image.fromarray(patch).resize((_SIDE, _SIDE)).convert("LA"), (left + k * _SIDE, top))
        draw.text((left + _SIDE, top + _SIDE), str(number + 1), _INK, anchor="ma")
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()
