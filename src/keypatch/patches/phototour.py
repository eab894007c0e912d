"""The PhotoTour (UBC, Brown) layout of a patch set.

patchesNNNN.bmp  sheets of 1024x1024 grey pixels: 16x16 patches of 64x64, row by row, the last one padded
info.txt         line i: `point image` of patch i; published sets leave the second number unused
interest.txt     optional, line i: `image x y angle log2(sigma)` of patch i; in sets of ours in the units of `Keypoints`
m50_*.txt, ...   optional, pair lists: `patch1 point1 unused patch2 point2 unused [more]`, one pair per line
card.json        in sets of ours: where the set comes from
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.cache import Content, unpack_once
from keypatch.errors import DataError, KeypatchError
from keypatch.files import make_folder, reading, require_folder, write_atomically, write_text
from keypatch.images import read_photo
from keypatch.patches.patch_set import Pairs, PatchSet, read_set_card, write_set_card
from keypatch.patches.tables import is_row_of_integers, parse_floats, parse_integers, read_lines

if TYPE_CHECKING:
    from keypatch.geometry.keypoints import Keypoints

GRID = 16
PATCH_SIDE = 64
SHEET_SIDE = GRID * PATCH_SIDE
PATCHES_PER_SHEET = GRID * GRID
INFO_MEANING = "two integers (point id, unused)"
INTEREST_CONVENTION = "image x y angle log2(sigma); top-left pixel centre (0, 0), angle in radians from x to y axis"
INTEREST_MEANING = "five numbers (image, x, y, orientation, log2 of the scale)"
PAIR_COLUMNS = 6
PAIR_MEANING = "six integers or more (patch, point, unused, patch, point, unused)"


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
        patches=unpack_once(folder, "phototour", sheets, unpack)[:n],
        point_id=info[:, 0].copy(),
        image_id=images if images.any() else None,  # all zero: not known
        keypoints=keypoints,
        folder=folder,
        card=read_set_card(folder),
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
        raise KeypatchError(f"{folder}: the layout needs at least one patch, each 64x64; found shape {patches.shape}.")
    make_folder(folder)
    if (folder / "info.txt").exists() or any(folder.glob("*.bmp")):
        raise KeypatchError(f"{folder} already holds a patch set. Choose another folder or remove it.")
    images = np.zeros(len(patches), np.int64) if image_id is None else image_id
    write_sheets(folder, patches)
    for each in pairs:
        write_pair_list(folder, each, point_id)
    if keypoints is not None:
        write_text(folder / "interest.txt", _interest_text(images, keypoints))
    convention = {} if keypoints is None else {"interest": INTEREST_CONVENTION}
    write_set_card(folder, {**convention, **(card or {})})
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
    with reading(path), np.errstate(over="ignore", under="ignore"):
        x, y, sigma, angle = (column.astype(np.float32) for column in (x, y, np.exp2(log_sigma), angle))
        return image.astype(np.int64), Keypoints(x, y, sigma, angle)


def _interest_text(images: NDArray[np.int64], keypoints: Keypoints) -> str:
    columns = (images, keypoints.x, keypoints.y, keypoints.angle, np.log2(keypoints.sigma.astype(np.float64)))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    # nine digits bring every float32 back exactly
    return "".join(f"{i} {x:.9g} {y:.9g} {angle:.9g} {log:.9g}\n" for i, x, y, angle, log in rows)


def find_sheets(folder: Path) -> list[Path]:
    """The bmp files of a folder in the order of their numbers; patch i lies on sheet i // 256.

    Raises:
        DataError: there are none, or one is missing between two others, which would shift all patches after it.
    """
    require_folder(folder)
    sheets = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".bmp" and path.is_file())
    if not sheets:
        raise DataError(f"{folder} has no sheets of patches (patches0000.bmp, patches0001.bmp, ...). Copy them there.")
    numbers = [re.search(r"[0-9]+$", sheet.stem) for sheet in sheets]
    if not all(numbers):
        return sheets
    by_number = sorted((int(number.group()), sheet) for number, sheet in zip(numbers, sheets, strict=True) if number)
    for (number, sheet), (following, _) in pairwise(by_number):
        if following != number + 1:
            raise DataError(f"{folder}: sheet {number + 1}, the one after {sheet.name}, is missing. Copy it again.")
    return [sheet for _, sheet in by_number]


def read_sheet(path: Path) -> NDArray[np.uint8]:
    """uint8 (256, 64, 64), the cells of padding at the end of a last sheet included."""
    sheet = read_photo(path)
    if sheet.shape != (SHEET_SIDE, SHEET_SIDE):
        height, width = sheet.shape
        raise DataError(f"{path} is {width}x{height} pixels, but a sheet of patches has 1024x1024. Copy it again.")
    cells = sheet.reshape(GRID, PATCH_SIDE, GRID, PATCH_SIDE).swapaxes(1, 2)  # (row, column, y, x)
    return cells.reshape(PATCHES_PER_SHEET, PATCH_SIDE, PATCH_SIDE)


def write_sheets(folder: Path, patches: NDArray[np.uint8]) -> None:
    """patches0000.bmp and so on; the unused cells of the last sheet are black."""
    for number, start in enumerate(range(0, len(patches), PATCHES_PER_SHEET)):
        cells = np.zeros((PATCHES_PER_SHEET, PATCH_SIDE, PATCH_SIDE), np.uint8)
        chunk = patches[start : start + PATCHES_PER_SHEET]
        cells[: len(chunk)] = chunk
        sheet = cells.reshape(GRID, GRID, PATCH_SIDE, PATCH_SIDE).swapaxes(1, 2).reshape(SHEET_SIDE, SHEET_SIDE)
        with write_atomically(folder / f"patches{number:04d}.bmp") as file:
            Image.fromarray(sheet).save(file, format="BMP")


def find_pair_lists(patches: PatchSet) -> tuple[Pairs, ...]:
    """The pair lists in the folder of a set, by name: m50_*.txt and each other text whose first line is a pair."""
    lists = sorted(patches.folder.glob("*.txt")) if patches.folder else ()
    return tuple(read_pair_list(path, len(patches), patches.point_id) for path in lists if _is_pair_list(path))


def read_pair_list(path: Path, n_patches: int, point_id: NDArray[np.int64] | None = None) -> Pairs:
    """The pairs of one list; a pair matches if both its point ids are the same.

    Raises:
        DataError: with the line that is malformed, names a patch the set does not have, or gives a patch another point
            than `point_id` (of the set's info.txt) does.
    """
    table = parse_integers(path, read_lines(path), PAIR_COLUMNS, PAIR_MEANING)
    pairs = Pairs(path.stem, first=table[:, 0], second=table[:, 3], is_match=table[:, 1] == table[:, 4])
    for patches, points in ((pairs.first, table[:, 1]), (pairs.second, table[:, 4])):
        outside = (patches < 0) | (patches >= n_patches)
        if outside.any():
            line = int(np.argmax(outside))
            raise DataError(
                f"{path}, line {line + 1}: there is no patch {patches[line]}; the set has {n_patches} patches "
                f"(0 to {n_patches - 1}). The list belongs to another set, or sheets are missing."
            )
        if point_id is None:
            continue
        other = point_id[patches] != points
        if other.any():
            line = int(np.argmax(other))
            raise DataError(
                f"{path}, line {line + 1}: patch {patches[line]} shows point {points[line]} here, but point "
                f"{point_id[patches[line]]} in info.txt. The list belongs to another set."
            )
    return pairs


def write_pair_list(folder: Path, pairs: Pairs, point_id: NDArray[np.int64]) -> None:
    """`<name>.txt` with seven columns, as in the published lists.

    Raises:
        KeypatchError: `is_match` says otherwise than the point ids, from which readers take it.
    """
    first, second = point_id[pairs.first], point_id[pairs.second]
    if not np.array_equal(first == second, pairs.is_match):
        raise KeypatchError(f"{pairs.name}: pairs must match exactly if both patches show the same point; some do not.")
    rows = zip(pairs.first.tolist(), first.tolist(), pairs.second.tolist(), second.tolist(), strict=True)
    write_text(folder / f"{pairs.name}.txt", "".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in rows))


def _is_pair_list(path: Path) -> bool:
    if path.name in ("info.txt", "interest.txt"):
        return False
    if path.name.startswith("m50_"):
        return True  # a list by its name: if its first line is malformed, the reader says so
    with path.open(encoding="utf-8", errors="replace") as file:
        return is_row_of_integers(file.readline(), PAIR_COLUMNS)
