"""Sheets of the PhotoTour layout: 1024x1024 grey bmp files, 16x16 patches of 64x64, row by row."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.errors import DataError
from keypatch.files import require_folder, write_atomically
from keypatch.patches.grey_images import read_grey

GRID = 16
PATCH_SIDE = 64
SHEET_SIDE = GRID * PATCH_SIDE
PATCHES_PER_SHEET = GRID * GRID


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
    sheet = read_grey(path)
    if sheet.shape != (SHEET_SIDE, SHEET_SIDE):
        height, width = sheet.shape
        raise DataError(f"{path} is {width}x{height} pixels, a sheet of patches has 1024x1024. Copy it again.")
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
