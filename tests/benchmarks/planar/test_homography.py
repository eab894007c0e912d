"""The homography benchmark: what is averaged over which pairs, by hand; describers and feature files; all settings."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.planar import homography
from keypatch.benchmarks.planar.homography import (
    Homography,
    PairScore,
    PlanarMatching,
    evaluate_homographies,
    evaluate_homography,
)
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.stages import BenchmarkExtraction
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Features, extract, read_photo
from keypatch.geometry import Keypoints, from_opencv
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.metrics import draw_counts, recall_area
from keypatch.patches.planar_sequences import LARGE, PlanarSequence, read_planar_sequences
from keypatch.zoo import load

ONE_SEED = Homography(seeds=(0,), pictures=False)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))


def write_sequence(folder: Path, homographies: list[NDArray[np.float64]], photo: NDArray[np.uint8]) -> None:
    """A sequence as HPatches releases them, of a photo warped by these homographies."""
    folder.mkdir(parents=True)
    Image.fromarray(photo).save(folder / "1.ppm")
    for number, matrix in enumerate(homographies, start=2):
        warped = cv2.warpPerspective(photo, matrix, photo.shape[::-1], borderMode=cv2.BORDER_REFLECT)
        Image.fromarray(np.asarray(warped)).save(folder / f"{number}.ppm")
        (folder / f"H_1_{number}").write_text("\n".join(" ".join(map(str, row)) for row in matrix.tolist()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """i_light with two pairs, v_plane with one; tiny photos that nobody looks at."""
    blank = np.zeros((6, 8), np.uint8)
    write_sequence(tmp_path / "data" / "i_light", [np.eye(3), np.eye(3)], blank)
    write_sequence(tmp_path / "data" / "v_plane", [np.diag([2.0, 2.0, 1.0])], blank)
    return tmp_path / "data"


def features(xy: NDArray[np.float64]) -> Features:
    """Keypoints that are matched with those of the same number."""
    ones = np.ones(len(xy), np.float32)
    return Features(
        Keypoints(xy[:, 0], xy[:, 1], ones, 0 * ones), np.eye(9, dtype=np.float32)[: len(xy)], (8, 6), "toy"
    )


def test_mean_matching_accuracy_is_exact(data: Path) -> None:
    here = np.array([[10.0, 10], [20, 30], [40, 50], [60, 10], [30, 70], [80, 80]])
    off = np.array([[0, 0], [1, 0], [0, 1.5], [2.5, 0], [6, 8], [0, 10.5]])
    known = {
        "i_light/1.ppm": features(here),
        "i_light/2.ppm": features(here + off),
        "i_light/3.ppm": features(here[:0]),  # no match at all: counts as 0
        "v_plane/1.ppm": features(here[:2]),
        "v_plane/2.ppm": features(2 * here[:2] + [[0, 0], [3, 4]]),
    }
    result = evaluate_homographies(known, read_planar_sequences(data), ONE_SEED)
    # errors of the pairs, in pixels: 0, 1, 1.5, 2.5, 10, 10.5; none; 0, 5
    light = [(2 / 6 + 0) / 2, (3 / 6) / 2, *[(4 / 6) / 2] * 7, (5 / 6) / 2]
    plane = [0.5] * 4 + [1] * 6
    overall = [(2 * a + b) / 3 for a, b in zip(light, plane, strict=True)]
    for group, expected in {"": overall, ".i": light, ".v": plane, ".i_light": light, ".v_plane": plane}.items():
        curve = result.curves[f"mma{group}"]
        assert curve.x.tolist() == list(range(1, 11))
        np.testing.assert_allclose(curve.y, expected, rtol=0, atol=1e-15)
        assert [result.scores[f"mma{pixels}{group}"] for pixels in range(1, 11)] == curve.y.tolist()
    assert result.scores["count.matches"] == (6 + 0 + 2) / 3
    assert result.scores["count.within3"] == (4 + 0 + 1) / 3
    assert result.scores["count.keypoints"] == (6 + 3 + 2) / 3


def test_sequences_without_a_kind_have_no_groups(tmp_path: Path) -> None:
    write_sequence(tmp_path / "oxford" / "boat", [np.eye(3)], np.zeros((6, 8), np.uint8))
    known = dict.fromkeys(["boat/1.ppm", "boat/2.ppm"], features(np.ones((1, 2))))
    result = evaluate_homographies(known, read_planar_sequences(tmp_path / "oxford"), ONE_SEED)
    assert set(result.curves) == {"mma", "mma.boat"}
    assert "of_hpatches" not in result.settings


def scored(
    monkeypatch: pytest.MonkeyPatch,
    data: Path,
    errors: list[tuple[float, ...]],
    within: tuple[float, ...] = (0.5, 0.5, 0.5),
) -> Result:
    """The result if the pairs had these corner errors, by seed, and these shares of right matches."""
    pairs = iter([PairScore(10, 4, 2, (share,) * 10, each) for share, each in zip(within, errors, strict=True)])
    monkeypatch.setattr(homography, "score_pair", lambda *_: next(pairs))
    known = dict.fromkeys(["i_light/1.ppm", "i_light/2.ppm", "i_light/3.ppm", "v_plane/1.ppm", "v_plane/2.ppm"])
    toy = {name: features(np.ones((1, 2))) for name in known}
    return evaluate_homographies(toy, read_planar_sequences(data), ONE_SEED)


def test_accuracy_counts_errors_up_to_and_equal_and_is_the_mean_over_seeds(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inf = float("inf")
    scores = scored(monkeypatch, data, [(1.0, 0.5), (3.0, 3.1), (inf, 5.0)]).scores
    assert scores["accuracy1"] == pytest.approx((1 / 3 + 1 / 3) / 2)
    assert scores["accuracy3"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert (scores["accuracy3.lowest"], scores["accuracy3.highest"]) == (1 / 3, 2 / 3)
    assert scores["accuracy5"] == pytest.approx((2 / 3 + 1) / 2)
    assert scores["accuracy3.v"] == scores["accuracy1.v_plane"] == 0


def test_areas_are_those_under_the_curve_of_recall(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = scored(monkeypatch, data, [(2.0,), (4.0,), (float("inf"),)]).scores
    # straight from (0, 0) to (2, 1/3) to (4, 2/3), then level to 5
    assert scores["auc5"] == pytest.approx((2 / 6 + 2 * (1 / 3 + 2 / 3) / 2 + 2 / 3) / 5)
    assert scores["auc1"] == 0
    assert scores["auc5.i"] == pytest.approx((2 * 0.25 + 2 * 0.75 + 1) / 5)
    assert scores["auc5.lowest"] == scores["auc5.highest"] == scores["auc5"]


@pytest.mark.parametrize(
    ("alone", "units", "pairs_of"),
    [(False, "sequences", [[0, 1], [2]]), (True, "photo pairs", [[0], [1]])],
)
def test_intervals_are_over_sequences_and_of_one_over_its_pairs(
    data: Path, monkeypatch: pytest.MonkeyPatch, alone: bool, units: str, pairs_of: list[list[int]]
) -> None:
    """A sequence is drawn with all its pairs."""
    if alone:
        (data / "v_plane").rename(data.parent / "v_plane")
    errors, within = np.array([(1.0, 0.5), (3.0, 3.1), (4.5, 5.0)]), (0.2, 0.9, 0.4)
    result = scored(monkeypatch, data, [tuple(row) for row in errors.tolist()], within)
    expected = {(units, len(pairs_of), 1000)}
    assert {(each.units, each.count, len(each.values)) for each in result.replicates.values()} == expected
    assert set(result.replicates) == {"mma3", "accuracy3", "auc5"}
    for number, counts in zip(range(20), draw_counts(len(pairs_of)), strict=False):
        drawn = [pair for pairs, count in zip(pairs_of, counts, strict=True) for pair in pairs * int(count)]
        area = np.mean([recall_area(seed, [5])[0] for seed in errors[drawn].T])
        assert result.replicates["auc5"].values[number] == pytest.approx(area)
        assert result.replicates["accuracy3"].values[number] == pytest.approx(np.mean(errors[drawn] <= 3))
        assert result.replicates["mma3"].values[number] == pytest.approx(np.mean([within[pair] for pair in drawn]))


TURN = np.array([[0.98, -0.17, 30.0], [0.17, 0.98, -20.0], [0, 0, 1]])
ZOOM = np.array([[0.8, 0, 20.0], [0, 0.8, 10.0], [1e-4, 0, 1]])


@pytest.fixture
def warped(tmp_path: Path) -> Path:
    """A photo turned and zoomed, a second one shifted; with a large sequence of HPatches beside them."""
    write_sequence(tmp_path / "warped" / "v_camera", [TURN, ZOOM], skimage.data.camera()[60:300, 150:450])
    shift = np.array([[1, 0, 8.0], [0, 1, 5.0], [0, 0, 1]])
    for name in ("i_bricks", "v_talent"):
        write_sequence(tmp_path / "warped" / name, [shift], skimage.data.brick()[:200, :260])
    return tmp_path / "warped"


FEW = Homography(BenchmarkExtraction(keypoints=300), seeds=(0, 1))


def few(**changes: Any) -> Homography:
    """As FEW, with another way of matching."""
    return replace(FEW, matching=PlanarMatching(**changes))


def test_rootsift_finds_the_homographies_again(warped: Path) -> None:
    seen = list[tuple[int, int, str]]()
    result = evaluate_homography(load("rootsift"), warped, FEW, lambda *done: seen.append(done))
    photos, sequences = [(done, 5, "photos") for done in range(6)], [(done, 2, "sequences") for done in range(3)]
    assert seen == photos + sequences
    assert result.scores["accuracy3"] == 1
    assert result.scores["mma3"] > 0.5
    assert result.scores["mma1"] < result.scores["mma3"] < 1
    low, high = result.interval("mma3") or (1, 0)
    assert low <= result.scores["mma3"] <= high
    assert result.settings["sequences"] == ["i_bricks", "v_camera"] and result.settings["left_out"] == ["v_talent"]
    expected = {"data": "warped", "pairs": 3, "threshold": 1.0, "seeds": [0, 1], "accurate": [1, 3, 5], "ratio": None}
    assert expected.items() <= result.settings.items()
    assert result.settings["within"] == list(range(1, 11)) and result.settings["features"]["keypoints"] == 300
    assert result.conditions() == (
        "estimator magsac, threshold 1 px, ratio none, keypoints 300, rule spread, detector dog, short side none"
    )
    [(title, png)] = result.pictures.items()
    assert title.endswith(".ppm") and Image.open(BytesIO(png)).format == "PNG"
    again = evaluate_homography(load("rootsift"), warped, replace(FEW, pictures=False))
    assert again.scores == result.scores and not again.pictures


def test_large_sequences_are_scored_when_asked_for(warped: Path) -> None:
    assert len(LARGE) == 8
    result = evaluate_homography(load("rootsift"), warped, replace(FEW, all_sequences=True))
    assert result.settings["sequences"] == ["i_bricks", "v_camera", "v_talent"] and result.settings["left_out"] == []
    for name in ("v_camera", "i_bricks"):
        (warped / name).rename(warped.parent / name)
    with pytest.raises(DataError, match="Set all_sequences"):
        evaluate_homography(load("rootsift"), warped, FEW)


def test_resized_photos_are_scored_in_their_own_pixels(warped: Path) -> None:
    full = evaluate_homography(load("rootsift"), warped, FEW)
    small = evaluate_homography(load("rootsift"), warped, replace(FEW, short_side=120))
    assert small.scores["accuracy1"] == 1, "with a wrong homography it would be 0"
    assert small.scores["mma3"] > 0.5
    assert small.scores["count.keypoints"] < full.scores["count.keypoints"]
    assert small.settings["short_side"] == 120


def test_matching_and_estimation_are_as_set(warped: Path) -> None:
    usual = evaluate_homography(load("rootsift"), warped, FEW).scores["count.matches"]
    strict = evaluate_homography(load("rootsift"), warped, few(ratio=0.7)).scores["count.matches"]
    one_way = evaluate_homography(load("rootsift"), warped, few(mode="one-way")).scores["count.matches"]
    assert strict < usual < one_way
    pytest.importorskip("poselib")
    poselib = evaluate_homography(load("rootsift"), warped, few(estimator="poselib"))
    assert poselib.scores["accuracy3"] == 1 and poselib.settings["estimator"] == "poselib"


def test_a_feature_file_of_others_is_scored(warped: Path, tmp_path: Path) -> None:
    sift = cv2.SIFT.create(300)
    with h5py.File(tmp_path / "sift.h5", "w") as file:
        for path in sorted(warped.glob("*/*.ppm")):
            kept, rows = sift.detectAndCompute(read_photo(path), None)
            group = file.create_group(f"{path.parent.name}/{path.name}")
            group["keypoints"] = np.array([point.pt for point in kept], np.float32)
            group["descriptors"] = rows.T / 512
    plain = replace(FEW, extraction=BenchmarkExtraction())
    result = evaluate_homography(tmp_path / "sift.h5", warped, plain)
    assert result.descriptor == "sift" and result.scores["accuracy3"] == 1
    assert set(result.provenance.hashes) == {"data", "features"}
    (warped / "v_camera" / "4.ppm").write_bytes((warped / "v_camera" / "1.ppm").read_bytes())
    (warped / "v_camera" / "H_1_4").write_text("1 0 0 0 1 0 0 0 1")
    with pytest.raises(DataError, match=r"lacks 1 of 6 photos, such as v_camera/4\.ppm"):
        evaluate_homography(tmp_path / "sift.h5", warped, plain)


def test_keypoints_cannot_be_asked_of_a_feature_file(warped: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match=r"sift\.h5 already has features.* Leave out extraction\.keypoints"):
        evaluate_homography(tmp_path / "sift.h5", warped, FEW)


def test_of_equally_near_neighbours_none_is_a_match() -> None:
    def of(rows: list[list[float]]) -> Features:
        return replace(features(np.ones((len(rows), 2))), descriptors=np.array(rows, np.float32))

    two, twice = of([[1, 0], [0, 1]]), of([[1, 0], [0, 1], [0, 1]])
    assert Homography().match(two, twice).indices.tolist() == [[0, 0]]
    assert Homography().match(twice, two).indices.tolist() == [[0, 0]]
    assert few(mode="one-way").match(twice, two).indices.tolist() == [[0, 0], [1, 1], [2, 1]], "no tie from here"
    between = of([[0.9, 0.1], [0.5, 0.5]])
    assert Homography().match(between, two).indices.tolist() == [[0, 0]]


def test_the_matches_of_ordinary_descriptors_are_all_mutual_neighbours(warped: Path) -> None:
    first, second = (
        extract(read_photo(warped / "v_camera" / f"{number}.ppm"), "rootsift", BenchmarkExtraction())
        for number in (1, 2)
    )
    expected = match_descriptors(first.descriptors, second.descriptors, Matching(ratio=None))
    np.testing.assert_array_equal(Homography().match(first, second).indices, expected.indices)


def test_how_much_of_hpatches_was_there_is_recorded(warped: Path) -> None:
    names = [f"{each}/{number}.ppm" for each in ("i_bricks", "v_camera", "v_talent") for number in (1, 2, 3)]
    known, sequences = dict.fromkeys(names, features(np.ones((1, 2)))), read_planar_sequences(warped)
    assert evaluate_homographies(known, sequences[:2], ONE_SEED).settings["of_hpatches"] == "2 of 108"
    with_large = evaluate_homographies(known, sequences, replace(ONE_SEED, all_sequences=True))
    assert with_large.settings["of_hpatches"] == "3 of 116"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"matching": PlanarMatching(model="F")}, r"Leave out matching\.model"),
        ({"matching": PlanarMatching(seed=1)}, r"with each seed in seeds. Leave out matching\.seed"),
        ({"seeds": ()}, "one seed or more"),
        ({"short_side": 0}, "short_side is 0; it must be above 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(KeypatchError, match=message):
        Homography(**wrong)  # type: ignore[arg-type]


def rootsift_of_opencv(path: Path) -> Features:
    """The strongest 2048 points and their RootSIFT, by OpenCV alone."""
    image = read_photo(path)
    sift = cv2.SIFT.create(contrastThreshold=0.0067, enable_precise_upscale=True)
    strongest = sorted(sift.detect(image, None), key=lambda point: -point.response)[:2048]
    kept, rows = sift.compute(image, strongest)
    rooted = np.sqrt(rows / rows.sum(axis=1, keepdims=True))
    return Features(from_opencv(kept), rooted, image.shape[::-1], "rootsift")


def scores_of_rootsift(sequences: list[PlanarSequence]) -> dict[str, float]:
    known = {photo.name: rootsift_of_opencv(photo.path) for each in sequences for photo in each.photos}
    return dict(evaluate_homographies(known, sequences, Homography(pictures=False)).scores)


def test_bark_scores_as_measured_without_keypatch(shared: Path) -> None:
    sequences = [each for each in read_planar_sequences(shared / "data" / "oxford") if each.name == "bark"]
    assert scores_of_rootsift(sequences)["mma3"] == pytest.approx(0.32, abs=0.005)


@pytest.mark.slow
def test_oxford_scores_as_measured_without_keypatch(shared: Path) -> None:
    scores = scores_of_rootsift(read_planar_sequences(shared / "data" / "oxford"))
    assert scores["mma1"] == pytest.approx(0.353, abs=0.0006)
    assert scores["mma3"] == pytest.approx(0.491, abs=0.0006)
    assert scores["count.within3"] == pytest.approx(487, abs=0.6)
    assert scores["accuracy3"] == pytest.approx(0.725, abs=0.026)  # one of 40 pairs hangs on the seed
