"""A teacher: another describer, whose descriptors of a batch's patches a loss term may look at (`Distillation`)."""

from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.training.recipe import Recipe


class Teacher(Protocol):
    """What a training needs of a describer (`keypatch.describers.Describer`)."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def patch_sigmas(self) -> float: ...

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, side, side) grey patches to (n, dim) vectors, resized where the teacher works on another side."""


def check_teacher(teacher: Teacher, recipe: Recipe) -> None:
    """Raises RecipeError where the teacher's patches show another square than the student's."""
    shown = recipe.network.preprocessing.patch_sigmas
    if teacher.patch_sigmas != shown:
        raise RecipeError(
            f"The teacher {teacher.name} describes patches {teacher.patch_sigmas:g} sigmas wide, but the network to "
            f"train takes patches {shown:g} sigmas wide. Choose another teacher, or train with --set "
            f"network.preprocessing.patch_sigmas={teacher.patch_sigmas:g} on patches cut that wide."
        )


def teach(teacher: Teacher, patches: Tensor) -> Tensor:
    """The teacher's unit descriptors (n, dim) of patches (n, side, side) with values 0..255, on their device."""
    described = teacher.describe(patches.round().clamp(0, 255).to(torch.uint8).cpu().numpy())
    return F.normalize(torch.from_numpy(described).to(patches.device), dim=1)


def hash_of(teacher: Teacher) -> str:
    """That of its weights; its name where it has none, as SIFT."""
    return str(getattr(teacher, "weights_hash", teacher.name))
