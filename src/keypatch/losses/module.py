"""The losses as a torch module, for training loops of one's own."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from keypatch.losses.described import Described, Moment
from keypatch.losses.mining import Hardest, Mining
from keypatch.losses.terms import AnyTerm, State, StatefulTerm
from keypatch.losses.total import Reduction, term_names, total_loss

_HARDEST = Hardest()


class LossModule(nn.Module):
    """Terms, their mining and their states: `LossModule(GradientModulation(), mining=AntiNoise())(anchors, positives)`.

    States are buffers named "<term>/<entry>", so `state_dict` holds them. They move only in training mode with
    gradients enabled. Without a `moment` every warm-up counts as over and rates are the published ones.
    """

    def __init__(self, *terms: AnyTerm, mining: Mining | None = _HARDEST, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.terms = term_names(terms)
        self.mining = mining
        self.reduction: Reduction = reduction

    def forward(
        self,
        anchors: Tensor,
        positives: Tensor,
        point_id: Tensor | None = None,
        moment: Moment | None = None,
        *,
        raw_negatives: Tensor | None = None,
        weights: Tensor | None = None,
        teacher: Tensor | None = None,
    ) -> Tensor:
        """The loss () of raw descriptors (n, d), row i of both showing the same point."""
        batch = Described.of_pairs(
            anchors,
            positives,
            self.mining,
            point_id=point_id,
            raw_negatives=raw_negatives,
            weights=weights,
            moment=moment,
            teacher=teacher,
        )
        total = total_loss(tuple(self.terms.values()), batch, self.reduction, self._states(batch.unit))
        if self.training and torch.is_grad_enabled():
            for term, state in total.states.items():
                for entry, tensor in state.items():
                    self.register_buffer(f"{term}/{entry}", tensor)
        return total.value

    def extra_repr(self) -> str:
        return ", ".join([*map(str, self.terms.values()), f"mining={self.mining}", f"reduction={self.reduction}"])

    def _states(self, like: Tensor) -> Mapping[str, State]:
        """States by term, on the device of `like` and in its precision."""
        states: dict[str, dict[str, Tensor]] = {}
        for name, tensor in self.named_buffers():
            term, _, entry = name.partition("/")
            dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
            states.setdefault(term, {})[entry] = tensor.to(like.device, dtype)
        return states

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Buffers appear with the first batch, so those of a file are made here."""
        stateful = [name for name, term in self.terms.items() if isinstance(term, StatefulTerm)]
        self._buffers.clear()
        for name, tensor in state_dict.items():
            if name.startswith(prefix) and name.removeprefix(prefix).partition("/")[0] in stateful:
                self.register_buffer(name.removeprefix(prefix), torch.empty_like(tensor))
        super()._load_from_state_dict(state_dict, prefix, *rest)
