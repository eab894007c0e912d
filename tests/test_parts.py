"""Parts of one's own: registered, written to files and read back, trained, used and resumed; and what stays refused."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import keypatch
from keypatch import networks, parts
from keypatch.detection import make_detector
from keypatch.errors import KeypatchError, RecipeError
from keypatch.geometry import Keypoints
from keypatch.losses import Described
from keypatch.recipes import HARDNET
from keypatch.settings import apply_settings
from keypatch.training.checkpoints import load_run_weights
from keypatch.training.conditions import Conditions
from keypatch.training.recipe import TRAINED, TYPES
from keypatch.training.recipe_files import recipe_from_toml, recipe_to_toml

ONE = Conditions(threads=1)
THIN = ("sampler.pairs=32", "network.width=4", "network.dim=16", "pairs=64")


@dataclass(frozen=True)
class PullPositives:
    """[d+ - limit]+."""

    limit: float = 0.7
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        return (batch.positive_distances() - self.limit).relu()


PULLED = apply_settings(replace(HARDNET, name="pulled", loss=(*HARDNET.loss, PullPositives(0.6))), THIN, TYPES)


@pytest.fixture(autouse=True)
def own(own_parts: Callable[[], None]) -> None:
    """What a test registers is gone after it."""


@pytest.fixture(scope="module")
def pulled_run(small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained with a loss that nobody registered."""
    return keypatch.train(PULLED, small_set, tmp_path_factory.mktemp("runs") / "pulled", ONE)


def test_a_run_with_an_unregistered_loss_can_be_loaded_scored_and_inspected(
    pulled_run: Path,
    small_set: Path,
) -> None:
    assert load_run_weights(pulled_run)[0] == PULLED.network
    assert keypatch.load(pulled_run).dim == 16
    assert keypatch.evaluate(pulled_run, "ubc", small_set, cache=False).scores
    seen = keypatch.inspect(pulled_run)
    assert not seen.problems and "PullPositives(limit=0.6, weight=1.0)" in seen.facts["loss"]


def test_it_is_resumed_once_the_loss_is_registered_and_else_told_to_be(pulled_run: Path) -> None:
    with pytest.raises(
        RecipeError, match=r'loss: there is no "PullPositives"\..* A part of your own must be registered'
    ):
        keypatch.train(resume=pulled_run)
    keypatch.register("loss")(PullPositives)
    assert keypatch.train(resume=pulled_run) == pulled_run


def test_the_program_that_started_it_resumes_it_unregistered(pulled_run: Path) -> None:
    assert keypatch.train(PULLED, resume=pulled_run) == pulled_run


def test_an_unknown_part_goes_from_toml_to_toml() -> None:
    text = recipe_to_toml(PULLED)
    trained = recipe_from_toml(text, types=TRAINED)
    assert recipe_to_toml(trained) == text and trained == recipe_from_toml(text, types=TRAINED)
    assert str(trained.loss[1]) == "PullPositives(limit=0.6, weight=1.0)"


def test_a_registered_part_is_known_as_ours_are() -> None:
    assert keypatch.register("loss")(PullPositives) is PullPositives
    assert recipe_from_toml(recipe_to_toml(PULLED)) == PULLED
    assert apply_settings(PULLED, ["loss.limit=0.5"], TYPES).loss[1] == PullPositives(0.5)
    listed = {each.name: each.about for each in keypatch.list_names("losses")["losses"]}
    assert listed["PullPositives"] == "[d+ - limit]+."


def test_a_registered_recipe_is_found_by_its_name() -> None:
    keypatch.register("loss")(PullPositives)
    assert keypatch.find_recipe(keypatch.register("recipe")(PULLED).name) is PULLED
    assert "pulled" in [each.name for each in keypatch.list_names("recipes")["recipes"]]


def test_a_registered_detector_is_made_by_its_name() -> None:
    @keypatch.register("detector")
    @dataclass(frozen=True)
    class Middle:
        """The middle of the photograph."""

        name = "middle"
        sigma: float = 3.0

        def __call__(self, image: np.ndarray) -> Keypoints:
            height, width = image.shape
            one = np.ones(1, np.float32)
            return Keypoints(one * width / 2, one * height / 2, one * self.sigma, 0 * one, response=one)

    assert make_detector("middle", sigma=5.0) == Middle(5.0)
    assert len(keypatch.extract(np.zeros((90, 90), np.uint8), "sift", keypatch.Extraction("middle")).keypoints) == 1


def test_a_network_of_ones_own_is_needed_by_its_weights(tmp_path: Path, small_set: Path) -> None:
    @dataclass(frozen=True)
    class Mine:
        dim: int = 16
        preprocessing: networks.Preprocessing = HARDNET.network.preprocessing

        def build(self) -> Any:
            return replace(PULLED.network, dim=self.dim).build()

    run = keypatch.train(replace(PULLED, network=Mine(), loss=HARDNET.loss), small_set, tmp_path / "run", ONE)
    with pytest.raises(RecipeError, match=r'network: there is no "Mine".*must be registered'):
        keypatch.load(run)
    keypatch.register("network")(Mine)
    assert keypatch.load(run).dim == 16


@pytest.mark.parametrize(
    ("kind", "make", "message"),
    [
        ("los", lambda: PullPositives, 'no kind of part "los"'),
        ("loss", lambda: type("Bare", (), {}), r"above @dataclass\(frozen=True\)"),
        ("loss", lambda: dataclass(type("Triplet", (), {})), 'already a loss "Triplet"'),
        ("recipe", lambda: HARDNET, 'already a recipe "hardnet"'),
    ],
)
def test_what_cannot_be_registered_is_told(kind: str, make: Callable[[], Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        keypatch.register(kind)(make())


def test_a_cell_that_is_run_again_replaces_its_part_and_nothing_else_does() -> None:
    def cell(default: float) -> type:
        return keypatch.register("loss")(dataclass(type("Again", (), {"__module__": "__main__", "weight": default})))

    first, second = cell(1.0), cell(2.0)
    assert first is not second and parts.TABLES["loss"]["Again"] is second
    with pytest.raises(RecipeError, match='already a loss "Again"'):
        keypatch.register("loss")(dataclass(type("Again", (), {"__module__": "elsewhere"})))


def test_an_installed_plugin_is_imported_when_a_name_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed_parts.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("mine", "installed_parts", parts.GROUP)
    monkeypatch.setattr(parts, "entry_points", lambda group: [point] if group == parts.GROUP else [])
    parts.load_installed.cache_clear()
    recipe_from_toml(recipe_to_toml(HARDNET))
    assert "installed_parts" not in sys.modules
    assert keypatch.find_recipe("plugged").loss[-1].limit == 0.5
    assert "installed_parts" in sys.modules
    monkeypatch.delitem(sys.modules, "installed_parts")


def test_a_broken_plugin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "no_such_module_at_all", parts.GROUP)
    monkeypatch.setattr(parts, "entry_points", lambda group: [point])
    parts.load_installed.cache_clear()
    with pytest.raises(KeypatchError, match=r"The plugin mine of no_such_module_at_all cannot be loaded \(ModuleNot"):
        keypatch.find_recipe("unknown")


def test_a_name_in_a_file_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("evil", "evil.Evil", "evil:Evil"):
        text = recipe_to_toml(PULLED).replace('"PullPositives"', f'"{name}"')
        assert recipe_from_toml(text, types=TRAINED).loss[1].name == name
    assert "evil" not in sys.modules


@pytest.mark.parametrize("value", [float("inf"), torch.ones(1), np.float32(1.0), print])
def test_a_field_that_no_file_can_hold_is_refused_before_the_run(value: Any, tmp_path: Path, small_set: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be written to a file"):
        keypatch.train(replace(PULLED, loss=(PullPositives(value),)), small_set, tmp_path / "run", ONE)
    assert not (tmp_path / "run").exists()


def test_a_part_that_is_no_dataclass_is_refused_before_the_run(tmp_path: Path, small_set: Path) -> None:
    class Plain:
        weight = 1.0

        def __call__(self, batch: Described) -> Tensor:
            return batch.positive_distances()

    with pytest.raises(RecipeError, match=r"Plain is not a dataclass.*Add @dataclass\(frozen=True\)"):
        keypatch.train(replace(PULLED, loss=(Plain(),)), small_set, tmp_path / "run", ONE)
    assert not (tmp_path / "run").exists()


PLUGIN = '''
from dataclasses import dataclass, replace

import keypatch
from keypatch.recipes import HARDNET


@keypatch.register("loss")
@dataclass(frozen=True)
class Plugged:
    """Of a plugin."""

    limit: float = 0.7
    weight: float = 1.0

    def __call__(self, batch):
        return (batch.positive_distances() - self.limit).relu()


keypatch.register("recipe")(replace(HARDNET, name="plugged", loss=(*HARDNET.loss, Plugged(0.5))))
'''
