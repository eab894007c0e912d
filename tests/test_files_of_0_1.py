"""Files that keypatch 0.1 wrote are still read, with the same values (how they were made: fixtures/0.1/README.md)."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import keypatch
from keypatch.training.checkpoints import load_checkpoint

FILES = Path(__file__).parent / "fixtures" / "0.1"
KINDS = {
    "weights.safetensors": "weights",
    "run": "training run",
    "run/checkpoints/step-000000004.safetensors": "checkpoint of a training run",
    "features.h5": "feature file",
    "matches.h5": "match file",
    "result.json": "result",
    "recipe.toml": "recipe",
}


@pytest.mark.parametrize("name", KINDS)
def test_each_is_known_for_what_it_is(name: str) -> None:
    found = keypatch.inspect(FILES / name)
    assert (found.kind, found.problems) == (KINDS[name], ())


def patches() -> NDArray[np.uint8]:
    """Four of 64 x 64 pixels."""
    image = np.asarray(Image.open(FILES / "a.png").convert("L"))[:128, :128]
    return image.reshape(2, 64, 2, 64).swapaxes(1, 2).reshape(4, 64, 64)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("weights.safetensors", [-0.26662043, 0.3129703, -0.43239832, 0.38968372]),
        ("run", [-0.2664883, 0.31317243, -0.43242836, 0.3898468]),
        ("run/checkpoints/at-050.safetensors", [-0.2947919, 0.34041643, -0.31914583, 0.4601614]),
    ],
)
def test_weights_describe_as_they_did(name: str, expected: list[float]) -> None:
    describer = keypatch.load(FILES / name, precision="float32")
    assert (describer.dim, describer.patch_size, describer.patch_sigmas) == (8, 32, 24.0)
    np.testing.assert_allclose(describer.describe(patches())[0, :4], expected, atol=1e-5)


def test_a_checkpoint_has_all_that_a_run_is_resumed_from() -> None:
    checkpoint = load_checkpoint(FILES / "run" / "checkpoints" / "step-000000004.safetensors")
    assert checkpoint.step == 4 and checkpoint.recipe.sampler.pairs == 16
    assert set(checkpoint.network) >= {"layers.conv1.weight", "layers.conv7.weight", "last.running_mean"}
    assert len(checkpoint.optimizer) == 7 and checkpoint.provenance["version"] == "0.1.0"


def test_a_finished_run_is_taken_up_and_left_as_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FILES / "run", run)
    recipe = keypatch.find_recipe(str(run / "recipe.toml"))
    assert (recipe.name, recipe.pairs, recipe.network.dim) == ("hardnet", 64, 8)
    before = (run / "checkpoints" / "step-000000004.safetensors").read_bytes()
    keypatch.train(recipe, "embedded", resume=run)
    assert (run / "checkpoints" / "step-000000004.safetensors").read_bytes() == before


def test_features_and_matches_have_their_values() -> None:
    features = keypatch.read_features(FILES / "features.h5", "a.png")
    assert features.image_size == (160, 160) and features.descriptors.shape == (40, 8)
    first = [getattr(features.keypoints, name)[0] for name in ("x", "y", "sigma", "angle")]
    np.testing.assert_allclose(first, [56.22515, 62.25716, 1.4450561, 6.1038566], atol=1e-5)
    np.testing.assert_allclose(features.descriptors[0, :3], [-0.805556, 0.10295936, -0.25831747], atol=1e-7)
    matches = keypatch.read_matches(FILES / "matches.h5", "a.png", "b.png")
    assert matches.verified and matches.indices[:3].tolist() == [[0, 0], [13, 9], [14, 10]]
    np.testing.assert_allclose(matches.scores[:2], [0.9935814, 0.9997792], atol=1e-6)
    assert len(matches.indices) == 13


def test_a_result_has_its_scores_and_intervals() -> None:
    result = keypatch.load_result(FILES / "result.json")
    assert (result.benchmark, result.descriptor, result.settings["data"]) == ("ubc", "rootsift", "embedded-test")
    assert result.scores["fpr95.m50_8000_8000_0"] == 0.142 and result.scores["rank1"] == 0.8457609805924413
    assert set(result.replicates) >= {"fpr95.m50_8000_8000_0", "rank1"} and "roc.m50_8000_8000_0" in result.curves


def test_a_recipe_is_the_one_of_its_name() -> None:
    assert keypatch.find_recipe(str(FILES / "recipe.toml")) == keypatch.find_recipe("hardnet")
