"""Parts by their names, a user's own beside ours: what recipes, settings and commands call a loss or a detector.

A part of one's own gets its name by `register`. The module that does so is imported by the user's program, by
`--plugin mine.py`, or, once a name is unknown, from the installed packages that list it under the entry points
`keypatch.plugins`. Nothing else is imported for a name in a file.
"""

import dataclasses
import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from keypatch.errors import KeypatchError, RecipeError

T = TypeVar("T")

GROUP = "keypatch.plugins"
TABLES: dict[str, dict[str, Any]] = {
    kind: {}
    for kind in (
        "network",
        "sampler",
        "loss",
        "mining",
        "measure",
        "weighting",
        "optimizer",
        "schedule",
        "recipe",
        "detector",
        "benchmark",
    )
}
_OURS: dict[str, frozenset[str]] = {}
_PLUGINS: list[Path] = []  # files that were run, for processes that have to know the same parts
_NAMED_BY_FIELD = ("recipe", "detector", "benchmark")  # the others by their class


def table(kind: str, ours: Mapping[str, T]) -> dict[str, T]:
    """The parts of a kind by name, ours first; a part that is registered later joins them."""
    parts = TABLES[kind]
    own = dict(parts)
    parts.clear()
    parts.update(ours)
    _OURS[kind] = frozenset(ours)
    for name, part in own.items():
        _add(kind, name, part)
    return parts


def register(kind: str) -> Callable[[T], T]:
    """Register your own part under its name, so that files, settings and commands accept it like ours.

    kind: network, sampler, loss, mining, measure, weighting, optimizer, schedule or detector, for a frozen dataclass;
        recipe or benchmark, for a value. Detectors, recipes and benchmarks have a field `name`; the others are named
        after their class.

    >>> from dataclasses import dataclass
    >>> @kp.register("loss")
    ... @dataclass(frozen=True)
    ... class PullPositives:
    ...     weight: float = 1.0
    ...     def __call__(self, batch):
    ...         return batch.positive_distances()
    """
    if kind not in TABLES:
        raise RecipeError(f'There is no kind of part "{kind}". Choose one of {", ".join(TABLES)}.')

    def add(part: T) -> T:
        own = part.name if kind in _NAMED_BY_FIELD and hasattr(part, "name") else getattr(part, "__name__", "")
        if not dataclasses.is_dataclass(part) or not isinstance(own, str) or not own:
            raise RecipeError(
                f'{part!r} cannot be registered as a {kind}. Write @keypatch.register("{kind}") above '
                "@dataclass(frozen=True), or call it on a value that has a name."
            )
        _add(kind, own, part)
        return part

    return add


def _add(kind: str, name: str, part: Any) -> None:
    before = TABLES[kind].get(name)
    again = type(before) is type(part) and _origin(before) == _origin(part)  # a cell of a notebook that is run again
    if name in _OURS.get(kind, ()) or (before is not None and not again):
        raise RecipeError(f'There is already a {kind} "{name}". Give yours another name.')
    TABLES[kind][name] = part


def _origin(part: Any) -> tuple[Any, Any]:
    return getattr(part, "__module__", None), getattr(part, "__qualname__", None)


def find_part(parts: Mapping[str, T], name: str) -> T | None:
    """The part of that name, if need be from an installed plugin; None where there is none."""
    if name not in parts:
        load_installed()
    return parts.get(name)


@cache
def load_installed() -> None:
    """Import the plugins of installed packages, once: where a name is unknown, and for lists of all names."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise KeypatchError(
                f"The plugin {point.name} of {package} cannot be loaded ({type(error).__name__}: {error}). "
                "Update or uninstall that package."
            ) from error


def loaded_plugins() -> tuple[str, ...]:
    """The files that `load_plugin` has run here, so that a worker can run them too."""
    return tuple(str(path) for path in _PLUGINS)


def load_plugin(path: Path) -> None:
    """Run a Python file that registers parts; it may import modules beside it."""
    name = f"keypatch_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise KeypatchError(f"--plugin {path}: there is no such Python file. Name a file that ends in .py.")
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        if isinstance(error, KeypatchError):
            raise type(error)(f"--plugin {path}: {error}") from error
        raise KeypatchError(
            f"--plugin {path} cannot be run ({type(error).__name__}: {error}). --debug shows where."
        ) from error
    _PLUGINS.append(path.resolve())
