"""Batches: the layout of the input, what is cut, and the thread that makes them ahead."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from keypatch.networks import prepare
from keypatch.patches import PatchSet
from keypatch.recipes import find_recipe
from keypatch.sampling import Augmentation, Draw, RandomTriplets, SeveralPerPoint, turn_patches
from keypatch.settings import apply_settings
from keypatch.training import Recipe
from keypatch.training.batches import Batch, Batches
from keypatch.training.ranks import Ranks
from keypatch.training.recipe import TYPES

CPU = torch.device("cpu")
UNCHANGED = Augmentation(flips="none", detector_noise=0.0)


@pytest.fixture
def batches(hardnet: Recipe, small_set: PatchSet) -> Batches:
    return Batches(replace(hardnet, augment=UNCHANGED), small_set, small_set.classes(), CPU)


def input_of(patches: NDArray[np.uint8], recipe: Recipe) -> Tensor:
    """(1, size, size) of one patch."""
    return prepare(torch.from_numpy(patches[None]), recipe.network.preprocessing)[0]


def test_point_ids_are_given_only_where_rows_share_a_point() -> None:
    x = torch.empty(8, 1, 3, 3)
    indices = np.arange(8).reshape(4, 2)
    assert Batch(x, Draw(indices, np.array([7, 3, 5, 0]))).point_id is None
    assert Batch.of_pairs(x).point_id is None and Batch.of_pairs(x).pairs == 4
    shared = Batch(x, Draw(indices, np.array([7, 3, 7, 0]))).point_id
    assert shared is not None and shared.tolist() == [7, 3, 7, 0]


@pytest.mark.parametrize("sampler", [RandomTriplets(8), SeveralPerPoint(8)], ids=lambda sampler: type(sampler).__name__)
def test_the_input_holds_all_anchors_then_all_positives_and_so_on(
    sampler: RandomTriplets | SeveralPerPoint, batches: Batches
) -> None:
    batches = replace(batches, recipe=replace(batches.recipe, sampler=sampler))
    batch = batches.make(3)
    drawn = sampler.draw(batches.classes, batches.recipe.seed, 3)
    assert np.array_equal(batch.draw.indices, drawn.indices) and np.array_equal(batch.draw.classes, drawn.classes)
    assert len(batch.x) == drawn.indices.size
    for row, views in enumerate(drawn.indices):
        for view, index in enumerate(views):
            wanted = input_of(batches.source.take(index), batches.recipe)
            assert torch.allclose(batch.x[view * 8 + row], wanted, atol=1e-5)


def test_patches_are_turned_and_empty_places_show_the_first_patch(batches: Batches) -> None:
    draw = Draw(np.array([[4, 9, -1], [30, -1, -1]]), np.arange(2), np.array([[0.0, 20.0, 0.0], [-15.0, 0.0, 0.0]]))
    x = batches.cut(draw, 0).x
    shown = [(0, 0, 4, 0.0), (0, 1, 9, 20.0), (0, 2, 4, 0.0), (1, 0, 30, -15.0), (1, 1, 30, 0.0), (1, 2, 30, 0.0)]
    for row, view, index, angle in shown:
        patch = turn_patches(batches.source.take(np.array([index])), np.array([angle]))[0]
        assert torch.allclose(x[view * 2 + row], input_of(patch, batches.recipe), atol=1e-5)


def test_a_batch_is_a_function_of_the_seed_and_the_step_alone(batches: Batches) -> None:
    batches = replace(batches, recipe=replace(batches.recipe, augment=Augmentation()))
    once, again, other = batches.make(5), batches.make(5), batches.make(6)
    reseeded = replace(batches, recipe=replace(batches.recipe, seed=1)).make(5)
    assert torch.equal(once.x, again.x)
    assert not torch.equal(once.x, other.x) and not torch.equal(once.x, reseeded.x)
    fed = list(batches.feed(4, 7))
    assert len(fed) == 3 and torch.equal(fed[1].x, once.x) and torch.equal(fed[2].x, other.x)


def batch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "keypatch-batches"]


def test_the_thread_ends_with_its_reader_and_hands_over_its_error(batches: Batches) -> None:
    feed = batches.feed(0, 1000)
    next(feed)
    assert len(batch_threads()) == 1
    feed.close()  # type: ignore[attr-defined]
    assert not batch_threads()
    too_many = replace(batches, recipe=replace(batches.recipe, sampler=RandomTriplets(80)))
    with pytest.raises(Exception, match="80 different points"):
        list(too_many.feed(0, 2))
    assert not batch_threads()


def test_images_in_colour_are_cropped_at_places_of_their_own_whatever_the_rank() -> None:
    rng = np.random.default_rng(0)
    images = PatchSet("images", rng.integers(0, 256, (24, 3, 20, 20), np.uint8), np.repeat(np.arange(6), 4))
    recipe = apply_settings(
        find_recipe("embedding_images"),
        ["network.width=4", "network.blocks=2", "network.preprocessing.size=16", "network.preprocessing.crop_from=20"],
        TYPES,
    )
    recipe = replace(recipe, sampler=SeveralPerPoint(8), augment=replace(recipe.augment, flips="none"))
    batches = Batches(recipe, images, images.classes(), CPU)
    batch = batches.make(3)
    assert batch.x.shape == (16, 3, 16, 16)
    found = set()
    for index, x in zip(batch.draw.indices.T.ravel(), batch.x, strict=True):
        whole = prepare(torch.from_numpy(images.patches[[index]]), replace(recipe.network.preprocessing, size=20))[0]
        places = [(r, c) for r in range(5) for c in range(5) if torch.equal(whole[:, r : r + 16, c : c + 16], x)]
        assert len(places) == 1
        found.add(places[0])
    assert len(found) > 5
    half = replace(batches, ranks=Ranks(rank=1, size=2)).make(3)
    assert torch.equal(half.x, batch.x.view(2, 8, 3, 16, 16)[:, 4:].flatten(0, 1))
    centred = replace(batches, recipe=replace(recipe, augment=replace(recipe.augment, window="centre"))).make(3)
    first = images.patches[batch.draw.indices[0, 0]][None]
    assert torch.equal(centred.x[0], prepare(torch.from_numpy(first), recipe.network.preprocessing)[0])
