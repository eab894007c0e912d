"""Optimizers as values, with every default of torch that matters written out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from keypatch.parts import table
from keypatch.settings import CheckedFields, option

Parameters = list[dict[str, Any]]  # groups of torch's optimizers: "params", and "scale", a factor on the rate


def parameter_groups(network: nn.Module, last_layer: float = 1.0) -> Parameters:
    """All parameters, those of the last convolution or linear layer in a group whose rate is `last_layer` times."""
    if last_layer == 1.0:
        return [{"params": list(network.parameters()), "scale": 1.0}]
    last = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)][-1]
    ids = {id(parameter) for parameter in last.parameters()}
    others = [parameter for parameter in network.parameters() if id(parameter) not in ids]
    return [{"params": others, "scale": 1.0}, {"params": list(last.parameters()), "scale": last_layer}]


@dataclass(frozen=True)
class SGD(CheckedFields):
    """Momentum buffer b = momentum * b + (1 - dampening) * gradient: lr 10 with dampening 0.9 is lr 1 without."""

    lr: float = option(1.0, least=0)
    momentum: float = option(0.9, least=0)
    dampening: float = 0.0
    weight_decay: float = option(1e-4, least=0)

    def build(self, parameters: Parameters) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, self.lr, self.momentum, self.dampening, self.weight_decay)


@dataclass(frozen=True)
class Adam(CheckedFields):
    """Kingma and Ba, with weight decay added to the gradient."""

    lr: float = option(0.01, least=0)
    beta1: float = option(0.9, least=0, below=1)
    beta2: float = option(0.999, least=0, below=1)
    eps: float = option(1e-8, least=0)
    weight_decay: float = option(0.0, least=0)

    def build(self, parameters: Parameters) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, self.lr, (self.beta1, self.beta2), self.eps, self.weight_decay)


@dataclass(frozen=True)
class AdamW(CheckedFields):
    """Adam with decoupled weight decay."""

    lr: float = option(0.001, least=0)
    beta1: float = option(0.9, least=0, below=1)
    beta2: float = option(0.999, least=0, below=1)
    eps: float = option(1e-8, least=0)
    weight_decay: float = option(0.01, least=0)

    def build(self, parameters: Parameters) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, self.lr, (self.beta1, self.beta2), self.eps, self.weight_decay)


Optimizer = SGD | Adam | AdamW
OPTIMIZERS: dict[str, type[Optimizer]] = table("optimizer", {"SGD": SGD, "Adam": Adam, "AdamW": AdamW})


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
