"""AdaLAM on planted scenes, beside kornia's."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from kornia.feature.adalam.adalam import get_adalam_default_config
from kornia.feature.adalam.core import adalam_core

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints
from keypatch.matching.adalam import AdaLAM, Candidates, _fit, _Neighbourhoods, _residuals

SIZE = (640, 480)


def planted(
    seed: int, outliers: float = 0.5, clusters: int = 4, points: int = 60, noise: float = 0.5
) -> tuple[Candidates, np.ndarray]:
    """Clusters that move by an affine map each, among outliers; and which candidates are of a cluster."""
    rng = np.random.default_rng(seed)
    inliers = clusters * points
    count = round(inliers / (1 - outliers))
    x, y = (rng.uniform((0, 0), SIZE, (count, 2)) for _ in range(2))
    sigma0, angle0 = rng.uniform(2, 6, count), rng.uniform(-np.pi, np.pi, count)
    sigma1, angle1 = rng.uniform(2, 6, count), rng.uniform(-np.pi, np.pi, count)
    for cluster in range(clusters):
        mine = slice(cluster * points, (cluster + 1) * points)
        turn, growth = rng.uniform(-np.pi, np.pi), rng.uniform(0.7, 1.4)
        linear = growth * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        linear = linear @ (np.eye(2) + rng.uniform(-0.2, 0.2, (2, 2)))
        centre0, centre1 = rng.uniform((100, 100), (540, 380), (2, 2))
        offset = rng.uniform(-60, 60, (points, 2))
        x[mine], y[mine] = centre0 + offset, centre1 + offset @ linear.T + rng.normal(0, noise, (points, 2))
        sigma1[mine] = sigma0[mine] * growth * rng.uniform(0.9, 1.1, points)
        angle1[mine] = angle0[mine] + turn + rng.normal(0, 0.1, points)
    is_inlier = np.arange(count) < inliers
    ratio = np.where(is_inlier, rng.uniform(0.3, 0.95, count), rng.uniform(0.6, 1, count)).astype(np.float32)
    mutual = np.where(is_inlier, rng.random(count) < 0.9, rng.random(count) < 0.4)
    order = rng.permutation(count)
    first = Keypoints(*x[order].T, sigma0[order], angle0[order])
    second = Keypoints(*y[order].T, sigma1[order], angle1[order])
    candidates = Candidates(first, second, (SIZE, SIZE), ratio[order], mutual[order])
    return candidates, is_inlier[order]


def by_kornia(candidates: Candidates) -> np.ndarray:
    first, second = candidates.first, candidates.second
    height_width = SIZE[::-1]
    found = adalam_core(
        torch.from_numpy(first.xy.astype(np.float32)),
        torch.from_numpy(second.xy.astype(np.float32)),
        torch.arange(len(first)),
        torch.from_numpy(candidates.ratio**2),
        get_adalam_default_config(),
        torch.from_numpy(candidates.mutual),
        height_width,
        height_width,
        torch.rad2deg(torch.from_numpy(first.angle)),
        torch.rad2deg(torch.from_numpy(second.angle)),
        torch.from_numpy(first.sigma),
        torch.from_numpy(second.sigma),
    )
    kept = np.zeros(len(first), np.bool_)
    kept[found[:, 0].numpy()] = True
    return kept


def precision_and_recall(kept: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    return (kept & right).sum() / max(kept.sum(), 1), (kept & right).sum() / right.sum()


@pytest.mark.parametrize("outliers", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(20), marks=pytest.mark.slow)], ids=["few", "many"])
def test_precision_and_recall_are_those_of_kornia(outliers: float, seeds: range) -> None:
    scenes = [planted(seed, outliers) for seed in seeds]
    ours = np.mean([precision_and_recall(AdaLAM()(candidates), right) for candidates, right in scenes], axis=0)
    theirs = np.mean([precision_and_recall(by_kornia(candidates), right) for candidates, right in scenes], axis=0)
    assert (ours > theirs - 0.02).all() and theirs.min() > 0.95


def test_pure_chance_is_left_out() -> None:
    candidates, right = planted(0, outliers=0.9)
    rng = np.random.default_rng(1)
    second = candidates.second
    scattered = replace(second, x=rng.permutation(second.x), y=rng.permutation(second.y))
    assert AdaLAM()(replace(candidates, second=scattered)).sum() < 0.01 * len(right)


def test_the_order_of_the_candidates_does_not_matter() -> None:
    candidates, _ = planted(0, outliers=0.8)
    order = np.random.default_rng(0).permutation(len(candidates.ratio))
    assert np.array_equal(AdaLAM()(candidates.take(order)), AdaLAM()(candidates)[order])


def test_a_second_orientation_shares_the_fate_of_its_place_and_is_no_evidence() -> None:
    candidates, _ = planted(0, outliers=0.8)
    n = len(candidates.ratio)
    doubled = candidates.take(np.tile(np.arange(n), 2))
    turn = np.repeat([0.0, 1.5], n)
    turned = [replace(each, angle=each.angle + turn) for each in (doubled.first, doubled.second)]
    assert np.array_equal(
        AdaLAM()(replace(doubled, first=turned[0], second=turned[1])), np.tile(AdaLAM()(candidates), 2)
    )
    few, _ = planted(0, outliers=0.0, clusters=1, points=7)  # a seed and six: too few to prove a map
    assert not AdaLAM()(few.take(np.arange(7).repeat(5))).any()


@pytest.mark.parametrize("unknown", ["angle", "sigma"])
def test_without_orientations_or_scales_places_decide(unknown: str) -> None:
    candidates, right = planted(0, outliers=0.5)
    same = np.ones(len(right), np.float32)
    without = replace(
        candidates,
        first=replace(candidates.first, **{unknown: same}),
        second=replace(candidates.second, **{unknown: same}),
    )
    precision, recall = precision_and_recall(AdaLAM()(without), right)
    assert precision > 0.9 and recall > 0.95


def test_images_of_other_sizes_and_few_or_no_candidates() -> None:
    candidates, right = planted(0, outliers=0.5)
    second = candidates.second
    larger = Keypoints(3 * second.x, 3 * second.y, 3 * second.sigma, second.angle)
    scaled = replace(candidates, second=larger, sizes=(SIZE, (3 * SIZE[0], 3 * SIZE[1])))
    assert precision_and_recall(AdaLAM()(scaled), right) > (0.99, 0.99)
    for count in (0, 1, 5):
        assert AdaLAM()(candidates.take(np.arange(count))).tolist() == [False] * count


def test_all_matches_at_one_place_prove_nothing() -> None:
    candidates, _ = planted(0, outliers=0.5)
    same = np.full(len(candidates.second), 100, np.float32)
    one_place = replace(candidates, second=replace(candidates.second, x=same, y=same))
    assert not AdaLAM()(one_place).any()
    everywhere = replace(candidates, first=replace(candidates.first, x=same, y=same))
    assert not AdaLAM()(everywhere).any()


@pytest.mark.parametrize("maps", [1, 7, 21, 500])
def test_any_number_of_maps_and_of_matches_that_agree(maps: int) -> None:
    candidates, right = planted(0, outliers=0.5)
    precision, recall = precision_and_recall(AdaLAM(maps=maps)(candidates), right)
    assert precision > 0.98 and recall > (0.5 if maps == 1 else 0.95)
    sparse = candidates.take(np.flatnonzero(right)[::8])  # neighbourhoods of fewer than the maps are made of
    assert AdaLAM(maps=maps, fewest=1)(sparse).any() and not AdaLAM(maps=maps, fewest=20)(sparse).any()


def test_residuals_and_fits_are_those_of_maps_of_the_plane() -> None:
    rng = np.random.default_rng(0)
    x, y, p, q = ((rng.normal(size=(3, 9)) + 1j * rng.normal(size=(3, 9))).astype(np.complex64) for _ in range(4))
    nobody = np.zeros((3, 9), np.intp)
    terms = _Neighbourhoods(nobody[:, 0], nobody[:, 0] + 9, nobody, x, y).terms
    put = p[:, :, None] * x[:, None] + q[:, :, None] * x[:, None].conj()
    assert np.allclose(_residuals(np.stack([p, q]), terms), abs(put - y[:, None]) ** 2, atol=1e-4)
    agree = rng.random((3, 9)) < 0.7
    for row, fitted in enumerate(_fit(agree, terms)[:, :, 0].T):
        places, targets = (z[row, agree[row]].view(np.float32).reshape(-1, 2) for z in (x, y))
        linear = np.linalg.lstsq(places, targets)[0].T
        assert np.allclose(linear @ [1, 0], [fitted.sum().real, fitted.sum().imag], atol=1e-4)
        turned = 1j * (fitted[0] - fitted[1])
        assert np.allclose(linear @ [0, 1], [turned.real, turned.imag], atol=1e-4)


def test_support_is_the_largest_number_that_is_no_chance() -> None:
    rng = np.random.default_rng(0)
    residuals = (rng.random((40, 5, 60)) ** rng.uniform(1, 4, (40, 5, 1)) / 10).astype(np.float32)
    unit = np.full(40, 1 / (200 * 58), np.float32)
    numbers = np.arange(59, dtype=np.float32)
    agreeing = (residuals[..., None] <= numbers * unit[0]).sum(axis=2) - 2 >= numbers
    expected = (agreeing * numbers).max(axis=2) * ((agreeing * numbers).max(axis=2) >= 6)
    which, support = AdaLAM()._support(residuals, unit)
    assert np.array_equal(support, expected.max(axis=1)) and 0 < np.count_nonzero(support) < 40
    assert np.array_equal(expected[np.arange(40), which][support > 0], support[support > 0])


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(KeypatchError, match="confidence is 0"):
        AdaLAM(confidence=0)
