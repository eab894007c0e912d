"""GOR against the authors' values, and what the moments of cosines must do."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses import Described, Hardest, SpreadOut, total_loss
from keypatch.recipes import RECIPES

KINDS = ("hinge", "l1", "sqrt", "l2")


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, Any]:
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in file.files if key.startswith("gor_") or key in ("A_raw", "P_raw")}


@pytest.fixture(scope="module")
def triplets(reference: Path) -> dict[str, Any]:
    with np.load(reference / "triplets.npz") as file:
        return {key: file[key] for key in file.files if key.startswith(("base/gor", "in/base", "in/raw_n"))}


def leaf(array: Any) -> Tensor:
    return torch.tensor(array, dtype=torch.float64, requires_grad=True)


def of_third(a: Tensor, third: Tensor) -> Described:
    return Described.of_pairs(a, a, None, raw_negatives=third)


def random_units(n: int, d: int, seed: int = 0) -> Tensor:
    x = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x / x.norm(dim=1, keepdim=True)


def test_the_authors_value_and_gradients(arrays: dict[str, Any]) -> None:
    a, p = leaf(arrays["A_raw"][0]), leaf(arrays["P_raw"][0])
    value = SpreadOut(pairs="roll")(Described.of_pairs(a, p, None))
    assert value.shape == () and value.item() == pytest.approx(float(arrays["gor_code_loss"]), rel=1e-9)
    gradients = torch.autograd.grad(value, (a, p))
    np.testing.assert_allclose(gradients[0], arrays["gor_code_gradA"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(gradients[1].roll(1, 0), arrays["gor_code_gradN"], rtol=0, atol=1e-14)


def test_the_authors_value_and_gradient_where_the_hinge_is_open(arrays: dict[str, Any]) -> None:
    raw = leaf(arrays["gor_corr_raw"])
    value = SpreadOut(pairs="third")(of_third(raw, raw.detach().roll(1, 0)))
    assert value.item() == pytest.approx(float(arrays["gor_corr_loss"]), rel=1e-9)
    np.testing.assert_allclose(torch.autograd.grad(value, raw)[0], arrays["gor_corr_gradA"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_variants_of_the_second_part(arrays: dict[str, Any], kind: str) -> None:
    term = SpreadOut(kind=kind, pairs="roll")  # type: ignore[arg-type]
    anchors, positives, raw = (torch.tensor(arrays[key]) for key in ("A_raw", "P_raw", "gor_corr_raw"))
    expected, correlated = arrays["gor_variants"], arrays["gor_corr_variants"]
    value = term(Described.of_pairs(anchors[0], positives[0], None)).item()
    assert value == pytest.approx(expected[KINDS.index(kind)], rel=1e-9)
    value = term(Described.of_pairs(raw, raw, None)).item()
    assert value == pytest.approx(correlated[KINDS.index(kind)], rel=1e-9)


def test_all_pairs_of_the_batch(arrays: dict[str, Any]) -> None:
    batch = Described.of_pairs(torch.tensor(arrays["A_raw"][0]), torch.tensor(arrays["P_raw"][0]), None)
    assert SpreadOut()(batch).item() == pytest.approx(float(arrays["gor_allpairs"]), rel=1e-9)


@pytest.mark.parametrize(("case", "key"), [("random_neg", "gn"), ("matching", "gp")])
def test_hardnet_with_gor(triplets: dict[str, Any], case: str, key: str) -> None:
    other = triplets["in/raw_n" if case == "random_neg" else "in/base/raw_p"]
    a, third = leaf(triplets["in/base/raw_a"]), leaf(other)
    value = SpreadOut(pairs="third")(of_third(a, third))
    assert value.item() == pytest.approx(float(triplets[f"base/gor_{case}/loss"]), rel=1e-9)
    gradients = torch.autograd.grad(value, (a, third))
    np.testing.assert_allclose(gradients[0], triplets[f"base/gor_{case}/ga"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(gradients[1], triplets[f"base/gor_{case}/{key}"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("pairs", ["all", "roll"])
def test_limits(pairs: str) -> None:
    term = SpreadOut(pairs=pairs)  # type: ignore[arg-type]
    equal = random_units(1, 8).expand(6, 8)
    assert term(Described.of_pairs(equal, equal, None)).item() == pytest.approx(1 + 1 - 1 / 8, rel=1e-12)
    orthonormal = torch.eye(8, dtype=torch.float64)
    assert term(Described.of_pairs(orthonormal, orthonormal, None)).item() == 0.0
    half_turned = equal * torch.tensor([1.0, 1, 1, -1, -1, -1])[:, None]  # M1 = -1/5 over all pairs, M2 = 1
    value = SpreadOut()(Described.of_pairs(half_turned, half_turned, None)).item()
    assert value == pytest.approx(0.2**2 + 1 - 1 / 8, rel=1e-12)


def test_descriptors_uniform_on_the_sphere_are_spread_out_up_to_noise() -> None:
    d, n, batches = 128, 128, 200
    values = [SpreadOut(pairs="third")(of_third(random_units(n, d, k), random_units(n, d, ~k))) for k in range(batches)]
    deviation = math.sqrt((3 / (d * (d + 2)) - 1 / d**2) / n)
    # E[M1^2] = 1/(dn); the hinge of a normal variable around 0 has mean deviation / sqrt(2 pi). 200 batches: 9 %.
    expected = 1 / (d * n) + deviation / math.sqrt(2 * math.pi)
    assert torch.stack(values).mean().item() == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("pairs", ["all", "roll"])
def test_patches_of_one_point_are_no_pair(pairs: str) -> None:
    a, p = random_units(8, 6, 1), random_units(8, 6, 2)
    point_id = torch.tensor([0, 0, 1, 1, 2, 3, 3, 3])
    if pairs == "all":
        chosen = [(i, j) for i in range(8) for j in range(8) if point_id[i] != point_id[j]]
    else:
        chosen = [(i, i - 1) for i in range(8) if point_id[i] != point_id[i - 1]]
    cosines = torch.stack([a[i] @ p[j] for i, j in chosen])
    expected = cosines.mean() ** 2 + (cosines.square().mean() - 1 / 6).clamp(min=0)
    term = SpreadOut(pairs=pairs)  # type: ignore[arg-type]
    torch.testing.assert_close(term(Described.of_pairs(a, p, None, point_id=point_id)), expected)


def test_mining_does_not_choose_the_pairs() -> None:
    a, p = random_units(16, 6, 1), random_units(16, 6, 2)
    for pairs in ("all", "roll"):
        term = SpreadOut(pairs=pairs)  # type: ignore[arg-type]
        assert term(Described.of_pairs(a, p, Hardest())) == term(Described.of_pairs(a, p, None))


def test_the_gradient_is_orthogonal_to_the_raw_descriptor_and_the_closed_hinge_has_none() -> None:
    raw = (3 * random_units(32, 64)).requires_grad_()
    term = SpreadOut(kind="l1")
    (gradient,) = torch.autograd.grad(term(Described.of_pairs(raw, raw.detach(), None)), raw)
    assert (gradient * raw).sum(1).abs().max() < 1e-14 * 32 and gradient.norm() > 1e-3
    spread, near = (
        torch.autograd.grad(SpreadOut(beta=beta)(Described.of_pairs(raw, raw.detach(), None)), raw)[0]
        for beta in (64.0, 0.0)  # 64/d = 1: closed; 0: open
    )
    cosines = (raw / raw.norm(dim=1, keepdim=True)) @ (raw / raw.norm(dim=1, keepdim=True)).detach().T
    unrelated = 1 - torch.eye(32, dtype=torch.float64)
    m1 = (cosines * unrelated).sum() / unrelated.sum()
    torch.testing.assert_close(spread, torch.autograd.grad(m1.square(), raw)[0])
    assert near.norm() > 2 * spread.norm()


def test_a_second_moment_just_right_has_finite_gradients() -> None:
    a = torch.eye(4, dtype=torch.float64, requires_grad=True)
    p = torch.eye(4, dtype=torch.float64)[[0, 1, 2, 0]]  # rolled by one: a_0 meets itself, M2 = 1/4 = 1/d
    for kind in KINDS:
        value = SpreadOut(kind=kind, pairs="roll")(Described.of_pairs(a, p, None))  # type: ignore[arg-type]
        assert value.item() == pytest.approx(1 / 16, abs=2e-6)
        assert torch.autograd.grad(value, a)[0].isfinite().all()


def test_alpha_multiplies_the_value_once_whatever_the_weights_of_the_pairs() -> None:
    a, p = random_units(8, 6, 1), random_units(8, 6, 2)
    weights = torch.linspace(0.5, 3, 8, dtype=torch.float64)
    value = SpreadOut()(Described.of_pairs(a, p, None))
    total = total_loss((SpreadOut(weight=2.0),), Described.of_pairs(a, p, None, weights=weights))
    torch.testing.assert_close(total.value, 2 * value)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(KeypatchError, match="RandomTriplets"):
        SpreadOut(pairs="third")(Described.of_pairs(random_units(4, 4), random_units(4, 4), None))
    with pytest.raises(RecipeError, match="hinge"):
        SpreadOut(kind="l3")  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="roll"):
        SpreadOut(pairs="mined")  # type: ignore[arg-type]


def test_the_recipes_differ_by_the_regularization_alone() -> None:
    for name in ("triplet", "triplet_swap", "npair", "lifted"):
        base, regularized = RECIPES[name], RECIPES[f"gor_{name}"]
        assert regularized.loss[:-1] == base.loss and isinstance(regularized.loss[-1], SpreadOut)
        assert replace(regularized, name=name, loss=base.loss) == base
    matching, regularization = RECIPES["gor_contrastive"].loss
    assert matching == replace(RECIPES["contrastive"].loss[0], eps_negative=None)  # type: ignore[type-var]
    assert regularization == SpreadOut(pairs="third")
    assert RECIPES["triplet"].schedule.factor(0.999) == pytest.approx(0.96**19)  # after each of 20 epochs
