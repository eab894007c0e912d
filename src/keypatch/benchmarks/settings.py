"""A benchmark's settings: made from `--set path=value`, and listed with their defaults and what they mean."""

import ast
import inspect
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from keypatch.detection import DETECTORS, Detector, make_detector
from keypatch.errors import RecipeError
from keypatch.training.recipe_files import checked
from keypatch.training.settings import apply_settings

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """One line of the list of settings."""

    path: str
    default: str
    about: str


def choose_settings(kind: type[T], settings: Iterable[str]) -> T:
    """The defaults of a benchmark's settings with each "path=value" applied; a wrong one raises RecipeError.

    A detector is chosen by its name, `extraction.detector=orb`, and its own fields follow:
    `extraction.detector.fast_threshold=10`.
    """
    return apply_settings(kind(), settings, {Detector: _detector})


def list_settings(kind: type[Any]) -> list[Setting]:
    """Every field, those of parts by their paths; what it means is the comment at its line."""
    return list(_list_fields(kind(), ""))


def _list_fields(part: Any, prefix: str) -> Iterator[Setting]:
    hints, comments = get_type_hints(type(part)), _comments(type(part))
    for field in fields(part):
        path, value, about = f"{prefix}{field.name}", getattr(part, field.name), comments.get(field.name, "")
        if hints[field.name] is Detector:
            yield Setting(path, value.name, about or f"one of {', '.join(DETECTORS)}")
        elif is_dataclass(value):
            yield from _list_fields(value, f"{path}.")
        else:
            yield Setting(path, _shown(value), "; ".join(filter(None, [about, _choices(hints[field.name])])))


def _choices(hint: Any) -> str:
    """ "one of a, b" where the annotation names the values."""
    options = [hint, *get_args(hint)]
    words = [str(word) for option in options if get_origin(option) is Literal for word in get_args(option)]
    return f"one of {', '.join(words)}" if words else ""


def _shown(value: Any) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _comments(kind: type[Any]) -> dict[str, str]:
    """The comment at the line of each field, or in the lines above it."""
    source = inspect.getsource(kind)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    by_line = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (body,) = ast.parse(source).body
    comments, above = {}, 0  # the line that the field above ends in
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            end = node.end_lineno or node.lineno
            places = range(node.lineno, end + 1), range(above + 1, node.lineno)
            at, before = (" ".join(by_line[line] for line in lines if line in by_line) for lines in places)
            comments[node.target.id] = (at or before).replace("None", "none")  # as it is written after --set
            above = end
    return comments


def _detector(value: Any, where: str) -> Detector:
    """From "orb" or from {type = "keynet", weights = "keynet.safetensors"}."""
    given = {"type": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else {}
    name = given.pop("type", None)
    if name not in DETECTORS:
        raise RecipeError(f"{where}: expected the name of a detector, one of {', '.join(DETECTORS)}.")
    missing = [field.name for field in fields(DETECTORS[name]) if _is_required(field) and field.name not in given]
    if missing:
        path = where.removeprefix("--set ").partition("=")[0]
        raise RecipeError(f'{where}: write --set \'{path}={{type="{name}", {missing[0]}="FILE"}}\'.')
    hints = get_type_hints(DETECTORS[name])
    return make_detector(
        name, **{field: _field(item, hints.get(field, Any), f"{where}: {field}") for field, item in given.items()}
    )


def _field(value: Any, hint: Any, where: str) -> Any:
    if hint is Path and isinstance(value, str):
        return Path(value).expanduser()
    return value if hint is Any else checked(value, hint, where)


def _is_required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING
