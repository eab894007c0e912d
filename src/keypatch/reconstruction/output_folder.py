"""The folder of a reconstruction: made or taken up again, held by one process, its model replaced as a whole."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.files import lock, reason, write_json
from keypatch.interrupting import StopWish
from keypatch.reconstruction.report import FORMAT, NUMBER

REPORT, DATABASE, MODEL = "reconstruction.json", "database.db", "model"
FEATURES, MATCHES, PICTURE, PAGE = "features.h5", "matches.h5", "model.png", "model.html"
LOCK, UNFINISHED = ".lock", "unfinished"


@contextmanager
def hold_folder(folder: Path) -> Iterator[Path]:
    """Holds `folder`, new, empty or of an earlier run, and gives a folder in it for what is not finished yet.

    That one goes at the end, but for an error after its database was written: it is kept then, to be looked at. A new
    folder goes as a whole where an error comes before anything worth keeping.

    Raises:
        KeypatchError: it holds something else, cannot be written to, or another process works in it.
    """
    was_there, content = folder.exists(), _open(folder)
    with lock(folder / LOCK, str(folder)):
        if not content:
            _write_unfinished(folder)
        unfinished, kept, refused = folder / UNFINISHED, False, False
        shutil.rmtree(unfinished, ignore_errors=True)  # of a failed or killed process
        unfinished.mkdir()
        try:
            yield unfinished
        except Exception as error:
            refused = not isinstance(error, Interrupted)
            kept = refused and (unfinished / DATABASE).exists()
            raise
        finally:
            if not kept:
                shutil.rmtree(unfinished, ignore_errors=True)
            if refused and not content and {entry.name for entry in folder.iterdir()} == {REPORT, LOCK}:
                (folder / REPORT).unlink()
            with suppress(OSError):  # Windows does not remove what is open, and the lock stays there
                (folder / LOCK).unlink()  # while it is held: afterwards it might be another process's
                if not was_there:
                    folder.rmdir()  # only if it is empty


def swap_in(folder: Path, unfinished: Path, report: dict[str, Any]) -> None:
    """Puts what is finished by now in the place of what an earlier run made; Ctrl-C waits for that."""
    write_json(unfinished / REPORT, report)
    old = unfinished / "old"
    old.mkdir()
    with StopWish():
        _write_unfinished(folder)  # so that what a process killed in between leaves is not taken for one model's
        for path in _parts(folder):
            path.rename(old / path.name)
        for path in _parts(unfinished):
            path.rename(folder / path.name)
        (unfinished / REPORT).replace(folder / REPORT)


def _parts(folder: Path) -> list[Path]:
    """What belongs to one model."""
    named = [folder / name for name in (MODEL, PICTURE, PAGE)]
    return [*folder.glob(f"{DATABASE}*"), *(path for path in named if path.exists())]  # also SQLite's journals


def _write_unfinished(folder: Path) -> None:
    write_json(folder / REPORT, {"format": FORMAT, "format_number": NUMBER, "finished": False})


def _open(folder: Path) -> set[str]:
    """Makes the folder if it is not there; the names of what is in it, all of it ours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = {entry.name for entry in folder.iterdir()} - {LOCK}
    except FileExistsError:
        raise KeypatchError(f"{folder} is a file, not a folder. Choose another name.") from None
    except OSError as error:
        raise KeypatchError(f"{folder} cannot be written to: {reason(error)}. Choose another folder.") from error
    if content:
        _require_ours(folder, content)
    return content


def _require_ours(folder: Path, content: set[str]) -> None:
    try:
        value = json.loads((folder / REPORT).read_text(encoding="utf-8")) if REPORT in content else None
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise DataError(
            f"{folder} is not empty and holds no reconstruction of keypatch. Choose a new folder, so that nothing in "
            "this one is replaced."
        )
    if int(value.get("format_number", 0)) > NUMBER:
        raise DataError(f"{folder} was written by a newer keypatch. Update keypatch or choose a new folder.")
