"""A plan: what a table or figure of a paper shows, which recipes make its rows, and what is printed there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from keypatch.recipes import RECIPES
from keypatch.reports.published import PublishedFigure, published_in
from keypatch.settings import apply_settings
from keypatch.training import Recipe
from keypatch.training.recipe import TYPES

# How a plan is made. "function": from the functions of `losses` alone. The others train their rows. Then: the six
# splits of PhotoTour, scores in a table, points of a sweep, bars of the parts of a score, scores along the run, curves
# of the test lists, or what the name says.
Form = Literal[
    "function",
    "splits",
    "scores",
    "sweep",
    "bars",
    "run",
    "roc",
    "pr",
    "similarity",
    "angles",
    "statistics",
    "gradients",
    "models",
    "poses",
    "matches",
    "images",
]

# Scores by the first words of their names in result files.
PAIRS = ("fpr95",)
STRIPS = ("verification.ap", "matching.map", "retrieval.map")

_ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4", "V": "5"}

OF_OTHERS = "a network of others, without a recipe here"


@dataclass(frozen=True)
class Row:
    """A row of a table, a point or a curve of a figure: trained by a recipe, a describer made by hand, or not run."""

    label: str  # the paper's
    recipe: Recipe | None = None
    describer: str = ""  # "sift"
    printed: str = ""  # where: "HyNet, Table 3: Hard+FRN"
    why: str = ""  # it is not run
    x: float | None = None  # its place in a sweep
    series: str = ""  # its curve in a sweep

    @property
    def key(self) -> str:
        """A name for its files: the recipe's where nothing in it is changed."""
        assert self.recipe is not None
        own = self.recipe.name
        return own if RECIPES.get(own) == self.recipe else f"{own}-{slug(self.label)}"

    @cached_property
    def figures(self) -> tuple[PublishedFigure, ...]:
        """What is printed for it."""
        source, _, method = self.printed.partition(": ")
        return tuple(published_in(source, method))


@dataclass(frozen=True)
class Plan:
    """A table or figure."""

    paper: str
    place: str  # "Table 3", "Figure 5(a)"
    title: str
    form: Form
    metric: str  # the paper's, in words
    rows: tuple[Row, ...] = ()
    varied: str = ""
    scores: tuple[str, ...] = ()  # the paper's, by the first words of their names
    axis: str = ""  # the x axis of a sweep
    log: bool = False  # that axis
    ticks: tuple[str, ...] = ()  # its places 0, 1, 2, ... by name
    best: int = 0  # the paper's figures are means of so many best moments of a run, chosen on the test sets
    each: bool = False  # trained on each training set by itself
    mean: bool = False  # its values are means over the test sets
    split: tuple[str, str] | None = None  # of PhotoTour's six the one that it shows: trained on, tested on
    lines: Mapping[str, str] | None = None  # printed values that the figure shows as lines, by what they are of
    says: tuple[str, ...] = ()  # what the text prints about it
    notes: tuple[str, ...] = ()  # what is ours

    @property
    def name(self) -> str:
        """ "hynet-table-3", "adasample-fig-2a"."""
        kind, _, number = self.place.replace("Figure", "fig").replace("(", "").replace(")", "").partition(" ")
        return slug(f"{self.paper} {kind} {_ROMAN.get(number, number)}")

    @property
    def trained(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.recipe is not None)

    @property
    def averages(self) -> bool:
        """Whether one value stands for all test sets."""
        return self.each or self.mean

    @property
    def varies_batch(self) -> bool:
        """Whether batches differ from those of the recipes, so that one for all rows would change what is shown."""
        recipes = [row.recipe for row in self.trained if row.recipe]
        return any(recipe.sampler.pairs != RECIPES[recipe.name].sampler.pairs for recipe in recipes)

    @property
    def needs(self) -> str:
        """What has to be given, in a few words."""
        runs = f"{len(self.trained)} training{'s' * (len(self.trained) > 1)}" + (" per set" if self.each else "")
        if self.form == "function":
            return "nothing"
        if self.form == "angles":
            return f"nothing, or {runs}"
        where = {"models": "photos (--scenes)", "poses": "scenes (--poses)", "matches": "photos (--planes)"}
        tested = where.get(self.form) or ("strips (--hpatches)" if self.scores and self.scores[0] in STRIPS else "")
        return f"{runs}, {tested}" if tested else runs

    @property
    def source(self) -> str:
        return f"{self.paper}, {self.place}"


def changed(recipe: Recipe, *settings: str) -> Recipe:
    """The recipe with fields replaced by their paths, as `--set` does."""
    return apply_settings(recipe, settings, TYPES)


def not_run(labels: Iterable[str], why: str, source: str) -> tuple[Row, ...]:
    """Rows that show what is printed, and why there is nothing beside it."""
    return tuple(Row(label, why=why, printed=f"{source}: {label}") for label in labels)


def slug(text: str) -> str:
    """A text as a part of a file name: "AdaSample+*" is adasample-plus-star."""
    spelled = text.lower().replace("+", " plus ").replace("*", " star ").replace("&", " and ")
    return re.sub(r"[^a-z0-9.]+", "-", spelled).strip("-")
