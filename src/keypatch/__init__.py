"""Learn, score and use local image descriptors.

The names below are the whole public face of the package; each is loaded when it is first used, so that importing
keypatch costs nothing and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keypatch.benchmarks.evaluating import evaluate as evaluate
    from keypatch.benchmarks.result import Result as Result
    from keypatch.doctor.examining import Examination as Examination
    from keypatch.doctor.examining import examine as examine
    from keypatch.errors import KeypatchError as KeypatchError
    from keypatch.features.describing import describe as describe
    from keypatch.features.feature_files import read_features as read_features
    from keypatch.features.features import Features as Features
    from keypatch.matching.many_pairs import match_pairs as match_pairs
    from keypatch.matching.match_files import read_matches as read_matches
    from keypatch.matching.matches import Matches as Matches
    from keypatch.matching.photos import match as match
    from keypatch.patches.opening import open_patches as open_patches
    from keypatch.patches.patch_set import PatchSet as PatchSet
    from keypatch.recipes import find_recipe as find_recipe
    from keypatch.reconstruction.reconstructing import reconstruct as reconstruct
    from keypatch.reports.reporting import report as report
    from keypatch.studies.inspecting import Inspection as Inspection
    from keypatch.studies.inspecting import inspect as inspect
    from keypatch.studies.listing import list_names as list_names
    from keypatch.studies.methods import study_methods as study_methods
    from keypatch.studies.quickstart import quickstart as quickstart
    from keypatch.studies.training import train as train
    from keypatch.studies.ubc import study_ubc as study_ubc
    from keypatch.training.recipe import Recipe as Recipe
    from keypatch.zoo.finding import find as find

_HOME = {
    "Examination": "doctor.examining",
    "Features": "features.features",
    "Inspection": "studies.inspecting",
    "KeypatchError": "errors",
    "Matches": "matching.matches",
    "PatchSet": "patches.patch_set",
    "Recipe": "training.recipe",
    "Result": "benchmarks.result",
    "describe": "features.describing",
    "evaluate": "benchmarks.evaluating",
    "examine": "doctor.examining",
    "find": "zoo.finding",
    "find_recipe": "recipes",
    "inspect": "studies.inspecting",
    "list_names": "studies.listing",
    "match": "matching.photos",
    "match_pairs": "matching.many_pairs",
    "open_patches": "patches.opening",
    "quickstart": "studies.quickstart",
    "read_features": "features.feature_files",
    "read_matches": "matching.match_files",
    "reconstruct": "reconstruction.reconstructing",
    "report": "reports.reporting",
    "study_methods": "studies.methods",
    "study_ubc": "studies.ubc",
    "train": "studies.training",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("keypatch")
    if name not in _HOME:
        raise AttributeError(f"module 'keypatch' has no attribute {name!r}")
    return getattr(import_module(f"keypatch.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, "__version__"])
