"""Average precision of each patch's ranking of the batch, made differentiable by soft histograms."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities
from keypatch.losses.rows import by_rows


@dataclass(frozen=True)
class AveragePrecision:
    """1 - AP, the mean of a pair's two queries: each patch ranks all others of the batch, those of its point count.

    Distances fall into soft bins around l * range / bins, l = 0..bins: h+_l of matching ones, h_l of all, H sums to l.
    "fastap" (Cakir et al. 2019): AP = sum of h+_l H+_l / H_l over their number. "tie-aware" (He et al. 2018, and DOAP
    as far as it is known): h+_l (H+_(l-1) + H+_l + 1) / (H_(l-1) + H_l + 1). `distances`: "squared" is FastAP's, from 0
    to 4, "plain" DOAP's, from 0 to 2. FastAP's code has n times the gradient (n pairs), so its learning rates too.
    """

    formula: Literal["fastap", "tie-aware"] = "fastap"
    distances: Literal["squared", "plain"] = "squared"
    bins: int = 10
    weight: float = 1.0

    def __post_init__(self) -> None:
        known = self.formula in ("fastap", "tie-aware") and self.distances in ("squared", "plain")
        if not known or self.bins < 1:
            raise RecipeError(
                'AveragePrecision: formula must be "fastap" or "tie-aware", distances "squared" or "plain", bins at '
                "least 1."
            )

    def __call__(self, batch: Described) -> Tensor:
        return by_rows(batch, 4 * batch.n, lambda rows, x: self._of_rows(batch, rows, x), batch.unit[: 2 * batch.n])

    def _of_rows(self, batch: Described, rows: slice, x: Tensor) -> Tensor:
        row = torch.arange(rows.start, rows.stop, device=x.device)
        queries = torch.cat([row, row + batch.n])
        itself = queries[:, None] == torch.arange(2 * batch.n, device=x.device)
        labels = batch.labels
        matching = (labels[queries, None] == labels) & ~itself
        of_matching, of_others = self._histograms(x[queries], x, matching, itself)
        of_all = of_matching + of_others
        below, below_all = of_matching.cumsum(1), of_all.cumsum(1)
        if self.formula == "fastap":
            # Empty bins are filled before the division: after it their 0/0 would still be in the gradient.
            precision = below / below_all.masked_fill(below_all == 0, 1.0)
        else:
            precision = (2 * below - of_matching + 1) / (2 * below_all - of_all + 1)
        average = (of_matching * precision).sum(1) / matching.sum(1)  # every query has its partner to find
        return 1 - average.view(2, -1).mean(0)

    def _histograms(self, queries: Tensor, x: Tensor, matching: Tensor, itself: Tensor) -> tuple[Tensor, Tensor]:
        """Soft counts (queries, bins + 1) of matching and other patches.

        A distance lies between two centres and is shared out to them, so memory does not grow with the bins.
        """
        squared = (2 - 2 * similarities(queries, x)).clamp(min=0)
        reach = squared / 4 if self.distances == "squared" else squared.clamp(min=1e-12).sqrt() / 2
        place = reach.clamp(max=1) * self.bins
        left = place.detach().floor().clamp(0, self.bins - 1)
        share = place - left
        others = (~itself).to(share.dtype)  # a query does not find itself
        bin_of = left.long().clamp(0, self.bins - 1) + (self.bins + 1) * ~matching  # nan has no bin of its own
        counts = share.new_zeros(len(queries), 2 * (self.bins + 1))
        counts = counts.scatter_add(1, bin_of, (1 - share) * others).scatter_add(1, bin_of + 1, share * others)
        return counts[:, : self.bins + 1], counts[:, self.bins + 1 :]
