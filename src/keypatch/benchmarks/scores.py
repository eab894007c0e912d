"""The scores by name: what people call each, its unit, and which of two is the better one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

Better = Literal["higher", "lower", "neither"]


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _count(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


@dataclass(frozen=True)
class Score:
    """What is known about a kind of score, and which score of that kind it is.

    >>> score = find_score("fpr95.m50_100")
    >>> score.title, score.of, score.better, score.text(0.0233)
    ('FPR95', 'm50_100', 'lower', '2.33 %')
    """

    title: str
    better: Better = "higher"
    unit: str = "%"
    number: Callable[[float], str] = _percent  # a value without its unit; a fraction is shown in %
    kind: str = ""  # "fpr95" of "fpr95.m50_100"
    of: str = ""  # the pair list, sequence, scene or the like: "m50_100"

    def text(self, value: float) -> str:
        return f"{self.number(value)} {self.unit}".rstrip()

    @property
    def column(self) -> str:
        """The head of a column of such scores: "FPR95 %"."""
        return f"{self.title} {self.unit}".rstrip()

    @property
    def label(self) -> str:
        """One score with its unit and what it is of: "FPR95 % m50_100"."""
        return f"{self.column} {self.of}".rstrip()


_LEVELS = ("easy", "hard", "tough")  # e, h and t in the names of scores
_FAMILIES = {  # by the first word of a kind; the second makes the title
    "count": Score("", "neither", "", _count),
    "error": Score("", "lower", "", "{:.4g}".format),
    "spread": Score("", "neither", "", "{:.4f}".format),
    "verification": Score(""),
    "matching": Score(""),
    "retrieval": Score(""),
}
_SPREADS = ("sd", "lowest", "highest")  # of a score over seeds or clusterings: neither better nor worse

SCORES = {
    "fpr95": Score("FPR95", "lower"),
    "ap": Score("AP"),
    "auc": Score("AUC"),
    "verification.ap": Score("verification AP"),
    "verification.auc": Score("verification AUC"),
    "matching.map": Score("matching mAP"),
    **{f"matching.map.{level[0]}": Score(f"matching mAP {level}") for level in _LEVELS},
    "matching.sr": Score("matched right"),
    "retrieval.map": Score("retrieval mAP"),
    **{f"mma{k}": Score(f"MMA {k} px") for k in range(1, 11)},
    **{f"accuracy{k}": Score(f"accuracy {k} px") for k in (1, 3, 5)},
    **{f"auc{k}": Score(f"AUC {k} px") for k in (1, 3, 5)},
    **{f"maa{k}": Score(f"mAA {k}°") for k in (5, 10)},
    "failed": Score("failed", "lower"),
    "rank1": Score("rank-1"),
    **{f"rank1.{level[0]}": Score(f"rank-1 {level}") for level in _LEVELS},
    "revisited_map": Score("mAP in reference images"),
    **{f"recall@{k}": Score(f"Recall@{k}") for k in (1, 10, 100, 1000)},
    "nmi": Score("NMI"),
    "f1": Score("F1"),
    "share": Score("matched correctly"),
    "track_length": Score("track length", "higher", "", "{:.2f}".format),
    "observations_per_image": Score("observations per image", "higher", "", _count),
    "count.within3": replace(_FAMILIES["count"], title="within 3 px"),
    "error.reprojection": replace(_FAMILIES["error"], title="reprojection error", unit="px"),
    "error.rotation": replace(_FAMILIES["error"], title="rotation error", unit="°"),
    "error.position": replace(_FAMILIES["error"], title="position error"),  # in the unit of the true cameras
    "spread.m1": replace(_FAMILIES["spread"], title="M1"),
    "spread.dm2": replace(_FAMILIES["spread"], title="d*M2"),
}


@cache
def find_score(name: str) -> Score:
    """What is known about a score; an unknown one is a fraction, called by its own words, and better when higher.

    The name of a data set may stand before the kind: "castle-test.rank1".
    """
    words = name.split(".")
    known, start, end = next(_known(words), (Score(""), 0, 1))
    kind, of = ".".join(words[start:end]), ".".join(words[:start] + words[end:])
    title = known.title or kind.removeprefix("count.").replace("_", " ").replace(".", " ")
    better = "neither" if of.rpartition(".")[2] in _SPREADS else known.better
    return replace(known, title=title, better=better, kind=kind, of=of)


def _known(words: list[str]) -> Iterator[tuple[Score, int, int]]:
    """The kinds in a name, the longest of the first place first, and which words they are."""
    for start, first in enumerate(words):
        for end in (start + 3, start + 2, start + 1):
            if kind := SCORES.get(".".join(words[start:end])):
                yield kind, start, end
        if first in _FAMILIES:
            yield _FAMILIES[first], start, start + 2
