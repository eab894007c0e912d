"""Features of a photograph: the right places in the right pixels, and SIFT as OpenCV computes it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from keypatch.describers import SiftDescriber
from keypatch.detection import Dog, Orb
from keypatch.errors import KeypatchError
from keypatch.features import Extraction, extract
from keypatch.features.extraction import describe_keypoints, detect
from keypatch.geometry import Keypoints, from_opencv

CAMERA: NDArray[np.uint8] = data.camera()[100:356, 100:400]


@dataclass(frozen=True)
class Corner:
    """Finds one keypoint, at the image's bottom right pixel, with two angles."""

    name: ClassVar[str] = "corner"

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        height, width = image.shape
        two = np.ones(2, np.float32)
        return Keypoints((width - 1) * two, (height - 1) * two, 3 * two, np.float32([0.5, 1.5]), response=two)


@dataclass(frozen=True)
class MeanDescriber:
    """A describer of one number, the patch's mean; tells how patches were cut."""

    name: str = "mean"
    dim: int = 1
    patch_size: int = 8
    patch_sigmas: float = 4.0
    unit_length: bool = False

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        assert patches.shape[1:] == (8, 8)
        return patches.mean(axis=(1, 2), dtype=np.float32)[:, None]


@pytest.mark.parametrize("name", ["camera", "astronaut", "brick", "coffee"])
def test_rootsift_of_a_photo_is_nearly_what_opencv_computes_at_the_same_keypoints(name: str) -> None:
    photo = getattr(data, name)()
    grey = photo if photo.ndim == 2 else cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
    sift = cv2.SIFT.create(contrastThreshold=0.0067, enable_precise_upscale=True)
    found, rows = sift.compute(grey, sift.detect(grey, None)[::3])
    expected = np.sqrt(rows / rows.sum(axis=1, keepdims=True))
    ours = describe_keypoints(grey, from_opencv(found), SiftDescriber(root=True))
    cosine = (ours * expected).sum(axis=1)
    assert cosine.mean() > 0.99  # measured 0.992 to 0.995; cut as patch sets are, 0.93 to 0.96
    assert np.percentile(cosine, 5) > 0.95  # near the border, where OpenCV leaves out what we repeat


def test_keypoints_found_in_a_smaller_photo_are_in_the_pixels_of_the_photo() -> None:
    found = detect(CAMERA, Extraction(Corner(), max_size=150))  # 256 x 300 becomes 128 x 150: a factor of 2
    np.testing.assert_allclose(found.x, 298.5)  # the centre of the last two pixels
    np.testing.assert_allclose(found.y, 254.5)
    np.testing.assert_allclose(found.sigma, 6)


def test_the_smaller_photo_shows_the_same_places() -> None:
    blob = np.zeros((400, 600), np.float32)
    y, x = np.mgrid[:400, :600]
    blob = 200 * np.exp(-((x - 331.3) ** 2 + (y - 127.8) ** 2) / (2 * 24.0**2))
    found = detect(blob.astype(np.uint8), Extraction(max_size=200, keypoints=1, rule="strongest"))
    assert abs(found.x[0] - 331.3) < 0.5 and abs(found.y[0] - 127.8) < 0.5
    assert 0.8 < found.sigma[0] / 24 < 1  # DoG reports 0.89 of a blob's sigma


def test_a_detector_may_be_named() -> None:
    assert Extraction("orb") == Extraction(Orb())  # type: ignore[arg-type]
    with pytest.raises(KeypatchError, match=r'there is no "orbb".*Did you mean "orb"'):
        Extraction("orbb")  # type: ignore[arg-type]


def test_a_photo_that_is_small_enough_is_not_touched() -> None:
    a, b = detect(CAMERA, Extraction(max_size=300)), detect(CAMERA, Extraction())
    np.testing.assert_array_equal(a.xy, b.xy)


def test_the_budget_is_spent_by_the_rule() -> None:
    everything = detect(CAMERA, Extraction(keypoints=None))
    largest = detect(CAMERA, Extraction(keypoints=20, rule="largest"))
    assert len(everything) > 300 and len(largest) == 20
    assert largest.sigma.min() >= np.sort(everything.sigma)[-20]


def test_upright_keeps_a_place_once_with_angle_zero() -> None:
    found = detect(CAMERA, Extraction(Corner(), upright=True))
    assert len(found) == 1 and found.angle[0] == 0


def test_given_keypoints_are_all_described_in_their_order() -> None:
    given = Dog()(CAMERA).take(np.array([7, 3, 3, 11]))
    features = extract(CAMERA, MeanDescriber(), Extraction(keypoints=2), given)
    np.testing.assert_array_equal(features.keypoints.xy, given.xy)
    assert features.descriptors[1] == features.descriptors[2]
    upright = extract(CAMERA, MeanDescriber(), Extraction(upright=True), given)
    assert len(upright) == 4 and not upright.keypoints.angle.any()


def test_a_patch_is_as_wide_as_the_describer_says_unless_told_otherwise() -> None:
    ramp = np.tile(np.arange(200, dtype=np.uint8), (50, 1))
    ramp[:, 120:] = 255
    here = Keypoints(*np.float32([[100], [25], [8], [0]]))  # 4 sigmas: pixels 84 to 116; 8 sigmas: up to 132
    narrow, wide = (describe_keypoints(ramp, here, MeanDescriber(), sigmas)[0, 0] for sigmas in (None, 8.0))
    assert abs(narrow - 100) < 1 and wide > 120


def test_settings_tell_everything_that_matters() -> None:
    features = extract(CAMERA, SiftDescriber(), Extraction(Dog(0.03, "one"), 50, "largest", 280, True))
    assert features.settings == {
        "detector": "dog",
        "detector.contrast_threshold": 0.03,
        "detector.orientations": "one",
        "keypoints": 50,
        "rule": "largest",
        "max_size": 280,
        "upright": True,
        "patch_sigmas": 18.0,
        "patch_size": 29,
        "unit_length": False,
    }
    assert features.image_size == (300, 256) and features.descriptor == "sift"


def test_a_portion_at_a_time_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = extract(CAMERA, SiftDescriber(), Extraction(keypoints=100)).descriptors
    monkeypatch.setattr("keypatch.features.extraction.CHUNK", 7)
    np.testing.assert_array_equal(extract(CAMERA, SiftDescriber(), Extraction(keypoints=100)).descriptors, whole)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("describer", [SiftDescriber(), SiftDescriber(root=True), MeanDescriber()])
def test_no_keypoint_and_one(describer: SiftDescriber | MeanDescriber, count: int) -> None:
    features = extract(CAMERA, describer, keypoints=Dog()(CAMERA).take(np.arange(count)))
    assert features.descriptors.shape == (count, describer.dim)


@pytest.mark.parametrize("photo", [np.zeros((1, 1), np.uint8), np.full((64, 64), 7, np.uint8)])
def test_a_photo_without_anything_has_no_features(photo: NDArray[np.uint8]) -> None:
    assert len(extract(photo, SiftDescriber(), Extraction())) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"keypoints": -1}, "keypoints is -1; it must be 1 or more"),
        ({"keypoints": 0}, "keypoints is 0; it must be 1 or more"),  # all of them in 0.1
        ({"rule": "best"}, "rule must be one of .*'best'"),
        ({"max_size": 0}, "must be above 0"),
        ({"patch_sigmas": float("nan")}, "patch_sigmas is nan; it must be above 0"),
    ],
)
def test_settings_without_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(KeypatchError, match=message):
        replace(Extraction(), **fields)  # type: ignore[arg-type]
