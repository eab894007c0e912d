"""The public names: few, stable, and free of cost until they are used."""

import subprocess
import sys

import pytest

import keypatch

NAMES = [
    "AdaLAM",
    "Adaptation",
    "Adapting",
    "Building",
    "BuiltSet",
    "Camera",
    "Comparison",
    "Conditions",
    "Describer",
    "Description",
    "Examination",
    "Exported",
    "Exporting",
    "Extraction",
    "Features",
    "FileOptions",
    "GradientsSetup",
    "Homographies",
    "ImageMatches",
    "Inputs",
    "Inspection",
    "KeypatchError",
    "Keypoints",
    "Mapping",
    "Matches",
    "Matching",
    "MethodsSetup",
    "PaperSetup",
    "Parallel",
    "PatchSet",
    "PhotoPairs",
    "Recipe",
    "RelativePose",
    "Result",
    "Sequences",
    "Tracks",
    "adapt",
    "as_published",
    "build",
    "compare",
    "convert",
    "describe",
    "draw",
    "evaluate",
    "examine",
    "export",
    "extract",
    "find_recipe",
    "inspect",
    "list_names",
    "load",
    "load_result",
    "match",
    "match_pairs",
    "match_photos",
    "open_patches",
    "quickstart",
    "read_features",
    "read_matches",
    "reconstruct",
    "register",
    "report",
    "study_compare",
    "study_gradients",
    "study_methods",
    "study_paper",
    "study_sweep",
    "study_ubc",
    "train",
]


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(keypatch.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_what_its_room_calls_so(name: str) -> None:
    thing = getattr(keypatch, name)
    assert thing.__name__ == name
    assert name in dir(keypatch)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="trian"):
        keypatch.trian  # noqa: B018


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert keypatch.__version__ == version("keypatch")


def test_importing_keypatch_loads_nothing_heavy() -> None:
    code = "import sys, keypatch; print(*({'torch', 'numpy', 'cv2', 'skimage', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []
