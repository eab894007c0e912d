"""The rotation benchmark: what is counted, and that the pipeline keeps what it promises at every step."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage.data import astronaut, camera, coffee

from keypatch.benchmarks import rotation
from keypatch.benchmarks.rotation import STEPS, evaluate_rotation
from keypatch.describers import SiftDescriber
from keypatch.errors import DataError
from keypatch.features import Extraction
from keypatch.zoo import find

FEW = Extraction(keypoints=120)
LEAST = 0.93
BELOW_ROOTSIFT = 0.03


class Blind:
    """Gives every patch a vector that has nothing to do with it."""

    name, dim, patch_size, patch_sigmas, unit_length = "blind", 16, 8, 12.0, True

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        vectors = np.random.default_rng(patches[:100].sum()).normal(size=(len(patches), self.dim)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for name, pixels in {"camera": camera()[60:300, 150:420], "coffee": coffee()[80:320, 150:450]}.items():
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder


def test_rootsift_is_matched_at_every_step(photos: Path) -> None:
    result = evaluate_rotation(find("rootsift"), [photos], FEW)
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


def test_vectors_that_say_nothing_match_nothing(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "STEPS", (30, 200))
    assert evaluate_rotation(Blind(), [photos / "camera.png"], FEW).scores["share"] < 0.05


def test_quarter_turns_lose_almost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "STEPS", (90, 180, 270))  # only whole pixels move
    counts = rotation.count_turned(np.asarray(camera()[60:300, 150:420]), SiftDescriber(), FEW)
    assert len(counts) == 3
    for each in counts:
        assert each.found_again > 0.8 * each.keypoints
        assert each.share > 0.98


def test_upright_keypoints_are_not_found_again_in_a_turned_photo(photos: Path) -> None:
    with pytest.raises(DataError, match=r"camera.png was found again when it was turned by 30 degrees"):
        evaluate_rotation(find("rootsift"), [photos], replace(FEW, upright=True))


def test_a_flat_photo_is_refused_with_a_sentence(tmp_path: Path) -> None:
    Image.fromarray(np.full((80, 90), 120, np.uint8)).save(tmp_path / "flat.png")
    with pytest.raises(DataError, match=r"No keypoint of flat.png .* more texture"):
        evaluate_rotation(find("rootsift"), [tmp_path / "flat.png"])


def test_the_result_names_its_photos_and_its_tolerances_and_is_repeatable(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "STEPS", (30, 200))
    seen = list[tuple[int, int]]()
    result = evaluate_rotation(Blind(), [photos], FEW, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
    assert result.benchmark == "rotation" and result.descriptor == "blind"
    named = {"data": "camera.png, coffee.png", "pixels": 3.0, "octaves": 0.25, "degrees": 15.0, "keypoints": 120}
    assert named.items() <= result.settings.items()
    again = evaluate_rotation(Blind(), [photos], FEW)
    assert again.scores == result.scores
    assert again.provenance.hashes == result.provenance.hashes
    other = evaluate_rotation(Blind(), [photos / "camera.png"], FEW)
    assert other.provenance.hashes != result.provenance.hashes


@pytest.mark.slow
@pytest.mark.parametrize("photo", [astronaut, camera, coffee], ids=lambda photo: photo.__name__)
def test_the_shipped_weight_stays_near_rootsift_at_every_step(photo, tmp_path: Path) -> None:
    Image.fromarray(photo()).save(tmp_path / "photo.png")
    root, trained = (evaluate_rotation(find(name), [tmp_path]) for name in ("rootsift", "hynet-notredame"))
    assert root.scores["lowest"] >= LEAST
    for degrees in STEPS:
        assert trained.scores[f"share.{degrees:03}"] >= root.scores[f"share.{degrees:03}"] - BELOW_ROOTSIFT
