"""States of terms and samplers as a checkpoint and a log have them: flat."""

from collections.abc import Mapping

import torch
from torch import Tensor

from keypatch.losses import State


def flat(states: Mapping[str, State]) -> dict[str, Tensor]:
    """States by owner as "<owner>/<name>" entries."""
    return {f"{owner}/{name}": tensor for owner, state in states.items() for name, tensor in state.items()}


def nested(entries: Mapping[str, Tensor], device: torch.device) -> Mapping[str, State]:
    """The inverse of `flat`, on a device."""
    states: dict[str, dict[str, Tensor]] = {}
    for entry, tensor in entries.items():
        owner, _, name = entry.partition("/")
        states.setdefault(owner, {})[name] = tensor.to(device)
    return states


def scalars(states: Mapping[str, State]) -> dict[str, float]:
    """What of the states is a single number: running means, rates, powers."""
    return {entry: float(tensor) for entry, tensor in flat(states).items() if tensor.numel() == 1}
