"""L2-Net's softmax over the batch: figures of HardNet's code, a loop, and what Keller et al. say it is."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.losses import BatchSoftmax, Described, Euclidean, ScaleAware
from keypatch.losses.measures import distance_matrix

Arrays = Mapping[str, Any]


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Arrays:
    with np.load(reference / "triplets.npz") as file:
        return dict(file)


def noisy_batch(n: int = 16, point_id: Tensor | None = None) -> Described:
    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(n, 8, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, 8, generator=generator, dtype=torch.float64)
    return Described.of_pairs(anchors, anchors + noise, None, point_id=point_id)


@pytest.mark.parametrize(("name", "swap"), [("l2net_softmax_swap", True), ("l2net_softmax_rows", False)])
def test_values_and_gradients_of_the_file(name: str, swap: bool, arrays: Arrays) -> None:
    anchors, positives = (torch.tensor(arrays[f"in/base/raw_{side}"], requires_grad=True) for side in "ap")
    value = BatchSoftmax(swap=swap)(Described.of_pairs(anchors, positives, None)).mean()
    assert value.item() == pytest.approx(float(arrays[f"base/{name}/loss"]), rel=1e-9)
    for gradient, side in zip(torch.autograd.grad(value, (anchors, positives)), ("ga", "gp"), strict=True):
        np.testing.assert_allclose(gradient, arrays[f"base/{name}/{side}"], rtol=0, atol=1e-10)


def test_equals_a_loop_and_leaves_out_other_pairs_of_the_point() -> None:
    batch = noisy_batch(point_id=torch.arange(16) // 2)
    d = [[math.sqrt(float((a - p).square().sum()) + 1e-6) for p in batch.positives] for a in batch.anchors]
    for i, value in enumerate(BatchSoftmax()(batch).tolist()):
        others = [j for j in range(16) if j == i or j // 2 != i // 2]
        row = math.exp(-d[i][i]) / sum(math.exp(-d[i][j]) for j in others)
        column = math.exp(-d[i][i]) / sum(math.exp(-d[j][i]) for j in others)
        assert value == pytest.approx(-math.log(row) - math.log(column), rel=1e-9)


def test_it_is_a_triplet_loss_with_all_negatives_in_one() -> None:
    batch = noisy_batch()
    distances = distance_matrix(batch.anchors, batch.positives)
    negatives = distances.masked_fill(batch.same_point(), torch.inf)
    amalgamated = -(-negatives).logsumexp(1)  # Keller et al., eq. 82
    expected = ScaleAware("log").of_distances(batch.positive_distances(Euclidean()), amalgamated)
    torch.testing.assert_close(BatchSoftmax(swap=False)(batch), expected, rtol=1e-12, atol=1e-12)
    nearest = negatives.amin(1)
    assert (amalgamated <= nearest).all() and (amalgamated >= nearest - math.log(15)).all()
    # So it lies above the loss with the nearest negative alone, by less than log(n - 1).
    hardest = ScaleAware("log").of_distances(batch.positive_distances(), nearest)
    values = BatchSoftmax(swap=False)(batch)
    assert (values >= hardest).all() and (values <= hardest + math.log(15)).all()
