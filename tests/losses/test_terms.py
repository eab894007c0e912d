"""What every loss term keeps, whatever it computes; a new one is tested by being in the table."""

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses import (
    TERMS,
    AnyTerm,
    AverageTriplet,
    Described,
    Hardest,
    Mining,
    RandomInBatch,
    SecondOrder,
    StatefulTerm,
    Triplet,
)

MINER = Hardest(blocks=("anchors", "positives", "rows", "columns"))
ONE_WAY = ("NPair", "NPairHinge", "MetricLearning")  # anchors ask for positives; the library may draw pairs at random


def noisy_pairs(n: int = 16, d: int = 12, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    anchors = 2 * torch.randn(n, d, generator=generator, dtype=torch.float64)
    return anchors, anchors + torch.randn(n, d, generator=generator, dtype=torch.float64)


@pytest.fixture(params=TERMS, ids=str)
def term(request: pytest.FixtureRequest) -> AnyTerm:
    made: AnyTerm = TERMS[request.param]()
    return made


def described(anchors: Tensor, positives: Tensor, mining: Mining | None = MINER) -> Described:
    """A batch as a training step makes it, the layers of the network and a teacher's descriptors included."""
    maps = {"norm1": 0.3 * torch.cat([anchors, positives]).tanh()}
    third = anchors.roll(1, 0)
    teacher = torch.cat([anchors, positives, third]).detach().sign().double() / anchors.shape[1] ** 0.5
    return Described.of_pairs(anchors, positives, mining, raw_negatives=third, maps=maps, teacher=teacher)


def values_of(term: AnyTerm, batch: Described) -> Tensor:
    """What a term gives in the first batch of its life."""
    return term(batch, term.start())[0] if isinstance(term, StatefulTerm) else term(batch)


def test_one_value_per_pair_or_one_of_the_batch(term: AnyTerm) -> None:
    values = values_of(term, described(*noisy_pairs()))
    assert values.shape in ((16,), ()) and bool(values.isfinite().all())


def test_permuted_pairs_give_permuted_values(term: AnyTerm) -> None:
    anchors, positives = noisy_pairs()
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    values = values_of(term, described(anchors, positives))
    permuted = values_of(term, described(anchors[order], positives[order]))
    torch.testing.assert_close(permuted, values[order] if values.ndim else values)


def test_exchanging_anchors_and_positives_changes_nothing(term: AnyTerm) -> None:
    if type(term).__name__ in ONE_WAY:
        pytest.skip("anchors and positives have different parts in it")
    anchors, positives = noisy_pairs()
    values = values_of(term, described(anchors, positives))
    torch.testing.assert_close(values_of(term, described(positives, anchors)), values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["identical", "opposite", "identical unit length", "one zero"])
def test_gradients_are_finite(term: AnyTerm, kind: str, dtype: torch.dtype) -> None:
    anchors, positives = (x.to(dtype) for x in noisy_pairs())
    if kind == "identical":
        positives = anchors.clone()
    elif kind == "opposite":
        positives = -anchors
    elif kind == "identical unit length":
        anchors = anchors / anchors.norm(dim=1, keepdim=True)
        positives = anchors.clone()
    else:
        anchors[3] = 0
    anchors.requires_grad_()
    positives.requires_grad_()
    values = values_of(term, described(anchors, positives))
    gradients = torch.autograd.grad(values.sum(), (anchors, positives))
    assert bool(values.isfinite().all()) and all(bool(g.isfinite().all()) for g in gradients)


def test_gradients_equal_differences(term: AnyTerm) -> None:
    if isinstance(term, StatefulTerm):
        pytest.skip("its weights are constants to the gradient, not to a difference")
    anchors, positives = (x.requires_grad_() for x in noisy_pairs(12, 5))
    assert torch.autograd.gradcheck(lambda a, p: values_of(term, described(a, p)), (anchors, positives), fast_mode=True)


def test_half_precision_outputs_give_float32_values(term: AnyTerm) -> None:
    anchors, positives = (x.bfloat16() for x in noisy_pairs())
    with torch.autocast("cpu", torch.bfloat16):
        values = values_of(term, described(anchors, positives))
    exact = values_of(term, described(anchors.float(), positives.float()))
    torch.testing.assert_close(values, exact, rtol=1e-2 if hasattr(term, "layers") else 1.3e-6, atol=1e-5)


def test_descriptors_that_are_not_finite_show_in_the_loss(term: AnyTerm) -> None:
    anchors, positives = noisy_pairs()
    anchors[3, 2] = torch.nan
    for mining in (MINER, RandomInBatch()):
        assert values_of(term, described(anchors, positives, mining)).mean().isnan()


def test_a_state_goes_on_where_it_was_and_stays_without_gradients(term: AnyTerm) -> None:
    if not isinstance(term, StatefulTerm):
        pytest.skip("it has no state")
    batches = [described(*noisy_pairs(seed=seed)) for seed in range(3)]
    _, first = term(batches[0], term.start())
    _, second = term(batches[1], first)
    value, _ = term(batches[2], second)
    copied = {name: tensor.clone() for name, tensor in second.items()}
    again, after = term(batches[2], copied)
    assert torch.equal(value, again) and all(not tensor.requires_grad for tensor in after.values())
    assert any(not torch.equal(after[name], second[name]) for name in after)
    with torch.no_grad():
        _, kept = term(batches[2], second)
    assert kept.keys() == second.keys() and all(torch.equal(kept[name], second[name]) for name in kept)


def test_terms_are_values(term: AnyTerm) -> None:
    again = dataclasses.replace(term)  # type: ignore[type-var]
    assert again == term and hash(again) == hash(term)
    assert dataclasses.replace(term, weight=0.5).weight == 0.5  # type: ignore[type-var]


def test_a_loss_that_needs_a_negative_says_so() -> None:
    with pytest.raises(KeypatchError, match="none was mined"):
        Triplet()(Described.of_pairs(*noisy_pairs(), None))


@pytest.mark.parametrize("swap", [True, False])
def test_average_triplet_equals_a_loop(swap: bool) -> None:
    batch = Described.of_pairs(*noisy_pairs(), None, point_id=torch.arange(16) // 2)
    distance = [[math.sqrt(float((a - p).square().sum()) + 1e-6) for p in batch.positives] for a in batch.anchors]
    for i, value in enumerate(AverageTriplet(swap=swap)(batch).tolist()):
        others = [j for j in range(16) if j // 2 != i // 2]
        negatives = [min(distance[j][i], distance[i][j]) if swap else distance[j][i] for j in others]
        hinges = [max(0.0, 1.0 + distance[i][i] - negative) for negative in negatives]
        assert value == pytest.approx(sum(hinges) / len(others), rel=1e-9)


@pytest.mark.parametrize("kind", ["code", "paper"])
def test_second_order_equals_a_loop(kind: str) -> None:
    batch = Described.of_pairs(*noisy_pairs(), None)
    a, p = batch.anchors, batch.positives

    def distance(x: Tensor, y: Tensor) -> float:
        return math.sqrt(float((x - y).square().sum()) + 1e-6)

    def nearest(i: int, x: Tensor, y: Tensor) -> set[int]:
        return set(sorted((j for j in range(16) if j != i), key=lambda j: distance(x[i], y[j]))[:3])

    blocks = ((a, a), (p, p), (a, p), (p, a)) if kind == "code" else ((a, a), (p, p))
    near = [set().union(*(nearest(i, x, y) for x, y in blocks)) for i in range(16)]
    if kind == "code":
        near = [near[i] | {j for j in range(16) if i in near[j]} for i in range(16)]
    for i, value in enumerate(SecondOrder(k=3, neighbours=kind)(batch).tolist()):  # type: ignore[arg-type]
        squares = [(distance(a[i], a[j]) - distance(p[i], p[j])) ** 2 for j in near[i]]
        assert value == pytest.approx(math.sqrt(sum(squares) + 1e-6), rel=1e-9)


def test_second_order_names_its_limits() -> None:
    with pytest.raises(KeypatchError, match="at least 10 pairs"):
        SecondOrder(k=8)(Described.of_pairs(*noisy_pairs(9), None))
    assert SecondOrder(k=8)(Described.of_pairs(*noisy_pairs(10), None)).shape == (10,)
    with pytest.raises(RecipeError, match="at least 1"):
        SecondOrder(k=0)
