"""Values and gradients against those of the authors' own code (tests/reference/triplets.npz)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.losses import (
    AnyTerm,
    AverageTriplet,
    Contrastive,
    Described,
    Euclidean,
    Hardest,
    HybridTriplet,
    Mining,
    Negatives,
    NormDifference,
    Ratio,
    Raw,
    Reduction,
    SecondOrder,
    SoftmaxTriplet,
    SquaredTriplet,
    ThirdPatch,
    Triplet,
    total_loss,
)
from keypatch.losses.mining import mine_by_rows

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Given:
    """The published random negatives: those of a permutation on file."""

    permutation: tuple[int, ...]
    blocks: tuple[str, ...]

    def __call__(self, batch: Described) -> Negatives:
        partner = torch.tensor(self.permutation)
        return mine_by_rows(batch, self.blocks, lambda found, rows: (found, partner[rows].expand(len(found), -1)))


@dataclass(frozen=True)
class Case:
    terms: tuple[AnyTerm, ...]
    mining: Mining | None = None
    reduction: Reduction = "mean"
    factor: float = 1.0  # the authors' number is this many times ours
    rtol: float = 1e-9


ALL = Hardest(blocks=("anchors", "positives", "rows", "columns"))
THIRD = Euclidean(eps=1e-8)  # HardNet's form with third patches
OFF_DIAGONAL = 63 / 64  # HardNet's average counts the zeros of the diagonal
# That code adds 1e-8 to every distance; it does not cancel where the hinge is closed.
CONTRASTIVE_RTOL = 1e-8

CASES = {
    "hardnet_min_swap_m1": Case((Triplet(),), Hardest()),
    "hardnet_min_swap_m02": Case((Triplet(margin=0.2),), Hardest()),
    "hardnet_min_rows_m1": Case((Triplet(),), Hardest(blocks=("rows",))),
    "hardnet_min_swap_softmax": Case((SoftmaxTriplet(),), Hardest()),
    "hardnet_min_swap_contrastive": Case((Contrastive(),), Hardest(), rtol=CONTRASTIVE_RTOL),
    "hardnet_average_swap_m1": Case((AverageTriplet(),), factor=OFF_DIAGONAL),
    "hardnet_average_rows_m1": Case((AverageTriplet(swap=False),), factor=OFF_DIAGONAL),
    "hardnet_global_swap_triplet_margin": Case((Triplet(measure=THIRD),), ThirdPatch()),
    "hardnet_global_noswap_triplet_margin": Case((Triplet(measure=THIRD),), ThirdPatch(swap=False)),
    "hardnet_global_swap_softmax": Case((SoftmaxTriplet(measure=THIRD),), ThirdPatch()),
    "hardnet_global_swap_contrastive": Case((Contrastive(measure=THIRD),), ThirdPatch(), rtol=CONTRASTIVE_RTOL),
    "sosnet_fos_m1": Case((SquaredTriplet(),), ALL, "sum"),
    "sosnet_sos_k8": Case((SecondOrder(),), None, "sum"),
    "sosnet_sos_k8_paperset": Case((SecondOrder(neighbours="paper"),), None, "sum"),
    "sosnet_total_m1_k8": Case((SquaredTriplet(), SecondOrder()), ALL, "sum"),
    "hynet_triplet_m12_a2": Case((HybridTriplet(),), ALL, "sum"),
    "hynet_triplet_m02_a2": Case((HybridTriplet(margin=0.2),), ALL, "sum"),
    "hynet_normterm": Case((NormDifference(),), None, "sum"),
    "hynet_total": Case((HybridTriplet(), NormDifference()), ALL, "sum"),
    "hynet_total_sosr": Case((HybridTriplet(), NormDifference(), SecondOrder()), ALL, "sum"),
    "tfeat_margin2_swap": Case((Triplet(margin=2.0, measure=Raw()),), ThirdPatch()),
    "tfeat_margin2_noswap": Case((Triplet(margin=2.0, measure=Raw()),), ThirdPatch(swap=False)),
    "tfeat_ratio_swap_mse": Case((Ratio(),), ThirdPatch()),
    "tfeat_ratio_noswap_mse": Case((Ratio(),), ThirdPatch(swap=False)),
}
RANDOM = {"hardnet_random_swap_m1": ("rows", "columns"), "hardnet_random_rows_m1": ("rows",)}
ON_DUP = ("hardnet_min_swap_m1", "hardnet_min_swap_m02", "hardnet_min_rows_m1", "sosnet_fos_m1", "sosnet_sos_k8")
ROWS = [
    *(("base", name) for name in (*CASES, *RANDOM)),
    *(("dup", name) for name in (*ON_DUP, "hynet_triplet_m12_a2")),
    *(("ident", name) for name in (*ON_DUP, "hynet_triplet_m12_a2", "tfeat_margin2_swap")),
]


@pytest.fixture(scope="module")
def arrays(reference: Path) -> Arrays:
    with np.load(reference / "triplets.npz") as file:
        return dict(file)


def case_of(name: str, arrays: Arrays) -> Case:
    if name in RANDOM:
        return Case((Triplet(),), Given(tuple(arrays["in/random_perm"].tolist()), RANDOM[name]))
    return CASES[name]


def computed(inputs: str, name: str, arrays: Arrays, dtype: torch.dtype) -> tuple[float, dict[str, Tensor]]:
    """The loss, and its gradients by the raw inputs, as the file scales them."""
    case = case_of(name, arrays)
    keys = {"a": f"in/{inputs}/raw_a", "p": f"in/{inputs}/raw_p", "n": "in/raw_n"}
    raw = {side: torch.tensor(arrays[key], dtype=dtype, requires_grad=True) for side, key in keys.items()}
    described = {side: x.tanh() if name.startswith("tfeat") else x for side, x in raw.items()}
    third = described["n"] if isinstance(case.mining, ThirdPatch) else None
    batch = Described.of_pairs(described["a"], described["p"], case.mining, raw_negatives=third)
    value = case.factor * total_loss(case.terms, batch, case.reduction).value
    value.backward()  # type: ignore[no-untyped-call]
    return value.item(), {f"g{side}": x.grad for side, x in raw.items() if x.grad is not None}


def test_every_entry_of_the_file_is_checked(arrays: Arrays) -> None:
    families = ("hardnet_", "sosnet_", "hynet_", "tfeat_")
    entries = {
        tuple(key.split("/")[:2]) for key in arrays if key.endswith("/loss") and key.split("/")[1].startswith(families)
    }
    assert entries == set(ROWS)


@pytest.mark.parametrize(("inputs", "name"), ROWS)
def test_float64(inputs: str, name: str, arrays: Arrays) -> None:
    value, gradients = computed(inputs, name, arrays, torch.float64)
    assert value == pytest.approx(float(arrays[f"{inputs}/{name}/loss"]), rel=case_of(name, arrays).rtol)
    for side, gradient in gradients.items():
        assert gradient.isfinite().all()
        key = f"{inputs}/{name}/{side}"
        # Identical pairs tie all four negatives: SOSNet's code splits the gradient among them, ours takes the first.
        if key in arrays and (inputs, name) != ("ident", "sosnet_fos_m1"):
            np.testing.assert_allclose(gradient.numpy(), arrays[key], rtol=0, atol=1e-10)


# In "dup" 1/d enlarges rounding: there only HardNet's losses were measured in float32.
@pytest.mark.parametrize(("inputs", "name"), [row for row in ROWS if row[0] != "dup" or row[1].startswith("hardnet")])
def test_float32(inputs: str, name: str, arrays: Arrays) -> None:
    value, gradients = computed(inputs, name, arrays, torch.float32)
    assert value == pytest.approx(float(arrays[f"{inputs}/{name}/loss"]), rel=1e-5)
    for side, gradient in gradients.items():
        key = f"{inputs}/{name}/{side}"
        if key in arrays and (inputs, name) != ("ident", "sosnet_fos_m1"):
            tolerance = (3e-5 if inputs == "dup" else 1e-5) * np.abs(arrays[key]).max()
            np.testing.assert_allclose(gradient.numpy(), arrays[key], rtol=0, atol=tolerance)


def test_sum_is_n_times_mean(arrays: Arrays) -> None:
    anchors, positives = (torch.tensor(arrays[f"in/base/raw_{side}"]) for side in "ap")
    batch = Described.of_pairs(anchors, positives, ALL)
    terms = (HybridTriplet(), NormDifference(), SecondOrder())
    torch.testing.assert_close(total_loss(terms, batch, "sum").value, 64 * total_loss(terms, batch, "mean").value)
