"""AdaSample: positives chosen by how far the network puts them from their anchors."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.errors import DataError, RecipeError
from keypatch.losses import Angle, Described, Measure, Moment, State
from keypatch.patches import Classes
from keypatch.sampling.draws import Draw, check_points, distinct
from keypatch.sampling.generating import Generated
from keypatch.sampling.probabilities import hardest_probabilities, pick, power_probabilities

_ANGLE = Angle()
_MARGIN = 1.0  # t of eq. 14
_LARGEST = 100.0  # exponent
_LAG = 25  # steps until running statistics that move by a tenth have forgotten how they began


@dataclass(frozen=True)
class AdaptivePairs:
    """AdaSample, algorithm 1: of each class a random anchor, and a positive with p proportional to d^(lam / L_avg).

    L_avg is a moving average of the hinge 1 + d+^2 - d-^2 of past batches (AHT, where the measure is the angle),
    whatever loss is trained. `hardest` is the limit of an infinite lam, Hardpos; lam 0 draws uniformly and looks at no
    candidates. Which patches of a class are candidates: "all", where one with more than `generate` shows so many of
    them, at random; "few" of them, at random; with "memory" all that were described before, and `refresh` of them, at
    random, are described anew.
    """

    pairs: int = 1024
    lam: float = 10.0
    hardest: bool = False
    generate: int = 15  # patches of each class, by rotating those it has; 0: real ones only
    rotation: float = 25.0  # degrees, uniform in +-rotation
    candidates: Literal["all", "few", "memory"] = "all"
    few: int = 5
    refresh: int = 2
    warm: float = 0.01  # share of the training that draws uniformly, at least 25 steps; 0: none
    rate: float | None = None  # of L_avg; None: 50 / steps, within 0.001 and 0.1
    measure: Measure = _ANGLE  # d

    def __post_init__(self) -> None:
        if self.lam < 0 or self.generate < 0 or self.rotation < 0 or not 0 <= self.warm <= 1 or self.measure.of_raw:
            raise RecipeError(
                "AdaptivePairs: lam, generate and rotation must not be negative, warm must be in 0..1, and the measure "
                "one for unit descriptors."
            )
        if self.few < 2 or self.refresh < 2 or self.candidates not in ("all", "few", "memory"):
            raise RecipeError(
                'AdaptivePairs: candidates must be "all", "few" or "memory"; few and refresh at least 2, an anchor and '
                "a positive."
            )

    @property
    def chooses(self) -> bool:
        """Whether `draw` gives candidates to choose from, not the pairs themselves."""
        return self.hardest or self.lam > 0

    @property
    def remembers(self) -> bool:
        """Whether the patches drawn only refresh a memory, from which the pairs are chosen."""
        return self.chooses and self.candidates == "memory"

    def check(self, classes: Classes) -> None:
        check_points(self.pairs, classes)
        if self.chooses and self._positives.slots(classes).max() < 3:
            raise DataError(
                "AdaptivePairs has nothing to choose from: no point of the training set has more than two patches. "
                "Pass --set sampler.generate=15 to add rotated ones, or use RandomPairs."
            )

    def draw(self, classes: Classes, seed: int, step: int) -> Draw:
        """Batch `step`: candidates (pairs, views), or where there is nothing to choose the pairs (pairs, 2)."""
        self.check(classes)
        rng = np.random.default_rng([seed, step, 0])
        chosen = rng.choice(classes.count, size=self.pairs, replace=False)
        counts = self._positives.slots(classes)
        every = np.arange(counts[chosen].max())
        all_slots = np.where(every < counts[chosen, None], every, -1)
        views = self._views(int(counts[chosen].max()))
        slots = distinct(counts[chosen], views, rng)
        drawn = self._positives.patches(classes, chosen, slots, seed)
        if not self.remembers:
            return drawn
        first = (np.cumsum(counts) - counts)[chosen, None]  # row of the memory
        pool = self._positives.patches(classes, chosen, all_slots, seed)
        pool = replace(pool, rows=np.where(all_slots >= 0, first + all_slots, -1))
        return replace(drawn, rows=np.where(slots >= 0, first + slots, -1), pool=pool)

    def _views(self, most: int) -> int:
        """How many patches of a class are drawn."""
        if not self.chooses:
            return 2
        if self.candidates == "all":
            return self.generate or most
        return self.refresh if self.remembers else self.few

    def start(self, classes: Classes, dim: int) -> State:
        """Of the state before the first step only the memory exists."""
        return {"memory": empty_memory(int(self._positives.slots(classes).sum()), dim)} if self.remembers else {}

    @torch.no_grad()
    def choose(
        self, draw: Draw, descriptors: Tensor, state: State, moment: Moment | None, rng: np.random.Generator
    ) -> tuple[Draw, Tensor | None, State]:
        """The pairs, which columns (n, 2) of the draw they are (None with a memory), and the next state.

        `descriptors` (n, views, dim) are those of the draw, of any length; those at index -1 do not matter.
        """
        unit, known, pool = normalize(descriptors.float(), dim=2), draw.indices >= 0, draw
        if draw.pool is not None:
            (unit, known), pool = renew(state["memory"], draw, unit), draw.pool
        anchor = pick(known / known.sum(axis=1, keepdims=True), rng)
        distances = self._distances(unit, anchor)
        others = known.copy()
        others[np.arange(len(anchor)), anchor] = False
        if self.hardest and not self._warming(moment):
            p = hardest_probabilities(distances, others)
        else:
            p = power_probabilities(distances, self.exponent(state, moment), others)
        columns = np.stack([anchor, pick(p, rng)], axis=1)
        pairs = pool.columns(columns)
        after = {**state, "same_source": torch.tensor(pairs.same_source), **_statistics(p, distances, others, columns)}
        if not self.hardest:
            after["exponent"] = torch.tensor(self.exponent(state, moment))
        return pairs, torch.from_numpy(columns) if draw.pool is None else None, after

    @torch.no_grad()
    def observe(self, batch: Described, state: State, moment: Moment | None) -> State:
        """L_avg moved towards the unweighted loss of the batch; the first one sets it."""
        positive, negative = batch.positive_distances(self.measure), batch.negative_distances(self.measure)
        loss = (_MARGIN + positive.square() - negative.square()).relu().mean()
        if "loss" not in state:
            return {**state, "loss": loss}
        rate = self.rate
        if rate is None:
            rate = min(max(50 / moment.steps, 0.001), 0.1) if moment else 0.001
        return {**state, "loss": torch.lerp(state["loss"].to(loss), loss, rate)}

    def exponent(self, state: State, moment: Moment | None) -> float:
        """lam / L_avg, at most 100; 0 during the warm-up and before there is a loss."""
        if self._warming(moment) or "loss" not in state or not self.lam:
            return 0.0
        return self.lam / max(self.lam / _LARGEST, float(state["loss"]))

    @property
    def _positives(self) -> Generated:
        return Generated(self.generate, self.rotation)

    def _warming(self, moment: Moment | None) -> bool:
        return moment is not None and bool(self.warm) and moment.step < max(self.warm * moment.steps, _LAG)

    def _distances(self, unit: Tensor, anchor: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of all candidates (n, k, dim) to their anchors, (n, k)."""
        n, k, _ = unit.shape
        anchors = unit[torch.arange(n), torch.from_numpy(anchor)].repeat_interleave(k, 0)
        distances: NDArray[np.float64] = self.measure(unit.flatten(0, 1), anchors).view(n, k).cpu().double().numpy()
        return distances


def _statistics(
    p: NDArray[np.float64], distances: NDArray[np.float64], others: NDArray[np.bool_], columns: NDArray[np.int64]
) -> State:
    """How narrow the choice is: the number of equally likely candidates that would be as open, and mean distances."""
    entropy = -(p * np.log(p, out=np.zeros_like(p), where=p > 0)).sum(axis=1)
    chosen = distances[np.arange(len(columns)), columns[:, 1]]
    values = {
        "effective_candidates": np.exp(entropy).mean(),
        "candidate_distance": distances[others].mean(),
        "chosen_distance": chosen.mean(),
    }
    return {name: torch.tensor(float(value)) for name, value in values.items()}


def empty_memory(rows: int, dim: int) -> Tensor:
    """Descriptors remembered from earlier steps, a row for each patch; a row of zeros was never described."""
    return torch.zeros(rows, dim, dtype=torch.float16)  # to choose by, half precision is enough


def renew(memory: Tensor, drawn: Draw, unit: Tensor) -> tuple[Tensor, NDArray[np.bool_]]:
    """Writes the unit descriptors (n, views, dim) of `drawn`; gives those of its pool (n, k, dim), and which are known.

    In place: a copy of a large memory would cost more than it saves, and writing the same again changes nothing.
    """
    assert drawn.rows is not None and drawn.pool is not None and drawn.pool.rows is not None
    written, wanted = drawn.rows >= 0, drawn.pool.rows
    memory[torch.from_numpy(drawn.rows[written])] = unit[torch.from_numpy(written)].to(memory)
    remembered = memory[torch.from_numpy(wanted.clip(min=0))].to(unit)
    just_written = (wanted[:, :, None] == drawn.rows[:, None, :]).any(2)  # counts even if the network gave zeros
    return remembered, (wanted >= 0) & (just_written | remembered.any(2).cpu().numpy())
