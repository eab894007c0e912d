"""The names that commands and recipe files take, each with a line that says what it is."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keypatch.errors import KeypatchError


@dataclass(frozen=True)
class Name:
    name: str
    about: str


def list_names(kind: str | None = None) -> dict[str, tuple[Name, ...]]:
    """Names by kind, of all kinds or of one: descriptors, recipes, networks, losses, benchmarks."""
    if kind is not None and kind not in KINDS:
        raise KeypatchError(f'There is no list of "{kind}". Choose one of {", ".join(KINDS)}.')
    return {each: KINDS[each]() for each in KINDS if kind in (None, each)}


def _descriptors() -> tuple[Name, ...]:
    from keypatch.zoo import names

    return tuple(Name(card.name, card.about) for card in names())


def _recipes() -> tuple[Name, ...]:
    from keypatch.recipes import RECIPES

    return tuple(
        Name(
            recipe.name,
            f"{type(recipe.network).__name__} with {' + '.join(type(term).__name__ for term in recipe.loss)}, "
            f"{recipe.sampler.pairs} pairs a batch, {type(recipe.optimizer).__name__} at {recipe.optimizer.lr:g}",
        )
        for recipe in RECIPES.values()
    )


def _networks() -> tuple[Name, ...]:
    from keypatch.networks import NETWORKS

    return _types(NETWORKS)


def _losses() -> tuple[Name, ...]:
    from keypatch.losses import TERMS

    return _types(TERMS)


def _benchmarks() -> tuple[Name, ...]:
    from keypatch.benchmarks.evaluating import BENCHMARKS

    return tuple(Name(name, about) for name, about in BENCHMARKS.items())


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
