"""The candidate pass: which pixels the chosen pairs show."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.losses import Moment, State
from keypatch.networks import PatchNetwork, prepare
from keypatch.patches import PatchSet
from keypatch.sampling import AdaptivePairs, Augmentation, RandomPairs, turn_patches
from keypatch.training import Recipe
from keypatch.training.batches import Batch, Batches
from keypatch.training.step import Step, choose_pairs, chooser_of

PAIRS = 12
LATER = Moment(700, 2000)  # behind the warm-up
TRAINED: State = {"loss": torch.tensor(1.0)}
LIGHT = Augmentation(detector_noise=0.0, brightness=20.0)  # not flips alone: a patch may be its own mirror image


def parts(sampler: AdaptivePairs, hardnet: Recipe, source: PatchSet) -> tuple[Step, Batches]:
    recipe = replace(hardnet, sampler=sampler, augment=LIGHT)
    torch.manual_seed(0)
    network = recipe.network.build().train()
    with torch.no_grad():
        network(torch.randn(64, 1, 32, 32))  # running statistics
    return Step(network, recipe, network.trunk, torch.float32, None), Batches(
        recipe, source, source.classes(), torch.device("cpu")
    )


def by_row(x: Tensor) -> Tensor:
    """(pairs, views, 1, size, size)."""
    return torch.stack([x[row::PAIRS] for row in range(PAIRS)])


def by_view(pixels: Tensor, columns: np.ndarray) -> Tensor:
    """The inverse for some columns: (2 * pairs, 1, size, size)."""
    return torch.stack([pixels[row, columns[row]] for row in range(PAIRS)]).transpose(0, 1).flatten(0, 1)


def columns_of(chosen: Batch, candidates: Batch) -> np.ndarray:
    """Which candidates were chosen, (pairs, 2), by patch and angle; no two of a row are equal in both."""
    draw, pool = chosen.draw, candidates.draw
    assert draw.turns is not None and pool.turns is not None
    same = (draw.indices[:, :, None] == pool.indices[:, None]) & (draw.turns[:, :, None] == pool.turns[:, None])
    assert (same.sum(2) == 1).all()
    return same.argmax(2)


@pytest.mark.parametrize(
    "sampler", [AdaptivePairs(PAIRS), AdaptivePairs(PAIRS, candidates="few"), AdaptivePairs(PAIRS, hardest=True)]
)
def test_the_chosen_pairs_show_their_candidates(sampler: AdaptivePairs, hardnet: Recipe, small_set: PatchSet) -> None:
    step, batches = parts(sampler, hardnet, small_set)
    candidates = batches.make(700)
    assert candidates.draw.indices.shape == (PAIRS, 5 if sampler.candidates == "few" else 15)
    chosen, _ = choose_pairs(candidates, sampler, step, batches, TRAINED, LATER)
    columns = columns_of(chosen, candidates)
    assert (columns[:, 0] != columns[:, 1]).all() and len(np.unique(columns)) > 3
    assert np.array_equal(chosen.draw.classes, candidates.draw.classes)
    pixels, views = by_row(candidates.x), by_row(chosen.x)
    assert views.shape == (PAIRS, 2, 1, 32, 32)
    for row in range(PAIRS):
        assert torch.equal(views[row], pixels[row, columns[row]])


def test_detector_noise_changes_the_chosen_pairs_and_not_the_choice(hardnet: Recipe, small_set: PatchSet) -> None:
    sampler = AdaptivePairs(PAIRS, hardest=True)
    step, quiet = parts(sampler, hardnet, small_set)
    changed = replace(LIGHT, rotation=5.0, crop=0.1)
    noisy = replace(changed, detector_noise=2.0)
    quiet, loud = (replace(quiet, recipe=replace(quiet.recipe, augment=each)) for each in (changed, noisy))
    assert torch.equal(quiet.make(700).x, loud.make(700).x)
    (first, _), (second, _) = (
        choose_pairs(batches.make(700), sampler, step, batches, TRAINED, LATER) for batches in (quiet, loud)
    )
    assert np.array_equal(first.draw.indices, second.draw.indices)
    assert torch.equal(first.x, by_view(by_row(quiet.make(700).x), columns_of(first, quiet.make(700))))
    # their noise is that of their places among the candidates, drawn for all of them
    draw = loud.make(700).draw
    taken = torch.from_numpy(turn_patches(small_set.take(draw.indices), draw.turns))  # type: ignore[arg-type]
    every = noisy(taken, 24.0, np.random.default_rng([loud.recipe.seed, 700, 1])).transpose(0, 1).flatten(0, 1)
    pixels = by_row(prepare(every, loud.recipe.network.preprocessing))
    assert torch.equal(second.x, by_view(pixels, columns_of(second, loud.make(700))))
    assert not torch.allclose(first.x, second.x, atol=0.1)


def test_the_farthest_positive_is_that_of_the_network_in_use(hardnet: Recipe, small_set: PatchSet) -> None:
    """Each row described by itself, so that a row or a view in a wrong place shows."""
    sampler = AdaptivePairs(PAIRS, hardest=True)
    step, batches = parts(sampler, hardnet, small_set)
    candidates = batches.make(700)
    chosen, _ = choose_pairs(candidates, sampler, step, batches, TRAINED, LATER)
    network: PatchNetwork = step.network.eval()
    for pixels, (anchor, positive) in zip(by_row(candidates.x), columns_of(chosen, candidates), strict=True):
        with torch.no_grad():
            unit = torch.nn.functional.normalize(network(pixels))
        assert (unit - unit[anchor]).norm(dim=1).argmax() == positive


def test_pairs_chosen_from_a_memory_are_cut_anew_with_augmentation(hardnet: Recipe, small_set: PatchSet) -> None:
    sampler = AdaptivePairs(PAIRS, candidates="memory")
    step, batches = parts(sampler, hardnet, small_set)
    recipe, state = batches.recipe, {**TRAINED, **sampler.start(batches.classes, 16)}
    drawn = batches.make(700)
    described = step.candidates(drawn.x)
    chosen, after = choose_pairs(drawn, sampler, step, batches, state, LATER)

    def pixels(batch: Batch, augment: Augmentation) -> Tensor:
        taken = turn_patches(small_set.take(batch.draw.indices), batch.draw.turns)  # type: ignore[arg-type]
        changed = augment(torch.from_numpy(taken), 24.0, np.random.default_rng([recipe.seed, 700, 1]))
        views = [prepare(view, recipe.network.preprocessing) for view in changed.unbind(1)]
        return torch.cat(views)

    # what is remembered was seen as it is, what is trained on is augmented as every batch is
    unchanged = Augmentation(flips="none", detector_noise=0.0)
    assert torch.allclose(drawn.x, pixels(drawn, unchanged), atol=1e-5)
    assert chosen.draw.indices.shape == (PAIRS, 2)
    assert torch.allclose(chosen.x, pixels(chosen, LIGHT), atol=1e-5)
    assert not torch.allclose(chosen.x, pixels(chosen, unchanged), atol=0.1)
    rows = torch.from_numpy(drawn.draw.rows.T.flatten())  # type: ignore[union-attr]
    assert torch.allclose(after["memory"][rows].float(), described, atol=1e-3)  # half precision
    assert after["memory"].any(1).sum() == 2 * PAIRS


@pytest.mark.parametrize("candidates", ["all", "memory"])
def test_the_choice_is_a_function_of_state_and_step(candidates: str, hardnet: Recipe, small_set: PatchSet) -> None:
    sampler = AdaptivePairs(PAIRS, candidates=candidates)  # type: ignore[arg-type]
    step, batches = parts(sampler, hardnet, small_set)
    state = {**TRAINED, **sampler.start(batches.classes, 16)}
    first, after = choose_pairs(batches.make(700), sampler, step, batches, state, LATER)
    again, _ = choose_pairs(batches.make(700), sampler, step, batches, after, LATER)
    assert torch.equal(first.x, again.x)
    reseeded = replace(batches, recipe=replace(batches.recipe, seed=1))
    other, _ = choose_pairs(batches.make(700), sampler, step, reseeded, after, LATER)
    assert not np.array_equal(first.draw.indices, other.draw.indices)


def test_only_a_sampler_with_a_choice_is_asked(hardnet: Recipe) -> None:
    adaptive = AdaptivePairs(PAIRS)
    assert chooser_of(replace(hardnet, sampler=adaptive)) is adaptive
    assert chooser_of(replace(hardnet, sampler=AdaptivePairs(PAIRS, lam=0.0))) is None
    assert chooser_of(replace(hardnet, sampler=RandomPairs(PAIRS))) is None
