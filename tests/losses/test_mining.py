"""Which negatives are chosen: against a slow loop, and the rules about duplicates and equal points."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses import (
    MINING,
    AntiNoise,
    Described,
    Hardest,
    HardestBits,
    Negatives,
    RandomInBatch,
    ThirdPatch,
)

BLOCKS = ("anchors", "positives", "rows", "columns")
BLOCK_SETS = [blocks for k in range(1, 5) for blocks in itertools.combinations(BLOCKS, k)]


def noisy_pairs(n: int, d: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    anchors = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return anchors, anchors + 0.5 * torch.randn(n, d, generator=generator, dtype=torch.float64)


def loop_distances(batch: Described, blocks: tuple[str, ...], i: int, j: int) -> dict[str, float]:
    """Pair i against pair j in every block, one number at a time."""
    a, p = batch.anchors, batch.positives
    ends = {"anchors": (a[i], a[j]), "positives": (p[i], p[j]), "rows": (a[i], p[j]), "columns": (p[i], a[j])}
    return {block: float((ends[block][0] - ends[block][1]).norm()) for block in blocks}


def mined_points(batch: Described, negatives: Negatives) -> list[tuple[int, int]]:
    """The two pairs each negative joins."""
    return list(zip((negatives.first % batch.n).tolist(), (negatives.second % batch.n).tolist(), strict=True))


@pytest.mark.parametrize("duplicates", ["entry", "classes"])
@pytest.mark.parametrize("blocks", BLOCK_SETS)
def test_hardest_equals_a_loop(blocks: tuple[str, ...], duplicates: str) -> None:
    batch = Described.of_pairs(*noisy_pairs(24), None)
    threshold = 0.7  # many candidates fall under it
    batch = Described.of_pairs(batch.raw_anchors, batch.raw_positives, Hardest(blocks, threshold, duplicates))  # type: ignore[arg-type]
    for i, found in enumerate(batch.negative_distances().tolist()):
        rows = [list(loop_distances(batch, blocks, i, j).values()) for j in range(24) if j != i]
        if duplicates == "classes":
            rows = [row for row in rows if min(row) >= threshold]
        hardest = min(d for row in rows for d in row if d >= threshold)
        assert found == pytest.approx(math.sqrt(hardest**2 + 1e-6), rel=1e-9)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12), classes=st.integers(2, 5))
@settings(deadline=None)
def test_no_miner_joins_a_point_to_itself(seed: int, n: int, classes: int) -> None:
    point_id = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(seed))
    point_id[:2] = torch.arange(2)  # at least two points, so that every pair has a negative
    for mining in (Hardest(BLOCKS, 0.0), RandomInBatch(BLOCKS, 0.0)):
        batch = Described.of_pairs(*noisy_pairs(n, seed=seed), mining, point_id=point_id)
        assert batch.negatives is not None
        assert all(point_id[i] != point_id[j] for i, j in mined_points(batch, batch.negatives))


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_a_permuted_batch_has_the_permuted_negatives(seed: int) -> None:
    anchors, positives = noisy_pairs(12, seed=seed)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
    plain = Described.of_pairs(anchors, positives, Hardest(BLOCKS))
    permuted = Described.of_pairs(anchors[order], positives[order], Hardest(BLOCKS))
    torch.testing.assert_close(permuted.negative_distances(), plain.negative_distances()[order])


def test_every_negative_belongs_to_its_own_pair() -> None:
    for mining in (Hardest(BLOCKS), RandomInBatch()):
        batch = Described.of_pairs(*noisy_pairs(16), mining)
        assert batch.negatives is not None
        assert all(i in ends for i, ends in enumerate(mined_points(batch, batch.negatives)))


def test_a_near_copy_is_not_a_negative_but_the_next_is() -> None:
    anchors, positives = noisy_pairs(8)
    positives[5] = anchors[2] + 1e-4  # the same patch under another label
    batch = Described.of_pairs(anchors, positives, Hardest(("rows",)))
    kept = Described.of_pairs(anchors, positives, Hardest(("rows",), duplicate_threshold=0.0))
    assert batch.negatives is not None and kept.negatives is not None
    assert kept.negatives.second[2] == 8 + 5
    assert batch.negatives.second[2] != 8 + 5


def test_classes_rule_drops_a_pair_of_classes_in_every_block() -> None:
    anchors, positives = noisy_pairs(8)
    anchors[5] = anchors[2]  # classes 2 and 5 are one, seen in the a-a block only
    positives[5] = 0.9 * positives[2] + 0.1 * positives[5]  # close, and above the threshold
    entry = Described.of_pairs(anchors, positives, Hardest(BLOCKS, duplicates="entry"))
    classes = Described.of_pairs(anchors, positives, Hardest(BLOCKS, duplicates="classes"))
    assert entry.negatives is not None and classes.negatives is not None
    assert set(mined_points(entry, entry.negatives)[2]) == {2, 5}
    assert set(mined_points(classes, classes.negatives)[2]) != {2, 5}


def test_random_partners_are_uniform_and_follow_the_generator() -> None:
    anchors, positives = noisy_pairs(40)
    row = torch.arange(40)

    def steps_to_partner(generator: torch.Generator) -> Tensor:
        batch = Described.of_pairs(anchors, positives, RandomInBatch(("rows",)), generator=generator)
        assert batch.negatives is not None
        return (batch.negatives.second - row) % 40

    first, again = (steps_to_partner(torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)
    generator = torch.Generator().manual_seed(0)
    counts = torch.stack([steps_to_partner(generator) for _ in range(30)]).flatten().bincount(minlength=40)
    assert counts[0] == 0  # never the pair itself
    assert counts[1:].min() > 8 and counts[1:].max() < 54  # 31 each; the standard deviation is 5.5


def test_random_takes_the_nearest_block_with_its_partner() -> None:
    batch = Described.of_pairs(*noisy_pairs(16), RandomInBatch())
    assert batch.negatives is not None
    for i, (first, second) in enumerate(mined_points(batch, batch.negatives)):
        j = second if first == i else first
        nearest = min(loop_distances(batch, ("rows", "columns"), i, j).values())
        assert batch.negative_distances()[i].item() == pytest.approx(math.sqrt(nearest**2 + 1e-6), rel=1e-9)


def test_third_patch_with_swap_takes_the_nearer_side() -> None:
    anchors, positives = noisy_pairs(6)
    third, _ = noisy_pairs(6, seed=1)
    swap = Described.of_pairs(anchors, positives, ThirdPatch(), raw_negatives=third).negative_distances()
    from_anchor = Described.of_pairs(
        anchors, positives, ThirdPatch(swap=False), raw_negatives=third
    ).negative_distances()
    from_positive = Described.of_pairs(
        positives, anchors, ThirdPatch(swap=False), raw_negatives=third
    ).negative_distances()
    assert torch.equal(swap, torch.minimum(from_anchor, from_positive))


def test_mining_is_detached_and_same_under_autocast() -> None:
    anchors, positives = (x.float().requires_grad_() for x in noisy_pairs(64, d=128))
    plain = Described.of_pairs(anchors, positives, Hardest(BLOCKS)).negatives
    with torch.autocast("cpu", torch.bfloat16):
        half = Described.of_pairs(anchors, positives, Hardest(BLOCKS)).negatives
    assert plain is not None and half is not None
    assert not plain.first.is_floating_point() and not plain.first.requires_grad
    assert torch.equal(plain.first, half.first) and torch.equal(plain.second, half.second)


@pytest.mark.parametrize("mining", [Hardest(), Hardest(BLOCKS, duplicates="classes"), RandomInBatch()])
@pytest.mark.parametrize("kind", ["one pair", "one point", "collapsed"])
def test_a_pair_without_a_negative_is_a_sentence(mining: Hardest | RandomInBatch, kind: str) -> None:
    anchors, positives = noisy_pairs(1 if kind == "one pair" else 6)
    point_id = torch.zeros(6, dtype=torch.int64) if kind == "one point" else None
    if kind == "collapsed":
        anchors, positives = torch.ones(6, 8), torch.ones(6, 8)
    with pytest.raises(KeypatchError, match="no valid negative"):
        Described.of_pairs(anchors, positives, mining, point_id=point_id)


def test_one_pair_without_a_negative_among_others_is_counted() -> None:
    between = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # the first is under 1 from both, these are 1.41 apart
    with pytest.raises(KeypatchError, match="1 of the 3 pairs"):
        Described.of_pairs(between, between, Hardest(duplicate_threshold=1.0))


def test_wrong_settings_are_named() -> None:
    with pytest.raises(RecipeError, match='anchors, positives, rows, columns; "row" is not one'):
        Hardest(blocks=("row",))
    with pytest.raises(RecipeError, match="none is given"):
        RandomInBatch(blocks=())
    with pytest.raises(RecipeError, match='"entry" or "classes"'):
        Hardest(duplicates="class")  # type: ignore[arg-type]
    with pytest.raises(KeypatchError, match="third patch for every pair"):
        Described.of_pairs(*noisy_pairs(4), ThirdPatch())


def test_the_table_holds_every_miner() -> None:
    wanted = (Hardest, RandomInBatch, ThirdPatch, AntiNoise, HardestBits)
    assert {miner.__name__: miner for miner in wanted} == MINING
