"""The N-pair loss against a library's values, and its limits."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import Described, NPair, NPairHinge


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, Any]:
    with np.load(reference / "modulation.npz") as file:
        keys = ("A_raw", "P_raw", "gorrepo_npair_hinge")
        return {key: file[key] for key in file.files if key.startswith("pml_npair") or key in keys}


def pairs_of(arrays: dict[str, Any]) -> tuple[Tensor, Tensor]:
    return torch.tensor(arrays["A_raw"][0]), torch.tensor(arrays["P_raw"][0])


@pytest.mark.parametrize(("name", "descriptors"), [("norm", "unit"), ("raw", "raw")])
def test_pytorch_metric_learning_agrees(arrays: dict[str, Any], name: str, descriptors: str) -> None:
    a, p = (x.requires_grad_() for x in pairs_of(arrays))
    values = NPair(descriptors=descriptors)(Described.of_pairs(a, p, None))  # type: ignore[arg-type]
    assert values.shape == (64,)
    assert values.mean().item() == pytest.approx(float(arrays[f"pml_npair_{name}_loss"]), rel=1e-9)
    gradient = torch.cat(torch.autograd.grad(values.mean(), (a, p)))
    np.testing.assert_allclose(gradient, arrays[f"pml_npair_{name}_grad"], rtol=0, atol=1e-12)


def test_the_hinge_of_the_gor_code(arrays: dict[str, Any]) -> None:
    values = NPairHinge()(Described.of_pairs(*pairs_of(arrays), None))
    assert values.mean().item() == pytest.approx(float(arrays["gorrepo_npair_hinge"]), rel=1e-9)


def test_a_loop_says_the_same(arrays: dict[str, Any]) -> None:
    a, p = (x[:6] for x in pairs_of(arrays))
    batch = Described.of_pairs(a, p, None)
    s = (10 * batch.anchors @ batch.positives.T).tolist()
    length = [(float(a[i] @ a[i]) + float(p[i] @ p[i])) / 2 for i in range(6)]
    forth = [math.log(sum(math.exp(s[i][j] - s[i][i]) for j in range(6))) for i in range(6)]
    back = [math.log(sum(math.exp(s[j][i] - s[i][i]) for j in range(6))) for i in range(6)]
    assert NPair(scale=10.0)(batch).tolist() == pytest.approx(forth)
    assert NPair(scale=10.0, symmetric=True)(batch).tolist() == pytest.approx(
        [(x + y) / 2 for x, y in zip(forth, back, strict=True)]
    )
    raw = NPair(descriptors="raw")(batch)
    punished = NPair(descriptors="raw", norm_penalty=0.002)(batch)
    assert (punished - raw).tolist() == pytest.approx([0.002 * x for x in length])


def test_unit_descriptors_cannot_get_below_the_bound() -> None:
    # The bound is reached where all positives lie opposite to the anchors of others: two opposite points.
    a = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    for scale in (1.0, 5.0):
        values = NPair(scale=scale)(Described.of_pairs(a, a, None))
        torch.testing.assert_close(values, torch.full((2,), math.log1p(math.exp(-2 * scale)), dtype=torch.float64))
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 32, 4, generator=generator, dtype=torch.float64)
    assert NPair()(Described.of_pairs(x, y, None)).min() > math.log1p(31 * math.exp(-2))


@pytest.mark.parametrize("term", [NPair(), NPair(symmetric=True), NPair(descriptors="raw"), NPairHinge()])
def test_another_pair_of_the_same_point_is_no_negative(term: NPair | NPairHinge, arrays: dict[str, Any]) -> None:
    a, p = (x[:6] for x in pairs_of(arrays))
    twice = [torch.cat([x, x[:1]]) for x in (a, p)]
    values = term(Described.of_pairs(*twice, None, point_id=torch.tensor([0, 1, 2, 3, 4, 5, 0])))
    # the pair that comes twice finds what it found before; the others meet its positive twice
    torch.testing.assert_close(values[[0, 6]], term(Described.of_pairs(a, p, None))[[0, 0]])
    assert term(Described.of_pairs(*twice, None))[0] > values[0]  # as a negative it would count


def test_great_scales_do_not_overflow() -> None:
    a = 100 * torch.eye(3).repeat(2, 1)  # in float32, products of 10000
    a.requires_grad_()
    values = NPair(descriptors="raw", symmetric=True)(Described.of_pairs(a, -a.detach(), None))
    assert values.isfinite().all() and torch.autograd.grad(values.sum(), a)[0].isfinite().all()


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(RecipeError, match="raw"):
        NPair(descriptors="long")  # type: ignore[arg-type]
