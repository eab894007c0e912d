"""The HPatches layout: a folder per sequence, in it one column of patches (a strip) per image and level of jitter.

`<sequence>/{ref, e1..e5, h1..h5, t1..t5}.png`, patch i = rows side*i to side*(i+1), the same point in all 16 strips.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from keypatch.cache import Content, unpack_once
from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.images import UNASKED_LIMIT, read_header, read_photo
from keypatch.patches.patch_set import PatchSet, read_set_card

SEQUENCES = "sequences"  # of the card of a set that was read: which of the folder's it holds
STRIPS = ("ref", *(f"{level}{image}" for level in "eht" for image in range(1, 6)))


def read_hpatches(folder: Path, split: str | None = None) -> PatchSet:
    """All sequences, or the training part of a split (a, b, c), as training data: a class is a row, 16 patches each.

    The 16 patches of a row follow each other in the order of STRIPS.

    Raises:
        DataError: a sequence of the split or a strip is missing, or a strip is malformed.
    """
    names = find_sequences(folder)
    if split is not None:
        names = require_sequences(folder, split_sequences(split, "train"), f"the split {split}")
    strips = [_strip_path(folder, name, strip) for name in names for strip in STRIPS]

    def unpack() -> Content:
        sizes = [_check_sequence(folder, name) for name in names]
        side = sizes[0][1]
        for name, (_, other) in zip(names, sizes, strict=True):
            if other != side:
                raise DataError(
                    f"{folder / name} has patches of side {other}, but {names[0]} has side {side}. Copy them again."
                )
        shape = (len(STRIPS) * sum(rows for rows, _ in sizes), side, side)
        return shape, (_read_rows(folder, name) for name in names)

    patches = unpack_once(folder, f"hpatches-{split or 'all'}", strips, unpack)
    return PatchSet(
        name=folder.resolve().name if split is None else f"{folder.resolve().name}-{split}",
        patches=patches,
        point_id=np.repeat(np.arange(len(patches) // len(STRIPS)), len(STRIPS)),
        folder=folder,
        card={**read_set_card(folder), SEQUENCES: names},
    )


def read_sequences(
    folder: Path, names: Sequence[str] | None = None
) -> Iterator[tuple[str, dict[str, NDArray[np.uint8]]]]:
    """One sequence after the other: its name and its patches by strip, each (rows, side, side)."""
    for name in find_sequences(folder) if names is None else require_sequences(folder, names):
        _check_sequence(folder, name)
        yield name, {strip: read_strip(folder, name, strip) for strip in STRIPS}


def read_strip(folder: Path, name: str, strip: str) -> NDArray[np.uint8]:
    """(rows, side, side): the patches of one strip."""
    pixels = read_photo(_strip_path(folder, name, strip), pixel_limit=UNASKED_LIMIT)
    return pixels.reshape(-1, pixels.shape[1], pixels.shape[1])


def count_rows(folder: Path, names: Sequence[str]) -> list[int]:
    """How many points each of these sequences shows, after a look at the sizes of all strips."""
    return [_check_sequence(folder, name)[0] for name in names]


def find_sequences(folder: Path, suffix: str = ".png") -> list[str]:
    """The names of the folders that hold strips, or files of the same names with another suffix, sorted."""
    require_folder(folder)
    names = sorted(p.name for p in folder.iterdir() if p.is_dir() and is_sequence(p, suffix))
    if not names and is_sequence(folder, suffix):
        raise DataError(f"{folder} is a single HPatches sequence. Give the folder that contains it.")
    if not names:
        raise DataError(
            f"{folder} has no HPatches sequences (folders with ref{suffix}, e1{suffix}, ...). Check the path."
        )
    return names


def is_sequence(folder: Path, suffix: str = ".png") -> bool:
    """Whether a folder holds at least one strip."""
    return any((folder / f"{strip}{suffix}").exists() for strip in STRIPS)


def require_sequences(folder: Path, names: Sequence[str], wanted: str = "the list", suffix: str = ".png") -> list[str]:
    """The names, all of them present; raises DataError that says how many of `wanted` are missing."""
    missing = sorted(set(names) - set(find_sequences(folder, suffix)))
    if missing:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise DataError(
            f"{folder} lacks {len(missing)} of the {len(names)} sequences of {wanted}: {shown}. Copy them there."
        )
    return list(names)


def split_sequences(split: str, part: Literal["train", "test"]) -> tuple[str, ...]:
    """The sequences of a split of the public benchmark, in its order; only a, b and c have a part for training."""
    splits = _splits()
    if split not in splits:
        raise DataError(f'HPatches has no split "{split}". Its splits: {", ".join(splits)}.')
    if part not in splits[split]:
        raise DataError(f'The HPatches split "{split}" has no training part. Use a, b or c, or no split.')
    return tuple(splits[split][part].split())


@cache
def _splits() -> dict[str, dict[str, str]]:
    text = files("keypatch.patches").joinpath("hpatches_splits.json").read_text(encoding="utf-8")
    splits: dict[str, dict[str, str]] = json.loads(text)
    return splits


def _check_sequence(folder: Path, name: str) -> tuple[int, int]:
    """(rows, side) of a sequence, after a look at the sizes of all its strips."""
    sizes = {strip: _strip_size(_strip_path(folder, name, strip)) for strip in STRIPS}
    for strip, size in sizes.items():
        if size != sizes["ref"]:
            (rows, side), (ref_rows, ref_side) = size, sizes["ref"]
            raise DataError(
                f"{_strip_path(folder, name, strip)} has {rows} patches of side {side}, but ref.png has {ref_rows} of "
                f"side {ref_side}. All strips of a sequence show the same points; copy the sequence again."
            )
    return sizes["ref"]


def _strip_size(path: Path) -> tuple[int, int]:
    width, height = read_header(path).size
    if height % width:
        raise DataError(
            f"{path} is {width}x{height} pixels, but a strip's height must be a multiple of its width. Copy it again."
        )
    return height // width, width


def _strip_path(folder: Path, name: str, strip: str) -> Path:
    return folder / name / f"{strip}.png"


def _read_rows(folder: Path, name: str) -> NDArray[np.uint8]:
    """(rows * 16, side, side): the patches of a sequence, row by row."""
    columns = [read_strip(folder, name, strip) for strip in STRIPS]
    return np.stack(columns, axis=1).reshape(-1, *columns[0].shape[1:])
