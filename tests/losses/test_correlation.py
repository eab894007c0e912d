"""Correlations between dimensions: figures of HardNet's code, and numpy's coefficients."""

from pathlib import Path

import numpy as np
import pytest
import torch

from keypatch.errors import RecipeError
from keypatch.losses import Correlation, Described, total_loss


def noisy_batch(n: int = 20, d: int = 6) -> Described:
    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return Described.of_pairs(anchors, anchors + torch.randn(n, d, generator=generator, dtype=torch.float64), None)


def test_values_and_gradients_of_the_file(reference: Path) -> None:
    with np.load(reference / "triplets.npz") as arrays:
        anchors = torch.tensor(arrays["in/base/raw_a"], requires_grad=True)
        value = Correlation("hardnet")(Described.of_pairs(anchors, torch.tensor(arrays["in/base/raw_p"]), None))
        assert value.item() == pytest.approx(float(arrays["base/corr_penalty/loss"]), rel=1e-9)
        (gradient,) = torch.autograd.grad(value, anchors)
        np.testing.assert_allclose(gradient, arrays["base/corr_penalty/ga"], rtol=0, atol=1e-10)


def test_l2net_form_is_the_mean_square_of_numpys_coefficients() -> None:
    batch = noisy_batch()
    squares = [np.corrcoef(x.numpy().T)[~np.eye(6, dtype=bool)] ** 2 for x in (batch.anchors, batch.positives)]
    assert Correlation()(batch).item() == pytest.approx(np.mean(squares), rel=1e-9)
    paper = 0.5 * sum(float(x.sum()) for x in squares)  # E2
    assert total_loss((Correlation(weight=6 * 5 / 20),), batch, "sum").value.item() == pytest.approx(paper, rel=1e-9)


def test_copied_dimensions_are_the_worst() -> None:
    x = torch.randn(20, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).abs() + 0.1
    # Unit length removes a common factor, so one more dimension has to vary against the copies.
    raw = torch.cat([x, x, torch.ones_like(x)], 1)
    copies = Described.of_pairs(raw, raw, None)
    assert float(Correlation()(copies)) > 0.9 > float(Correlation()(noisy_batch()))


@pytest.mark.parametrize("form", ["l2net", "hardnet"])
def test_a_constant_dimension_and_a_single_pair_have_finite_gradients(form: str) -> None:
    constant = torch.eye(4)[0].repeat(5, 1)
    for raw in (constant, constant[:1]):
        anchors, positives = raw.clone().requires_grad_(), raw.clone().requires_grad_()
        value = Correlation(form)(Described.of_pairs(anchors, positives, None))  # type: ignore[arg-type]
        gradients = torch.autograd.grad(value, (anchors, positives), allow_unused=True)
        assert value.isfinite() and all(g is None or bool(g.isfinite().all()) for g in gradients)


def test_an_unknown_form_is_a_sentence() -> None:
    with pytest.raises(RecipeError, match="hardnet"):
        Correlation("cosine")  # type: ignore[arg-type]
