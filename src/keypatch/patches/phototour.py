"""The PhotoTour (UBC, Brown) layout of a patch set.

patchesNNNN.bmp  sheets of 16x16 patches of 64x64, the last one padded
info.txt         line i: `point image` of patch i; published sets leave the second number unused
interest.txt     optional, line i: `image x y angle log2(sigma)` of patch i; in sets of ours in the units of `Keypoints`
m50_*.txt, ...   optional, pair lists
card.json        in sets of ours: where the set comes from
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import reason, write_text
from keypatch.patches.cache import Content, cached_array
from keypatch.patches.cards import read_card, write_card
from keypatch.patches.pair_lists import find_pairs, read_pairs, write_pairs
from keypatch.patches.patch_set import Pairs, PatchSet
from keypatch.patches.sheets import PATCH_SIDE, PATCHES_PER_SHEET, find_sheets, read_sheet, write_sheets
from keypatch.patches.tables import is_row_of_integers, parse_floats, parse_integers, read_lines

if TYPE_CHECKING:
    from keypatch.geometry.keypoints import Keypoints

__all__ = ["find_pairs", "read_pairs", "read_phototour", "write_phototour"]

INFO_MEANING = "two integers (point id, unused)"
INTEREST_CONVENTION = "image x y angle log2(sigma); top-left pixel centre (0, 0), angle in radians from x to y axis"
INTEREST_MEANING = "five numbers (image, x, y, orientation, log2 of the scale)"


def read_phototour(folder: Path, allow_partial: bool = False) -> PatchSet:
    """The patch set of a folder; the first call unpacks the sheets into a cache, later ones map it.

    `allow_partial` takes what is there of a set that was copied in part: the patches that have a sheet and a line.

    Raises:
        DataError: sheets, info.txt or interest.txt are missing, malformed or disagree in length.
    """
    sheets = find_sheets(folder)
    info = _read_info(folder / "info.txt", len(sheets), allow_partial)
    n = len(info)

    def unpack() -> Content:
        shape = (PATCHES_PER_SHEET * len(sheets), PATCH_SIDE, PATCH_SIDE)
        return shape, (read_sheet(sheet) for sheet in sheets)

    images, keypoints = _read_interest(folder / "interest.txt", n, allow_partial) or (info[:, 1].copy(), None)
    return PatchSet(
        name=folder.resolve().name,
        patches=cached_array(folder, "phototour", sheets, unpack)[:n],
        point_id=info[:, 0].copy(),
        image_id=images if images.any() else None,  # all zero: not known
        keypoints=keypoints,
        folder=folder,
        card=read_card(folder),
    )


def write_phototour(
    folder: Path,
    patches: NDArray[np.uint8],
    point_id: NDArray[np.int64],
    *,
    image_id: NDArray[np.int64] | None = None,
    keypoints: Keypoints | None = None,
    pairs: Sequence[Pairs] = (),
    card: Mapping[str, Any] | None = None,
) -> None:
    """Writes a set of patches (n, 64, 64) into a folder that holds none yet. Affine shapes of keypoints are not kept.

    Raises:
        KeypatchError: the patches have another size, there are none, or the folder already holds a set.
    """
    written = PatchSet(folder.name, patches, point_id, image_id, keypoints)  # checks that the lengths agree
    if written.side != PATCH_SIDE or len(written) == 0:
        raise KeypatchError(f"{folder}: the layout takes one or more patches of 64x64, not {patches.shape}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KeypatchError(f"{folder} cannot be made: {reason(error)}.") from error
    if (folder / "info.txt").exists() or any(folder.glob("*.bmp")):
        raise KeypatchError(f"{folder} already holds a patch set. Choose another folder or remove it.")
    images = np.zeros(len(patches), np.int64) if image_id is None else image_id
    write_sheets(folder, patches)
    for each in pairs:
        write_pairs(folder, each, point_id)
    if keypoints is not None:
        write_text(folder / "interest.txt", _interest_text(images, keypoints))
    convention = {} if keypoints is None else {"interest": INTEREST_CONVENTION}
    write_card(folder, {**convention, **(card or {})})
    rows = zip(point_id.tolist(), images.tolist(), strict=True)
    write_text(folder / "info.txt", "".join(f"{point} {image}\n" for point, image in rows))


def _read_info(path: Path, sheets: int, allow_partial: bool) -> NDArray[np.int64]:
    if not path.exists():
        raise DataError(f"{path} is missing: it says which point each patch shows. Copy it there.")
    room = PATCHES_PER_SHEET * sheets
    lines = read_lines(path)
    if len(lines) > 1 and not is_row_of_integers(lines[-1], 2):
        if not allow_partial:
            raise DataError(
                f'{path}, line {len(lines)}: expected {INFO_MEANING}, found "{lines[-1].strip()}".\n'
                f"The file looks cut off; the {sheets} sheets have room for {room} patches but only {len(lines) - 1} "
                "lines are whole. Copy it again or pass --allow-partial."
            )
        lines.pop()
    info = parse_integers(path, lines, 2, INFO_MEANING)
    if allow_partial:
        return info[:room]
    if len(info) > room:
        raise DataError(
            f"{path} has {len(info)} lines, but the {sheets} sheets beside it have room for only {room} patches. "
            "Copy the missing sheets or pass --allow-partial."
        )
    if len(info) <= room - PATCHES_PER_SHEET:
        raise DataError(
            f"{path} has {len(info)} lines, but the {sheets} sheets beside it hold more than "
            f"{room - PATCHES_PER_SHEET} patches. Copy it again or pass --allow-partial."
        )
    return info


def _read_interest(path: Path, n: int, allow_partial: bool) -> tuple[NDArray[np.int64], Keypoints] | None:
    """Image and keypoint of each patch; None where the file is missing: training and scoring do without."""
    if not path.exists():
        return None
    from keypatch.geometry.keypoints import Keypoints

    lines = read_lines(path)
    if len(lines) < n if allow_partial else len(lines) != n:
        raise DataError(f"{path} has {len(lines)} lines for {n} patches. Copy it again or remove it; it is optional.")
    image, x, y, angle, log_sigma = parse_floats(path, lines[:n], 5, INTEREST_MEANING).T
    try:
        with np.errstate(over="ignore", under="ignore"):
            x, y, sigma, angle = (column.astype(np.float32) for column in (x, y, np.exp2(log_sigma), angle))
        return image.astype(np.int64), Keypoints(x, y, sigma, angle)
    except KeypatchError as error:
        raise DataError(
            f"{path} holds impossible keypoints. {error} Copy it again or remove it; it is optional."
        ) from None


def _interest_text(images: NDArray[np.int64], keypoints: Keypoints) -> str:
    columns = (images, keypoints.x, keypoints.y, keypoints.angle, np.log2(keypoints.sigma.astype(np.float64)))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    # nine digits bring every float32 back exactly
    return "".join(f"{i} {x:.9g} {y:.9g} {angle:.9g} {log:.9g}\n" for i, x, y, angle, log in rows)
