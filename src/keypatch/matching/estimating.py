"""What an estimator of the geometry of two views is asked for, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.matching.matches import Model

Matrix = NDArray[np.float64]  # (3, 3)
Points = NDArray[np.float64]  # (m, 2)


@dataclass(frozen=True, eq=False)
class Task:
    """The model to find for points that belong together, and how long to try."""

    model: Model
    threshold: float  # pixels from the model within which points agree
    cameras: tuple[Matrix, Matrix] | None  # the intrinsics of both photographs, for the model "E" alone
    seed: int
    confidence: float
    iterations: int


# The matrix and which points agree with it (m,), as the package gives them: what is no model is sorted out by `verify`.
Answer = tuple[Any, Any]
Estimate = Callable[[Points, Points, Task], Answer]
