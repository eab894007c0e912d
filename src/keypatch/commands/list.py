"""The names that commands and recipe files take, each with a line that says what it is."""

import dataclasses
import inspect
from dataclasses import dataclass

from keypatch.errors import KeypatchError
from keypatch.parts import TABLES, find_part, load_installed
from keypatch.settings import choose_from, did_you_mean

_TYPES = {  # kinds of parts that are types
    "networks": "network",
    "losses": "loss",
    "mining": "mining",
    "measures": "measure",
    "weightings": "weighting",
    "samplers": "sampler",
    "optimizers": "optimizer",
    "schedules": "schedule",
    "detectors": "detector",
}
KINDS = ("descriptors", "recipes", *_TYPES, "benchmarks")


@dataclass(frozen=True)
class Name:
    name: str
    about: str
    paper: str = ""  # of a recipe


def list_names(kind: str | None = None) -> dict[str, tuple[Name, ...]]:
    """Names by kind, for all kinds or one of `KINDS`; recipes are listed by paper.

    >>> [each.name for each in kp.list_names("descriptors")["descriptors"]][:2]
    ['sift', 'rootsift']
    """
    if kind is not None and kind not in KINDS:
        raise KeypatchError(f'There is no list of "{kind}".{choose_from(kind, KINDS)}')
    load_installed()
    return {each: _names(each) for each in KINDS if kind in (None, each)}


def recipe_text(name: str) -> str:
    """A recipe by its name, or from a recipe.toml, with every field, as it would stand in a recipe.toml."""
    from keypatch.benchmarks.table import BENCHMARKS
    from keypatch.recipes import RECIPES, find_recipe
    from keypatch.training.recipe_files import recipe_to_toml
    from keypatch.zoo import names

    known = find_part(RECIPES, name)
    if known is None and name in {card.name for card in names()}:
        raise KeypatchError(f'"{name}" is a descriptor, not a recipe; `keypatch inspect {name}` shows it.')
    for kind in _TYPES.values():
        if known is None and name in TABLES[kind]:
            settings = ", ".join(field.name for field in dataclasses.fields(TABLES[kind][name]))
            raise KeypatchError(f'"{name}" is a {kind}, not a recipe or benchmark. Its settings: {settings}.')
    if known is None and not name.endswith(".toml"):
        raise KeypatchError(
            f'There is no list, recipe or benchmark "{name}".{did_you_mean(name, [*KINDS, *RECIPES, *BENCHMARKS])} '
            f"The lists are {', '.join(KINDS)}; `keypatch list recipes` names the recipes."
        )
    return recipe_to_toml(find_recipe(name))


def _names(kind: str) -> tuple[Name, ...]:
    """A type is told by the first paragraph of its docstring."""
    if kind == "descriptors":
        from keypatch.zoo import names

        return tuple(Name(card.name, card.about) for card in names())
    if kind == "benchmarks":
        from keypatch.benchmarks.table import BENCHMARKS

        return tuple(Name(name, benchmark.line) for name, benchmark in BENCHMARKS.items())

    import keypatch.detection  # noqa: F401  (fills the table of detectors)
    from keypatch.recipes import PAPERS, RECIPES  # and these the others

    if kind == "recipes":
        ours = [Name(each.name, about, paper) for paper, group in PAPERS.items() for each, about in group]
        own = [name for name in RECIPES if name not in {each.name for each in ours}]
        return (*ours, *(Name(name, "registered by you or a plugin", "Your own") for name in own))
    docs = {name: inspect.getdoc(each) or "" for name, each in TABLES[_TYPES[kind]].items()}
    return tuple(Name(name, " ".join(doc.split("\n\n")[0].split())) for name, doc in docs.items())
