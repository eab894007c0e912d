"""Distillation: descriptors near those that another describer, the teacher, gives the same patches."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.losses.described import Described


@dataclass(frozen=True)
class Distillation:
    """(|a - t(a)|^2 + |p - t(p)|^2) / 2 with unit descriptors of the student and of the teacher t.

    The student learns the teacher's own space, so descriptors of both can be compared with each other.
    """

    weight: float = 4.0  # ours, tried beside 1 with HyNet's loss: docs/methods/small.md
    weighted: ClassVar[bool] = False  # every patch has its answer, however hard its pair is

    def __call__(self, batch: Described) -> Tensor:
        if batch.teacher is None:
            raise KeypatchError(
                "Distillation needs a teacher's descriptors of the batch. Name a teacher with --teacher, or pass "
                "teacher= to Described.of_pairs."
            )
        student, teacher = batch.unit[: 2 * batch.n], batch.teacher[: 2 * batch.n].to(batch.unit.dtype)
        if student.shape != teacher.shape:
            raise KeypatchError(
                f"The teacher's descriptors have {teacher.shape[1]} dimensions, the student's {student.shape[1]}. "
                f"Choose another teacher, or give the network its dimension: --set network.dim={teacher.shape[1]}."
            )
        return (student - teacher).square().sum(1).view(2, batch.n).mean(0)
