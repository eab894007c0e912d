"""Distillation: what it computes, and what it says where the teacher does not fit."""

import math

import pytest
import torch

from keypatch.errors import KeypatchError
from keypatch.losses import Described, Distillation, LossModule, Triplet, total_loss
from keypatch.losses.weighting import InverseDistance


def rows(n: int, d: int, seed: int) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_values_are_those_of_a_loop() -> None:
    anchors, positives, teacher = rows(5, 8, 0), rows(5, 8, 1), rows(10, 8, 2)
    teacher = teacher / teacher.norm(dim=1, keepdim=True)
    values = Distillation()(Described.of_pairs(anchors, positives, None, teacher=teacher))
    for i, value in enumerate(values.tolist()):
        squares = [
            math.dist((view / view.norm()).tolist(), teacher[row].tolist()) ** 2
            for view, row in ((anchors[i], i), (positives[i], 5 + i))
        ]
        assert value == pytest.approx(sum(squares) / 2, rel=1e-9)


def test_the_teachers_own_descriptors_cost_nothing_and_third_patches_do_not_count() -> None:
    anchors, positives, third = rows(5, 8, 0), rows(5, 8, 1), rows(5, 8, 2)
    teacher = torch.nn.functional.normalize(torch.cat([anchors, positives, -third]), dim=1)
    batch = Described.of_pairs(anchors, positives, None, raw_negatives=third, teacher=teacher)
    assert Distillation()(batch).max() < 1e-12


def test_descent_ends_at_the_teacher() -> None:
    teacher = torch.nn.functional.normalize(rows(8, 6, 3), dim=1)
    student = rows(8, 6, 4).requires_grad_()
    optimizer = torch.optim.Adam([student], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        Distillation()(Described.of_pairs(student[:4], student[4:], None, teacher=teacher)).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert torch.nn.functional.cosine_similarity(student, teacher).min() > 0.999


def test_weights_of_pairs_pass_it_by() -> None:
    batch = Described.of_pairs(rows(6, 8, 0), rows(6, 8, 1), teacher=rows(12, 8, 2))
    weighted = Described.of_pairs(
        rows(6, 8, 0), rows(6, 8, 1), teacher=rows(12, 8, 2), weights=InverseDistance()(batch)
    )
    plain, changed = (total_loss((Triplet(), Distillation()), each).parts for each in (batch, weighted))
    assert plain["Distillation"] == changed["Distillation"] and plain["Triplet"] != changed["Triplet"]


def test_a_missing_teacher_and_one_of_another_dimension_are_named() -> None:
    with pytest.raises(KeypatchError, match="Name a teacher with --teacher"):
        Distillation()(Described.of_pairs(rows(4, 8, 0), rows(4, 8, 1)))
    with pytest.raises(KeypatchError, match=r"have 16 dimensions, the student's 8.*network\.dim=16"):
        Distillation()(Described.of_pairs(rows(4, 8, 0), rows(4, 8, 1), teacher=rows(8, 16, 2)))
    with pytest.raises(KeypatchError, match="a row for each of the 8 descriptors; found 4"):
        Described.of_pairs(rows(4, 8, 0), rows(4, 8, 1), teacher=rows(4, 8, 2))


def test_the_module_takes_a_teacher() -> None:
    anchors, positives, teacher = rows(5, 8, 0), rows(5, 8, 1), rows(10, 8, 2)
    expected = 4 * Distillation()(Described.of_pairs(anchors, positives, teacher=teacher)).mean()
    assert torch.equal(LossModule(Distillation(weight=4.0))(anchors, positives, teacher=teacher), expected)
