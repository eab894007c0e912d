"""A score during training, on data that is neither trained on nor reported."""

from dataclasses import dataclass

import numpy as np
import torch

from keypatch.metrics import fpr95
from keypatch.networks import PatchNetwork, prepare, unit_length
from keypatch.patches import Pairs, PatchSet

_CHUNK = 256


@dataclass(frozen=True)
class Validation:
    """FPR95 in % on one pair list."""

    patches: PatchSet
    pairs: Pairs

    def __call__(self, network: PatchNetwork) -> float:
        device = next(network.parameters()).device
        used, place = np.unique(np.concatenate([self.pairs.first, self.pairs.second]), return_inverse=True)
        was_training = network.training
        network.eval()
        rows = []
        with torch.no_grad():
            for start in range(0, len(used), _CHUNK):
                patches = torch.from_numpy(self.patches.take(used[start : start + _CHUNK])).to(device)
                raw = network(prepare(patches, network.preprocessing))
                rows.append((unit_length(raw) if network.unit_length else raw).cpu())
        network.train(was_training)
        described = torch.cat(rows).numpy()[place]
        half = len(self.pairs)
        distances = np.linalg.norm(described[:half] - described[half:], axis=1)
        return 100 * fpr95(distances, self.pairs.is_match)
