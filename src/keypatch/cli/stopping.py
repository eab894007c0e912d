"""Ctrl-C in a command that can go on later: one sentence says what is kept, also before its work has begun."""

import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

from keypatch.errors import Interrupted

NOTHING = "Stopped; nothing was written. The same command begins again."


def telling(command: Callable[..., None]) -> Callable[..., None]:
    """A command of `KEPT`, whose function stops with a sentence of its own once it works; else that of `KEPT` is it.

    Only the standard library is needed for that: the imports of the others are what was interrupted.
    """

    kept = KEPT[command.__name__]

    @wraps(command)
    def stoppable(**options: Any) -> None:
        try:
            command(**options)
        except KeyboardInterrupt as stop:
            raise Interrupted(kept(**options)) from stop

    return stoppable


def kept_in_out(out: Path, **_: object) -> str:
    """Of commands that take up what is in `--out`."""
    return f"Stopped; {out} keeps what it has, and the same command goes on." if out.exists() else NOTHING


def kept_of_matches(features: Path | None, out: Path | None, draw: Path | None, **_: object) -> str:
    """Those of two photos are written at the end, a whole table and then a picture, those of many pairs one by one."""
    if features is not None:
        return NOTHING if out is None else kept_in_out(out)
    there = [str(path) for path in (out, draw) if path is not None and path.exists()]
    return f"Stopped; kept: {', '.join(there)}. The same command begins again." if there else NOTHING


def kept_of_a_run(recipe: str, out: Path | None, settings: Sequence[str] | None, **_: object) -> str:
    folder = Path("runs") / _name(recipe, settings or ()) if out is None else out
    if not (folder / "recipe.toml").exists():
        return NOTHING
    return f"Stopped; {folder} keeps what it has. Go on with the same command and --resume."


def _name(recipe: str, settings: Sequence[str]) -> str:
    """What a recipe is called: the name given, or the one in the file given, unless a setting replaces it."""
    for setting in reversed(settings):
        path, _, text = setting.partition("=")
        if path.strip() == "name":
            return text.strip().strip("\"'")
    with suppress(OSError, ValueError, KeyError):
        return str(tomllib.loads(Path(recipe).read_text(encoding="utf-8"))["name"])
    return recipe


KEPT: dict[str, Callable[..., str]] = {  # by command: the sentence, from its options
    "describe": kept_in_out,
    "match": kept_of_matches,
    "reconstruct": kept_in_out,
    "train": kept_of_a_run,
}
