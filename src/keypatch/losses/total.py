"""Terms to one number: the only place where weights are applied and values are averaged or summed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.terms import AnyTerm, State, StatefulTerm

Reduction = Literal["mean", "sum"]


@dataclass(frozen=True, eq=False)
class Total:
    """`value` to differentiate; by the term's name its share of that (weighted, detached) and its next state."""

    value: Tensor
    parts: dict[str, Tensor]
    states: dict[str, State]


def total_loss(
    terms: Sequence[AnyTerm], batch: Described, reduction: Reduction = "mean", states: Mapping[str, State] | None = None
) -> Total:
    """Sum over terms of weight * mean_i (or sum_i) of w_i l_i, with w_i the batch's weights.

    `states` are those of the step before; a stateful term without one starts afresh.
    """
    before = states or {}
    shares: dict[str, Tensor] = {}
    after: dict[str, State] = {}
    for name, term in term_names(terms).items():
        if isinstance(term, StatefulTerm):
            values, after[name] = term(batch, before[name] if name in before else term.start())
        else:
            values = term(batch)
        weights = batch.weights if getattr(term, "weighted", True) else None
        shares[name] = term.weight * _reduce(values, weights, batch.n, reduction)
    value = torch.stack(list(shares.values())).sum()
    return Total(value, {name: share.detach() for name, share in shares.items()}, after)


def term_names(terms: Sequence[AnyTerm]) -> dict[str, AnyTerm]:
    """Each term under its type's name; a second one of a type is numbered, "Triplet-2"."""
    if not terms:
        raise RecipeError("The loss has no terms. Give at least one, for example Triplet().")
    named: dict[str, AnyTerm] = {}
    for term in terms:
        kind = type(term).__name__
        count = sum(type(other).__name__ == kind for other in named.values())
        named[f"{kind}-{count + 1}" if count else kind] = term
    return named


def _reduce(values: Tensor, weights: Tensor | None, n: int, reduction: Reduction) -> Tensor:
    if values.ndim == 0:  # a batch statistic counts once for each pair, so that "sum" is n times "mean" for every term
        return values if reduction == "mean" else values * n
    weighted = values if weights is None else values * weights
    return weighted.mean() if reduction == "mean" else weighted.sum()
