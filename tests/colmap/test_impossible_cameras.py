"""Models with a focal length that no camera has, as COLMAP may find one: told, and nothing is lost."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch import reconstruct
from keypatch.colmap import Camera, read_cameras
from keypatch.colmap.cameras import impossible_cameras
from keypatch.colmap.process import run_colmap
from keypatch.commands.inspect.inspection import inspect
from keypatch.errors import DataError
from keypatch.reconstruction import Inputs, Mapping, pipeline

pycolmap = pytest.importorskip("pycolmap")

CAMERAS = "1 PINHOLE 640 480 500 510 320 240\n2 SIMPLE_RADIAL 640 480 -2318.9 320 240 0.4\n"
IMAGES = "1 1 0 0 0 0 0 0 1 a.jpg\n\n2 1 0 0 0 1 0 2 2 b.jpg\n\n3 1 0 0 0 2 0 2 2 d.jpg\n\n"


@pytest.fixture(params=["text", "binary"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Of three photos, the second and third by a camera that cannot exist."""
    for name, text in {"cameras": CAMERAS, "images": IMAGES, "points3D": ""}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    if request.param == "text":
        return tmp_path
    read, binary = pycolmap.Reconstruction(), tmp_path / "binary"
    read.read_text(str(tmp_path))
    binary.mkdir()
    read.write_binary(str(binary))
    return binary


def test_such_a_camera_is_refused_where_cameras_must_be_right(model: Path) -> None:
    with pytest.raises(DataError, match=r"focal length above 0, not \(-2318\.9") as error:
        read_cameras(model)
    assert str(model) in str(error.value)


def test_a_stand_in_keeps_the_pose_and_is_named(model: Path) -> None:
    posed = read_cameras(model, stand_ins=True)
    assert posed["a.jpg"].camera == Camera("PINHOLE", 640, 480, (500, 510, 320, 240))
    stand_in = posed["b.jpg"].camera
    assert stand_in == posed["d.jpg"].camera and stand_in.params == (768, 320, 240, 0)
    np.testing.assert_allclose(posed["b.jpg"].pose.translation, [1, 0, 2])
    (sentence,) = impossible_cameras(posed)
    assert sentence.startswith("Camera 2 of the model (SIMPLE_RADIAL, of b.jpg, d.jpg) has the parameters -2318.9, 320")
    assert "but a focal length must be above 0:" in sentence


def test_a_distortion_that_is_no_number_is_told_once(model: Path) -> None:
    if (model / "cameras.txt").exists():
        (model / "cameras.txt").write_text(CAMERAS.replace("-2318.9 320 240 0.4", "700 320 240 nan"))
    else:
        made = pycolmap.Reconstruction(str(model))
        made.cameras[2].params = [700, 320, 240, np.nan]
        made.write_binary(str(model))
    (sentence,) = impossible_cameras(read_cameras(model, stand_ins=True))
    assert "Camera 2 of the model (SIMPLE_RADIAL, of b.jpg, d.jpg) has the parameters 700, 320, 240, nan" in sentence
    assert "but parameters must be finite numbers:" in sentence and "above 0" not in sentence


def test_a_right_model_has_nothing_to_be_told(model: Path) -> None:
    posed = read_cameras(model, stand_ins=True)
    assert impossible_cameras({"a.jpg": posed["a.jpg"]}) == []


def test_inspect_counts_the_model_and_names_the_camera(model: Path) -> None:
    found = inspect(model)
    assert found.facts["images"] == "3 with a pose" and found.facts["cameras"] == "1 PINHOLE, 1 SIMPLE_RADIAL"
    assert [problem.partition(" of the model")[0] for problem in found.problems] == ["Camera 2"]
    assert "points" in found.facts or not (model / "points3D.txt").exists()


def test_other_damage_is_still_refused(tmp_path: Path) -> None:
    (tmp_path / "cameras.txt").write_text("1 PINHOLE 640 480 -500 320 240\n")
    (tmp_path / "images.txt").write_text("1 1 0 0 0 0 0 0 1 a.jpg\n\n")
    with pytest.raises(DataError, match=r"cameras\.txt, line 1.*takes 4 parameters"):
        read_cameras(tmp_path, stand_ins=True)


def test_reconstruct_finishes_with_all_files_and_says_it(scene, tmp_path: Path, monkeypatch) -> None:
    def run(job, progress):
        """COLMAP's model with the focal length of its only camera turned round."""
        outcome = run_colmap(job, progress)
        made = pycolmap.Reconstruction(f"{job.models}/0")
        (camera,) = made.cameras.values()
        camera.params = [-float(camera.params[0]), *camera.params[1:]]
        made.write_binary(f"{job.models}/0")
        made.write_text(f"{job.models}/0")
        return outcome

    monkeypatch.setattr(pipeline, "run_colmap", run)
    inputs = Inputs(features=scene.features, matches=scene.matches_file)
    made = reconstruct(scene.photos, tmp_path / "out", Mapping(focal=700.0, share_camera=True), inputs=inputs)
    assert made.facts()["photos registered"] == "6 of 6" and made.statistics.points == 260
    (note,) = made.notes
    assert note.startswith("Camera 1 of the model (SIMPLE_RADIAL, of 0.png, 1.png, 2.png and 3 more)")
    assert json.loads((made.folder / "reconstruction.json").read_text())["notes"] == [note]
    assert all(path.exists() for path in made.files)
    assert pycolmap.Reconstruction(str(made.model)).cameras[1].params[0] < 0  # as COLMAP found it
    with Image.open(made.folder / "model.png") as picture:
        colours = np.asarray(picture.convert("RGB")).astype(int)
    assert ((colours[..., 0] > 150) & (colours[..., 2] < 120)).sum() > 300  # the cameras are drawn
    found = inspect(made.folder)
    assert found.facts["points"] == "260" and len(found.problems) == 1
