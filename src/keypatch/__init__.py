"""Learn, score and use local image descriptors.

>>> import keypatch as kp
>>> describer = kp.load("hynet-notredame")              # a name, run folder, checkpoint or published file
>>> features = kp.extract("a.jpg", describer)           # a path, a PIL image or an array
>>> matches = kp.match("a.jpg", "b.jpg")                # kp.Matching(model="E") for the relative pose
>>> matches.save("matches.png")                         # a notebook shows the picture automatically

Images       load, extract, match, draw; Extraction, Matching, AdaLAM, Camera, Features, ImageMatches, RelativePose,
             Keypoints
Many photos  describe, match_photos, match_pairs, read_features, read_matches, convert, reconstruct; FileOptions,
             Inputs, Mapping, Parallel
Own photos   adapt, build; Adapting, Tracks, PhotoPairs, Homographies, Sequences, Building
Training     train, open_patches, find_recipe, as_published, register; Recipe, PatchSet, Conditions
Scores       evaluate, load_result, compare, report, study_methods, study_paper, study_ubc,
             study_gradients; Result
Elsewhere    export; Exporting, Exported
Help         inspect, examine, list_names, quickstart

These names are the whole public interface. Each is loaded on first use, so importing keypatch is instant and does
not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keypatch.benchmarks.comparison import Comparison as Comparison
    from keypatch.benchmarks.comparison import compare as compare
    from keypatch.benchmarks.evaluation import evaluate as evaluate
    from keypatch.benchmarks.result import Result as Result
    from keypatch.benchmarks.result import load_result as load_result
    from keypatch.building.homographies import Homographies as Homographies
    from keypatch.building.options import Building as Building
    from keypatch.building.pairs import PhotoPairs as PhotoPairs
    from keypatch.building.pipeline import BuiltSet as BuiltSet
    from keypatch.building.pipeline import build as build
    from keypatch.building.sequences import Sequences as Sequences
    from keypatch.building.tracks import Tracks as Tracks
    from keypatch.colmap.cameras import Camera as Camera
    from keypatch.commands.adapt.options import Adapting as Adapting
    from keypatch.commands.adapt.pipeline import Adaptation as Adaptation
    from keypatch.commands.adapt.pipeline import adapt as adapt
    from keypatch.commands.export import Exported as Exported
    from keypatch.commands.export import Exporting as Exporting
    from keypatch.commands.export import export as export
    from keypatch.commands.inspect.inspection import Inspection as Inspection
    from keypatch.commands.inspect.inspection import inspect as inspect
    from keypatch.commands.list import list_names as list_names
    from keypatch.commands.quickstart import quickstart as quickstart
    from keypatch.commands.train import train as train
    from keypatch.describers.protocol import Describer as Describer
    from keypatch.doctor.examination import Examination as Examination
    from keypatch.doctor.examination import examine as examine
    from keypatch.engines.options import Parallel as Parallel
    from keypatch.errors import KeypatchError as KeypatchError
    from keypatch.features.conversion import convert as convert
    from keypatch.features.description import Description as Description
    from keypatch.features.description import describe as describe
    from keypatch.features.extraction import Extraction as Extraction
    from keypatch.features.extraction import Features as Features
    from keypatch.features.extraction import FileOptions as FileOptions
    from keypatch.features.extraction import extract as extract
    from keypatch.features.feature_files import read_features as read_features
    from keypatch.geometry.keypoints import Keypoints as Keypoints
    from keypatch.matching.adalam import AdaLAM as AdaLAM
    from keypatch.matching.image_matches import ImageMatches as ImageMatches
    from keypatch.matching.image_matches import draw as draw
    from keypatch.matching.image_matches import match as match
    from keypatch.matching.match_files import read_matches as read_matches
    from keypatch.matching.matches import Matches as Matches
    from keypatch.matching.matching import Matching as Matching
    from keypatch.matching.pairs import match_pairs as match_pairs
    from keypatch.matching.pairs import match_photos as match_photos
    from keypatch.matching.relative_pose import RelativePose as RelativePose
    from keypatch.parts import register as register
    from keypatch.patches.layouts import open_patches as open_patches
    from keypatch.patches.patch_set import PatchSet as PatchSet
    from keypatch.recipes import as_published as as_published
    from keypatch.recipes import find_recipe as find_recipe
    from keypatch.reconstruction.mapping import Inputs as Inputs
    from keypatch.reconstruction.mapping import Mapping as Mapping
    from keypatch.reconstruction.pipeline import reconstruct as reconstruct
    from keypatch.reports.page import report as report
    from keypatch.studies.gradients.study import GradientsSetup as GradientsSetup
    from keypatch.studies.gradients.study import study_gradients as study_gradients
    from keypatch.studies.methods import MethodsSetup as MethodsSetup
    from keypatch.studies.methods import study_methods as study_methods
    from keypatch.studies.papers.study import PaperSetup as PaperSetup
    from keypatch.studies.papers.study import study_paper as study_paper
    from keypatch.studies.sweep import study_sweep as study_sweep
    from keypatch.studies.ubc.study import study_ubc as study_ubc
    from keypatch.studies.verdicts import study_compare as study_compare
    from keypatch.training.conditions import Conditions as Conditions
    from keypatch.training.recipe import Recipe as Recipe
    from keypatch.zoo.loading import load as load

_HOME = {
    "AdaLAM": "matching.adalam",
    "Adaptation": "commands.adapt.pipeline",
    "Adapting": "commands.adapt.options",
    "Building": "building.options",
    "BuiltSet": "building.pipeline",
    "Camera": "colmap.cameras",
    "Comparison": "benchmarks.comparison",
    "Conditions": "training.conditions",
    "Describer": "describers.protocol",
    "Description": "features.description",
    "Examination": "doctor.examination",
    "Exported": "commands.export",
    "Exporting": "commands.export",
    "Extraction": "features.extraction",
    "Features": "features.extraction",
    "FileOptions": "features.extraction",
    "GradientsSetup": "studies.gradients.study",
    "Homographies": "building.homographies",
    "ImageMatches": "matching.image_matches",
    "Inputs": "reconstruction.mapping",
    "Inspection": "commands.inspect.inspection",
    "KeypatchError": "errors",
    "Keypoints": "geometry.keypoints",
    "Mapping": "reconstruction.mapping",
    "Matches": "matching.matches",
    "Matching": "matching.matching",
    "MethodsSetup": "studies.methods",
    "PaperSetup": "studies.papers.study",
    "Parallel": "engines.options",
    "PatchSet": "patches.patch_set",
    "PhotoPairs": "building.pairs",
    "Recipe": "training.recipe",
    "RelativePose": "matching.relative_pose",
    "Result": "benchmarks.result",
    "Sequences": "building.sequences",
    "Tracks": "building.tracks",
    "adapt": "commands.adapt.pipeline",
    "as_published": "recipes",
    "build": "building.pipeline",
    "compare": "benchmarks.comparison",
    "convert": "features.conversion",
    "describe": "features.description",
    "draw": "matching.image_matches",
    "evaluate": "benchmarks.evaluation",
    "examine": "doctor.examination",
    "export": "commands.export",
    "extract": "features.extraction",
    "find_recipe": "recipes",
    "inspect": "commands.inspect.inspection",
    "list_names": "commands.list",
    "load": "zoo.loading",
    "load_result": "benchmarks.result",
    "match": "matching.image_matches",
    "match_pairs": "matching.pairs",
    "match_photos": "matching.pairs",
    "open_patches": "patches.layouts",
    "quickstart": "commands.quickstart",
    "read_features": "features.feature_files",
    "read_matches": "matching.match_files",
    "reconstruct": "reconstruction.pipeline",
    "register": "parts",
    "report": "reports.page",
    "study_compare": "studies.verdicts",
    "study_gradients": "studies.gradients.study",
    "study_methods": "studies.methods",
    "study_paper": "studies.papers.study",
    "study_sweep": "studies.sweep",
    "study_ubc": "studies.ubc.study",
    "train": "commands.train",
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
    return sorted([*_HOME, "__version__"])
