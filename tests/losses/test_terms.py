"""What every loss term keeps, whatever it computes; a new one is tested by being in the table."""

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses import TERMS, AverageTriplet, Described, Hardest, LossTerm, RandomInBatch, SecondOrder, Triplet

MINER = Hardest(blocks=("anchors", "positives", "rows", "columns"))


def noisy_pairs(n: int = 16, d: int = 12, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    anchors = 2 * torch.randn(n, d, generator=generator, dtype=torch.float64)
    return anchors, anchors + torch.randn(n, d, generator=generator, dtype=torch.float64)


@pytest.fixture(params=TERMS, ids=str)
def term(request: pytest.FixtureRequest) -> LossTerm:
    made: LossTerm = TERMS[request.param]()
    return made


def test_one_value_per_pair(term: LossTerm) -> None:
    values = term(Described.of_pairs(*noisy_pairs(), MINER))
    assert values.shape == (16,) and bool(values.isfinite().all())


def test_permuted_pairs_give_permuted_values(term: LossTerm) -> None:
    anchors, positives = noisy_pairs()
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    values = term(Described.of_pairs(anchors, positives, MINER))
    permuted = term(Described.of_pairs(anchors[order], positives[order], MINER))
    torch.testing.assert_close(permuted, values[order])


def test_exchanging_anchors_and_positives_changes_nothing(term: LossTerm) -> None:
    anchors, positives = noisy_pairs()
    values = term(Described.of_pairs(anchors, positives, MINER))
    torch.testing.assert_close(term(Described.of_pairs(positives, anchors, MINER)), values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["identical", "opposite", "identical unit length", "one zero"])
def test_gradients_are_finite(term: LossTerm, kind: str, dtype: torch.dtype) -> None:
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
    values = term(Described.of_pairs(anchors, positives, MINER))
    gradients = torch.autograd.grad(values.sum(), (anchors, positives))
    assert bool(values.isfinite().all()) and all(bool(g.isfinite().all()) for g in gradients)


def test_gradients_equal_differences(term: LossTerm) -> None:
    anchors, positives = (x.requires_grad_() for x in noisy_pairs(12, 5))
    assert torch.autograd.gradcheck(
        lambda a, p: term(Described.of_pairs(a, p, MINER)), (anchors, positives), fast_mode=True
    )


def test_half_precision_outputs_give_float32_values(term: LossTerm) -> None:
    anchors, positives = (x.bfloat16() for x in noisy_pairs())
    with torch.autocast("cpu", torch.bfloat16):
        values = term(Described.of_pairs(anchors, positives, MINER))
    torch.testing.assert_close(values, term(Described.of_pairs(anchors.float(), positives.float(), MINER)))


def test_descriptors_that_are_not_finite_show_in_the_loss(term: LossTerm) -> None:
    anchors, positives = noisy_pairs()
    anchors[3, 2] = torch.nan
    for mining in (MINER, RandomInBatch()):
        assert term(Described.of_pairs(anchors, positives, mining)).mean().isnan()


def test_terms_are_values(term: LossTerm) -> None:
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
