"""A run with a teacher: whose descriptors the terms see, what the folder remembers, how it resumes."""

import json
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from keypatch.errors import Interrupted, KeypatchError, RecipeError
from keypatch.losses import Distillation
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.sampling import AdaptivePairs, Augmentation
from keypatch.training import Recipe
from keypatch.training.batches import Batches
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=0.0)


@dataclass(frozen=True)
class Rows:
    """Describes a patch by its rows' means, four times their length."""

    name: str = "rows"
    dim: int = 16
    patch_sigmas: float = 24.0
    weights_hash: str = "aa"

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        assert patches.dtype == np.uint8 and patches.shape[1:] == (64, 64)
        means = patches.reshape(len(patches), self.dim, -1).mean(2)
        means = means - means.mean(1, keepdims=True)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        return np.asarray(4 * means / lengths, np.float32)


@pytest.fixture
def taught(hardnet: Recipe) -> Recipe:
    return replace(hardnet, loss=(*hardnet.loss, Distillation(weight=0.5)))


class StopAfterThree(Progress):
    def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
        if done == 3 * 16:
            signal.raise_signal(signal.SIGINT)


def weights(run: Path) -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(find_checkpoints(run)[-1]).network)


def test_the_teacher_sees_the_patches_of_the_student_as_they_were_augmented(
    taught: Recipe, small_set: PatchSet
) -> None:
    plain = replace(taught, augment=Augmentation(flips="none", detector_noise=0.0))
    batch = Batches(plain, small_set, small_set.classes(), torch.device("cpu"), teacher=Rows()).make(2)
    assert batch.teacher is not None and batch.teacher.shape == (32, 16)
    patches = small_set.take(batch.draw.indices.T.flatten())
    np.testing.assert_allclose(batch.teacher, Rows().describe(patches) / 4, atol=1e-6)
    turned = Batches(taught, small_set, small_set.classes(), torch.device("cpu"), teacher=Rows()).make(2)
    assert turned.teacher is not None and not torch.allclose(turned.teacher, batch.teacher, atol=0.1)


def test_a_run_with_a_teacher_resumes_to_the_bit_and_names_it(
    taught: Recipe, small_set: PatchSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)
    whole = run_training(taught, small_set, tmp_path / "whole", conditions=EXACT, teacher=Rows())
    with pytest.raises(Interrupted):
        run_training(taught, small_set, tmp_path / "cut", StopAfterThree(), conditions=EXACT, teacher=Rows())
    for other in (Rows(weights_hash="bb"), None):
        with pytest.raises(KeypatchError, match="teacher"):
            run_training(taught, small_set, tmp_path / "cut", conditions=EXACT, resume=True, teacher=other)
    cut = run_training(taught, small_set, tmp_path / "cut", conditions=EXACT, resume=True, teacher=Rows())
    assert all(torch.equal(tensor, weights(cut)[name]) for name, tensor in weights(whole).items())
    assert json.loads((cut / "card.json").read_text())["teacher"] == "rows"
    logged = [json.loads(line)["terms"] for line in (cut / "log.jsonl").read_text().splitlines()]
    assert len(logged) == 6 and all(0 < terms["Distillation"] <= 0.5 * 4 for terms in logged)


@pytest.mark.parametrize("candidates", ["all", "memory"])
def test_chosen_pairs_keep_the_teachers_descriptors_of_their_own_patches(
    candidates: str, taught: Recipe, small_set: PatchSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teacher's answer is a function of the patch, and of the student's input with it."""
    seen = []

    def watch(term: Distillation, batch: object) -> torch.Tensor:
        seen.append(batch.teacher)  # type: ignore[attr-defined]
        return batch.positive_distances()  # type: ignore[attr-defined,no-any-return]

    monkeypatch.setattr(Distillation, "__call__", watch)
    sampler = AdaptivePairs(16, warm=0.0, candidates=candidates)  # type: ignore[arg-type]
    run_training(replace(taught, sampler=sampler), small_set, tmp_path, conditions=EXACT, teacher=Rows())
    assert {None if rows is None else tuple(rows.shape) for rows in seen} == {(32, 16)}


def test_teachers_that_do_not_fit_are_refused_before_anything_is_written(
    hardnet: Recipe, taught: Recipe, small_set: PatchSet, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises(RecipeError, match="12 sigmas wide, but the network to train takes patches 24 sigmas wide"):
        run_training(taught, small_set, out, conditions=EXACT, teacher=Rows(patch_sigmas=12.0))
    with pytest.raises(KeypatchError, match="have 64 dimensions, the student's 16"):
        run_training(taught, small_set, out, conditions=EXACT, teacher=Rows(dim=64))
    with pytest.raises(KeypatchError, match="Name a teacher"):
        run_training(taught, small_set, out, conditions=EXACT)
    assert not out.exists()
