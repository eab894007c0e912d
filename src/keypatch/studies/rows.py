"""The rows of a study, one file each: what a recipe reached with a seed, and the conditions that all rows share."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.errors import DataError, RecipeError
from keypatch.files import Format, reading, safe_name, write_json
from keypatch.training import Recipe
from keypatch.training.recipe import TRAINED
from keypatch.training.recipe_files import recipe_from_toml

STUDY = Format("keypatch-study", 3, "study")  # 1 held pairs, batch and settings of every study, 2 no identity
TRIAL = Format("keypatch-study-row", 3, "row of a study")  # 1 had no recipe_toml, 2 called its label "recipe"

Scores = Mapping[str, float]  # under the names of result files


@dataclass(frozen=True)
class Milestone:
    """The run after a share of its budget, scored."""

    share: float
    pairs: int
    seconds: float  # of training, all sittings
    scores: Mapping[str, Scores] = field(default_factory=dict)  # by the name of the test set


@dataclass(frozen=True)
class Trial:
    """An arm of a study and a seed. `failed` is the sentence of the fault that ended it, empty where there was none."""

    label: str
    seed: int
    recipe_hash: str  # SHA-256 of its TOML
    milestones: tuple[Milestone, ...] = ()
    failed: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)  # device, precision and threads of the training
    tests: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the data of each test set
    provenance: Mapping[str, Any] = field(default_factory=dict)  # of the training
    recipe_toml: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)  # by test set: which of its images were trained on
    varied: Mapping[str, str] = field(default_factory=dict)  # what the label says: values by path of the recipe

    @property
    def name(self) -> str:
        return f"{self.label}-{self.seed}"

    @cached_property
    def trained(self) -> Recipe | None:
        """The recipe as this version reads it; None where the row does not hold it, or holds what is no recipe now."""
        try:
            return recipe_from_toml(self.recipe_toml, types=TRAINED)
        except (DataError, RecipeError):
            return None

    def at(self, share: float) -> Milestone | None:
        """The milestone after this share of the run, if it was scored."""
        return next((milestone for milestone in self.milestones if milestone.share == share), None)

    def lacks(self, share: float, test: str) -> bool:
        """Whether a score is still to come: of a run at its end there are the milestones that it kept, and no more."""
        milestone = self.at(share)
        if milestone is None:
            return self.at(1.0) is None
        return test not in milestone.scores

    def with_milestone(self, milestone: Milestone) -> "Trial":
        others = [each for each in self.milestones if each.share != milestone.share]
        return replace(self, milestones=tuple(sorted([*others, milestone], key=lambda each: each.share)))

    def score_at(self, seconds: float, test: str, score: str) -> float:
        """A score after so many seconds of training, interpolated between milestones; nan before the first."""
        known = [each for each in self.milestones if score in each.scores.get(test, {})]
        if not known:
            return math.nan
        times, values = [each.seconds for each in known], [each.scores[test][score] for each in known]
        return float(np.interp(seconds, times, values, left=math.nan))

    @property
    def rate(self) -> float:
        """Pairs per second of training over the whole run; nan before its end."""
        end = self.at(1.0)
        return end.pairs / end.seconds if end else math.nan

    def save(self, folder: Path) -> None:
        head = {**TRIAL.head(), "pairs_per_second": number_or_none(self.rate)}
        write_json(folder / f"{self.name}.json", {**head, **_without_nan(self)})

    @classmethod
    def load(cls, path: Path) -> "Trial":
        value = TRIAL.read_json(path)
        for name in ("format", "format_number", "pairs_per_second"):  # the last follows from the milestones
            value.pop(name, None)
        with reading(path, TRIAL.title, "Remove it and run the study again."):
            if "recipe" in value:  # of format 2
                value["label"] = value.pop("recipe")
            # Rows of before have the paths in the order in which they were typed.
            value["varied"] = dict(sorted(value.get("varied", {}).items()))
            milestones = tuple(_milestone(each) for each in value.pop("milestones"))
            row = cls(milestones=milestones, **value)
            safe_name(row.name, str(path))  # it names the file that the row is saved to
            return row


def load_trial(study: Path, name: str) -> Trial:
    """A row of the study in a folder; one of format 1 gets its recipe from its run folder, if that is still there."""
    row = Trial.load(study / "rows" / f"{name}.json")
    recipe = study / "runs" / name / "recipe.toml"
    if row.recipe_toml or not recipe.exists():
        return row
    return replace(row, recipe_toml=recipe.read_text(encoding="utf-8"))


def load_trials(study: Path) -> list[Trial]:
    """The rows of the study in a folder, by name."""
    return [load_trial(study, path.stem) for path in sorted((study / "rows").glob("*.json"))]


def _milestone(value: Mapping[str, Any]) -> Milestone:
    scores = {
        test: {name: math.nan if score is None else float(score) for name, score in named.items()}
        for test, named in value["scores"].items()
    }
    return Milestone(**{**value, "scores": scores})


def _without_nan(row: Trial) -> dict[str, Any]:
    """Plain values; a score that is not defined becomes null, which JSON knows."""
    value = asdict(row)
    for milestone in value["milestones"]:
        for scores in milestone["scores"].values():
            scores.update({name: number_or_none(score) for name, score in scores.items()})
    return value


def number_or_none(value: float) -> float | None:
    """None for nan, which JSON does not know."""
    return None if math.isnan(value) else value


def read_conditions(folder: Path) -> dict[str, Any]:
    """The conditions of the study in a folder; empty where there is none."""
    path = folder / "study.json"
    return STUDY.read_json(path) if path.exists() else {}
