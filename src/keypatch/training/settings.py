"""`--set path=value`: one field of a recipe replaced by its path."""

import dataclasses
import tomllib
from collections.abc import Iterable
from typing import Any, get_type_hints

from keypatch.errors import RecipeError
from keypatch.training.recipe import Recipe
from keypatch.training.recipe_files import checked, no_field


def apply_settings(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """The recipe with each "path=value" applied in turn.

    A path goes through the fields: `network.dropout`. Among the loss terms, the one that has the field is meant
    (`loss.margin`); where several have it, name it by type or place (`loss.HybridTriplet.margin`, `loss.0.margin`).
    A part whose type can vary is exchanged by its type's name: `optimizer=AdamW`.
    """
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise RecipeError(f'--set {setting}: expected path=value, for example "loss.margin=1.0".')
        replaced = _replace(recipe, path.strip().split("."), _value(text.strip()), f"--set {setting}")
        assert isinstance(replaced, Recipe)
        recipe = replaced
    return recipe


def _value(text: str) -> Any:
    """The value as TOML would read it; what TOML cannot read is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _replace(part: Any, path: list[str], value: Any, where: str) -> Any:
    name, rest = path[0], path[1:]
    if isinstance(part, tuple):
        return _replace_term(part, path, value, where)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        raise RecipeError(f'{where}: there is nothing below "{part}".')
    if name not in [f.name for f in dataclasses.fields(part)]:
        raise RecipeError(f"{where}: {no_field(type(part), name)}")
    if rest:
        new = _replace(getattr(part, name), rest, value, where)
    else:
        new = checked(value, get_type_hints(type(part))[name], where)
    return dataclasses.replace(part, **{name: new})


def _replace_term(terms: tuple[Any, ...], path: list[str], value: Any, where: str) -> tuple[Any, ...]:
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
    new[matching[0]] = _replace(terms[matching[0]], rest, value, where)
    return tuple(new)
