"""Recipes as TOML text and back; what a file may say is what the dataclasses' annotations say."""

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from keypatch.errors import RecipeError
from keypatch.files import write_text
from keypatch.training.recipe import TYPES, Recipe

FORMAT = 1


def recipe_to_toml(recipe: Recipe) -> str:
    """The whole recipe, every default written out."""
    lines = [f"format = {FORMAT}", *_table_lines(_plain(recipe), "")]
    return "\n".join(lines) + "\n"


def recipe_from_toml(text: str, where: str = "recipe.toml") -> Recipe:
    """Raises RecipeError that names the file and the field."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{where}: not a TOML file ({error}).") from error
    number = values.pop("format", FORMAT)
    if not isinstance(number, int) or number > FORMAT:
        raise RecipeError(
            f"{where}: recipe format {number} is newer than this keypatch reads ({FORMAT}); update keypatch."
        )
    recipe = build(Recipe, values, where)
    if not isinstance(recipe, Recipe):
        raise RecipeError(f"{where}: not a recipe.")
    return recipe


def read_recipe(path: Path) -> Recipe:
    try:
        return recipe_from_toml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read as a recipe ({error}).") from error


def write_recipe(path: Path, recipe: Recipe) -> None:
    write_text(path, recipe_to_toml(recipe))


def build(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    """A dataclass of type `kind` from plain values, each checked against its annotation."""
    hints = get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    for name in values:
        if name not in known:
            raise RecipeError(f"{where}: {no_field(kind, name)}")
    arguments = {name: checked(value, hints[name], f"{where}: {name}") for name, value in values.items()}
    try:
        return kind(**arguments)
    except TypeError as error:
        raise RecipeError(f"{where}: {error}.") from error


def named(table: Mapping[str, Any], value: Any, where: str) -> Any:
    """A part of a recipe whose type is named: {"type": "Adam", "lr": 0.01}, or "Adam" alone for its defaults."""
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise RecipeError(f"{where}: expected a table with type = one of {', '.join(table)}.")
    fields = {name: item for name, item in value.items() if name != "type"}
    if value["type"] not in table:
        raise RecipeError(f'{where}: there is no type "{value["type"]}"; known are {", ".join(table)}.')
    return build(table[value["type"]], fields, where)


def checked(value: Any, hint: Any, where: str) -> Any:
    """`value` as the annotation `hint` wants it, or RecipeError."""
    if hint in TYPES:
        return named(TYPES[hint], value, where)
    origin = get_origin(hint)
    if origin is Literal:
        if value in get_args(hint):
            return value
        raise RecipeError(f"{where} must be one of {', '.join(map(str, get_args(hint)))}, not {value!r}.")
    if origin in (Union, UnionType) and type(None) in get_args(hint):
        if value in (None, "none"):
            return None
        (hint,) = (option for option in get_args(hint) if option is not type(None))
        return checked(value, hint, where)
    if origin in (Union, UnionType):
        for option in get_args(hint):
            try:
                return checked(value, option, where)
            except RecipeError:
                continue
        raise RecipeError(f"{where}: {value!r} does not fit.")
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(checked(item, get_args(hint)[0], where) for item in items)
    if dataclasses.is_dataclass(hint):
        if isinstance(value, Mapping):
            return build(hint, value, where)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif hint is type(None) and value is None:
        return None
    elif isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    raise RecipeError(f"{where} must be a {'finite ' if hint is float else ''}{name}, not {value!r}.")


def no_field(kind: Any, name: str) -> str:
    known = [f.name for f in dataclasses.fields(kind)]
    near = difflib.get_close_matches(name, known, 1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    return f'{kind.__name__} has no field "{name}". Its fields: {", ".join(known)}.{hint}'


def _plain(value: Any) -> Any:
    """Dataclasses as mappings; a part whose type can vary carries its type's name."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return [_plain(item) for item in value] if isinstance(value, tuple) else value
    typed = any(type(value) in table.values() for table in TYPES.values())
    fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return {"type": type(value).__name__, **fields} if typed else fields


def _table_lines(table: Mapping[str, Any], prefix: str) -> Iterable[str]:
    """TOML lines: scalars first, then sub-tables, as the format requires."""
    for name, value in table.items():
        if not isinstance(value, Mapping) and not _is_table_list(value) and value is not None:
            yield f"{name} = {_scalar(value)}"
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from ("", f"[{prefix}{name}]", *_table_lines(value, f"{prefix}{name}."))
        elif _is_table_list(value):
            for item in value:
                yield from ("", f"[[{prefix}{name}]]", *_table_lines(item, f"{prefix}{name}."))


def _is_table_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_scalar(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # strings, integers and finite floats are written alike in TOML
