"""A moving average of the weights, buffers of the normalization included."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class WeightAverage:
    """average <- decay * average + (1 - decay) * weights after each step; the decay rises at the start."""

    def __init__(self, network: nn.Module, decay: float, tensors: Mapping[str, Tensor] | None = None) -> None:
        state = network.state_dict()
        self.decay = decay
        self.tensors = {name: (tensors or state)[name].detach().clone().to(state[name].device) for name in state}

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))  # so that the initial weights are soon forgotten
        for name, value in network.state_dict().items():
            average = self.tensors[name]
            if average.is_floating_point():
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(value)
