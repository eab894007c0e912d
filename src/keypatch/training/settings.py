"""`--set path=value`: one field of a recipe, or of a benchmark's settings, replaced by its path."""

import dataclasses
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from keypatch.errors import RecipeError
from keypatch.training.recipe_files import checked, no_field

T = TypeVar("T")
Makers = Mapping[Any, Callable[[Any, str], Any]]  # by a field's annotation: from a plain value and where it stands


def apply_settings(whole: T, settings: Iterable[str], makers: Makers | None = None) -> T:
    """The frozen dataclass with each "path=value" applied in turn.

    A path goes through the fields: `network.dropout`. Among the loss terms, the one that has the field is meant
    (`loss.margin`); where several have it, name it by type or place (`loss.HybridTriplet.margin`, `loss.0.margin`).
    A part whose type can vary is exchanged by its type's name: `optimizer=AdamW`; `makers` are for types that recipes
    do not know.
    """
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            fields = ", ".join(f.name for f in dataclasses.fields(whole))  # type: ignore[arg-type]
            raise RecipeError(f"--set {setting}: expected path=value, where the path begins with one of {fields}.")
        where = f"--set {setting}"
        replaced: T = _replace(whole, path.strip().split("."), _value(text.strip()), where, makers or {})
        whole = replaced
    return whole


def _value(text: str) -> Any:
    """The value as TOML would read it; what TOML cannot read is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _one_literal(hint: Any) -> Any:
    """Literal["a"] | Literal["b"] as Literal["a", "b"], so that an error names all the words."""
    options = get_args(hint)
    if options and all(get_origin(option) is Literal for option in options):
        return Literal[tuple(word for option in options for word in get_args(option))]
    return hint


def _replace(part: Any, path: list[str], value: Any, where: str, makers: Makers) -> Any:
    name, rest = path[0], path[1:]
    if isinstance(part, tuple) and all(map(dataclasses.is_dataclass, part)):
        return _replace_term(part, path, value, where, makers)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        raise RecipeError(f'{where}: there is nothing below "{part}".')
    if name not in [f.name for f in dataclasses.fields(part)]:
        raise RecipeError(f"{where}: {no_field(type(part), name)}")
    hint = _one_literal(get_type_hints(type(part))[name])
    if rest:
        new = _replace(getattr(part, name), rest, value, where, makers)
    else:
        new = makers[hint](value, where) if hint in makers else checked(value, hint, where)
    return dataclasses.replace(part, **{name: new})


def _replace_term(terms: tuple[Any, ...], path: list[str], value: Any, where: str, makers: Makers) -> tuple[Any, ...]:
    name = path[0]
    matching = [i for i, term in enumerate(terms) if name in (str(i), type(term).__name__)]
    rest = path[1:] if matching else path
    if not matching:
        matching = [i for i, term in enumerate(terms) if name in [f.name for f in dataclasses.fields(term)]]
    if len(matching) != 1 or not rest:
        known = "; ".join(f"{type(t).__name__} ({', '.join(f.name for f in dataclasses.fields(t))})" for t in terms)
        what = "several loss terms have" if len(matching) > 1 else "no loss term has"
        raise RecipeError(f'{where}: {what} "{name}". The terms and their fields: {known}.')
    new = list(terms)
    new[matching[0]] = _replace(terms[matching[0]], rest, value, where, makers)
    return tuple(new)
