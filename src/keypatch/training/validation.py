"""Scores during training, which nothing of the training depends on."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from keypatch.metrics import fpr95
from keypatch.networks import PatchNetwork, prepare, unit_length
from keypatch.patches import Pairs, PatchSet

_CHUNK = 256


class Validation(Protocol):
    """One score of one set, as a share; both have the names that result files give them."""

    @property
    def name(self) -> str: ...

    @property
    def score(self) -> str: ...

    def __call__(self, network: PatchNetwork) -> float: ...


class Patches(Protocol):
    def take(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]: ...


@dataclass(frozen=True)
class PairValidation:
    """FPR95 on one pair list."""

    patches: PatchSet
    pairs: Pairs

    @property
    def name(self) -> str:
        return self.patches.name

    @property
    def score(self) -> str:
        return f"fpr95.{self.pairs.name}"

    def __call__(self, network: PatchNetwork) -> float:
        used, place = np.unique(np.concatenate([self.pairs.first, self.pairs.second]), return_inverse=True)
        described = describe_now(network, self.patches, used)[place]
        half = len(self.pairs)
        return fpr95(np.linalg.norm(described[:half] - described[half:], axis=1), self.pairs.is_match)


@torch.no_grad()
def describe_now(network: PatchNetwork, patches: Patches, indices: NDArray[np.int64]) -> NDArray[np.float32]:
    """The descriptors (n, dim) of some patches by a network in training, which stays as it is."""
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    rows = []
    for start in range(0, len(indices), _CHUNK):
        taken = torch.from_numpy(patches.take(indices[start : start + _CHUNK])).to(device)
        raw = network(prepare(taken, network.preprocessing))
        rows.append((unit_length(raw) if network.unit_length else raw).cpu())
    network.train(was_training)
    described: NDArray[np.float32] = torch.cat(rows).numpy()
    return described
