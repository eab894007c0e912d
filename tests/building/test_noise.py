"""The share of wrong labels is estimated from the patches alone: planted noise is found."""

import json

import numpy as np
import pytest

import keypatch as kp
from keypatch.building.noise import LabelNoise, describe_rows, estimate_label_noise, suspicion
from keypatch.describers.sift import SiftDescriber

ROOTSIFT = SiftDescriber(root=True)


def planted(point_id: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels after this share of patches have exchanged theirs, and which patches are wrong."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(point_id))[: round(share * len(point_id))]
    noisy = point_id.copy()
    noisy[chosen] = point_id[np.roll(chosen, 1)]
    return noisy, np.flatnonzero(noisy != point_id)


def estimate(built: kp.BuiltSet, share: float, seed: int = 0) -> LabelNoise:
    patches = kp.open_patches(built.folder)
    noisy, _ = planted(patches.point_id, share, seed)
    return estimate_label_noise(patches.patches, noisy, ROOTSIFT, np.random.default_rng(seed))


@pytest.mark.parametrize(("share", "tolerance"), [(0.0, 0.01), (0.05, 0.025), (0.2, 0.05)])
def test_planted_noise_is_estimated(built: kp.BuiltSet, share: float, tolerance: float) -> None:
    """About 1,000 pairs: the standard error at 20 % is 1.6 points."""
    found = estimate(built, share)
    assert found.patches == pytest.approx(share, abs=tolerance)
    low, high = found.interval
    assert low <= found.patches <= high and low - 0.01 <= share <= high + 0.01


def test_more_noise_is_more(built: kp.BuiltSet) -> None:
    shares = [estimate(built, share, seed=3).patches for share in (0, 0.05, 0.1, 0.2, 0.4)]
    assert shares == sorted(shares) and shares[-1] > 0.3


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_planted_noise_is_estimated_by_angles_in_space(built: kp.BuiltSet, share: float) -> None:
    """Rows of a room whose cameras are known: a wrong label is a keypoint of another place, turned at random."""
    from keypatch.building.observations import Observations

    rng = np.random.default_rng(1)
    patches = kp.open_patches(built.folder)
    noisy, wrong = planted(patches.point_id, share, 1)
    n = len(patches)
    ray = np.tile([0.0, 0, -1], (n, 1))
    angle = rng.normal(0, 0.1, n)
    angle[wrong] = rng.uniform(-np.pi, np.pi, len(wrong))
    upward = np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    rows = Observations(
        patches.keypoints, noisy, patches.image_id, np.zeros(n), np.zeros((n, 3)), np.zeros(n, np.int64), ray, upward,
        np.ones(n),
    )  # fmt: skip
    found = estimate_label_noise(patches.patches, noisy, ROOTSIFT, np.random.default_rng(0), rows)
    assert found.turned == pytest.approx(share, abs=0.05)


def test_planted_patches_are_the_most_suspicious(built: kp.BuiltSet) -> None:
    patches = kp.open_patches(built.folder)
    noisy, wrong = planted(patches.point_id, 0.01, 2)
    points, oddest, distance = suspicion(patches.patches, noisy, ROOTSIFT, np.random.default_rng(0))
    assert np.array_equal(noisy[oddest], points)
    assert np.all(np.diff(distance) <= 0) and len(points) == len(np.unique(noisy))
    worst = set(points[: len(wrong)].tolist())
    assert np.mean([int(noisy[patch]) in worst for patch in wrong]) > 0.7


def test_describing_in_chunks_is_describing(built: kp.BuiltSet) -> None:
    patches = kp.open_patches(built.folder).patches
    rows = np.array([5, 3, 3, 90])
    assert np.array_equal(describe_rows(patches, rows, ROOTSIFT, chunk=3), ROOTSIFT.describe(patches[rows]))
    assert describe_rows(patches, rows[:0], ROOTSIFT).shape == (0, 128)


def test_the_card_says_how_noise_was_estimated(built: kp.BuiltSet) -> None:
    noise = json.loads((built.folder / "card.json").read_text())["label_noise"]
    assert noise["descriptor"] == "rootsift" and "rootsift" in noise["how"] and noise["pairs"] > 500
