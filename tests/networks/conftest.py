"""Weights made by a rule from the authors' tensor names, as the figures in reference/networks.npz were."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

Tensors = dict[str, torch.Tensor]


def rule_made(shapes: dict[str, tuple[int, ...]]) -> Tensors:
    return {name: torch.from_numpy(_by_rule(name, shape)) for name, shape in shapes.items()}


def _by_rule(name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    z = np.random.default_rng([2020, zlib.crc32(name.encode("ascii"))]).standard_normal(shape)
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    if name.endswith(".eps"):
        return np.full(shape, 1e-6, np.float32)
    if name.endswith("running_mean"):
        value = 0.1 * z
    elif name.endswith("running_var"):
        value = 1 + 0.2 * np.abs(z)
    elif name.endswith(".tau"):
        value = -1 + 0.1 * z
    elif z.ndim == 4 and shape[0] == 1:
        value = 1 + 0.1 * z if name.endswith(".weight") else 0.1 * z
    elif z.ndim >= 2:
        value = z * np.sqrt(2 / np.prod(shape[1:]))
    else:
        value = 0.05 * z
    return np.asarray(value, np.float32)


@pytest.fixture(scope="session")
def published() -> Callable[[str], Tensors]:
    """State dicts with the shapes and names of kornia's modules, which are the authors' own, filled by the rule."""
    features = pytest.importorskip("kornia").feature
    modules = {
        "hardnet": features.HardNet,
        "sosnet": features.SOSNet,
        "hynet": features.HyNet,
        "tfeat": features.TFeat,
        "hardnet8": features.HardNet8,
    }

    def state_dict(name: str) -> Tensors:
        with torch.device("meta"):
            module = modules[name](pretrained=False)
        return rule_made({key: tuple(tensor.shape) for key, tensor in module.state_dict().items()})

    return state_dict
