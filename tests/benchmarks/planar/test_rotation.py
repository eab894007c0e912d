"""The rotation benchmark: what is counted, and that the pipeline keeps what it promises at every step."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage.data import astronaut, camera, coffee

from keypatch.benchmarks.caching import KeptFeatures
from keypatch.benchmarks.planar.rotation import Rotation, Turned, evaluate_rotation, turn_photo
from keypatch.benchmarks.stages import BenchmarkExtraction
from keypatch.doctor.changes import count, turn
from keypatch.errors import DataError, KeypatchError
from keypatch.features import extract, read_photo
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.metrics import bootstrap_mean
from keypatch.zoo import load

FEW = Rotation(BenchmarkExtraction(keypoints=120))
COARSE = replace(FEW, step=170)  # turns by 170 and 340 degrees
LEAST = 0.93
BELOW_ROOTSIFT = 0.03


class Blind:
    """Gives every patch a vector that has nothing to do with it."""

    name, dim, patch_size, patch_sigmas, unit_length = "blind", 16, 8, 12.0, True

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        vectors = np.random.default_rng(patches[:100].sum()).normal(size=(len(patches), self.dim)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for name, pixels in {"camera": camera()[60:300, 150:420], "coffee": coffee()[80:320, 150:450]}.items():
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder


def test_rootsift_is_matched_at_every_step(photos: Path) -> None:
    result = evaluate_rotation(load("rootsift"), photos, FEW)
    assert result.scores["lowest"] >= LEAST
    assert result.scores["found_again"] > 0.5
    curve = result.curves["share.camera.png"]
    assert curve.x.tolist() == list(range(15, 360, 15))
    for degrees, share in zip(curve.x, curve.y, strict=True):
        assert (
            result.scores[f"share.{degrees:03}"]
            == (share + result.curves["share.coffee.png"].y[curve.x == degrees]) / 2
        )
    assert result.scores["lowest"] == min(each.y.min() for each in result.curves.values())


def test_keypoints_are_counted_as_the_doctor_counts_them(photos: Path) -> None:
    path, describer, many = photos / "coffee.png", load("rootsift"), BenchmarkExtraction(keypoints=500)
    found = turn_photo(path, KeptFeatures(describer, many), COARSE)
    upright = extract(read_photo(path), describer, many)
    for row, degrees in enumerate((170, 340)):
        image, homography = turn(read_photo(path), degrees)
        turned = extract(image, describer, many)
        matches = match_descriptors(upright.descriptors, turned.descriptors, Matching(ratio=None)).indices
        expected = count(upright.keypoints, turned.keypoints, homography, matches)
        assert found.found[row].sum() == expected.found_again < expected.keypoints
        assert found.matched[row].sum() == expected.matched < expected.found_again
        assert found.shares()[row] == expected.share


def test_vectors_that_say_nothing_match_nothing(photos: Path) -> None:
    assert evaluate_rotation(Blind(), photos / "camera.png", COARSE).scores["share"] < 0.05


def test_quarter_turns_lose_almost_nothing(photos: Path) -> None:
    quarters = replace(FEW, step=90)  # only whole pixels move
    result = evaluate_rotation(load("sift"), photos / "camera.png", quarters)
    assert result.curves["share.camera.png"].x.tolist() == [90, 180, 270]
    assert result.scores["found_again"] > 0.8
    assert result.scores["lowest"] > 0.98


def test_upright_keypoints_are_not_found_again_in_a_turned_photo(photos: Path) -> None:
    with pytest.raises(DataError, match=r"camera.png was found again after a turn of 30 degrees"):
        evaluate_rotation(load("rootsift"), photos, Rotation(replace(FEW.extraction, upright=True)))


def test_a_flat_photo_is_refused_with_a_sentence(tmp_path: Path) -> None:
    Image.fromarray(np.full((80, 90), 120, np.uint8)).save(tmp_path / "flat.png")
    with pytest.raises(DataError, match=r"No keypoint of flat.png .* more texture"):
        evaluate_rotation(load("rootsift"), [tmp_path / "flat.png"])


def test_the_result_names_its_photos_and_its_tolerances_and_is_repeatable(photos: Path) -> None:
    seen = list[tuple[int, int, str]]()
    result = evaluate_rotation(Blind(), photos, COARSE, lambda *done: seen.append(done))
    assert seen == [(done, 2, "photos") for done in range(3)]
    assert result.benchmark == "rotation" and result.descriptor == "blind"
    named = {"data": "camera.png, coffee.png", "pixels": 3.0, "octaves": 0.25, "degrees": 15.0, "step": 170}
    assert named.items() <= result.settings.items()
    assert result.settings["features"]["keypoints"] == 120
    assert result.conditions() == "step 170, pixels 3 px, keypoints 120, rule spread, detector dog"
    again = evaluate_rotation(Blind(), photos, COARSE)
    assert again.scores == result.scores
    assert again.provenance.hashes == result.provenance.hashes
    other = evaluate_rotation(Blind(), [photos / "camera.png"], COARSE)
    assert other.provenance.hashes != result.provenance.hashes


def test_turned_photos_are_described_once(photos: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate_rotation(load("rootsift"), photos, COARSE)
    assert len(list(cache.rglob("*.h5"))) == 2 * 3
    monkeypatch.setattr("keypatch.benchmarks.caching.extract_grey", None)
    assert evaluate_rotation(load("rootsift"), photos, COARSE).scores == first.scores
    strict = evaluate_rotation(load("rootsift"), photos, replace(COARSE, pixels=0.3))
    assert strict.scores["found_again"] < first.scores["found_again"]


def test_intervals_are_over_photos_and_of_one_over_its_keypoints(photos: Path) -> None:
    both = evaluate_rotation(load("rootsift"), photos, COARSE)
    means = [both.curves[f"share.{name}.png"].y.mean() for name in ("camera", "coffee")]
    assert (both.replicates["share"].units, both.replicates["share"].count) == ("photos", 2)
    np.testing.assert_allclose(both.replicates["share"].values, bootstrap_mean(means))
    one = evaluate_rotation(load("rootsift"), photos / "coffee.png", COARSE)
    assert one.replicates["share"].units == "keypoints"
    low, high = one.interval("share") or (1, 0)
    assert one.scores["share"] - 0.1 < low < one.scores["share"] < high


def test_a_keypoint_drawn_twice_counts_twice() -> None:
    turned = Turned(np.array([[1, 1, 0], [1, 1, 1]], bool), np.array([[1, 0, 0], [0, 1, 1]], bool))
    assert turned.shares().tolist() == [1 / 2, 2 / 3]
    assert turned.replicate(np.array([1, 1, 1])) == (1 / 2 + 2 / 3) / 2
    assert turned.replicate(np.array([2, 1, 0])) == (2 / 3 + 1 / 3) / 2
    assert np.isnan(turned.replicate(np.array([0, 0, 3]))), "nothing was found again at the first turn"


@pytest.mark.parametrize("step", [0, 360])
def test_a_step_that_is_none_is_refused(step: int) -> None:
    with pytest.raises(KeypatchError, match=f"step is {step}; it must be"):
        Rotation(step=step)


@pytest.mark.slow
@pytest.mark.parametrize("photo", [astronaut, camera, coffee], ids=lambda photo: photo.__name__)
def test_the_shipped_weight_stays_near_rootsift_at_every_step(photo, tmp_path: Path) -> None:
    Image.fromarray(photo()).save(tmp_path / "photo.png")
    root, trained = (evaluate_rotation(load(name), tmp_path) for name in ("rootsift", "hynet-notredame"))
    assert root.scores["lowest"] >= LEAST
    for degrees in Rotation().turns:
        assert trained.scores[f"share.{degrees:03}"] >= root.scores[f"share.{degrees:03}"] - BELOW_ROOTSIFT
