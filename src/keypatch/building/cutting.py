"""Patches cut photo by photo into one file on disk, whatever their number, and resumed after a stop."""

import hashlib
import time
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from keypatch.building.observations import Found
from keypatch.errors import Interrupted
from keypatch.files import write_text
from keypatch.geometry import PatchCutter
from keypatch.patches.phototour import PATCH_SIDE
from keypatch.progress import Progress, StopWish

CHUNK = 2048  # patches of a photo in memory at once
EVERY = 2.0  # seconds of work that a killed process may lose
_CUT, _DONE = "patches.npy", "patches-done.txt"


def cut_into(folder: Path, found: Found, patch_sigmas: float, progress: Progress) -> NDArray[np.uint8]:
    """(n, 64, 64) the patches of all rows, memory-mapped; those that an earlier call has cut are not cut again.

    Raises:
        Interrupted: Ctrl-C; the same call resumes.
    """
    rows, path, journal = found.rows, folder / _CUT, folder / _DONE
    digest = _digest(found, patch_sigmas)
    done = _read_done(path, journal, digest)
    if done is None:
        write_text(journal, f"{digest}\n")
        patches = npy.open_memmap(path, "w+", np.uint8, (len(rows), PATCH_SIDE, PATCH_SIDE))
        done = set()
    else:
        patches = npy.open_memmap(path, "r+")
    parts = dict(rows.by_image())
    thing = "views" if found.views > 1 else "photos"
    progress.count(len(done), len(parts), f"{thing} cut")
    with StopWish() as stop:
        unsaved, saved_at = list[int](), time.monotonic()
        for image, here in parts.items():
            if image in done:
                continue
            if stop:
                break
            cutter = PatchCutter(found.read(image))
            for start in range(0, len(here), CHUNK):
                some = here[start : start + CHUNK]
                patches[some] = cutter.cut(rows.keypoints.take(some), patch_sigmas, PATCH_SIDE)
            unsaved.append(image)
            done.add(image)
            if time.monotonic() - saved_at > EVERY:
                _save(patches, journal, unsaved)
                unsaved, saved_at = [], time.monotonic()
            progress.count(len(done), len(parts), f"{thing} cut")
        _save(patches, journal, unsaved)
        if stop and len(done) < len(parts):
            raise Interrupted(f"{folder.parent} keeps the patches of {len(done)} {thing}")
    return np.asarray(npy.open_memmap(path, "r"))


def _save(patches: "np.memmap[tuple[int, ...], np.dtype[np.uint8]]", journal: Path, images: list[int]) -> None:
    """The patches first: a photo in the journal is whole on disk."""
    patches.flush()
    with journal.open("a", encoding="utf-8") as file:
        file.write("".join(f"{image}\n" for image in images))


def _read_done(path: Path, journal: Path, digest: str) -> set[int] | None:
    """The photos that are cut already; None if there are none, or others were to be cut."""
    if not path.exists() or not journal.exists():
        return None
    first, *lines = journal.read_text(encoding="utf-8").split("\n") or [""]
    whole = lines[:-1]  # what follows the last end of a line was cut off
    return {int(line) for line in whole if line.isdecimal()} if first == digest else None


def _digest(found: Found, patch_sigmas: float) -> str:
    made = hashlib.sha256(repr((patch_sigmas, [photo.name for photo in found.photos])).encode())
    rows = found.rows
    for column in (rows.point_id, rows.image_id, rows.keypoints.xy, rows.keypoints.frames()):
        made.update(np.ascontiguousarray(column).tobytes())
    return made.hexdigest()
