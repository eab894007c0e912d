"""The files of a run: recipe.toml, log.jsonl, checkpoints/, card.json, and the lock that keeps others out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from keypatch.errors import DataError, KeypatchError
from keypatch.files import lock, reason, write_json, write_text
from keypatch.training.checkpoints import (
    KEPT,
    Checkpoint,
    checkpoint_path,
    find_checkpoints,
    load_checkpoint,
    milestone_path,
    newest_checkpoint,
    save_checkpoint,
)
from keypatch.training.progress import Record
from keypatch.training.recipe import Recipe
from keypatch.training.recipe_files import read_recipe, write_recipe


class RunFolder:
    """A folder that one training writes; made by `hold`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def hold(cls, path: Path) -> Iterator["RunFolder"]:
        """The run folder, made where missing, for one writer at a time."""
        try:
            (path / "checkpoints").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KeypatchError(f"{path}: the run folder cannot be made: {reason(error)}.") from error
        with lock(path / ".lock", f"The run {path}"):
            yield cls(path)

    def start(self, recipe: Recipe) -> None:
        """A new run; refuses a folder that already has one."""
        if (self.path / "recipe.toml").exists():
            raise KeypatchError(
                f"{self.path} already holds a run. Pass --resume to go on with it, or another folder with --out."
            )
        write_recipe(self.path / "recipe.toml", recipe)

    def resume(self, recipe: Recipe) -> Checkpoint | None:
        """The newest readable checkpoint; None where the run was ended before its first one."""
        if not (self.path / "recipe.toml").exists():
            raise DataError(f"{self.path} holds no run to resume. Start it without --resume.")
        if read_recipe(self.path / "recipe.toml") != recipe:
            raise KeypatchError(
                f"{self.path} was started with another recipe, and going on with this one would be neither. "
                f"Its own is {self.path / 'recipe.toml'}; start a new run with --from to use its weights."
            )
        newest = newest_checkpoint(self.path)
        checkpoint = load_checkpoint(newest) if newest else None
        self._cut_log(checkpoint.step if checkpoint else 0)
        return checkpoint

    def save(self, checkpoint: Checkpoint) -> None:
        save_checkpoint(checkpoint_path(self.path, checkpoint.step), checkpoint)
        for old in find_checkpoints(self.path)[:-KEPT]:
            old.unlink(missing_ok=True)

    def keep(self, checkpoint: Checkpoint, share: float) -> None:
        """The weights as they are now, to be scored later; a run does not go on from them."""
        bare = replace(checkpoint, optimizer={}, sampler_state={})
        save_checkpoint(milestone_path(self.path, share), bare)

    def log(self, record: Record) -> None:
        try:
            with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record.to_json()) + "\n")
        except OSError as error:
            raise KeypatchError(f"{self.path / 'log.jsonl'} cannot be written: {reason(error)}.") from error

    def write_card(self, card: dict[str, Any]) -> None:
        write_json(self.path / "card.json", card)

    def _cut_log(self, step: int) -> None:
        """Drop what was logged after the checkpoint: it is done again."""
        path = self.path / "log.jsonl"
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError, TypeError):
                continue  # a line cut off when the process was killed
        write_text(path, "".join(kept))
