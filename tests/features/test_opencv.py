"""The stand-in for cv2.SIFT: its methods, its kinds of results, usable with OpenCV's own matcher."""

from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.data import astronaut, camera

from keypatch.errors import KeypatchError
from keypatch.features import Extraction, extract
from keypatch.features.opencv import Feature2D
from keypatch.zoo import load

PHOTO = np.asarray(camera(), np.uint8)
FLAT = np.full((64, 64), 90, np.uint8)


@pytest.fixture(scope="module")
def feature() -> Feature2D:
    return Feature2D("rootsift", keypoints=300)


def values(keypoints: Any) -> NDArray[np.float64]:
    return np.array([(*k.pt, k.size, k.angle, k.response) for k in keypoints])


def test_results_are_of_the_kinds_that_cv2_sift_gives(feature: Feature2D) -> None:
    theirs = cv2.SIFT.create(300).detectAndCompute(PHOTO, None)
    ours = feature.detectAndCompute(PHOTO, None)
    for (keypoints, descriptors), name in ((theirs, "cv2"), (ours, "keypatch")):
        assert type(keypoints) is tuple and type(keypoints[0]) is cv2.KeyPoint, name
        assert descriptors.dtype == np.float32 and descriptors.shape == (len(keypoints), 128), name
    assert type(feature.detect(PHOTO, None)) is tuple
    theirs_says, sift = cv2.SIFT.create(), feature
    assert sift.descriptorSize() == theirs_says.descriptorSize()
    assert sift.descriptorType() == theirs_says.descriptorType()
    assert sift.defaultNorm() == theirs_says.defaultNorm()


def test_keypoints_and_descriptors_are_those_of_extract(feature: Feature2D) -> None:
    keypoints, descriptors = feature.detectAndCompute(PHOTO)
    expected = extract(PHOTO, load("rootsift"), Extraction(keypoints=300))
    np.testing.assert_array_equal(descriptors, expected.descriptors)
    found = values(keypoints)
    np.testing.assert_array_equal(found[:, :2], expected.keypoints.xy)
    np.testing.assert_array_equal(found[:, 2], 2 * expected.keypoints.sigma)
    np.testing.assert_array_equal(values(feature.detect(PHOTO)), found)


def test_computing_at_opencvs_own_keypoints_keeps_all_of_them_in_order(feature: Feature2D) -> None:
    given = cv2.SIFT.create(200, enable_precise_upscale=True).detect(PHOTO, None)[::-1]
    keypoints, descriptors = feature.compute(PHOTO, given)
    assert keypoints == tuple(given)  # the very same objects: octave and class_id are kept
    assert descriptors is not None
    for i in (0, 77, len(given) - 1):
        alone = feature.compute(PHOTO, [given[i]])[1]
        np.testing.assert_array_equal(alone, descriptors[i : i + 1])


def test_describing_detected_keypoints_again_gives_the_same(feature: Feature2D) -> None:
    keypoints, descriptors = feature.detectAndCompute(PHOTO)
    again = feature.compute(PHOTO, keypoints)[1]
    assert descriptors is not None and again is not None
    # degrees in float32 turn a keypoint by up to 1e-5; a patch pixel may round to the next grey
    assert (descriptors * again).sum(axis=1).min() > 0.999


def test_rootsift_is_that_of_cv2_at_the_same_keypoints(feature: Feature2D) -> None:
    given, sift = cv2.SIFT.create(200, enable_precise_upscale=True).detectAndCompute(PHOTO, None)
    root = np.sqrt(sift / sift.sum(axis=1, keepdims=True))
    ours = feature.compute(PHOTO, given)[1]
    assert ours is not None
    assert np.median((root * ours).sum(axis=1)) > 0.97  # OpenCV takes it from its pyramid, we from a patch


def test_the_brute_force_matcher_of_opencv_finds_a_turned_photo(feature: Feature2D) -> None:
    turned = np.ascontiguousarray(np.rot90(PHOTO))  # (x, y) goes to (y, width - 1 - x)
    (first, a), (second, b) = feature.detectAndCompute(PHOTO, None), feature.detectAndCompute(turned, None)
    matches = cv2.BFMatcher(feature.defaultNorm(), crossCheck=True).match(a, b)
    start = np.array([first[m.queryIdx].pt for m in matches])
    end = np.array([second[m.trainIdx].pt for m in matches])
    expected = np.stack([start[:, 1], PHOTO.shape[1] - 1 - start[:, 0]], axis=1)
    assert len(matches) > 200
    assert np.mean(np.hypot(*(end - expected).T) < 1) > 0.95


def test_only_places_in_the_mask_are_found_and_the_budget_is_spent_there(feature: Feature2D) -> None:
    mask = np.zeros(PHOTO.shape, np.uint8)
    mask[100:300, 200:400] = 255
    everywhere, (inside, descriptors) = feature.detect(PHOTO), feature.detectAndCompute(PHOTO, mask)
    xy = values(inside)[:, :2]
    assert (xy >= [199.5, 99.5]).all() and (xy <= [399.5, 299.5]).all()
    assert len(inside) == len(everywhere) == 300
    assert descriptors is not None and len(descriptors) == 300
    np.testing.assert_array_equal(values(feature.detect(PHOTO, mask != 0)), values(inside))


def test_without_keypoints_it_answers_as_cv2_does(feature: Feature2D) -> None:
    for answer in (
        feature.detectAndCompute(FLAT, None),
        feature.compute(PHOTO, []),
        feature.detectAndCompute(PHOTO, np.zeros_like(PHOTO)),
        feature.detectAndCompute(np.zeros((1, 1), np.uint8)),
    ):
        assert answer == cv2.SIFT.create().detectAndCompute(FLAT, None) == ((), None)
    assert feature.detect(FLAT) == ()


def test_opencvs_other_arguments_have_their_place(feature: Feature2D) -> None:
    expected = feature.detectAndCompute(PHOTO)[1]
    np.testing.assert_array_equal(feature.detectAndCompute(PHOTO, None, None, False)[1], expected)
    found = feature.detectAndCompute(PHOTO, mask=None, descriptors=None, useProvidedKeypoints=False)
    np.testing.assert_array_equal(found[1], expected)
    np.testing.assert_array_equal(feature.compute(PHOTO, found[0], None)[1], feature.compute(PHOTO, found[0])[1])
    with pytest.raises(KeypatchError, match=r"compute\(image, keypoints\)"):
        feature.detectAndCompute(PHOTO, None, None, True)


def test_colour_is_bgr_as_opencv_reads_it(feature: Feature2D) -> None:
    bgr = np.ascontiguousarray(astronaut()[:, :, ::-1])
    grey = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)
    expected = feature.detectAndCompute(grey)[1]
    np.testing.assert_array_equal(feature.detectAndCompute(bgr)[1], expected)
    np.testing.assert_array_equal(feature.detectAndCompute(cv2.cvtColor(bgr, cv2.COLOR_BGR2BGRA))[1], expected)
    np.testing.assert_array_equal(feature.detectAndCompute(grey[:, :, None])[1], expected)


def test_keypoints_without_an_angle_need_upright(feature: Feature2D) -> None:
    corners = cv2.FastFeatureDetector.create(60).detect(PHOTO, None)[:20]
    with pytest.raises(KeypatchError, match="no angle"):
        feature.compute(PHOTO, corners)
    upright = Feature2D("rootsift", upright=True)
    keypoints, descriptors = upright.compute(PHOTO, corners)
    assert keypoints == tuple(corners) and descriptors is not None and len(descriptors) == 20
    assert {k.angle for k in upright.detect(PHOTO)} == {0}


@pytest.mark.parametrize(
    ("image", "mask", "says"),
    [
        (None, None, "None: cv2.imread"),
        (PHOTO.astype(np.float32), None, "must be uint8"),
        (np.zeros((8, 8, 2), np.uint8), None, "must be uint8, grey"),
        (np.zeros(8, np.uint8), None, "must be uint8, grey"),
        (np.zeros((0, 8), np.uint8), None, "pixel"),
        (PHOTO, PHOTO[:-1], "mask has shape"),
    ],
    ids=["no file", "float", "two channels", "a row", "empty", "mask of another size"],
)
def test_wrong_images_and_masks_are_refused_with_a_sentence(
    feature: Feature2D, image: Any, mask: Any, says: str
) -> None:
    for method in (feature.detectAndCompute, feature.detect):
        with pytest.raises(KeypatchError, match=says):
            method(image, mask)


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(KeypatchError, match="no descriptor"):
        Feature2D("hynet")
    with pytest.raises(KeypatchError, match="detector: there is no"):
        Feature2D("sift", detector="fast")


def test_it_has_a_name_and_is_empty_as_opencv_s_own() -> None:
    ours, theirs = Feature2D("rootsift"), cv2.SIFT.create()
    assert theirs.getDefaultName() == "Feature2D.SIFT" and ours.getDefaultName() == "Feature2D.rootsift"
    assert ours.empty() is theirs.empty()
