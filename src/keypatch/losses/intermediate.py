"""L2-Net's supervision of the layers on the way to the descriptor."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.losses.batch_softmax import pair_softmax
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities


@dataclass(frozen=True)
class IntermediateSoftmax:
    """L2-Net, E3: E1 on the first and the last normalization, with inner products of the flattened maps as logits.

    Known from memory. The last normalization is the raw output. L2-Net's factor 1/2 is `weight=0.5`.
    """

    scaled: bool = False  # true: the inner products over the root of the number of features, else of any size
    weight: float = 1.0
    layers: ClassVar[tuple[str, ...]] = ("norm1",)

    def __call__(self, batch: Described) -> Tensor:
        missing = [name for name in self.layers if name not in batch.maps]
        if missing:
            raise KeypatchError(
                f'IntermediateSoftmax needs the layer "{missing[0]}" of the network, which the batch does not have. '
                "Train a network with that layer, such as L2Net, or pass maps to Described.of_pairs."
            )
        maps = [batch.maps[name].to(batch.raw.dtype) for name in self.layers]
        return torch.stack([self._softmax(x, batch) for x in (*maps, batch.raw)]).sum(0)

    def _softmax(self, x: Tensor, batch: Described) -> Tensor:
        scale = 1 / math.sqrt(x.shape[1]) if self.scaled else 1.0
        anchors, positives = x[: batch.n], x[batch.n : 2 * batch.n]
        return pair_softmax(lambda a, p: similarities(a, p) * scale, anchors, positives, batch)
