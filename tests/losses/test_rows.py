"""Mining and losses a few pairs at a time: the negatives, values and gradients of the whole batch at once."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from keypatch.losses import MINING, TERMS, Described, total_loss
from keypatch.losses.terms import StatefulTerm

OURS = [name for name in TERMS if name != "MetricLearning"]  # that library has no blocks
N = 23


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(made) if isinstance(leaf, Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return made


def described(miner: str, n: int = N, d: int = 8) -> tuple[Described, list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    anchors, noise, third = torch.randn((3, n, d), dtype=torch.float64, generator=generator).unbind()
    leaves = [anchors.requires_grad_(), (anchors + noise).detach().requires_grad_(), third.requires_grad_()]
    point_id = torch.arange(n) // 2 if n % 2 == 0 else torch.arange(n).clamp(max=n - 3)  # some points twice and more
    maps = {"norm1": torch.cat(leaves[:2])}
    batch = Described.of_pairs(
        leaves[0],
        leaves[1],
        MINING[miner](),
        point_id=point_id,
        raw_negatives=leaves[2],
        maps=maps,
        generator=torch.Generator().manual_seed(1),
        teacher=torch.randn((3 * n, d), dtype=torch.float64, generator=generator),
    )
    return batch, leaves


@pytest.mark.parametrize("miner", MINING)
def test_mining_by_blocks_finds_the_same_negatives(miner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = described(miner)
    monkeypatch.setattr("keypatch.losses.rows.AT_ONCE", 5 * N * 2)  # a few rows
    parts, _ = described(miner)
    assert whole.negatives is not None and parts.negatives is not None
    assert torch.equal(whole.negatives.first, parts.negatives.first)
    assert torch.equal(whole.negatives.second, parts.negatives.second)


@pytest.mark.parametrize("term", OURS)
def test_terms_by_blocks_have_the_same_values_and_gradients(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at_once in (2**24, 7 * N):
        monkeypatch.setattr("keypatch.losses.rows.AT_ONCE", at_once)
        batch, leaves = described("Hardest")
        total = total_loss((TERMS[term](),), batch)
        total.value.backward()  # type: ignore[no-untyped-call]
        found.append([total.value.detach(), *(torch.zeros(1) if x.grad is None else x.grad for x in leaves)])
    for whole, parts in zip(*found, strict=True):
        assert torch.allclose(whole, parts, rtol=1e-10, atol=1e-12)
    assert found[0][1].abs().max() > 0


@pytest.mark.parametrize("term", OURS)
def test_no_term_makes_a_matrix_of_all_pairs(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward: the largest tensor of 300 pairs has less than half the numbers of their matrix."""
    n, d = 300, 4
    monkeypatch.setattr("keypatch.losses.rows.AT_ONCE", 8 * n)
    with Largest() as watch:
        batch, _ = described("Hardest", n, d)
        values = TERMS[term]()(batch, {}) if isinstance(TERMS[term](), StatefulTerm) else TERMS[term]()(batch)
        (values[0] if isinstance(values, tuple) else values).sum().backward()
    assert watch.numbers < n * n / 2
