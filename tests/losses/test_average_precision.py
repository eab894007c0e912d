"""Binned average precision against the values of FastAP's authors, a library and the formulas."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import AveragePrecision, Described

FASTAP = AveragePrecision()
TALR = AveragePrecision(formula="tie-aware")
DOAP = AveragePrecision(formula="tie-aware", distances="plain")
VARIANTS = {"fastap_code": FASTAP, "talr_formula": TALR, "doap_formula": DOAP}


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, Any]:
    wanted = ("fastap", "talr", "doap", "exact", "pml_fastap", "emb", "lab")
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in file.files if key.startswith(wanted)}


def described(raw: Tensor, labels: Any) -> Described:
    """Rows as the stack [anchors; positives]; the labels of both halves are equal on file."""
    half = len(raw) // 2
    return Described.of_pairs(raw[:half], raw[half:], None, point_id=torch.as_tensor(labels[:half]))


def with_bins(term: AveragePrecision, bins: int) -> AveragePrecision:
    return AveragePrecision(term.formula, term.distances, bins)


def exact(x: Tensor, labels: list[int]) -> float:
    """1 - mean AP by sorting."""
    losses = []
    for i in range(len(x)):
        order = [j for j in (x - x[i]).norm(dim=1).argsort().tolist() if j != i]
        hits = [rank for rank, j in enumerate(order, start=1) if labels[j] == labels[i]]
        losses.append(1 - sum(found / rank for found, rank in enumerate(hits, start=1)) / len(hits))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("bins", [10, 25])
@pytest.mark.parametrize("per_class", [2, 4])
@pytest.mark.parametrize("name", VARIANTS)
def test_values_on_file(arrays: dict[str, Any], name: str, per_class: int, bins: int) -> None:
    batch = described(torch.tensor(arrays[f"emb{per_class}"]), arrays[f"lab{per_class}"])
    values = with_bins(VARIANTS[name], bins)(batch)
    assert values.shape == (batch.n,)
    assert values.mean().item() == pytest.approx(float(arrays[f"{name}_{per_class}_b{bins}"]), rel=1e-9)


@pytest.mark.parametrize("per_class", [2, 4])
def test_fastap_gradients(arrays: dict[str, Any], per_class: int) -> None:
    raw = torch.tensor(arrays[f"emb{per_class}"], requires_grad=True)
    batch = described(raw, arrays[f"lab{per_class}"])
    value = FASTAP(batch).mean()
    assert value.item() == pytest.approx(float(arrays[f"pml_fastap_{per_class}_loss"]), rel=1e-9)
    by_raw, by_unit = torch.autograd.grad(value, (raw, batch.unit))
    np.testing.assert_allclose(by_raw, arrays[f"pml_fastap_{per_class}_grad"], rtol=0, atol=1e-12)
    # Both have the gradient of unit vectors only along the sphere in common: s alone enters ours.
    unit = batch.unit.detach()
    expected = torch.tensor(arrays[f"fastap_true_grad_{per_class}_b10"])
    along = [g - (g * unit).sum(1, keepdim=True) * unit for g in (by_unit, expected)]
    np.testing.assert_allclose(along[0], along[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("per_class", [2, 4])
def test_fine_bins_come_near_the_exact_value_with_fastap_above(arrays: dict[str, Any], per_class: int) -> None:
    labels = arrays[f"lab{per_class}"]
    batch = described(torch.tensor(arrays[f"emb{per_class}"]), labels)
    true = exact(batch.unit, labels.tolist())
    assert true == pytest.approx(float(arrays[f"exact_1_minus_AP_{per_class}"]), rel=1e-9)
    errors = {}
    for bins in (10, 25, 1000):
        fastap, talr, doap = (with_bins(term, bins)(batch).mean().item() for term in VARIANTS.values())
        assert fastap > talr and fastap > doap
        errors[bins] = [abs(value - true) for value in (fastap, talr, doap)]
    assert all(x > y > z for x, y, z in zip(errors[10], errors[25], errors[1000], strict=True))
    assert max(errors[1000]) < 0.02


def test_one_positive_of_two_centres_is_one_over_its_rank() -> None:
    # Distances 0, 2 and 4 (squared) lie on centres, so nothing is shared between bins.
    anchors = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    term = AveragePrecision(bins=2)
    assert term(Described.of_pairs(anchors, anchors, None)).tolist() == [0.0, 0.0]
    # Opposite partners: for each query two others at 2, its partner at 4, third of three
    torch.testing.assert_close(
        term(Described.of_pairs(anchors, -anchors, None)), torch.full((2,), 2 / 3, dtype=torch.float64)
    )


@pytest.mark.parametrize("term", VARIANTS.values(), ids=VARIANTS)
def test_a_loop_over_bins_says_the_same(term: AveragePrecision) -> None:
    x = torch.randn(12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ids = [0, 0, 1, 2, 3, 3]
    labels = torch.tensor(ids + ids)
    batch = described(x, labels)
    top = 4.0 if term.distances == "squared" else 2.0
    values = []
    for i in range(12):
        others = [j for j in range(12) if j != i]
        distance = (batch.unit[others] - batch.unit[i]).square().sum(1)
        distance = distance if term.distances == "squared" else distance.sqrt()
        hit = labels[others] == labels[i]
        average, below, below_all = 0.0, 0.0, 0.0
        for centre in torch.linspace(0, top, term.bins + 1, dtype=torch.float64):
            soft = (1 - (distance - centre).abs() * term.bins / top).clamp(min=0)
            here, here_all = float(soft[hit].sum()), float(soft.sum())
            before, before_all = below, below_all
            below, below_all = below + here, below_all + here_all
            if term.formula == "tie-aware":
                average += here * (before + below + 1) / (before_all + below_all + 1)
            elif here > 0:
                average += here * below / below_all
        values.append(1 - average / int(hit.sum()))
    expected = [(values[i] + values[i + 6]) / 2 for i in range(6)]
    assert term(batch).tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("term", VARIANTS.values(), ids=VARIANTS)
def test_third_patches_neither_ask_nor_are_found(term: AveragePrecision) -> None:
    a, p, third = torch.randn(3, 8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        term(Described.of_pairs(a, p, None, raw_negatives=third)), term(Described.of_pairs(a, p, None))
    )


@pytest.mark.parametrize("term", VARIANTS.values(), ids=VARIANTS)
def test_identical_and_opposite_descriptors_have_finite_gradients(term: AveragePrecision) -> None:
    for sign in (1.0, -1.0):
        x = torch.ones(8, 4, requires_grad=True)
        values = term(Described.of_pairs(x[:4], sign * x[4:], None))
        assert values.isfinite().all() and torch.autograd.grad(values.sum(), x)[0].isfinite().all()


def test_what_does_not_fit_is_said() -> None:
    for wrong in ({"formula": "exact"}, {"distances": "cosine"}, {"bins": 0}):
        with pytest.raises(RecipeError, match="at least 1"):
            AveragePrecision(**wrong)  # type: ignore[arg-type]
