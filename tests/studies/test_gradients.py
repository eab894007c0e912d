"""Distances and gradients: the norms against plain autograd, and the study over checkpoints of several runs."""

import json
import math
import signal
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import keypatch
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.files import lock
from keypatch.losses import Angle, Described, Hardest, SquaredAngle, Triplet
from keypatch.networks import L2Net, PatchNetwork
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.studies.gradients import study
from keypatch.studies.gradients.measure import GradientNorms, gradient_norms, measure_gradients, varied_pairs
from keypatch.studies.gradients.study import GradientsSetup, study_gradients
from keypatch.studies.gradients.table import Gradients, spread, table_of
from keypatch.training.conditions import Conditions

PAIRS = 64


@pytest.fixture(scope="module")
def blobs() -> PatchSet:
    """Smooth noise, two views of each with a little noise of their own."""
    rng = np.random.default_rng(0)
    smooth = np.stack([cv2.GaussianBlur(noise, (0, 0), 4) for noise in rng.standard_normal((PAIRS, 64, 64))])
    views = (smooth / smooth.std((1, 2), keepdims=True)).repeat(2, axis=0)
    views = 127 + 45 * (views + 0.05 * rng.standard_normal(views.shape))
    return PatchSet("blobs", views.clip(0, 255).astype(np.uint8), np.arange(PAIRS).repeat(2))


@pytest.fixture
def network(blobs: PatchSet) -> PatchNetwork:
    """A thin network as it starts, its batch normalization adapted to the patches."""
    torch.manual_seed(0)
    made = L2Net(width=4, dim=16).build()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.momentum = None  # the plain mean of what is seen
    with torch.no_grad():
        made(varied_pairs(made, blobs, PAIRS, seed=1))
    return made


def test_the_angle_tells_the_gradient_of_the_positive_term(network: PatchNetwork, blobs: PatchSet) -> None:
    found = measure_gradients(network, blobs, PAIRS)
    positive, full = (found.correlation(each) for each in (found.positive, found.full))
    assert len(found.angles) == PAIRS and found.open > 0.5
    assert positive > 0.8  # figure 2 b
    assert full < positive  # the mined negative has its own say
    assert positive == pytest.approx(
        np.corrcoef(found.angles / found.angles.sum(), found.positive / found.positive.sum())[0, 1]
    )


def test_norms_are_those_of_the_batch_loss_pair_by_pair(network: PatchNetwork, blobs: PatchSet) -> None:
    x = varied_pairs(network, blobs, 12, seed=2)
    found = gradient_norms(network, x)
    assert network.training and all(parameter.grad is None for parameter in network.parameters())
    network.eval()
    raw = network(x)
    batch = Described.of_pairs(raw[:12], raw[12:], Hardest())
    np.testing.assert_allclose(found.angles, batch.positive_distances(Angle()).detach(), rtol=1e-4)
    hinges = Triplet(margin=1.0, measure=SquaredAngle())(batch)
    for values, norms in ((batch.positive_distances(SquaredAngle()), found.positive), (hinges, found.full)):
        for i in (0, 5, 11):
            gradients = torch.autograd.grad(values[i], list(network.parameters()), retain_graph=True)
            assert torch.cat([g.flatten() for g in gradients]).norm().item() == pytest.approx(norms[i], rel=1e-3)


def test_pairs_vary_from_easy_to_hard(network: PatchNetwork, blobs: PatchSet) -> None:
    easy, *_, hard = np.array_split(measure_gradients(network, blobs, PAIRS).angles, 4)
    assert hard.mean() > 2 * easy.mean()
    same = measure_gradients(network, blobs, PAIRS, noise=(0.0,)).angles
    assert same.max() < hard.mean()


def test_norms_that_do_not_vary_have_no_correlation() -> None:
    found = GradientNorms(np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), np.zeros(3))
    assert found.correlation(found.positive) == pytest.approx(1)
    assert math.isnan(found.correlation(found.full)) and found.open == 0


@pytest.fixture(scope="module")
def runs(blobs: PatchSet, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run with two milestones and its end, and one with its end alone."""
    folder = tmp_path_factory.mktemp("runs")
    thin = ("sampler.pairs=32", "network.width=4", "network.dim=16")
    one = Conditions(device="cpu", precision="float32", compile="off", threads=1, keep=(0.25, 0.75))
    first = keypatch.train("hardnet", blobs, folder / "hardnet", one, settings=thin, pairs=128)
    two = Conditions(device="cpu", precision="float32", compile="off", threads=1)
    return [first, keypatch.train("hynet", blobs, folder / "hynet", two, settings=thin, pairs=64)]


SETUP = GradientsSetup(pairs=12, seeds=(0, 1))


def test_every_kept_checkpoint_of_every_run_is_measured(runs: list[Path], blobs: PatchSet, tmp_path: Path) -> None:
    found = study_gradients(runs, blobs, tmp_path / "study", SETUP)
    assert found.runs() == ["hardnet", "hynet"]
    assert [*found.checkpoints("hardnet")] == [32, 96, 128] and [*found.checkpoints("hynet")] == [64]
    last = found.checkpoints("hardnet")[128]
    by_hand = measure_gradients(keypatch.zoo.loading.load_network(runs[0])[1], blobs, 12, seed=1)
    assert last[1].full == pytest.approx(by_hand.correlation(by_hand.full), rel=1e-3)
    values = spread(last, "full")
    assert values.low <= values.mean <= values.high and last[0].full in values
    assert last[1].angles == pytest.approx(by_hand.angles, rel=1e-3)
    assert Gradients.load(tmp_path / "study" / "gradients.json") == found
    page = (tmp_path / "study" / "gradients.md").read_text()
    assert all(f"| {' | '.join(row)} |" in page for row in table_of(found)) and "12 pairs of blobs" in page
    with Image.open(tmp_path / "study" / "gradients.png") as figure:
        assert figure.size[0] > 600


def test_a_stopped_study_resumes_to_the_same_numbers_and_others_are_added(
    runs: list[Path], blobs: PatchSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = list[int]()

    def counted(*words: object) -> GradientNorms:
        measured.append(1)
        return measure_gradients(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(study, "measure_gradients", counted)

    class StopAtTheThird(Progress):
        def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
            if done == 2:
                signal.raise_signal(signal.SIGINT)

    out = tmp_path / "study"
    with pytest.raises(Interrupted, match="the same command resumes it"):
        study_gradients(runs[:1], blobs, out, SETUP, progress=StopAtTheThird())
    assert len(measured) == 4  # two checkpoints, two seeds
    resumed = study_gradients(runs[:1], blobs, out, SETUP)
    assert len(measured) == 6
    both = study_gradients(runs, blobs, out, SETUP)
    assert len(measured) == 8 and both.measured[:6] == resumed.measured
    assert both.measured == study_gradients(runs, blobs, tmp_path / "whole", SETUP).measured


def test_wrong_input_is_told_and_nothing_is_measured(runs: list[Path], blobs: PatchSet, tmp_path: Path) -> None:
    out = tmp_path / "study"
    study_gradients(runs[1:], blobs, out, SETUP)
    before = (out / "gradients.json").read_bytes()
    wrong: list[tuple[type[KeypatchError], str, Callable[[], object]]] = [
        (KeypatchError, "pairs = 12, not 13", lambda: study_gradients(runs, blobs, out, GradientsSetup(13))),
        (KeypatchError, "noise = ", lambda: study_gradients(runs, blobs, out, GradientsSetup(12, noise=(0.0,)))),
        (
            KeypatchError,
            'Two of the descriptors are called "hynet"',
            lambda: study_gradients([runs[1]] * 2, blobs, out),
        ),
        (KeypatchError, "hand-crafted and has no network", lambda: study_gradients(["sift"], blobs, out, SETUP)),
        (KeypatchError, "at least one run", lambda: study_gradients([], blobs, out, SETUP)),
        (KeypatchError, "There is no descriptor", lambda: study_gradients([tmp_path / "no"], blobs, out, SETUP)),
        (DataError, "A batch of 99", lambda: study_gradients(runs, blobs, tmp_path / "x", GradientsSetup(99))),
        (KeypatchError, "at least one seed", lambda: GradientsSetup(seeds=())),
    ]
    for kind, says, call in wrong:
        with pytest.raises(kind, match=says):
            call()
    with lock(out / ".lock", "test"), pytest.raises(KeypatchError, match="another process"):
        study_gradients(runs, blobs, out, SETUP)
    assert (out / "gradients.json").read_bytes() == before
    newer = {**json.loads(before), "format_number": 99}
    (out / "gradients.json").write_text(json.dumps(newer))
    with pytest.raises(DataError, match="newer"):
        study_gradients(runs, blobs, out, SETUP)
