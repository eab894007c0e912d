"""Ctrl-C in a command that can go on later: one sentence says what is kept, also before its work has begun."""

import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

from keypatch.errors import Interrupted

NOTHING = "Stopped; nothing was written. The same command begins again."


def telling(kept: Callable[..., str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command whose function stops with a sentence of its own once it works; else `kept(**options)` is it.

    Only the standard library is needed for that: the imports of the others are what was interrupted.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def stoppable(**options: Any) -> None:
            try:
                command(**options)
            except KeyboardInterrupt as stop:
                raise Interrupted(kept(**options)) from stop

        return stoppable

    return decorate


def kept_in_out(out: Path, **_: object) -> str:
    """Of commands that take up what is in `--out`."""
    return f"Stopped; {out} keeps what it has, and the same command goes on." if out.exists() else NOTHING


def kept_of_matches(features: Path | None, out: Path | None, **_: object) -> str:
    """Matches of two photos are written at the end, those of many pairs one by one."""
    return NOTHING if features is None or out is None else kept_in_out(out)


def kept_of_a_run(recipe: str, out: Path | None, **_: object) -> str:
    folder = Path("runs") / _name(recipe) if out is None else out
    if not (folder / "recipe.toml").exists():
        return NOTHING
    return f"Stopped; {folder} keeps its last checkpoint. Go on with the same command and --resume."


def _name(recipe: str) -> str:
    """What a recipe is called: the name given, or the one in the file given."""
    with suppress(OSError, ValueError, KeyError):
        return str(tomllib.loads(Path(recipe).read_text(encoding="utf-8"))["name"])
    return recipe
