"""Pipelines side by side: equal keypoints, nothing computed twice, everybody's turn."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import pipelines
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image
from pipeline_kinds import AlikedPipeline, Laps, OpencvPipeline, PatchPipeline
from pipelines import (
    SCENES,
    KeptPipeline,
    PipelineRow,
    make_pipelines,
    measure_seconds,
    read_seconds,
    study_pipelines,
    table,
)

from keypatch.benchmarks.result import Result
from keypatch.detection import Rule
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Features
from keypatch.features.extraction import Setting
from keypatch.provenance import provenance
from keypatch.zoo import load

PHOTO = np.ascontiguousarray(skimage.data.camera()[:240, 100:400])


@pytest.mark.parametrize("rule", ["strongest", "largest", "spread"])
def test_opencv_and_patches_describe_the_same_keypoints(rule: Rule) -> None:
    theirs = OpencvPipeline(True, 150, rule)(PHOTO, Laps())
    ours = PatchPipeline(load("rootsift"), 150, rule)(PHOTO, Laps())
    for name in ("x", "y", "sigma", "angle"):
        np.testing.assert_array_equal(getattr(theirs.keypoints, name), getattr(ours.keypoints, name))
    assert len(theirs) == 150
    assert np.median((theirs.descriptors * ours.descriptors).sum(axis=1)) > 0.95


def test_opencvs_sift_is_that_of_its_own_keypoints() -> None:
    sift = cv2.SIFT.create(contrastThreshold=0.0067, enable_precise_upscale=True)
    strongest = sorted(sift.detect(PHOTO, None), key=lambda point: -point.response)[:100]
    expected = sift.compute(PHOTO, strongest)[1]
    np.testing.assert_array_equal(OpencvPipeline(False, 100, "strongest")(PHOTO, Laps()).descriptors, expected)
    rooted = OpencvPipeline(True, 100, "strongest")(PHOTO, Laps()).descriptors
    np.testing.assert_allclose(np.linalg.norm(rooted, axis=1), 1, atol=1e-6)


def test_a_blank_photo_has_no_features() -> None:
    blank = np.full((60, 80), 128, np.uint8)
    for pipeline in (OpencvPipeline(True, 10, "spread"), PatchPipeline(load("sift"), 10, "spread")):
        assert pipeline(blank, Laps()).descriptors.shape == (0, 128)


@dataclass(frozen=True)
class Counted:
    """SIFT that notes every photo it is given, and may fail."""

    name: str = "counted, strongest"
    sigma: float = 1.0
    fails_at: int | None = None
    seen: list[tuple[str, int]] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Setting]:
        return {"sigma": self.sigma, "patch_sigmas": None}

    def __call__(self, image: NDArray[np.uint8], laps: Laps) -> Features:
        if len(self.seen) == self.fails_at:
            raise KeyboardInterrupt
        self.seen.append((self.name, int(image.sum())))
        return replace(OpencvPipeline(True, 60, "strongest")(image, laps), descriptor=self.name)


STRECHA = "300 0 150\n0 300 120\n0 0 1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n{x} 0 0\n300 240\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A sequence of three photos, and three photos of each scene: 9 in all."""
    shift = np.array([[1, 0, 6.0], [0, 1, 4.0]])
    plane = tmp_path / "oxford" / "plane"
    plane.mkdir(parents=True)
    for number in (1, 2, 3):
        moved = cv2.warpAffine(PHOTO, np.array([[1, 0, 6.0 * (number - 1)], [0, 1, 0]]), (300, 240))
        softer = cv2.GaussianBlur(moved, (0, 0), 0.4 * number)  # else matches would be equal
        Image.fromarray(np.asarray(softer)).save(plane / f"img{number}.png")
        (plane / f"H_1_{number}").write_text(f"1 0 {6 * (number - 1)} 0 1 0 0 0 1") if number > 1 else None
    for scene in SCENES:
        for folder in ("images", "cameras"):
            (tmp_path / "strecha" / scene / folder).mkdir(parents=True)
        for number in range(3):
            moved = cv2.warpAffine(PHOTO, shift * (1, 1, number), (300, 240))
            Image.fromarray(np.asarray(moved)).save(tmp_path / "strecha" / scene / "images" / f"{number}.png")
            camera = tmp_path / "strecha" / scene / "cameras" / f"{number}.png.camera"
            camera.write_text(STRECHA.format(x=-number))
    return tmp_path


def silent(_: str) -> None: ...


def test_what_is_there_is_not_computed_again(data: Path, tmp_path: Path) -> None:
    out, pipeline = tmp_path / "out", Counted()
    out.mkdir()
    first = study_pipelines([pipeline], data, out, say=silent)
    assert len(pipeline.seen) == 9
    assert first[0].planes.scores["mma3"] > 0.7
    assert (out / "table.md").read_text().count("counted, strongest") == 1
    again = study_pipelines([pipeline], data, out, say=silent)
    assert len(pipeline.seen) == 9
    assert again[0].to_json() == first[0].to_json()
    with_ratio = study_pipelines([pipeline], data, out, ratios=(None, 0.3), say=silent)
    assert len(pipeline.seen) == 9, "another matcher describes nothing anew"
    assert with_ratio[1].planes.scores["count.matches"] < with_ratio[0].planes.scores["count.matches"]


def test_a_result_of_other_seeds_thresholds_or_data_is_made_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, said = data / "strecha" / SCENES[0], list[str]()
    kept = KeptPipeline(Counted(), tmp_path / "out", said.append)

    def made(seeds: tuple[int, ...] = (0,)) -> bool:
        said.clear()
        assert kept.poses(scene, seeds=seeds).settings["seeds"] == list(seeds)
        return bool(said)

    assert made() and not made()
    assert made((0, 1)) and not made((0, 1))
    monkeypatch.setattr(pipelines, "THRESHOLD", 2.0)
    assert made((0, 1))
    monkeypatch.undo()
    assert not made((0, 1))
    photo = scene / "images" / "1.png"
    photo.write_bytes((scene / "images" / "2.png").read_bytes())
    with pytest.raises(DataError, match=r"1\.png in .* is a different photo"):
        made((0, 1))
    (tmp_path / "out" / "counted-strongest" / f"{SCENES[0]}.h5").unlink()
    assert made((0, 1)) and not made((0, 1))
    plane = data / "oxford" / "plane" / "H_1_2"
    first = kept.planes(data / "oxford").scores["mma1"]
    plane.write_text("1 0 60 0 1 0 0 0 1")
    assert kept.planes(data / "oxford").scores["mma1"] < first


def test_a_stopped_study_resumes_where_it_was(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(KeyboardInterrupt):
        study_pipelines([Counted(fails_at=4)], data, tmp_path / "out", say=silent)
    rest = Counted()
    study_pipelines([rest], data, tmp_path / "out", say=silent)
    assert len(rest.seen) == 5


def test_features_of_other_settings_are_not_taken_for_these(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    study_pipelines([Counted()], data, tmp_path / "out", say=silent)
    with pytest.raises(KeypatchError, match="other settings"):
        study_pipelines([Counted(sigma=2.0)], data, tmp_path / "out", say=silent)


def test_pipelines_take_turns_and_the_first_photo_is_a_rehearsal(data: Path, tmp_path: Path) -> None:
    photos = sorted((data / "strecha" / SCENES[0] / "images").iterdir())
    seen: list[tuple[str, int]] = []
    one, two = Counted("one", seen=seen), Counted("two", seen=seen)
    seconds = measure_seconds([one, two], photos, tmp_path)
    assert [name for name, _ in seen] == ["one", "two"] * 3
    assert set(seconds["one"]) == {"detect", "select", "describe"}
    assert read_seconds(tmp_path) == seconds
    measure_seconds([Counted("three")], photos[:2], tmp_path)
    assert set(read_seconds(tmp_path)) == {"one", "two", "three"}


def result(**scores: float) -> Result:
    return Result("toy", "toy", {}, scores, {}, provenance())


def test_the_table_has_the_mean_over_scenes_and_the_spread_over_seeds() -> None:
    accuracies = {"accuracy3": 0.75, "accuracy3.lowest": 0.7, "accuracy3.highest": 0.8}
    planes = result(mma1=0.25, mma3=0.5, **{"count.within3": 300.4}, **accuracies)
    areas = [
        result(auc1=0.1, auc5=auc5, auc10=0.9, **{"auc5.lowest": auc5 - 0.01, "auc5.highest": auc5 + 0.02})
        for auc5 in (0.6, 0.8)
    ]
    poses = {("castle", "pixels"): areas[0], ("entry", "pixels"): areas[1]}
    row = PipelineRow("ours", None, planes, poses, {"detect": 0.1, "select": 0.02, "describe": 0.5, "load": 9})  # type: ignore[arg-type]
    head, _, line = table([row]).splitlines()
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:6] == ["ours", "none", "0.250", "0.500", "300", "0.750 (0.700-0.800)"]
    assert cells[6] == "0.100 / 0.600 / 0.900 (0.590-0.620)"
    assert cells[8:] == ["0.700", "0.10 + 0.02 + 0.50", "0.62"]
    assert head.count("|") == line.count("|")


@pytest.fixture(scope="module")
def aliked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained ALIKED, written by torch and kornia alone."""
    kornia = pytest.importorskip("kornia.feature")
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("peers") / "aliked-t16.safetensors"
    state = kornia.ALIKED("aliked-t16").state_dict()
    save_file({name: tensor.clone() for name, tensor in state.items() if name != "dkd.hw_grid"}, path)
    return path


def test_aliked_gives_features_inside_the_photo(aliked: Path) -> None:
    laps = Laps()
    found = AlikedPipeline(aliked, 50)(PHOTO, laps)
    assert 0 < len(found) <= 50
    assert found.image_size == (300, 240)
    assert (found.keypoints.xy >= 0).all() and (found.keypoints.xy <= (299, 239)).all()
    np.testing.assert_allclose(np.linalg.norm(found.descriptors, axis=1), 1, atol=1e-5)
    assert set(laps.seconds) == {"load", "describe"}


def test_a_file_of_another_aliked_is_refused(aliked: Path, tmp_path: Path) -> None:
    other = tmp_path / "aliked-n16rot.safetensors"
    other.write_bytes(aliked.read_bytes())
    with pytest.raises(KeypatchError, match="does not hold the weights of aliked-n16rot"):
        AlikedPipeline(other, 50)(PHOTO, Laps())


def test_every_peer_is_there_with_every_rule(shared: Path) -> None:
    names = [pipeline.name for pipeline in make_pipelines(shared / "data" / "peers")]
    assert len(set(names)) == len(names) == 2 * (2 + 5) + 2
    assert {"hynet-notredame, spread", "hardtfeat, strongest", "opencv rootsift, spread", "aliked-n16rot"} <= set(names)
