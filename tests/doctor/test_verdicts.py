"""What is not the usual file: too little to tell, another photo, other places, other detectors, other layouts."""

import json
from dataclasses import replace

import cv2
import h5py
import numpy as np
import pytest
from PIL import Image

from keypatch.doctor.examination import Examination, examine
from keypatch.doctor.stated import Stated
from keypatch.doctor.verdicts import Finding, judge


def take(written, index):
    return type(written)(*(getattr(written, name)[index] for name in ("xy", "scales", "angles", "descriptors")))


def stated(written, **changes):
    return replace(Stated(written.xy, written.scales, written.angles, "degrees", written.descriptors), **changes)


def verdict_of(image, what):
    return Examination(tuple(judge(image, what))).verdict


@pytest.mark.parametrize(
    ("count", "sentence"), [(0, "no keypoints of this photo"), (1, "1 keypoints in the photo"), (29, "29 keypoints")]
)
@pytest.mark.parametrize("kind", ["h5", "db"])
def test_too_few_keypoints_tell_nothing(planting, opencv, examined, kind, count, sentence):
    written = take(opencv["coffee"], slice(0, count))
    found = examined("coffee", written if kind == "h5" else planting.for_colmap(written), kind)
    assert found.verdict.startswith("cannot tell: ")
    assert sentence in found.verdict


def test_descriptors_of_few_keypoints_are_judged_all_the_same(planting, opencv, examined):
    one = take(opencv["coffee"], slice(0, 1))
    assert examined("coffee", replace(one, descriptors=3 * one.descriptors)).verdict == "descriptors are not normalized"


def test_sixty_keypoints_are_enough(planting, opencv, examined):
    some = take(opencv["astronaut"], slice(0, None, len(opencv["astronaut"].xy) // 60))
    assert examined("astronaut", planting.move_half(some, "h5")).verdict == "centres are off by 0.5 px"


def test_another_photo_tells_nothing(opencv, examined):
    found = examined("camera", opencv["astronaut"])
    assert found.verdict == "cannot tell: perhaps the keypoints of another photo, or corners"


def test_a_reason_is_told_once():
    found = Examination((Finding("scale", "cannot tell", "dark"), Finding("centres", "cannot tell", "dark")))
    assert found.verdict == "cannot tell: dark"


def test_random_places_tell_nothing(photos, opencv):
    rng = np.random.default_rng(0)
    xy = rng.uniform(0, 399, opencv["coffee"].xy.shape)
    assert verdict_of(photos["coffee"], stated(opencv["coffee"], xy=xy)).startswith("cannot tell: ")


def test_keypoints_outside_are_counted(photos, opencv):
    xy = opencv["coffee"].xy.copy()
    xy[:50] += 5000
    what = stated(opencv["coffee"], xy=xy)
    assert verdict_of(photos["coffee"], what) == "keypoints lie outside the image"
    assert "50 of 621" in str(judge(photos["coffee"], what))


def test_a_keypoint_or_two_beyond_the_border_are_no_fault(photos, opencv):
    xy = opencv["coffee"].xy.copy()
    xy[:2] = -1.0
    assert verdict_of(photos["coffee"], stated(opencv["coffee"], xy=xy)) == "fine"


@pytest.mark.parametrize("photo", ["coffee", "astronaut"])  # astronaut is square: every place lies in the photo
def test_rows_and_columns_swapped_are_told(photos, opencv, photo):
    assert verdict_of(photos[photo], stated(opencv[photo], xy=opencv[photo].xy[:, ::-1])) == "x and y are swapped"


def test_keypoints_of_a_smaller_copy_are_told(planting, photos):
    photo = cv2.resize(photos["coffee"], (800, 533), interpolation=cv2.INTER_CUBIC)
    written = planting.by_opencv(cv2.resize(photo, (640, 426), interpolation=cv2.INTER_AREA))  # not quite 4 to 5
    assert verdict_of(photo, stated(written)) == "keypoints are those of a copy of 640 x 426 px"


def test_float16_is_told_where_it_hurts(photos, opencv):
    halved = opencv["astronaut"].xy.astype(np.float16).astype(np.float64)
    what = stated(opencv["astronaut"], xy=halved)
    assert verdict_of(photos["astronaut"], what) == "coordinates are float16"
    assert [each.subject for each in judge(photos["astronaut"], what)].count("places") == 1
    near = halved[:, 0] < 250
    small = take(opencv["astronaut"], near & (halved[:, 1] < 250))
    assert verdict_of(photos["astronaut"], stated(small, xy=small.xy.astype(np.float16).astype(float))) == "fine"


def test_whole_pixels_are_not_taken_for_float16(photos, opencv):
    findings = judge(photos["astronaut"], stated(opencv["astronaut"], xy=np.rint(opencv["astronaut"].xy)))
    assert all("float16" not in finding.verdict for finding in findings)


def test_a_descriptor_per_row_is_told(opencv, photos, tmp_path):
    Image.fromarray(photos["coffee"]).save(tmp_path / "coffee.bmp")
    written = opencv["coffee"]
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        group = file.create_group("coffee.bmp")
        group["keypoints"], group["scales"], group["oris"] = written.xy, written.scales, written.angles
        group["descriptors"] = written.descriptors
    found = examine(tmp_path / "coffee.bmp", features=tmp_path / "rows.h5")
    assert found.verdict == "descriptors are transposed"


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_places_alone_tell_where_they_are_counted_from(photos, opencv, shift):
    what = Stated(opencv["coffee"].xy + shift, None, None, "degrees")
    assert verdict_of(photos["coffee"], what) == ("centres are off by 0.5 px" if shift else "fine")


def test_upright_keypoints_are_fine_without_a_word_on_orientation(photos, opencv):
    findings = judge(photos["coffee"], stated(opencv["coffee"], angle=np.zeros(len(opencv["coffee"].xy))))
    assert [each.verdict for each in findings if each.subject == "orientation"] == ["cannot tell"]
    assert not any(each.is_fault for each in findings)


@pytest.mark.parametrize("photo", ["astronaut", "coffee", "camera"])
def test_corners_raise_no_alarm(photos, photo):
    """ORB's corners: neither blobs nor gradients' directions."""
    found = cv2.ORB.create(1000).detect(photos[photo], None)
    rows = np.array([(*each.pt, each.size / 2, each.angle) for each in found])
    findings = judge(photos[photo], Stated(rows[:, :2], rows[:, 2], rows[:, 3], "degrees"))
    assert not any(each.is_fault for each in findings)


def test_all_zero_descriptors_are_explained(planting, opencv, examined):
    written = planting.for_colmap(opencv["coffee"])
    found = examined("coffee", replace(written, descriptors=0 * written.descriptors), "db")
    assert found.verdict == "descriptors are not normalized"
    assert "cast to bytes" in str(found.findings)


@pytest.mark.parametrize(
    ("settings", "factor", "verdict"),
    [
        ({"unit_length": False}, 9, "fine"),  # as TFeat's
        ({"rule": "spread"}, 9, "fine"),
        ({"unit_length": True}, 9, "descriptors are not normalized"),
        ({"unit_length": False}, 0, "descriptors are not normalized"),
        (None, 9, "descriptors are not normalized"),  # hloc's
    ],
)
def test_a_file_of_ours_may_hold_descriptors_without_unit_length(opencv, examined, tmp_path, settings, factor, verdict):
    if settings is not None:
        with h5py.File(tmp_path / "planted.h5", "w") as file:
            file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "other"})
            file.attrs["settings"] = json.dumps(settings)
    lengths = factor * np.random.default_rng(0).uniform(0.9, 1.1, (len(opencv["coffee"].xy), 1))
    found = examined("coffee", replace(opencv["coffee"], descriptors=lengths * opencv["coffee"].descriptors))
    assert found.verdict == verdict
    if verdict == "fine":
        assert "Euclidean distance" in found.findings[-1].evidence


def test_a_file_of_tfeat_is_fine(shared, photos, tmp_path):
    from keypatch.features import Extraction
    from keypatch.features.description import describe

    image = tmp_path / "coffee.bmp"
    Image.fromarray(photos["coffee"]).save(image)
    describe([image], tmp_path / "f.h5", shared / "data/peers/tfeat-liberty.safetensors", Extraction(keypoints=300))
    assert examine(image, features=tmp_path / "f.h5").verdict == "fine"


def test_scales_without_sense_are_no_crash(photos, opencv):
    for sigma in (1e-30, 1e30):
        what = stated(opencv["coffee"], sigma=np.full(len(opencv["coffee"].xy), sigma))
        assert "scale" not in verdict_of(photos["coffee"], what).split("cannot tell")[0]


def test_a_photo_of_one_pixel_tells_nothing(opencv):
    assert "outside" in verdict_of(np.zeros((1, 1), np.uint8), stated(opencv["coffee"]))
