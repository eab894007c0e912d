"""L2-Net's softmax on layers: a loop, and the layer that is missing."""

import math

import pytest
import torch
from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.losses import Described, IntermediateSoftmax


def random_batch(n: int = 6) -> tuple[Described, Tensor]:
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(2 * n, 4, generator=generator, dtype=torch.float64)
    layer = torch.randn(2 * n, 10, generator=generator, dtype=torch.float64, requires_grad=True)
    return Described.of_pairs(raw[:n], raw[n:], None, maps={"norm1": layer}), layer


@pytest.mark.parametrize("scaled", [False, True])
def test_equals_a_loop_over_both_layers(scaled: bool) -> None:
    batch, layer = random_batch()
    expected = [0.0] * 6
    for x in (layer.detach(), batch.raw):
        g = (x[:6] @ x[6:].T / (math.sqrt(x.shape[1]) if scaled else 1.0)).tolist()
        for i in range(6):
            row = sum(math.exp(g[i][j] - g[i][i]) for j in range(6))
            column = sum(math.exp(g[j][i] - g[i][i]) for j in range(6))
            expected[i] += math.log(row) + math.log(column)
    assert IntermediateSoftmax(scaled=scaled)(batch).tolist() == pytest.approx(expected, rel=1e-9)


def test_the_gradient_reaches_the_layer() -> None:
    batch, layer = random_batch()
    (gradient,) = torch.autograd.grad(IntermediateSoftmax()(batch).sum(), layer)
    assert gradient.isfinite().all() and gradient.abs().sum(1).min() > 0


def test_maps_of_any_size_stay_finite() -> None:
    batch, layer = random_batch()
    large = Described.of_pairs(batch.raw[:6], batch.raw[6:], None, maps={"norm1": 1e3 * layer})
    values = IntermediateSoftmax()(large)
    (gradient,) = torch.autograd.grad(values.sum(), layer)
    assert values.isfinite().all() and gradient.isfinite().all()


def test_a_missing_layer_is_a_sentence() -> None:
    batch, _ = random_batch()
    with pytest.raises(KeypatchError, match='layer "norm1"'):
        IntermediateSoftmax()(Described.of_pairs(batch.raw[:6], batch.raw[6:], None))
