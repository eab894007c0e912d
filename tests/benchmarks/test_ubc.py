"""Patch verification on a small set, against scores computed the long way."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import average_precision_score

from keypatch.benchmarks import Ubc, evaluate_ubc, load_result, paired_difference
from keypatch.benchmarks.ubc import pair_distances
from keypatch.describers import protocol
from keypatch.errors import DataError, KeypatchError
from keypatch.metrics import draw_counts, fpr95
from keypatch.patches import Pairs, PatchSet

POINTS, VIEWS = 30, 3


@dataclass(frozen=True)
class MeanPixels:
    """A describer in ten lines: the means of an 8x8 grid."""

    name: str = "pixels"
    dim: int = 64
    patch_size: int = 64
    patch_sigmas: float = 24.0
    unit_length: bool = False
    fault: float = 0.0  # added to the first value

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        blocks = patches[:, :64, :64].reshape(-1, 8, 8, 8, 8)
        means: NDArray[np.float32] = blocks.mean(axis=(2, 4), dtype=np.float32).reshape(-1, 64)
        means[:1, :1] += self.fault
        return means


@dataclass(frozen=True)
class Noisy(MeanPixels):
    """Means hidden in noise."""

    name: str = "noisy"

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        means = super().describe(patches)
        return means + np.random.default_rng(0).normal(0, 200, means.shape).astype(np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PhotoTour set of 90 patches, three of each point, one patch of a point of its own, and two lists."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 256, (POINTS, 8, 8)).repeat(8, 1).repeat(8, 2)
    noise = rng.normal(0, 120, (POINTS, VIEWS, 8, 8)).repeat(8, 2).repeat(8, 3)
    patches = np.clip(points[:, None] + noise, 0, 255).astype(np.uint8).reshape(-1, 64, 64)
    sheet = np.zeros((256, 64, 64), np.uint8)
    sheet[: len(patches)] = patches
    sheet[len(patches)] = rng.integers(0, 256, (64, 64))
    Image.fromarray(sheet.reshape(16, 16, 64, 64).swapaxes(1, 2).reshape(1024, 1024)).save(tmp_path / "patches0000.bmp")
    ids = [*np.repeat(np.arange(POINTS) * 7, VIEWS), 1000]
    (tmp_path / "info.txt").write_text("".join(f"{point} 0\n" for point in ids))
    for name in ("m50_200_200_0", "other"):
        first, second = rng.integers(0, 90, 200), rng.integers(0, 90, 200)
        second[:100] = first[:100] // VIEWS * VIEWS + (first[:100] + 1) % VIEWS
        rows = (f"{a} {ids[a]} 0 {b} {ids[b]} 0 0\n" for a, b in zip(first, second, strict=True))
        (tmp_path / f"{name}.txt").write_text("".join(rows))
    return tmp_path


def test_scores_are_those_computed_the_long_way(folder: Path) -> None:
    result = evaluate_ubc(MeanPixels(), folder)
    sheet = np.asarray(Image.open(folder / "patches0000.bmp")).reshape(16, 64, 16, 64).swapaxes(1, 2)
    described = MeanPixels().describe(sheet.reshape(-1, 64, 64)[:90]).astype(np.float64)
    for name in ("m50_200_200_0", "other"):
        rows = np.loadtxt(folder / f"{name}.txt", dtype=int)
        is_match = rows[:, 1] == rows[:, 4]
        distances = [float(np.linalg.norm(described[row[0]] - described[row[3]])) for row in rows]
        assert result.scores[f"fpr95.{name}"] == pytest.approx(fpr95(distances, is_match), abs=1e-12)
        assert result.scores[f"ap.{name}"] == pytest.approx(average_precision_score(is_match, -np.array(distances)))
        assert 0.5 < result.scores[f"auc.{name}"] < 1
        assert result.curves[f"roc.{name}"].y[-1] == result.curves[f"pr.{name}"].x[-1] == 1
    firsts, lasts = described[0::VIEWS], described[VIEWS - 1 :: VIEWS]
    distances = np.linalg.norm(firsts[:, None] - lasts[None], axis=2)
    expected = np.mean(distances.argmin(axis=1) == np.arange(POINTS))
    assert 0.2 < expected < 1
    assert result.scores["rank1"] == pytest.approx(expected)


def test_the_spread_is_that_of_patches_of_different_points_at_unit_length(folder: Path) -> None:
    scores = evaluate_ubc(MeanPixels(), folder).scores
    sheet = np.asarray(Image.open(folder / "patches0000.bmp")).reshape(16, 64, 16, 64).swapaxes(1, 2)
    described = MeanPixels().describe(sheet.reshape(-1, 64, 64)[:91]).astype(np.float64)
    described /= np.linalg.norm(described, axis=1, keepdims=True)
    ids = np.loadtxt(folder / "info.txt", dtype=int)[:, 0]
    cosines = (described @ described.T)[ids[:, None] != ids]  # every such pair; the score draws 100,000 of them
    assert scores["spread.m1"] == pytest.approx(cosines.mean(), abs=4 * cosines.std() / np.sqrt(90_000))
    assert scores["spread.dm2"] / 64 == pytest.approx((cosines**2).mean(), abs=4 * (cosines**2).std() / np.sqrt(90_000))
    assert evaluate_ubc(MeanPixels(), folder).scores == scores


def test_the_result_has_the_card_of_the_set_where_there_is_one(folder: Path) -> None:
    assert "card" not in evaluate_ubc(MeanPixels(), folder).settings
    card = {"format": "keypatch-patch-set", "format_number": 1, "made_from": "noise"}
    (folder / "card.json").write_text(json.dumps(card))
    assert evaluate_ubc(MeanPixels(), folder).settings["card"] == card


def test_the_result_says_what_was_scored(folder: Path) -> None:
    result = evaluate_ubc(MeanPixels(), folder, Ubc(rule="hynet"))
    assert (result.benchmark, result.descriptor) == ("ubc", "pixels")
    assert result.settings["rule"] == "hynet"
    assert result.conditions() == "rule hynet"
    assert result.settings["pairs"] == {"m50_200_200_0": 200, "other": 200}
    assert len(result.provenance.hashes["data"]) == 64
    assert evaluate_ubc(MeanPixels(), folder).scores["fpr95.other"] <= result.scores["fpr95.other"]


@pytest.fixture
def distances(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """Of the list "other": distances and kinds of the pairs, and the two patches of each."""
    sheet = np.asarray(Image.open(folder / "patches0000.bmp")).reshape(16, 64, 16, 64).swapaxes(1, 2)
    described = MeanPixels().describe(sheet.reshape(-1, 64, 64)[:90]).astype(np.float64)
    rows = np.loadtxt(folder / "other.txt", dtype=int)
    found = np.linalg.norm(described[rows[:, 0]] - described[rows[:, 3]], axis=1)
    return found, rows[:, 1] == rows[:, 4], rows[:, [0, 3]]


def test_replicates_are_scores_of_pairs_drawn_again(folder: Path, distances: tuple[NDArray[np.float64], ...]) -> None:
    result = evaluate_ubc(MeanPixels(), folder)
    assert set(result.replicates) == {name for name in result.scores if not name.startswith("spread")}
    replicates = result.replicates["fpr95.other"]
    assert (replicates.units, replicates.count, len(replicates.values)) == ("pairs", 200, 1000)
    for value, counts in zip(replicates.values[:20], draw_counts(200), strict=False):
        drawn, kinds = np.repeat(distances[0], counts), np.repeat(distances[1], counts)
        assert value == pytest.approx(fpr95(drawn, kinds), abs=1e-12)
    for name in result.replicates:
        low, high = result.interval(name) or (1, 0)
        assert low <= result.scores[name] <= high and low < high, name
    assert (result.replicates["rank1"].units, result.replicates["rank1"].count) == ("points", POINTS)


def test_cosines_of_both_kinds_of_pairs_are_a_density(folder: Path) -> None:
    curves = evaluate_ubc(MeanPixels(), folder).curves
    means = {}
    for kind in ("matching", "nonmatching"):
        curve = curves[f"similarity.{kind}.other"]
        width = curve.x[1] - curve.x[0]
        assert (curve.x[0], curve.x[-1]) == pytest.approx((-1 + width / 2, 1 - width / 2))
        assert np.sum(curve.y) * width == pytest.approx(1)
        means[kind] = np.sum(curve.x * curve.y) * width
    assert means["matching"] > means["nonmatching"] + 0.05


def test_the_hardest_pairs_are_shown_from_the_worst_on(
    folder: Path, distances: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]
) -> None:
    found, is_match, patches = distances
    sheet = np.asarray(Image.open(folder / "patches0000.bmp")).reshape(16, 64, 16, 64).swapaxes(1, 2)
    result = evaluate_ubc(MeanPixels(), folder)
    assert len(result.pictures) == 4
    hardest = {
        "matching": np.where(is_match, found, -1).argmax(),
        "non-matching": np.where(is_match, np.inf, found).argmin(),
    }
    for kind, worst in hardest.items():
        with Image.open(io.BytesIO(result.pictures[f"hardest {kind} pairs, other"])) as picture:
            side = (picture.width - 2 * 8) // 6  # three pairs in a row, 8 pixels between them
            assert picture.height == 4 * (side + 14)  # each row has its numbers below
            for k, patch in enumerate(patches[worst]):
                shown = np.asarray(picture.getchannel("L"))[:side, k * side : (k + 1) * side]
                wanted = Image.fromarray(sheet.reshape(-1, 64, 64)[patch]).resize((side, side))
                np.testing.assert_array_equal(shown, np.asarray(wanted))


def test_intervals_and_pictures_can_be_left_out(folder: Path) -> None:
    whole, bare = evaluate_ubc(MeanPixels(), folder), evaluate_ubc(MeanPixels(), folder, Ubc("rank", False, False))
    assert not bare.replicates and not bare.pictures
    assert (bare.scores, bare.settings, set(bare.curves)) == (whole.scores, whole.settings, set(whole.curves))


def test_the_result_with_everything_comes_back_from_a_small_file(folder: Path, tmp_path: Path) -> None:
    result = evaluate_ubc(MeanPixels(), folder)
    result.save(tmp_path / "result.json")
    assert (tmp_path / "result.json").stat().st_size < 400_000
    again = load_result(tmp_path / "result.json")
    assert again.pictures == result.pictures
    assert again.interval("ap.other") == pytest.approx(result.interval("ap.other"), abs=1e-5)


def test_two_describers_are_compared_pair_by_pair(folder: Path) -> None:
    pixels, noisy = evaluate_ubc(MeanPixels(), folder), evaluate_ubc(Noisy(), folder)
    difference = paired_difference(pixels, noisy, "auc.other")
    assert difference.shown and difference.low > 0
    assert difference.sentence().startswith("pixels is better than noisy")


def test_a_rule_that_does_not_exist_is_refused_before_any_work() -> None:
    with pytest.raises(KeypatchError, match=r"rule must be one of rank, .*, not 'hardnet'"):
        Ubc(rule="hardnet")


def test_the_hash_is_of_the_data_and_not_of_its_place(folder: Path) -> None:
    before = evaluate_ubc(MeanPixels(), folder).provenance.hashes["data"]
    moved = folder.rename(folder.with_name("moved"))
    assert evaluate_ubc(MeanPixels(), moved).provenance.hashes["data"] == before
    (moved / "other.txt").unlink()
    assert evaluate_ubc(MeanPixels(), moved).provenance.hashes["data"] != before


@dataclass(frozen=True)
class Learned(MeanPixels):
    weights_hash: str = "ff00"


def test_learned_weights_are_named_by_their_hash(folder: Path) -> None:
    assert evaluate_ubc(Learned(), folder).provenance.hashes["weights"] == "ff00"
    assert "weights" not in evaluate_ubc(MeanPixels(), folder).provenance.hashes


def test_patches_are_described_in_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate_ubc(MeanPixels(), folder)
    monkeypatch.setattr(protocol, "CHUNK", 40)
    steps: list[tuple[int, int]] = []
    chunked = evaluate_ubc(MeanPixels(), folder, progress=lambda done, total, _: steps.append((done, total)))
    assert chunked.scores == whole.scores
    assert steps == [(0, 91), (40, 91), (80, 91), (91, 91)]


def test_descriptors_that_are_not_finite_are_refused(folder: Path) -> None:
    with pytest.raises(KeypatchError, match="pixels returned non-finite descriptors for 1 of 91 patches"):
        evaluate_ubc(MeanPixels(fault=np.nan), folder)


def test_descriptors_of_a_wrong_size_are_refused(folder: Path) -> None:
    with pytest.raises(KeypatchError, match=r"shape \(91, 64\) for 91 patches, expected \(91, 32\)"):
        evaluate_ubc(MeanPixels(dim=32), folder)


def test_a_set_without_pairs_is_refused(folder: Path) -> None:
    for path in (folder / "m50_200_200_0.txt", folder / "other.txt"):
        path.unlink()
    with pytest.raises(DataError, match="has no pair list"):
        evaluate_ubc(MeanPixels(), folder)
    with pytest.raises(DataError, match="has no pair list"):
        evaluate_ubc(MeanPixels(), PatchSet("bare", np.zeros((4, 64, 64), np.uint8), np.array([0, 0, 1, 1])))


def test_near_identical_vectors_keep_their_distances() -> None:
    base = np.random.default_rng(0).normal(size=128)
    base /= np.linalg.norm(base)
    steps = np.array([0, 1e-5, 2e-5, 4e-5])
    descriptors = (base + steps[:, None] * np.eye(128)[0]).astype(np.float32)
    pairs = Pairs("near", np.zeros(4, np.int64), np.arange(4), np.array([True, True, False, False]))
    np.testing.assert_allclose(np.sqrt(pair_distances(descriptors, pairs)), steps, rtol=0.01)
