"""AdaptivePairs: candidates, the choice among them, the moving average and the memory."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.errors import DataError, RecipeError
from keypatch.losses import Angle, Described, Euclidean, Hardest, Moment, Raw, SquaredAngle, State, Triplet
from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling import AdaptivePairs, Draw
from keypatch.sampling.probabilities import power_probabilities

LATER = Moment(50, 100)
TRAINED: State = {"loss": torch.tensor(1.2)}


def rows_of(angles: list[float], n: int, padding: int = 0) -> tuple[Draw, Tensor]:
    """n equal rows of candidates, unit vectors of a circle at these angles, then empty places."""
    k = len(angles) + padding
    indices = np.where(np.arange(k) < len(angles), np.arange(k), -1)
    turned = torch.tensor([*angles, *[3.0] * padding], dtype=torch.float64)
    circle = torch.stack([turned.cos(), turned.sin()], 1)
    return Draw(np.tile(indices, (n, 1)), np.arange(n)), circle.expand(n, -1, -1)


def columns(sampler: AdaptivePairs, angles: list[float], n: int, state: State = TRAINED, seed: int = 0) -> Tensor:
    drawn, descriptors = rows_of(angles, n, padding=2)
    pairs, chosen, _ = sampler.choose(drawn, descriptors, state, LATER, np.random.default_rng(seed))
    assert chosen is not None and np.array_equal(pairs.indices, chosen.numpy())  # here patch j stands in column j
    return chosen


def joint_counts(chosen: Tensor, k: int) -> np.ndarray:
    counts = np.zeros((k, k))
    np.add.at(counts, (chosen[:, 0].numpy(), chosen[:, 1].numpy()), 1)
    return counts


@pytest.mark.parametrize("lam", [1.0, 4.0])
def test_anchor_is_uniform_and_positive_follows_the_power_of_the_distance(lam: float) -> None:
    angles = np.array([0.0, 0.35, 0.9, 1.5])
    distances = np.abs(angles[:, None] - angles)
    expected = 20_000 * power_probabilities(distances, lam / 1.2, ~np.eye(4, dtype=bool))
    counts = joint_counts(columns(AdaptivePairs(lam=lam), angles.tolist(), 80_000), 4)
    off = ~np.eye(4, dtype=bool)
    assert counts.sum() == 80_000 and (counts[~off] == 0).all()
    assert stats.chisquare(counts[off], expected[off]).pvalue > 0.001


def test_the_positive_is_never_the_anchor_nor_an_empty_place() -> None:
    drawn, descriptors = rows_of([0.0, 0.4, 1.0], 3000, padding=3)
    indices = drawn.indices.copy()
    indices[::2, 2] = -1  # every second class has two patches only: p is 1
    drawn = replace(drawn, indices=indices)
    for sampler in (AdaptivePairs(), AdaptivePairs(hardest=True)):
        _, chosen, _ = sampler.choose(drawn, descriptors, TRAINED, LATER, np.random.default_rng(0))
        assert chosen is not None
        assert (chosen[:, 0] != chosen[:, 1]).all() and (chosen[1::2] < 3).all() and (chosen[::2] < 2).all()


def test_hardest_takes_the_farthest_and_shares_ties() -> None:
    chosen = columns(AdaptivePairs(hardest=True), [0.0, 0.5, -0.5, 0.2], 20_000)
    counts = joint_counts(chosen, 4)
    assert (np.flatnonzero(counts[1]), np.flatnonzero(counts[2]), np.flatnonzero(counts[3])) == ([2], [1], [2])
    shared = counts[0]
    assert shared[3] == 0 and abs(shared[1] - shared[2]) < 4 * np.sqrt(shared.sum())


@pytest.mark.parametrize("sampler", [AdaptivePairs(), AdaptivePairs(hardest=True)], ids=["lam 10", "hardest"])
def test_warm_up_and_identical_descriptors_are_uniform(sampler: AdaptivePairs) -> None:
    for angles, moment in (([0.0, 0.2, 1.5], Moment(0.9, 100)), ([0.4] * 3, LATER)):
        drawn, descriptors = rows_of(angles, 30_000)
        _, chosen, _ = sampler.choose(drawn, descriptors, TRAINED, moment, np.random.default_rng(2))
        assert chosen is not None
        counts = joint_counts(chosen, 3)
        assert np.diag(counts).sum() == 0  # even where all are equally near, a patch is not its own positive
        assert stats.chisquare(counts[~np.eye(3, dtype=bool)]).pvalue > 0.001


def test_exponent() -> None:
    sampler = AdaptivePairs(lam=10.0)
    assert sampler.exponent({"loss": torch.tensor(0.8)}, LATER) == pytest.approx(12.5)
    assert sampler.exponent({"loss": torch.tensor(0.8)}, None) == pytest.approx(12.5)  # outside a training
    for steps, warm in ((100, 25), (10_000, 100)):  # a hundredth, but never under 25 steps
        assert sampler.exponent({"loss": torch.tensor(0.8)}, Moment(warm, steps)) == pytest.approx(12.5)
        assert sampler.exponent({"loss": torch.tensor(0.8)}, Moment(warm - 1, steps)) == 0
    assert AdaptivePairs(lam=10.0, warm=0.0).exponent({"loss": torch.tensor(0.8)}, Moment(0, 100)) > 0
    assert sampler.exponent({}, LATER) == 0  # nothing was observed yet
    for tiny in (0.0999, 1e-9, 0.0):
        assert sampler.exponent({"loss": torch.tensor(tiny)}, LATER) == pytest.approx(100)


def batch_of(seed: int, weights: Tensor | None = None) -> Described:
    generator = torch.Generator().manual_seed(seed)
    anchors = torch.randn(16, 8, generator=generator, dtype=torch.float64)
    noise = torch.randn(16, 8, generator=generator, dtype=torch.float64)
    return Described.of_pairs(anchors.requires_grad_(), anchors + 0.5 * noise, Hardest(), weights=weights)


def test_the_average_is_of_the_unweighted_angular_hinge_whatever_the_loss() -> None:
    batches = [batch_of(seed, weights=torch.rand(16)) for seed in range(3)]
    losses = [Triplet(measure=SquaredAngle())(batch).mean().item() for batch in batches]
    assert min(losses) > 0.1
    sampler = AdaptivePairs()
    state = sampler.observe(batches[0], {}, LATER)
    assert state["loss"].item() == pytest.approx(losses[0]) and not state["loss"].requires_grad
    for steps, rate in ((100, 0.1), (2000, 0.025), (10**6, 0.001)):
        after = sampler.observe(batches[1], state, Moment(1, steps))
        assert after["loss"].item() == pytest.approx(losses[0] + rate * (losses[1] - losses[0]))
    assert state["loss"].item() == pytest.approx(losses[0])  # the state before is left as it was
    fixed = AdaptivePairs(rate=0.5).observe(batches[2], state, LATER)
    assert fixed["loss"].item() == pytest.approx((losses[0] + losses[2]) / 2)


def test_candidates_of_each_kind(classes: Classes) -> None:
    sizes = np.diff(classes.starts)
    for sampler, views, count in (
        (AdaptivePairs(40), 15, np.full(classes.count, 15)),
        (AdaptivePairs(40, generate=4), 4, np.full(classes.count, 4)),  # of a larger class, a random four
        (AdaptivePairs(40, generate=0), 6, sizes),
        (AdaptivePairs(40, candidates="few"), 5, np.full(classes.count, 5)),
        (AdaptivePairs(40, candidates="few", generate=0), 5, sizes.clip(max=5)),
        (AdaptivePairs(40, candidates="memory"), 2, np.full(classes.count, 2)),
        (AdaptivePairs(40, candidates="memory", refresh=3, generate=0), 3, sizes.clip(max=3)),
        (AdaptivePairs(40, lam=0.0), 2, np.full(classes.count, 2)),
        (AdaptivePairs(40, lam=0.0, candidates="memory"), 2, np.full(classes.count, 2)),
    ):
        drawn = sampler.draw(classes, 0, 0)
        assert drawn.indices.shape == (40, views)
        assert np.array_equal((drawn.indices >= 0).sum(1), count[drawn.classes])
        assert sampler.remembers == (drawn.pool is not None)


def test_lam_0_needs_no_choice_and_draws_all_slots_equally_often() -> None:
    sampler = AdaptivePairs(2, lam=0.0, generate=4)
    assert not sampler.chooses and AdaptivePairs(lam=0.0, hardest=True).chooses
    classes = classes_of(np.repeat([0, 1], 2), "made")
    turns: dict[tuple[int, float], int] = {}
    for step in range(2000):
        drawn = sampler.draw(classes, 0, step)
        assert drawn.turns is not None
        for key in zip(drawn.indices.ravel().tolist(), drawn.turns.ravel().tolist(), strict=True):
            turns[key] = turns.get(key, 0) + 1
    assert len(turns) == 8 and stats.chisquare(list(turns.values())).pvalue > 0.001


def test_chosen_patches_are_those_in_the_columns(classes: Classes) -> None:
    sampler = AdaptivePairs(40)
    drawn = sampler.draw(classes, 0, 0)
    descriptors = torch.randn(40, 15, 8, generator=torch.Generator().manual_seed(0))
    pairs, chosen, state = sampler.choose(drawn, descriptors, TRAINED, LATER, np.random.default_rng(0))
    assert chosen is not None and drawn.turns is not None and pairs.turns is not None
    row = np.arange(40)[:, None]
    assert np.array_equal(pairs.indices, drawn.indices[row, chosen]) and pairs.classes is drawn.classes
    assert np.array_equal(pairs.turns, drawn.turns[row, chosen])
    assert state["same_source"].item() == pytest.approx(pairs.same_source) and state["loss"] is TRAINED["loss"]


def test_a_choice_depends_on_nothing_but_its_arguments(classes: Classes) -> None:
    sampler = AdaptivePairs(40)
    drawn = sampler.draw(classes, 0, 0)
    descriptors = torch.randn(40, 15, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    before = torch.get_rng_state()
    first, second, other = (
        sampler.choose(drawn, descriptors * scale, TRAINED, LATER, np.random.default_rng(seed))[0].indices
        for scale, seed in ((1.0, 0), (7.0, 0), (1.0, 1))  # descriptors may have any length
    )
    assert np.array_equal(first, second) and not np.array_equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def network(drawn: Draw, seed: int = 0) -> Tensor:
    """A descriptor of each drawn patch that depends on the patch and its turn only."""
    assert drawn.turns is not None
    generator = torch.Generator().manual_seed(seed)
    base = torch.randn(2000, 8, generator=generator)[torch.from_numpy(drawn.indices.clip(min=0))]
    turn = torch.randn(8, generator=generator) * torch.from_numpy(drawn.turns)[..., None] / 25
    return (base + turn).float()


def memory_run(sampler: AdaptivePairs, classes: Classes, steps: range, state: State) -> tuple[list[Draw], State]:
    chosen = []
    for step in steps:
        drawn = sampler.draw(classes, 0, step)
        rng = np.random.default_rng([0, step, 2])
        pairs, none, state = sampler.choose(drawn, network(drawn), state, LATER, rng)
        assert none is None
        chosen.append(pairs)
    return chosen, state


def test_a_memory_saved_and_restored_gives_the_same_choices(classes: Classes) -> None:
    sampler = AdaptivePairs(40, candidates="memory")
    begin = {**sampler.start(classes, 8), **TRAINED}
    whole, _ = memory_run(sampler, classes, range(30), begin)
    _, half = memory_run(sampler, classes, range(15), {**sampler.start(classes, 8), **TRAINED})
    saved = {name: tensor.clone() for name, tensor in half.items()}
    memory_run(sampler, classes, range(15, 20), half)  # goes on, and is lost
    rest, _ = memory_run(sampler, classes, range(15, 30), saved)
    for a, b in zip(whole[15:], rest, strict=True):
        assert np.array_equal(a.indices, b.indices) and np.array_equal(a.turns, b.turns)


def test_a_memory_is_half_floats_of_all_slots_and_nothing_else(classes: Classes) -> None:
    state = AdaptivePairs(candidates="memory").start(classes, 8)
    assert {name: (tuple(t.shape), t.dtype) for name, t in state.items()} == {
        "memory": ((classes.count * 15, 8), torch.float16)
    }
    assert AdaptivePairs().start(classes, 8) == AdaptivePairs(candidates="few").start(classes, 8) == {}


def test_a_memory_offers_what_was_described_and_only_that(classes: Classes) -> None:
    sampler = AdaptivePairs(40, candidates="memory")
    seen: dict[int, set[tuple[int, float]]] = {}
    state: State = {**sampler.start(classes, 8), **TRAINED}
    others = 0
    for step in range(60):
        drawn = sampler.draw(classes, 0, step)
        assert drawn.turns is not None
        pairs, _, state = sampler.choose(drawn, network(drawn), state, LATER, np.random.default_rng([0, step, 2]))
        assert pairs.turns is not None
        for i, point in enumerate(drawn.classes.tolist()):
            fresh = set(zip(drawn.indices[i].tolist(), drawn.turns[i].tolist(), strict=True))
            seen.setdefault(point, set()).update(fresh)
            chosen = set(zip(pairs.indices[i].tolist(), pairs.turns[i].tolist(), strict=True))
            assert len(chosen) == 2 and chosen <= seen[point]
            others += chosen != fresh
    assert others > 500  # of 2400: it does choose among more than the two just described
    filled = int(state["memory"].any(1).sum())
    assert filled == sum(map(len, seen.values()))


def test_a_memory_chooses_as_if_all_had_just_been_described(classes: Classes) -> None:
    """Once every slot is known and the network stands still, "memory" is "all"."""
    every, memory = AdaptivePairs(40), AdaptivePairs(40, candidates="memory")
    state: State = {**memory.start(classes, 8), **TRAINED}
    drawn = memory.draw(classes, 0, 0)
    assert drawn.pool is not None and drawn.pool.rows is not None
    state["memory"][torch.from_numpy(drawn.pool.rows)] = normalize(network(drawn.pool), dim=2).half()
    remembered, _, _ = memory.choose(drawn, network(drawn), state, LATER, np.random.default_rng(3))
    fresh, _, _ = every.choose(drawn.pool, network(drawn.pool), TRAINED, LATER, np.random.default_rng(3))
    assert np.array_equal(remembered.indices, fresh.indices) and np.array_equal(remembered.turns, fresh.turns)


def test_a_network_that_gives_zeros_stops_nothing(classes: Classes) -> None:
    for sampler in (AdaptivePairs(40), AdaptivePairs(40, candidates="memory"), AdaptivePairs(40, hardest=True)):
        drawn = sampler.draw(classes, 0, 0)
        zeros = torch.zeros(*drawn.indices.shape, 8)
        state = {**sampler.start(classes, 8), **TRAINED}
        pairs, _, _ = sampler.choose(drawn, zeros, state, LATER, np.random.default_rng(0))
        assert (pairs.indices >= 0).all()


def test_close_rotations_of_one_source_are_chosen_less_often_than_uniformly() -> None:
    classes = classes_of(np.repeat(np.arange(600), 2), "made")
    adaptive = AdaptivePairs(600)
    drawn = adaptive.draw(classes, 0, 0)
    _, _, state = adaptive.choose(drawn, network(drawn), TRAINED, LATER, np.random.default_rng(0))
    uniform = AdaptivePairs(600, lam=0.0).draw(classes, 0, 0).same_source
    assert abs(uniform - 98 / 210) < 0.08 and state["same_source"].item() < 0.1


def test_the_measure_decides_what_is_far() -> None:
    angles = [0.0, 1.0, 2.9]
    chord = 2 * np.sin(np.array(angles) / 2)
    by_chord = columns(AdaptivePairs(lam=3.0, measure=Euclidean(eps=0.0)), angles, 60_000)
    counts = joint_counts(by_chord, 3)[0]
    expected = counts.sum() * power_probabilities(chord[None], 2.5, np.array([[False, True, True]]))[0]
    assert abs(counts[2] - expected[2]) < 4 * np.sqrt(expected[1])
    assert AdaptivePairs().measure == Angle()


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"lam": -1.0}, {"generate": -1}, {"warm": 1.5}, {"rotation": -5.0}, {"measure": Raw()}):
        with pytest.raises(RecipeError, match="must not be negative"):
            AdaptivePairs(**wrong)  # type: ignore[arg-type]
    for wrong in ({"few": 1}, {"refresh": 1}, {"candidates": "some"}):
        with pytest.raises(RecipeError, match="at least 2"):
            AdaptivePairs(**wrong)  # type: ignore[arg-type]


def test_a_set_of_two_patches_per_point_leaves_nothing_to_choose() -> None:
    classes = classes_of(np.repeat(np.arange(20), 2), "made")
    with pytest.raises(DataError, match=r"nothing to choose from.*sampler\.generate=15"):
        AdaptivePairs(10, generate=0).check(classes)
    AdaptivePairs(10).check(classes)
    AdaptivePairs(10, generate=0, lam=0.0).check(classes)
