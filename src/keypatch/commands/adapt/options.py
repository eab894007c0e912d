"""The options of an adaptation, `Adapting`, and how a folder says that it holds one. Imports no torch."""

from dataclasses import dataclass

from keypatch.building.state import StateFile
from keypatch.files import Format
from keypatch.settings import CheckedFields, brief, option

HELD_OUT = 0.25  # of the points: enough to score on, and most are left to train on

STATE = StateFile(
    "adapt.json",
    Format("keypatch-adaptation", 1, "state of an adaptation"),
    "a keypatch adaptation",
    "was adapted otherwise",
    "Choose another folder.",
    lock=".adapt.lock",  # the training locks the folder too
)
SET, PAGE, REPORT = "set", "adapt.html", "report.html"


@dataclass(frozen=True)
class Adapting(CheckedFields):
    """How far a descriptor is fine-tuned.

    >>> kp.Adapting(budget=50_000)
    Adapting(budget=50000)
    """

    budget: int | None = option(
        None, "Training budget in pairs; by default 16 per point, but at least 20,000 and at most 60,000.", least=1
    )
    learning_rate: float | None = option(
        None, "Initial learning rate, which decays to zero; by default the rate of the recipe adapt.", above=0
    )

    __repr__ = brief
