"""Running statistics of losses and samplers: what a log holds of them, and SDGMNet's Table II."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from keypatch.losses import State
from keypatch.losses.total import term_names
from keypatch.training.checkpoints import find_kept, load_checkpoint, nested, scalars
from keypatch.training.recipe import Recipe

TABLE_II = {  # by the name in a log
    "GradientModulation/mean_r": "E[theta_r]",
    "GradientModulation/std_r": "Std[theta_r]",
    "GradientModulation/mean_positive": "E[theta+]",
    "GradientModulation/std_positive": "Std[theta+]",
    "GradientModulation/mean_negative": "E[theta-]",
    "GradientModulation/std_negative": "Std[theta-]",
    "GradientModulation/power_positive": "E[P+]",
    "GradientModulation/power_negative": "E[P-]",
}
SHARES = (30 / 200, 70 / 200, 110 / 200, 150 / 200, 190 / 200)  # its columns, of the 200 epochs before the fine-tuning
_TUNING = "GradientModulation/finetuning"


class StatisticsRow(NamedTuple):
    """A row of Table II: a value for each column, angles in radians."""

    symbol: str
    values: tuple[float, ...]


class StatisticsTable(NamedTuple):
    pairs: tuple[int, ...]  # of the columns
    rows: tuple[StatisticsRow, ...]


def statistics_of(recipe: Recipe, states: Mapping[str, State], sampler: State) -> dict[str, float]:
    """The numbers that terms and samplers keep, by "<owner>/<name>"; a term may sum up what is no number itself."""
    told = scalars({**states, "sampler": sampler})
    for name, term in term_names(recipe.loss).items():
        if name in states and hasattr(term, "statistics"):
            told |= {f"{name}/{each}": value for each, value in term.statistics(states[name]).items()}
    return told


def kept_statistics(run: Path) -> list[dict[str, Any]]:
    """From the weights that a run kept, in the form of a log: pairs, and the statistics of the loss."""
    records = []
    for file in find_kept(run):
        kept = load_checkpoint(file, ("loss_state",))
        states = nested(kept.loss_state, torch.device("cpu"))
        pairs = kept.step * kept.recipe.sampler.pairs
        records.append({"pairs": pairs, "statistics": statistics_of(kept.recipe, states, {})})
    return sorted(records, key=lambda record: record["pairs"])


def table_ii(records: Iterable[Mapping[str, Any]], shares: Sequence[float] = SHARES) -> StatisticsTable | None:
    """SDGMNet's Table II from a log or `kept_statistics`: the statistics after shares of the raw training.

    Of each share the last record up to it, or the first there is. None where the records hold no such statistics.
    """
    logged = [(record.get("pairs"), record.get("statistics")) for record in records]
    known = [
        (pairs, values)
        for pairs, values in logged
        if isinstance(pairs, int)
        and isinstance(values, Mapping)
        and all(isinstance(values.get(name), int | float) for name in TABLE_II)
        and _TUNING not in values
    ]
    if not known:
        return None
    whole = known[-1][0]
    columns = [next((each for each in reversed(known) if each[0] <= share * whole), known[0]) for share in shares]
    rows = [StatisticsRow(symbol, tuple(values[name] for _, values in columns)) for name, symbol in TABLE_II.items()]
    return StatisticsTable(tuple(pairs for pairs, _ in columns), tuple(rows))
