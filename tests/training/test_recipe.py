"""Recipes that cannot run are refused before anything is written."""

from dataclasses import replace
from pathlib import Path

import pytest

import keypatch
from keypatch.errors import RecipeError
from keypatch.losses import IntermediateSoftmax, NPair, ThirdPatch
from keypatch.networks import TFeat
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.recipes.sdgmnet import SDGMNET_FINETUNE
from keypatch.sampling import AdaptivePairs, RandomPairs, RandomTriplets
from keypatch.settings import apply_settings
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training
from keypatch.training.recipe import TYPES

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1)


def test_third_patches_must_be_drawn_to_be_mined(hardnet: Recipe) -> None:
    with pytest.raises(RecipeError, match=r"the sampler RandomPairs does not draw\. Use RandomTriplets"):
        replace(hardnet, mining=ThirdPatch())
    with pytest.raises(RecipeError, match="RandomTriplets"):
        apply_settings(hardnet, ["mining=ThirdPatch"], TYPES)
    assert replace(hardnet, mining=ThirdPatch(), sampler=RandomTriplets(16)).steps == 6


def test_adaptive_pairs_need_mined_negatives_where_they_choose(hardnet: Recipe) -> None:
    without = replace(hardnet, mining=None, loss=(NPair(),))
    with pytest.raises(RecipeError, match="Set mining"):
        replace(without, sampler=AdaptivePairs(16))
    assert replace(without, sampler=AdaptivePairs(16, lam=0.0)).mining is None
    assert replace(hardnet, sampler=AdaptivePairs(16)).mining is not None


def test_a_layer_that_the_network_lacks_is_named_before_anything_is_written(
    hardnet: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    recipe = replace(hardnet, network=TFeat(dim=8, width=2), loss=(IntermediateSoftmax(),))
    with pytest.raises(RecipeError, match=r'"norm1", which TFeat does not have. Its layers: .*conv1'):
        run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    assert not list(tmp_path.iterdir())


def test_a_second_phase_wants_weights(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RecipeError, match=r"sdgmnet_finetune starts from a trained network\. Name one with --from"):
        keypatch.train("sdgmnet_finetune", "embedded", out)
    assert not out.exists()
    first = run_training(replace(hynet, pairs=24), small_set, tmp_path / "first", Progress(), conditions=EXACT)
    second = replace(SDGMNET_FINETUNE, network=hynet.network, sampler=RandomPairs(12), pairs=12)
    keypatch.train(second, "embedded", out, Conditions("cpu", compile="off", threads=1), start_from=first)
    assert (out / "card.json").exists()
