"""Losses of pytorch-metric-learning as terms."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keypatch.errors import MissingExtra, RecipeError
from keypatch.losses import AveragePrecision, Described, Euclidean, Lifted, MetricLearning, NPair, PairContrastive
from keypatch.recipes import HARDNET
from keypatch.training.recipe_files import recipe_from_toml, recipe_to_toml

CIRCLE = MetricLearning("CircleLoss", ("m=0.25", "gamma=80"))
CASES = {
    "pml_circle_2": CIRCLE,
    "pml_circle_4": CIRCLE,
    "pml_genlifted_4": MetricLearning("GeneralizedLiftedStructureLoss", ("neg_margin=1", "pos_margin=0")),
    "pml_contrastive_4": MetricLearning("ContrastiveLoss", ("pos_margin=0.7", "neg_margin=1.4")),
    "pml_lifted_2": MetricLearning("LiftedStructureLoss", ("neg_margin=1", "pos_margin=0")),
    "pml_fastap_4": MetricLearning("FastAPLoss", ("num_bins=10",)),
}


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, Any]:
    with np.load(reference / "modulation.npz") as file:
        return {key: file[key] for key in file.files if key.startswith(("pml", "emb", "lab"))}


def stack(arrays: dict[str, Any], per_class: str) -> tuple[torch.Tensor, Described]:
    raw = torch.tensor(arrays[f"emb{per_class}"], requires_grad=True)
    half = len(raw) // 2
    ids = torch.tensor(arrays[f"lab{per_class}"][:half])
    return raw, Described.of_pairs(raw[:half], raw[half:], None, point_id=ids)


@pytest.mark.parametrize("name", CASES)
def test_values_on_file(arrays: dict[str, Any], name: str) -> None:
    raw, batch = stack(arrays, name[-1])
    value = CASES[name](batch)
    assert value.shape == () and value.item() == pytest.approx(float(arrays[f"{name}_loss"]), rel=1e-9)
    gradient = torch.autograd.grad(value, raw)[0]
    np.testing.assert_allclose(gradient, arrays[f"{name}_grad"], rtol=0, atol=1e-10)


def test_ours_and_the_librarys_agree_on_other_data() -> None:
    a, p = torch.randn(2, 10, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = Described.of_pairs(a, p, None)
    theirs = {
        AveragePrecision(): MetricLearning("FastAPLoss"),
        Lifted(): MetricLearning("LiftedStructureLoss", ("neg_margin=1", "pos_margin=0")),
        NPair(): MetricLearning("NPairsLoss"),
    }
    for ours, library in theirs.items():
        assert ours(batch).mean().item() == pytest.approx(library(batch).item(), rel=1e-9)


def test_the_librarys_contrastive_loss_averages_over_what_is_not_zero() -> None:
    a, p = torch.randn(2, 10, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = Described.of_pairs(a, a + 0.7 * p, None)
    ours = PairContrastive(eps_positive=0.7, measure=Euclidean(eps=0.0))(batch)
    assert 0 < (ours > 0).sum() < 10
    library = MetricLearning("ContrastiveLoss", ("pos_margin=0.7", "neg_margin=0"))(batch)
    assert library.item() == pytest.approx(ours[ours > 0].mean().item(), rel=1e-9)


def test_it_goes_to_toml_and_back() -> None:
    recipe = replace(HARDNET, loss=(CIRCLE, MetricLearning()))
    assert recipe_from_toml(recipe_to_toml(recipe)) == recipe


@pytest.mark.parametrize("argument", ["gamma", "gamma=", "=80", "gamma=high", "distance=[1]", "os.x=1", "swap=True"])
def test_arguments_are_numbers_or_truth_values(argument: str) -> None:
    with pytest.raises(RecipeError, match="gamma=80"):
        MetricLearning("CircleLoss", (argument,))


def test_truth_values_are_understood() -> None:
    a, p = torch.randn(2, 10, 6, generator=torch.Generator().manual_seed(0))
    batch = Described.of_pairs(a, p, None)
    plain, swapped = (MetricLearning("TripletMarginLoss", ("margin=0.5", f"swap={on}")) for on in ("false", "true"))
    assert swapped(batch) > plain(batch)


@pytest.mark.parametrize(
    ("loss", "arguments", "message"),
    [
        ("CircleLos", (), "CircleLoss"),
        ("BaseMetricLossFunction", (), "no usable loss"),
        ("torch", (), "no usable loss"),
        ("DynamicSoftMarginLoss", (), "no usable loss"),  # it has a memory, which a term made anew would lose
        ("CircleLoss", ("gama=80",), "gama"),
        ("ArcFaceLoss", (), "num_classes"),
        ("ArcFaceLoss", ("num_classes=4", "embedding_size=6"), "learns weights"),
    ],
)
def test_a_loss_that_cannot_be_a_term_is_refused(loss: str, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        MetricLearning(loss, arguments)(Described.of_pairs(torch.eye(4), torch.eye(4), None))


def test_the_library_is_needed_only_by_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytorch_metric_learning", None)
    term = MetricLearning()
    with pytest.raises(MissingExtra, match=r"keypatch\[metric-learning\]"):
        term(Described.of_pairs(torch.eye(4), torch.eye(4), None))


def test_the_losses_do_not_import_it() -> None:
    code = "import sys, keypatch.losses; sys.exit('pytorch_metric_learning' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
