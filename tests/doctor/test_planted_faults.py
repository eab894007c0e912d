"""Every fault by its name and nothing else, in h5 and in COLMAP's database, on three photos; "fine" where all is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.doctor.examination import examine

PHOTOS = ["astronaut", "coffee", "camera"]
KINDS = ["h5", "db"]
FAULTS = [
    "fine",
    "scale is a diameter",
    "centres are off by 0.5 px",
    "angles are the other unit",
    "orientation sign is wrong",
    "descriptors are not normalized",
    "all of them",
]


@pytest.mark.parametrize("fault", range(len(FAULTS)), ids=FAULTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("photo", PHOTOS)
def test_the_verdict_is_what_was_planted(planting, opencv, examined, photo, kind, fault):
    written = opencv[photo] if kind == "h5" else planting.for_colmap(opencv[photo])
    verdict, plants = list({"fine": (), **planting.faults(kind)}.items())[fault]
    for plant in plants:
        written = plant(written, kind)
    found = examined(photo, written, kind)
    assert found.verdict == verdict
    assert all(finding.remedy for finding in found.findings if finding.is_fault)


@pytest.mark.parametrize("photo", PHOTOS)
def test_a_database_filled_by_pycolmap_is_fine(planting, photos, tmp_path, photo):
    name = f"{photo}.bmp"
    planting.extract_database(tmp_path / "colmap.db", photos[photo], name)
    assert examine(tmp_path / "colmap" / name, database=tmp_path / "colmap.db").verdict == "fine"


@pytest.mark.parametrize("photo", PHOTOS)
def test_a_file_of_kornia_is_fine(planting, photos, examined, photo):
    assert examined(photo, planting.by_kornia(photos[photo], 500)).verdict == "fine"


@pytest.mark.parametrize("photo", PHOTOS)
def test_a_file_of_keypatch_is_fine(photos, tmp_path, photo):
    from keypatch.features import Extraction
    from keypatch.features.description import describe

    image = tmp_path / f"{photo}.bmp"
    Image.fromarray(photos[photo]).save(image)
    describe([image], tmp_path / "features.h5", "rootsift", Extraction(keypoints=500))
    assert examine(image, features=tmp_path / "features.h5").verdict == "fine"


def test_a_database_of_keypatch_is_fine(photos, tmp_path):
    from keypatch.colmap import Camera, write_database
    from keypatch.detection import Dog

    image, photo = tmp_path / "astronaut.bmp", photos["astronaut"]
    Image.fromarray(photo).save(image)
    camera = Camera.from_focal("SIMPLE_RADIAL", (photo.shape[1], photo.shape[0]), 600, focal_known=False)
    path = write_database(tmp_path / "database.db", {image.name: camera}, {image.name: Dog()(photo)}, {})
    found = examine(image, database=path)
    assert found.verdict == "fine"
    judged = {each.subject: each.verdict for each in found.findings}
    assert judged["scale"] == judged["centres"] == judged["orientation"] == "fine"


@pytest.mark.parametrize("photo", PHOTOS)
def test_the_quarter_pixel_of_opencv_is_told(planting, photos, examined, photo):
    found = examined(photo, planting.by_opencv(photos[photo], precise=False))
    assert found.verdict == "centres are off by 0.25 px"
    assert "enable_precise_upscale=True" in str(found.findings)


@pytest.mark.parametrize("distance", [-1.0, -0.5, -0.25, 0.25, 1.0])
def test_other_distances_are_told_with_their_direction(opencv, examined, distance):
    found = examined("coffee", replace(opencv["coffee"], xy=opencv["coffee"].xy + distance))
    assert found.verdict == f"centres are off by {abs(distance):g} px"
    remedy = next(finding.remedy for finding in found.findings if finding.subject == "centres")
    assert f"{'Subtract' if distance > 0 else 'Add'} {abs(distance):g}" in remedy


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, "scale is half of sigma"), (6, "scale is 6 sigma")])
def test_other_units_of_scale_are_told(opencv, examined, factor, verdict):
    found = examined("astronaut", replace(opencv["astronaut"], scales=factor * opencv["astronaut"].scales))
    assert found.verdict == verdict


def test_angles_from_the_rows_axis_are_told(opencv, examined):
    found = examined("astronaut", replace(opencv["astronaut"], angles=90 - opencv["astronaut"].angles))
    assert found.verdict == "angles are measured from the y axis"


@pytest.mark.parametrize("fault", ["scale is a diameter", "centres are off by 0.5 px", "orientation sign is wrong"])
def test_faults_in_rows_of_six_columns_are_told(planting, photos, tmp_path, fault):
    """Written into the database that pycolmap filled, by pycolmap."""
    import pycolmap

    path: Path = tmp_path / "colmap.db"
    planting.extract_database(path, photos["camera"], "camera.bmp")
    with pycolmap.Database.open(path) as database:
        image_id = database.read_all_images()[0].image_id
        rows = np.array(database.read_keypoints(image_id))
        assert rows.shape[1] == 6
        if fault == "scale is a diameter":
            rows[:, 2:] *= 2
        elif fault == "orientation sign is wrong":
            rows[:, [3, 4]] *= -1
        else:
            rows[:, :2] -= 0.5
        database.update_keypoints(image_id, rows)
    assert examine(tmp_path / "colmap" / "camera.bmp", database=path).verdict == fault
