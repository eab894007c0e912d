"""What papers print: figures of theirs, never measured here, all of them in published.csv."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from keypatch.reports.protocols import Protocol

_MEAN = "mean of all sets"  # stands for the data of a mean over all sets; without a number where the paper prints none
_SPLIT = 40  # test sequences of the splits a, b and c
_TEN_BEST = "ten best epochs"  # SDGMNet's Table V: a mean over epochs chosen on the test sets


@dataclass(frozen=True)
class PublishedFigure:
    """One figure of a paper and the table that prints it; shares are in %, lengths in pixels, angles in radians."""

    benchmark: str
    data: str
    score: str
    method: str
    trained_on: str  # "" for what is not trained
    value: str
    # By which it differs from the usual protocol: "unclear" is GOR's table, whose definition of FPR95 is not known for
    # every row; "no ratio test" and "ratio test not stated" are models from matches; or the ten best epochs.
    rule: str
    source: str
    recipe: str  # the recipe of this method, beside its mean
    note: str

    @property
    def name(self) -> str:
        """What a descriptor of this method is called: sift, hynet-liberty."""
        return "-".join(part for part in (self.method.lower(), self.trained_on) if part)


@dataclass(frozen=True)
class PublishedRow:
    """A method in a paper's table of PhotoTour, FPR95 in %.

    Six values in the order of the papers' columns, or one for each test set; the mean as printed, or ours.
    """

    method: str
    source: str
    values: tuple[float, ...]
    mean: float
    recipe: str
    note: str

    @property
    def citation(self) -> str:
        return f"{self.method} in {self.source}" + (f"; {self.note}" if self.note else "")


@cache
def published_figures() -> tuple[PublishedFigure, ...]:
    """All of them: what several papers print alike stands once, of the one that is named first."""
    text = files("keypatch.reports").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(PublishedFigure(**row) for row in csv.DictReader(text.splitlines()))


def published_for(protocol: Protocol) -> list[PublishedFigure]:
    """The figures for the same score of the same benchmark on the same data, by its name."""
    if protocol.settings.get("rule") == "discovery":  # FPR95 as a share of the accepted pairs: another score
        return []
    wanted = (protocol.benchmark, _data(protocol), _rule(protocol))
    scores = {name for entry in protocol.entries for name in entry.result.scores}
    return [
        each
        for each in published_figures()
        if (each.benchmark, each.data, each.rule) == wanted and each.score in scores
    ]


def published_in(source: str, method: str) -> list[PublishedFigure]:
    """The figures of a method in one table of a paper: "HyNet, Table 3"."""
    return [each for each in published_figures() if (each.source, each.method) == (source, method)]


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """The rows of the papers' tables of PhotoTour, a row for each method of each paper."""
    rows: dict[tuple[str, str], list[PublishedFigure]] = {}
    for each in published_figures():
        if each.benchmark == "ubc" and each.rule != _TEN_BEST:
            rows.setdefault((each.method, each.source), []).append(each)
    return tuple(_row(figures) for figures in rows.values())


@cache
def published_recipes() -> Mapping[str, PublishedRow]:
    """What papers print for methods that are recipes here, the best first."""
    return {row.recipe: row for row in sorted(published_rows(), key=lambda row: row.mean) if row.recipe}


def _row(figures: list[PublishedFigure]) -> PublishedRow:
    first = figures[0]
    values = tuple(float(each.value) for each in figures if each.data != _MEAN)
    [mean] = [each for each in figures if each.data == _MEAN]
    if mean.value:
        return PublishedRow(first.method, first.source, values, float(mean.value), mean.recipe, mean.note)
    ours = round(float(np.mean(values)), 2)
    return PublishedRow(first.method, f"{first.source}; our mean", values, ours, mean.recipe, mean.note)


def _rule(protocol: Protocol) -> str:
    without_ratio = protocol.benchmark == "sfm" and protocol.settings.get("ratio") is None
    return "no ratio test" if without_ratio else ""


def _data(protocol: Protocol) -> str:
    """What papers call the data: the name of the set, or the split of HPatches if it is whole and not whitened."""
    settings = protocol.settings
    if protocol.benchmark != "hpatches":
        return str(settings.get("data", "")).lower()
    whole = isinstance(settings.get("sequences"), list) and len(settings["sequences"]) == _SPLIT
    return f"split {settings.get('split')}" if whole and not settings.get("pca") else ""
