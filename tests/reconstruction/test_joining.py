"""Every model is kept, and two that share points become one."""

import json
import shutil
from itertools import combinations
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from keypatch import inspect, reconstruct
from keypatch.colmap import read_cameras, read_model
from keypatch.errors import KeypatchError
from keypatch.geometry.poses import Pose
from keypatch.metrics.poses import pose_errors
from keypatch.progress import Progress
from keypatch.reconstruction import Inputs, Mapping, joining

pycolmap = pytest.importorskip("pycolmap")

SIZE, FOCAL, POINTS = (640, 480), 700.0, 200
FEW = 12  # matches of two photos: COLMAP wants 15


class Halves:
    """Eight views of a box of points, four of them of its one part and four of the other; `overlap` points are in both.

    Photos are matched within a half only. A point has the same descriptor in every view of it.
    """

    def __init__(self, folder: Path, overlap: int) -> None:
        rng = np.random.default_rng(5)
        points = rng.uniform((-2, -1.5, -1), (2, 1.5, 1), (POINTS, 3))
        looks = rng.normal(size=(POINTS, 32))
        self.photos, self.features, self.pairs = folder / "photos", folder / "features.h5", folder / "pairs.txt"
        self.poses, self.seen, self.overlap = dict[str, Pose](), dict[str, np.ndarray](), overlap
        self.photos.mkdir()
        with h5py.File(self.features, "w") as file:
            for number in range(8):
                name, end = f"{number}.png", POINTS // 2 + overlap // 2
                angle = np.radians(-35 + 10 * number)
                centre = np.array([7 * np.sin(angle), 0.5 * np.cos(5 * angle), -7 * np.cos(angle)])
                forward = -centre / np.linalg.norm(centre)
                right = np.cross([0, 1, 0], forward) / np.linalg.norm(np.cross([0, 1, 0], forward))
                rotation = np.stack([right, np.cross(forward, right), forward])
                self.poses[name] = Pose(rotation, -rotation @ centre)
                part = np.arange(end) if number < 4 else np.arange(POINTS - end, POINTS)
                self.seen[name] = rng.permutation(part)  # keypoint k is this point
                local = (points[self.seen[name]] - centre) @ rotation.T
                file[f"{name}/keypoints"] = (local[:, :2] / local[:, 2:] * FOCAL + (319.5, 239.5)).astype(np.float32)
                file[f"{name}/descriptors"] = looks[self.seen[name]].T.astype(np.float32)
                Image.new("L", SIZE, 90 + number).save(self.photos / name)
        names = list(self.poses)
        self.within = [*combinations(names[:4], 2), *combinations(names[4:], 2)]
        self.pairs.write_text("\n".join(" ".join(pair) for pair in self.within))

    def write_matches(self, path: Path) -> Path:
        """All matches within a half; of two photos of different halves too few to be verified."""
        rng = np.random.default_rng(6)
        with h5py.File(path, "w") as file:
            for one, other in combinations(self.poses, 2):
                common = np.intersect1d(self.seen[one], self.seen[other])
                chosen = common if (one, other) in self.within else rng.choice(common, FEW, replace=False)
                place = {point: k for k, point in enumerate(self.seen[other])}
                rows = [place[point] if point in chosen else -1 for point in self.seen[one]]
                file[f"{one}/{other}/matches0"] = np.array(rows, np.int32)
        return path

    def reconstruct(self, out: Path, progress: Progress | None = None, **inputs: object):
        given = Inputs(**({"features": self.features, "pairs": self.pairs} | inputs))
        return reconstruct(self.photos, out, Mapping(focal=FOCAL), inputs=given, progress=progress)


class Notes(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


@pytest.mark.parametrize("given", [False, True], ids=["matched anew", "matches given"])
def test_two_halves_of_a_scene_become_one_model(tmp_path: Path, given: bool) -> None:
    halves = Halves(tmp_path, overlap=40)
    matches = {"pairs": "exhaustive", "matches": halves.write_matches(tmp_path / "matches.h5")} if given else {}
    made = halves.reconstruct(tmp_path / "out", **matches)
    assert [model.statistics.registered for model in made.models] == [8] and made.unregistered == []
    assert made.statistics.points == POINTS and made.statistics.reprojection_error < 0.01  # no noise
    errors = pose_errors(read_model(made.model).poses, halves.poses).summary()
    assert errors["rotation_max_degrees"] < 0.1 and errors["position_max_percent"] < 0.5
    assert made.notes == ["Two models (4 photos, 120 points; 4 photos, 120 points) were joined: they share 40 points."]
    assert [path.name for path in (made.folder / "models").iterdir()] == ["0"]


def test_two_scenes_that_share_nothing_are_both_kept_and_told(tmp_path: Path) -> None:
    halves, told = Halves(tmp_path, overlap=0), Notes()
    made = halves.reconstruct(tmp_path / "out", told)
    assert [list(model.registered) for model in made.models] == [
        [f"{number}.png" for number in part] for part in (range(4), range(4, 8))
    ]
    assert made.unregistered == [] and made.facts()["photos registered"] == "4 of 8"
    assert made.facts()["model 1"] == "4 photos, 100 points"
    assert "4 of 8 photos registered; mapping the rest as another model" in told.notes
    for number in range(2):
        assert pycolmap.Reconstruction(str(made.folder / "models" / str(number))).num_points3D() == 100
    why, remedy = made.notes
    assert why.startswith("Model 1 (4 photos, 100 points) could not be joined with model 0: they share ")
    assert "--keypoints" in remedy
    report = json.loads((made.folder / "reconstruction.json").read_text())
    assert [model["folder"] for model in report["models"]] == ["models/0", "models/1"]
    assert report["models"][1]["statistics"]["points"] == 100
    assert '"Other models": "4 photos, 100 points"' in (made.folder / "model.html").read_text()
    found = inspect(made.folder)
    assert found.facts["model 1"] == "4 photos, 100 points" and found.problems == ()


def test_a_joined_model_that_cannot_be_refined_leaves_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeypatchError("COLMAP stopped with signal 11.")

    monkeypatch.setattr(joining, "run_colmap", fail)
    made = Halves(tmp_path, overlap=40).reconstruct(tmp_path / "out")
    assert [model.statistics.registered for model in made.models] == [4, 4]
    assert made.notes[0].endswith("could not be joined with model 0: COLMAP could not refine the two as one model.")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share_camera", "apart"), [("banana", False, 8), ("skull", True, 15)])
def test_real_parts_of_an_object_become_one_model(
    shared: Path, tmp_path: Path, name: str, share_camera: bool, apart: int
) -> None:
    """14 of 16 photos and 18 of 20, where COLMAP's largest models have 8 and 15; the poses are of another model."""
    folder = shared / "data" / "photos" / name
    made = reconstruct(folder / "images", tmp_path / "out", Mapping(share_camera=share_camera), describer="rootsift")
    assert len(made.models) == 1 and made.statistics.registered >= apart + 3
    truth = {photo: posed.pose for photo, posed in read_cameras(folder / "poses").items()}
    errors = pose_errors(read_model(made.model).poses, truth).summary()
    assert errors["rotation_max_degrees"] < 3 and errors["position_max_percent"] < 2


@pytest.mark.slow
def test_real_scenes_that_share_nothing_stay_apart(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for scene in ("et", "kermit"):
        for photo in (shared / "data" / "photos" / scene / "images").iterdir():
            shutil.copy(photo, tmp_path / "photos" / f"{scene}-{photo.name}")
    made = reconstruct(tmp_path / "photos", tmp_path / "out", describer="rootsift")
    scenes = [{photo.partition("-")[0] for photo in model.registered} for model in made.models]
    assert len(scenes) >= 2 and all(len(each) == 1 for each in scenes) and set.union(*scenes) == {"et", "kermit"}
