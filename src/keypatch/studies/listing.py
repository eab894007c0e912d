"""The names that commands and recipe files take, each with a line that says what it is."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from keypatch.errors import KeypatchError


@dataclass(frozen=True)
class Name:
    name: str
    about: str
    paper: str = ""  # of a recipe


def list_names(kind: str | None = None) -> dict[str, tuple[Name, ...]]:
    """Names by kind, of all kinds or of one: descriptors, recipes (by paper), networks, losses, benchmarks."""
    if kind is not None and kind not in KINDS:
        raise KeypatchError(f'There is no list of "{kind}". Choose one of {", ".join(KINDS)}.')
    return {each: KINDS[each]() for each in KINDS if kind in (None, each)}


def recipe_text(name: str) -> str:
    """A recipe by its name, or from a recipe.toml, with every field, as it would stand in a recipe.toml."""
    from keypatch.benchmarks.table import BENCHMARKS
    from keypatch.recipes import RECIPES, find_recipe
    from keypatch.training.recipe_files import recipe_to_toml
    from keypatch.zoo import names

    if name not in RECIPES and name in {card.name for card in names()}:
        raise KeypatchError(f'"{name}" is a descriptor, not a recipe: `keypatch inspect {name}` tells what it is.')
    if name not in RECIPES and not name.endswith(".toml"):
        close = get_close_matches(name, [*KINDS, *RECIPES, *BENCHMARKS], n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise KeypatchError(
            f'There is neither a list nor a recipe "{name}".{hint} '
            f"The lists are {', '.join(KINDS)}; `keypatch list recipes` names the recipes."
        )
    return recipe_to_toml(find_recipe(name))


def _descriptors() -> tuple[Name, ...]:
    from keypatch.zoo import names

    return tuple(Name(card.name, card.about) for card in names())


def _recipes() -> tuple[Name, ...]:
    from keypatch.recipes import PAPERS

    return tuple(Name(recipe.name, about, paper) for paper, recipes in PAPERS.items() for recipe, about in recipes)


def _networks() -> tuple[Name, ...]:
    from keypatch.networks import NETWORKS

    return _types(NETWORKS)


def _losses() -> tuple[Name, ...]:
    from keypatch.losses import TERMS

    return _types(TERMS)


def _benchmarks() -> tuple[Name, ...]:
    from keypatch.benchmarks.table import BENCHMARKS

    return tuple(Name(name, benchmark.line) for name, benchmark in BENCHMARKS.items())


def _types(table: Mapping[str, type]) -> tuple[Name, ...]:
    """Every type of a table with the first paragraph of its docstring."""
    docs = {name: inspect.getdoc(kind) or "" for name, kind in table.items()}
    return tuple(Name(name, " ".join(doc.split("\n\n")[0].split())) for name, doc in docs.items())


KINDS: dict[str, Callable[[], tuple[Name, ...]]] = {
    "descriptors": _descriptors,
    "recipes": _recipes,
    "networks": _networks,
    "losses": _losses,
    "benchmarks": _benchmarks,
}
