"""Running statistics: in the log, at most cheap, and as SDGMNet's Table II."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from keypatch.losses import DynamicMargin
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.recipes import RECIPES
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training
from keypatch.training.run_folder import read_log
from keypatch.training.statistics import TABLE_II, kept_statistics, table_ii

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1)


def shortened(name: str, steps: int) -> Recipe:
    recipe = RECIPES[name]
    network = replace(recipe.network, width=4)  # type: ignore[call-arg]
    return replace(recipe, network=network, sampler=replace(recipe.sampler, pairs=12), pairs=12 * steps)  # type: ignore[type-var]


@pytest.fixture(autouse=True)
def log_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)


def test_table_ii_is_the_same_from_the_log_and_from_kept_weights(small_set: PatchSet, tmp_path: Path) -> None:
    conditions = replace(EXACT, keep_every=12)
    run = run_training(shortened("sdgmnet", 22), small_set, tmp_path / "run", Progress(), conditions=conditions)
    log, kept = read_log(run), kept_statistics(run)
    table = table_ii(log)
    assert table is not None and table == table_ii(kept)
    assert table.pairs == (36, 84, 132, 180, 228)  # of the 240 before the fine-tuning: the last two steps are left out
    assert [row.symbol for row in table.rows] == list(TABLE_II.values())
    at = {record["pairs"]: record["statistics"] for record in log}
    assert table.rows[0].values[2] == at[132]["GradientModulation/mean_r"]
    assert table.rows[6].values[4] == at[228]["GradientModulation/power_positive"]
    assert "GradientModulation/finetuning" in at[264]


def test_without_these_statistics_there_is_no_table() -> None:
    damaged = [{"pairs": "3", "statistics": {}}, {"statistics": 3}, {"pairs": 5, "statistics": {"sampler/loss": 1.0}}]
    assert table_ii([]) is None and table_ii(damaged) is None


def test_the_histogram_of_the_dynamic_margin_is_summed_up(small_set: PatchSet, tmp_path: Path) -> None:
    run = run_training(shortened("cdf", 3), small_set, tmp_path / "run", Progress(), conditions=EXACT)
    told = read_log(run)[-1]["statistics"]
    assert told.keys() == {"DynamicMargin/mean", "DynamicMargin/std", "DynamicMargin/median"}
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(-0.4, 0.2, 100_000).clip(-2, 2))
    term = DynamicMargin(bins=512)
    state = {"histogram": term._binned((x + 2) * (511 / 4))}
    found = term.statistics(state)
    assert found["mean"] == pytest.approx(-0.4, abs=0.01) and found["median"] == pytest.approx(-0.4, abs=0.02)
    assert found["std"] == pytest.approx(0.2, abs=0.01)


def test_adasample_tells_how_narrow_its_choice_is(small_set: PatchSet, tmp_path: Path) -> None:
    recipe = shortened("adasample", 4)
    recipe = replace(recipe, sampler=replace(recipe.sampler, warm=0.0))  # type: ignore[type-var]
    run = run_training(recipe, small_set, tmp_path / "run", Progress(), conditions=EXACT)
    first, *_, last = [record["statistics"] for record in read_log(run)]
    assert first["sampler/exponent"] == 0 and first["sampler/effective_candidates"] == pytest.approx(14)  # uniform
    assert last["sampler/exponent"] == pytest.approx(10 / last["sampler/loss"], rel=0.2)
    assert 1 <= last["sampler/effective_candidates"] < 13
    assert last["sampler/chosen_distance"] > last["sampler/candidate_distance"]
