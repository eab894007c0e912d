"""The lifted structure loss against a library's and closed values, and its limits."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import Described, Lifted

VARIANTS = {
    "lifted_smooth_own": Lifted(),
    "lifted_hardmax_own": Lifted(kind="hard"),
    "lifted_smooth_raw_own": Lifted(descriptors="raw"),
}


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, Any]:
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in file.files if key.startswith(("lifted", "pml_lifted", "emb", "lab"))}


def stack(arrays: dict[str, Any], per_class: int) -> tuple[Tensor, Described]:
    """The embeddings on file as the stack [anchors; positives]; labels of both halves are equal there."""
    raw = torch.tensor(arrays[f"emb{per_class}"], requires_grad=True)
    labels = torch.tensor(arrays[f"lab{per_class}"])
    half = len(raw) // 2
    batch = Described.of_pairs(raw[:half], raw[half:], None, point_id=labels[:half])
    assert torch.equal(batch.labels, labels)
    return raw, batch


@pytest.mark.parametrize("per_class", [2, 4])
def test_pytorch_metric_learning_agrees(arrays: dict[str, Any], per_class: int) -> None:
    raw, batch = stack(arrays, per_class)
    value = Lifted()(batch)
    assert value.shape == () and value.item() == pytest.approx(float(arrays[f"pml_lifted_{per_class}_loss"]), rel=1e-9)
    gradient = torch.autograd.grad(value, raw)[0]
    np.testing.assert_allclose(gradient, arrays[f"pml_lifted_{per_class}_grad"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("per_class", [2, 4])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_closed_forms(arrays: dict[str, Any], name: str, per_class: int) -> None:
    _, batch = stack(arrays, per_class)
    assert VARIANTS[name](batch).item() == pytest.approx(float(arrays[f"{name}_{per_class}"]), rel=1e-9)


@pytest.mark.parametrize("kind", ["smooth", "hard"])
def test_a_loop_says_the_same(kind: str) -> None:
    x = torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ids = [0, 0, 1, 2, 3, 3]  # points with two and with four patches
    labels = ids + ids
    batch = Described.of_pairs(x[:6], x[6:], None, point_id=torch.tensor(ids))
    distance = [[math.dist(p, q) for q in x.tolist()] for p in x.tolist()]
    squares = []
    for i in range(12):
        for j in range(i + 1, 12):
            if labels[i] == labels[j]:
                negative = [1 - distance[e][k] for e in (i, j) for k in range(12) if labels[k] != labels[e]]
                nearest = max(negative) if kind == "hard" else math.log(sum(map(math.exp, negative)))
                squares.append(max(0.0, nearest + distance[i][j]) ** 2)
    term = Lifted(kind=kind, descriptors="raw")  # type: ignore[arg-type]
    assert term(batch).item() == pytest.approx(sum(squares) / (2 * len(squares)), rel=1e-9)


@pytest.mark.parametrize("kind", ["smooth", "hard"])
@pytest.mark.parametrize("descriptors", ["unit", "raw"])
def test_identical_descriptors_have_finite_gradients(kind: str, descriptors: str) -> None:
    x = torch.ones(8, 4, requires_grad=True)
    value = Lifted(kind=kind, descriptors=descriptors)(Described.of_pairs(x[:4], x[4:], None))  # type: ignore[arg-type]
    assert torch.autograd.grad(value, x)[0].isfinite().all()
    expected = 1 + (math.log(12) if kind == "smooth" else 0)  # J: 2 (2n - 2) negatives at distance 0, margin 1
    assert value.item() == pytest.approx(expected**2 / 2, rel=1e-5)


def test_far_away_negatives_leave_the_hard_form_at_rest_and_long_ones_do_not_overflow() -> None:
    x = 1000 * torch.eye(4).repeat(2, 1)
    assert Lifted(kind="hard", descriptors="raw")(Described.of_pairs(x[:4], x[4:], None)).item() == 0.0
    assert Lifted(descriptors="raw")(Described.of_pairs(x[:4], -x[:4], None)).isfinite()


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(RecipeError, match="smooth"):
        Lifted(kind="soft")  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="raw"):
        Lifted(descriptors="long")  # type: ignore[arg-type]
