"""`as_published`: what a paper prints, declared once beside its recipe, and told wherever the run is."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import keypatch
from keypatch.errors import RecipeError
from keypatch.losses import Distillation, Hardest, InverseDistance, Triplet
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.recipes import PUBLISHED, RECIPES, as_published, find_recipe, form_of
from keypatch.settings import apply_settings
from keypatch.training.loop import run_training
from keypatch.training.recipe import TYPES
from keypatch.training.recipe_files import read_recipe, recipe_from_toml, recipe_to_toml
from keypatch.training.step import check_loss

DOCS = Path(__file__).parents[2] / "docs" / "methods"
OURS = {"adapt", "small", "adasample_few", "adasample_memory", "adasample_sosnet", "adasample_hynet", "adasample_sdgm"}
OURS |= {"sdgmnet_gor", "lifted", "gor_lifted"}


def test_every_recipe_is_of_a_paper_or_ours() -> None:
    assert OURS | PUBLISHED.keys() == RECIPES.keys() and not OURS & PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_form_has_no_noise_keeps_the_rest_and_is_a_recipe(name: str) -> None:
    ours = replace(RECIPES[name], seed=3, pairs=4096)
    published = as_published(ours)
    assert published.augment == replace(ours.augment, detector_noise=0.0)
    kept = ("name", "network", "sampler.pairs", "augment.flips", "schedule", "pairs", "seed", "branches", "reduction")
    for path in kept:
        first, _, second = path.partition(".")
        one, other = getattr(ours, first), getattr(published, first)
        assert one == other if not second else getattr(one, second) == getattr(other, second), path
    assert as_published(published) == published
    assert recipe_from_toml(recipe_to_toml(published)) == published
    noise = "with our detector noise (1)" if ours.augment.detector_noise else "our choices, without detector noise"
    assert (ours.form, published.form) == (noise, "as published")
    assert form_of(published) == "as published"
    small = replace(published, sampler=replace(published.sampler, pairs=12))  # type: ignore[type-var]
    check_loss(small.network.build(), small)


def test_what_the_papers_print() -> None:
    adasample, hynet, raw, frn = (
        as_published(RECIPES[name]) for name in ("adasample", "hynet", "sdgm_raw", "sdgm_hnfrn")
    )
    assert adasample.mining == Hardest(blocks=("anchors", "positives"))  # eq. 14
    assert adasample.weighting == InverseDistance(floor=0.001, normalization="none")
    assert hynet.loss[0].z == "inside" and hynet.mining == Hardest()  # type: ignore[attr-defined]
    assert raw.loss[0].rate == 0.001 and raw.mining.blocks == ("rows", "columns")  # type: ignore
    assert frn.loss == (Triplet(margin=1.0),)


def test_noise_that_was_asked_for_is_told() -> None:
    noisy = replace(as_published(RECIPES["hynet"]), augment=RECIPES["hynet"].augment)
    quiet = replace(RECIPES["hynet"], augment=replace(RECIPES["hynet"].augment, detector_noise=0.0))
    assert noisy.form == form_of(noisy) == "as published, but with detector noise 1"
    assert quiet.form == form_of(quiet) == "our choices, without detector noise"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["loss.alpha=7"], ", but with loss.alpha=7"),
        (["sampler.pairs=512"], ""),  # HyNet's own
        (["sampler.pairs=256"], ", but with sampler.pairs=256"),
        (["pairs=4096", "seed=7"], ""),
        (["name=mine"], ", but renamed"),  # of which no published form is known
        (["optimizer=SGD", "optimizer.lr=0.1"], ", but with optimizer=SGD"),
        (["mining=none"], ", but with mining=none"),
        (["loss.HybridTriplet.weight=2"], ", but with loss.HybridTriplet.weight=2"),  # both terms have one
        (["augment.detector_noise=0.5", "loss.margin=1"], ", but with detector noise 0.5, loss.margin=1"),
        (
            ["seed=1", "network.dim=16", "sampler.pairs=12", "loss.margin=1", "optimizer.lr=1", "average=0.5"],
            ", but with network.dim=16, sampler.pairs=12, loss.margin=1, and 2 more",
        ),
    ],
)
def test_what_was_changed_afterwards_is_told(settings: list[str], told: str) -> None:
    changed = apply_settings(as_published(RECIPES["hynet"]), settings, TYPES)
    assert form_of(changed) == f"as published{told}"


def test_another_loss_is_told_by_its_terms() -> None:
    published = as_published(RECIPES["hynet"])
    taught = replace(published, loss=(*published.loss, Distillation()))
    assert form_of(taught) == "as published, but with loss=[HybridTriplet, NormDifference, Distillation]"


@pytest.mark.parametrize("name", ["small", "adapt", "mine"])
def test_a_recipe_of_no_paper_is_refused(name: str) -> None:
    recipe = replace(RECIPES.get(name, RECIPES["hynet"]), name=name)
    with pytest.raises(RecipeError, match=r"is not a recipe from a paper.*augment\.detector_noise=0"):
        as_published(recipe)


def test_the_card_and_a_result_tell_it(small_folder: Path, small_set: PatchSet, tmp_path: Path) -> None:
    narrow = ["network.width=4", "network.dim=16", "sampler.pairs=12"]
    run = keypatch.train("hynet", small_folder, tmp_path / "run", published=True, settings=narrow, pairs=24)
    form = "as published, but with network.dim=16, network.width=4, sampler.pairs=12"
    assert json.loads((run / "card.json").read_text())["trained"] == form
    assert keypatch.inspect(run).facts["form"] == form
    assert read_recipe(run / "recipe.toml") == replace(
        as_published(find_recipe("hynet")),
        **{name: getattr(read_recipe(run / "recipe.toml"), name) for name in ("network", "sampler", "pairs")},
    )
    result = keypatch.evaluate(run, "ubc", "embedded-test")
    assert result.notes["trained"] == form
    own = replace(find_recipe(run / "recipe.toml"), published=False)
    other = run_training(own, small_set, tmp_path / "own", Progress())
    assert keypatch.evaluate(other, "ubc", "embedded-test").notes["trained"] == "our choices, without detector noise"


def test_settings_come_after_it(small_folder: Path, tmp_path: Path) -> None:
    settings = ["network.width=4", "network.dim=16", "sampler.pairs=12", "loss.z=none"]
    run = keypatch.train("hynet", small_folder, tmp_path / "run", published=True, settings=settings, pairs=24)
    assert read_recipe(run / "recipe.toml").loss[0].z == "none"  # type: ignore[attr-defined]


def test_the_page_lists_what_changes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", (DOCS / "as-published.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name: tuple(re.findall(r"`([^`]+)`", cell)) for name, cell in rows}
    assert {name: listed[name] for name in PUBLISHED} == dict(PUBLISHED)
    assert all(name not in listed for name in OURS)
