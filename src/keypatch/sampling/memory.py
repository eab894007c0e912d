"""Descriptors remembered from earlier steps, a row for each patch; a row of zeros was never described."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keypatch.sampling.draws import Draw


def empty_memory(rows: int, dim: int) -> Tensor:
    return torch.zeros(rows, dim, dtype=torch.float16)  # to choose by, half precision is enough


def renew(memory: Tensor, drawn: Draw, unit: Tensor) -> tuple[Tensor, NDArray[np.bool_]]:
    """Writes the unit descriptors (n, views, dim) of `drawn`; gives those of its pool (n, k, dim), and which are known.

    In place: a copy of a large memory would cost more than it saves, and writing the same again changes nothing.
    """
    assert drawn.rows is not None and drawn.pool is not None and drawn.pool.rows is not None
    written, wanted = drawn.rows >= 0, drawn.pool.rows
    memory[torch.from_numpy(drawn.rows[written])] = unit[torch.from_numpy(written)].to(memory)
    remembered = memory[torch.from_numpy(wanted.clip(min=0))].to(unit)
    just_written = (wanted[:, :, None] == drawn.rows[:, None, :]).any(2)  # counts even if the network gave zeros
    return remembered, (wanted >= 0) & (just_written | remembered.any(2).cpu().numpy())
