"""Whole pipelines with a fault inside, judged by turning the photo; and the table of changes."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from skimage import data

from keypatch.describers.sift import SiftDescriber
from keypatch.detection import Dog, Orb
from keypatch.doctor.examination import CHANGES, examine
from keypatch.errors import KeypatchError
from keypatch.features.extraction import Extraction, describe_keypoints, extract

EXTRACTION, DESCRIBER = Extraction(Dog(), keypoints=200, rule="strongest"), SiftDescriber(root=True)


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photo") / "camera.bmp"
    Image.fromarray(data.camera()[90:346, 120:376]).save(path)
    return path


def right(image):
    return extract(image, DESCRIBER, EXTRACTION)


def cut_with_the_wrong_sign(image):
    """Keypoints are right, patches are cut as a library with the other sign would."""
    features = right(image)
    other = replace(features.keypoints, angle=-features.keypoints.angle)
    return replace(features, descriptors=describe_keypoints(image, other, DESCRIBER))


def cut_in_degrees(image):
    features = right(image)
    other = replace(features.keypoints, angle=np.degrees(features.keypoints.angle))
    return replace(features, descriptors=describe_keypoints(image, other, DESCRIBER))


def stated_in_degrees(image):
    features = right(image)
    return replace(features, keypoints=replace(features.keypoints, angle=np.degrees(features.keypoints.angle)))


def upright(image):
    return extract(image, DESCRIBER, replace(EXTRACTION, upright=True))


def half_a_pixel_off(image):
    features = right(image)
    keypoints = features.keypoints
    return replace(features, keypoints=replace(keypoints, x=keypoints.x + 0.5, y=keypoints.y + 0.5))


def diameters(image):
    features = right(image)
    return replace(features, keypoints=replace(features.keypoints, sigma=2 * features.keypoints.sigma))


def long_descriptors(image):
    features = right(image)
    return replace(features, descriptors=512 * features.descriptors)


def corners(image):
    return extract(image, DESCRIBER, replace(EXTRACTION, detector=Orb()))


@pytest.mark.parametrize(
    ("pipeline", "verdict"),
    [
        (right, "fine"),
        (corners, "fine"),
        (cut_with_the_wrong_sign, "orientation sign is wrong"),
        (cut_in_degrees, "descriptors do not turn with the photo"),
        (stated_in_degrees, "angles are degrees"),
        (upright, "descriptors do not turn with the photo"),
        (half_a_pixel_off, "centres are off by 0.5 px"),
        (diameters, "scale is a diameter"),
        (long_descriptors, "descriptors are not normalized"),
    ],
)
def test_the_fault_inside_is_told(photo, pipeline, verdict):
    assert examine(photo, pipeline=pipeline).verdict == verdict


@pytest.mark.parametrize(
    ("meant", "verdict"), [(True, "descriptors are not normalized"), (False, "fine")], ids=["unit length", "raw length"]
)
def test_the_describer_says_whether_length_matters(photo, meant, verdict):
    class Long(SiftDescriber):
        unit_length = meant

        def describe(self, patches):
            return 9 * super().describe(patches)

    assert examine(photo, describer=Long(root=True), extraction=Extraction(keypoints=200)).verdict == verdict


def test_a_pipeline_and_a_file_are_not_both_judged(photo):
    with pytest.raises(KeypatchError, match="only one of"):
        examine(photo, features="f.h5", pipeline=right)


def test_the_table_has_a_row_for_every_change(photo):
    told = []
    few = Extraction(keypoints=100)
    found = examine(photo, describer="rootsift", extraction=few, progress=lambda *count: told.append(count[:2]))
    assert [row.change for row in found.views] == list(CHANGES)
    assert [row.change for row in found.views][:3] == ["turned by 15", "turned by 30", "turned by 45"]
    assert told[-1] == (len(CHANGES), len(CHANGES))
    quarter = next(row.count for row in found.views if row.change == "turned by 90")
    assert quarter.keypoints == 100 and quarter.matched > 80


def test_a_photo_without_structure_tells_nothing(tmp_path):
    Image.fromarray(np.full((64, 64), 128, np.uint8)).save(tmp_path / "grey.bmp")
    found = examine(tmp_path / "grey.bmp", describer="rootsift")
    assert found.verdict.startswith("cannot tell: there are no keypoints")
