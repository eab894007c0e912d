"""The names that commands and recipe files take, each with a line that says what it is."""

import dataclasses
import inspect
from dataclasses import dataclass

from keypatch.errors import KeypatchError
from keypatch.settings import choose_from, did_you_mean

KINDS = ("descriptors", "recipes", "networks", "losses", "detectors", "benchmarks")


@dataclass(frozen=True)
class Name:
    name: str
    about: str
    paper: str = ""  # of a recipe


def list_names(kind: str | None = None) -> dict[str, tuple[Name, ...]]:
    """Names by kind, of all kinds or of one (`KINDS`); recipes are listed by paper.

    >>> [each.name for each in kp.list_names("descriptors")["descriptors"]][:2]
    ['sift', 'rootsift']
    """
    if kind is not None and kind not in KINDS:
        raise KeypatchError(f'There is no list of "{kind}".{choose_from(kind, KINDS)}')
    return {each: _names(each) for each in KINDS if kind in (None, each)}


def recipe_text(name: str) -> str:
    """A recipe by its name, or from a recipe.toml, with every field, as it would stand in a recipe.toml."""
    from keypatch.benchmarks.table import BENCHMARKS
    from keypatch.detection import DETECTORS
    from keypatch.losses import TERMS
    from keypatch.networks import NETWORKS
    from keypatch.recipes import RECIPES, find_recipe
    from keypatch.training.recipe_files import recipe_to_toml
    from keypatch.zoo import names

    if name not in RECIPES and name in {card.name for card in names()}:
        raise KeypatchError(f'"{name}" is a descriptor, not a recipe; `keypatch inspect {name}` shows it.')
    for kind, table in (("detector", DETECTORS), ("loss", TERMS), ("network", NETWORKS)):
        if name in table:
            settings = ", ".join(field.name for field in dataclasses.fields(table[name]))
            raise KeypatchError(f'"{name}" is a {kind}, not a recipe or benchmark. Its settings: {settings}.')
    if name not in RECIPES and not name.endswith(".toml"):
        raise KeypatchError(
            f'There is no list, recipe or benchmark "{name}".{did_you_mean(name, [*KINDS, *RECIPES, *BENCHMARKS])} '
            f"The lists are {', '.join(KINDS)}; `keypatch list recipes` names the recipes."
        )
    return recipe_to_toml(find_recipe(name))


def _names(kind: str) -> tuple[Name, ...]:
    """Each kind imports what it lists and no more; a type is told by the first paragraph of its docstring."""
    match kind:
        case "descriptors":
            from keypatch.zoo import names

            return tuple(Name(card.name, card.about) for card in names())
        case "recipes":
            from keypatch.recipes import PAPERS

            return tuple(Name(each.name, about, paper) for paper, own in PAPERS.items() for each, about in own)
        case "benchmarks":
            from keypatch.benchmarks.table import BENCHMARKS

            return tuple(Name(name, benchmark.line) for name, benchmark in BENCHMARKS.items())
        case "networks":
            from keypatch.networks import NETWORKS as types
        case "losses":
            from keypatch.losses import TERMS as types
        case _:
            from keypatch.detection import DETECTORS as types
    docs = {name: inspect.getdoc(each) or "" for name, each in types.items()}
    return tuple(Name(name, " ".join(doc.split("\n\n")[0].split())) for name, doc in docs.items())
