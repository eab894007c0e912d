"""`--plugin mine.py`: parts of one's own on the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

THIN = ["--set", "sampler.pairs=32", "--set", "network.width=4", "--set", "network.dim=16", "--threads", "1"]
PLUGIN = '''
from dataclasses import dataclass, replace

import numpy as np
from beside import LIMIT

import keypatch
from keypatch.benchmarks.result import Result, provenance_of
from keypatch.benchmarks.table import Benchmark
from keypatch.benchmarks.ubc import hash_patches
from keypatch.detection import Grid
from keypatch.patches import open_patches
from keypatch.recipes import HARDNET
from keypatch.settings import option


@keypatch.register("loss")
@dataclass(frozen=True)
class Pull:
    """[d+ - limit]+, of a plugin."""

    limit: float = LIMIT
    weight: float = 1.0

    def __call__(self, batch):
        return (batch.positive_distances() - self.limit).relu()


keypatch.register("recipe")(replace(HARDNET, name="pulled", loss=(*HARDNET.loss, Pull())))


@keypatch.register("detector")
@dataclass(frozen=True)
class Middle:
    """Nine places."""

    name = "middle"
    sigma: float = option(3.0, "Scale of every place.")

    def __call__(self, image):
        return Grid(max(image.shape) / 3, self.sigma)(image)


@dataclass(frozen=True)
class Dimming:
    light: float = option(0.3, "Share of the light that is left.")


def evaluate_dimming(describer, data, settings=Dimming(), progress=None):
    patch_set = open_patches(data)
    bright = patch_set.take(np.arange(40))
    dark = (bright * settings.light).astype(np.uint8)
    right = (describer.describe(bright) @ describer.describe(dark).T).argmax(1) == np.arange(40)
    origin = provenance_of(describer, hash_patches(patch_set))
    return Result("dimming", describer.name, {"light": settings.light}, {"rank1": float(right.mean())}, {}, origin)


OWN = Benchmark(__name__, "Dimming", "patches in poor light", ("rank1",), ("light",), on_patches=True)
keypatch.register("benchmark")(OWN)
'''


@pytest.fixture
def plugin(tmp_path: Path, own_parts: Callable[[], None]) -> Path:
    (tmp_path / "beside.py").write_text("LIMIT = 0.25")
    (tmp_path / "mine.py").write_text(PLUGIN)
    return tmp_path / "mine.py"


def test_a_run_of_a_plugin_is_trained_resumed_and_used(
    keypatch: Callable, plugin: Path, own_parts: Callable[[], None], phototour: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ["train", "pulled", "--data", phototour, "--out", run, "--pairs", 64, *THIN, "--set", "loss.limit=0.5"]
    assert "no recipe" in keypatch(*words).err
    shown = keypatch(*words, "--plugin", plugin)
    assert shown.code == 0, shown.err
    assert 'type = "Pull"\nlimit = 0.5' in (run / "recipe.toml").read_text()
    own_parts()  # as in another process
    assert keypatch("evaluate", run, "--data", phototour, "--no-cache").code == 0
    assert "Pull(limit=0.5" in keypatch("inspect", run).out
    shown = keypatch("train", "--resume", run)
    assert shown.code == 2 and 'there is no "Pull"' in shown.err and "--plugin FILE" in shown.err
    assert keypatch("train", "--resume", run, f"--plugin={plugin}").code == 0


def test_parts_of_a_plugin_are_listed_and_taken_as_ours(
    keypatch: Callable, plugin: Path, phototour: Path, tmp_path: Path
) -> None:
    lines = {
        "losses": "[d+ - limit]+, of a plugin.",
        "recipes": "Your own",
        "detectors": "Nine places.",
        "benchmarks": "patches in poor light",
    }
    assert not any(line in keypatch("list").out for line in lines.values())
    for kind, line in lines.items():
        assert line in keypatch("--plugin", plugin, "list", kind).out
    assert "limit = 0.25" in keypatch("list", "pulled", "--plugin", plugin).out
    assert "light" in keypatch("list", "dimming", "--plugin", plugin).out
    shown = keypatch("evaluate", "sift", "--on", "dimming", "--data", phototour, "--set", "light=0.5", "--no-cache")
    assert shown.code == 0 and "sift on dimming" in shown.out, shown.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "there is no such Python file"),
        ("import no_such_module_at_all", "ModuleNotFoundError"),
        ("x = (", "SyntaxError"),
        ("import keypatch; keypatch.register('los')", 'There is no kind of part "los"'),
    ],
)
def test_a_plugin_that_cannot_be_run_is_told(
    keypatch: Callable, tmp_path: Path, text: str | None, sentence: str
) -> None:
    path = tmp_path / "broken.py"
    if text is not None:
        path.write_text(text)
    shown = keypatch("list", "--plugin", path)
    assert shown.code == 2 and f"--plugin {path}" in shown.err and sentence in shown.err
    assert keypatch("list", "losses", "--plugin").code == 2
