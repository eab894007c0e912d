"""A folder that one long command works in: its settings, whether it is finished, and a lock against a second writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features.feature_files import differences
from keypatch.files import LOCK, Format, lock, make_folder, write_json


@dataclass(frozen=True)
class StateFile:
    """The JSON file by which a folder says what it is: `name` in the folder, its format and what the folder then is."""

    name: str
    format: Format
    folder: str  # "a build of keypatch"
    otherwise: str  # what is said of other settings: "was built otherwise"
    remedy: str  # "{folder}" stands for the path
    lock: str = LOCK

    @contextmanager
    def hold(self, folder: Path, settings: Mapping[str, Any]) -> Iterator[bool]:
        """Locks the folder, which is new, empty, or of the same settings; yields whether the work is finished.

        A new folder is removed if an error comes before anything worth keeping.
        """
        was_there = folder.exists()
        content = {entry.name for entry in make_folder(folder).iterdir()} - {self.lock}
        if content and self.name not in content:
            raise DataError(
                f"{folder} is not empty and is not {self.folder}. Choose a new folder, so that none of your files are "
                "overwritten."
            )
        state: dict[str, Any] = {"settings": settings, "finished": False}
        if content:
            state = self.format.read_json(folder / self.name)
        if changed := differences(state["settings"], settings):
            raise KeypatchError(f"{folder} {self.otherwise}: {changed}. {self.remedy.format(folder=folder)}")
        with lock(folder / self.lock, str(folder)):
            try:
                if not content:
                    self._write(folder, settings, finished=False)
                yield bool(state["finished"])
            except Exception as error:
                left = {entry.name for entry in folder.iterdir()} - {self.lock, self.name}
                if not isinstance(error, Interrupted) and not content and not left:
                    (folder / self.name).unlink()
                raise
            finally:
                with suppress(OSError):  # Windows does not remove what is open, and the lock stays there
                    (folder / self.lock).unlink()
                    if not was_there:
                        folder.rmdir()  # only if it is empty

    def finish(self, folder: Path, settings: Mapping[str, Any], **more: Any) -> None:
        self._write(folder, settings, finished=True, **more)

    def _write(self, folder: Path, settings: Mapping[str, Any], **more: Any) -> None:
        write_json(folder / self.name, {**self.format.head(), **more, "settings": dict(settings)})
