"""What papers print for the same benchmark on the same set: figures of theirs, never measured here."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from keypatch.reports.protocols import Protocol

MEAN = "mean of all sets"  # stands for the data of a mean that a paper prints
_SPLIT = 40  # test sequences of the splits a, b and c


@dataclass(frozen=True)
class Published:
    """One figure of a paper, in %, and the table that prints it."""

    benchmark: str
    data: str
    score: str
    method: str
    trained_on: str  # "" for what is not trained
    percent: str
    rule: str  # "mixed": GOR's table, where own rows count among accepted pairs and copied ones do not; else ""
    source: str

    @property
    def name(self) -> str:
        """What a descriptor of this method is called: sift, hynet-liberty."""
        return "-".join(part for part in (self.method.lower(), self.trained_on) if part)


@cache
def published_figures() -> tuple[Published, ...]:
    """All of them: what several papers print alike stands once, of the one that is named first."""
    text = files("keypatch.reports").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in csv.DictReader(text.splitlines()))


def published_for(protocol: Protocol) -> list[Published]:
    """The figures that stand for the same score of the same benchmark on the same data, by its name."""
    if protocol.settings.get("rule") == "discovery":  # FPR95 as a share of the accepted pairs: another score
        return []
    data = _data(protocol)
    scores = {name for entry in protocol.entries for name in entry.result.scores}
    return [
        each
        for each in published_figures()
        if (each.benchmark, each.data) == (protocol.benchmark, data) and each.score in scores and not each.rule
    ]


def _data(protocol: Protocol) -> str:
    """What papers call the data: the name of the set, or the split of HPatches, if it is whole and not whitened."""
    settings = protocol.settings
    if protocol.benchmark != "hpatches":
        return str(settings.get("data", "")).lower()
    whole = isinstance(settings.get("sequences"), list) and len(settings["sequences"]) == _SPLIT
    return f"split {settings.get('split')}" if whole and not settings.get("pca") else ""
