"""Pipelines side by side: nothing computed twice, everybody's turn, matchers chosen on other photographs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pipelines
import pytest
import skimage.data
import torch
from numpy.typing import NDArray
from PIL import Image
from pipeline_kinds import (
    GLUES,
    NETWORKS,
    LightGlue,
    NeighbourMatcher,
    NetworkPipeline,
    PatchPipeline,
    find_weights,
    load_module,
)
from pipeline_tables import Row, table
from pipelines import (
    BUDGET,
    SCENES,
    WAYS,
    Contestant,
    KeptPipeline,
    Study,
    keep_ways,
    make_contestants,
    measure_seconds,
    neighbours,
)
from poses import ESTIMATORS, SEEDS, over_seeds

from keypatch.benchmarks.imc.scenes import read_posed_scene
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Features
from keypatch.features.extraction import Setting
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matching import Matching
from keypatch.patches.planar_sequences import read_planar_sequences
from keypatch.zoo import load

PHOTO = np.ascontiguousarray(skimage.data.camera()[:240, 100:400])
MUTUAL, STRICT = neighbours(), neighbours(ratio=0.3)
CASTLE = Path(SCENES[0]).name


@dataclass(frozen=True)
class Counted:
    """RootSIFT that notes every photo it is given, and may fail."""

    name: str = "counted"
    budget: int = BUDGET
    sigma: float = 1.0
    fails_at: int | None = None
    seen: list[tuple[str, int]] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Setting]:
        return {"sigma": self.sigma, "patch_sigmas": None}

    def __call__(self, image: NDArray[np.uint8]) -> Features:
        if len(self.seen) == self.fails_at:
            raise KeyboardInterrupt
        self.seen.append((self.name, int(image.sum())))
        return replace(PatchPipeline(load("rootsift"), 60)(image), descriptor=self.name)


STRECHA = "300 0 150\n0 300 120\n0 0 1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n{x} 0 0\n300 240\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sequence of three photos, three photos of each scene and a wide pair: 13 in all, and 3 more for tuning."""
    monkeypatch.setattr(pipelines, "TUNING_SCENES", ("row",))
    monkeypatch.setattr(pipelines, "TUNING_PLANES", ("plane",))
    monkeypatch.setattr(pipelines, "WIDE", ("evd", "wxbs"))
    shift = np.array([[1, 0, 6.0], [0, 1, 4.0]])
    plane = tmp_path / "oxford" / "plane"
    plane.mkdir(parents=True)
    for number in (1, 2, 3):
        moved = cv2.warpAffine(PHOTO, np.array([[1, 0, 6.0 * (number - 1)], [0, 1, 0]]), (300, 240))
        softer = cv2.GaussianBlur(moved, (0, 0), 0.4 * number)  # else matches would be equal
        Image.fromarray(np.asarray(softer)).save(plane / f"img{number}.png")
        (plane / f"H_1_{number}").write_text(f"1 0 {6 * (number - 1)} 0 1 0 0 0 1") if number > 1 else None
    for scene in (*(tmp_path / name for name in SCENES), tmp_path / "photos" / "row"):
        for folder in ("images", "cameras"):
            (scene / folder).mkdir(parents=True)
        for number in range(3):
            moved = cv2.warpAffine(PHOTO, shift * (1, 1, number), (300, 240))
            Image.fromarray(np.asarray(moved)).save(scene / "images" / f"{number}.png")
            (scene / "cameras" / f"{number}.png.camera").write_text(STRECHA.format(x=-number))
    for folder, stems, truth in (
        ("evd/cat", ("1", "2"), ("H_1_2", "1 0 6 0 1 4 0 0 1")),
        ("wxbs/WGBS/dog", ("01", "02"), ("corrs.txt", "10 10 16 14\n90 50 96 54\n")),
    ):
        (tmp_path / "pairs" / folder).mkdir(parents=True)
        (tmp_path / "pairs" / folder / truth[0]).write_text(truth[1])
        for number, stem in enumerate(stems):
            moved = cv2.warpAffine(PHOTO, shift * (1, 1, number), (300, 240))
            Image.fromarray(np.asarray(moved)).save(tmp_path / "pairs" / folder / f"{stem}.jpg")
    return tmp_path


def silent(_: str) -> None: ...


def study(data: Path) -> Study:
    return Study(data, data / "out", say=silent)


def contestant(pipeline: Counted) -> Contestant:
    return Contestant(pipeline, {"one": [MUTUAL]}, pipeline)


def test_what_is_there_is_not_computed_again(data: Path) -> None:
    pipeline = Counted()
    first = study(data).row(contestant(pipeline), MUTUAL)
    assert len(pipeline.seen) == 13
    assert first.planes["plane"]["mma3"] > 0.7
    assert first.wide["evd"]["solved.poselib"] == 1
    assert study(data).row(contestant(pipeline), MUTUAL) == first
    assert len(pipeline.seen) == 13
    strict = study(data).row(contestant(pipeline), STRICT)
    assert len(pipeline.seen) == 13, "another matcher describes nothing anew"
    assert strict.poses[CASTLE]["count.matches"] < first.poses[CASTLE]["count.matches"]


def test_a_result_of_another_matcher_threshold_or_data_is_made_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, said = data / SCENES[0], list[str]()
    kept = KeptPipeline(Counted(), data / "out", said.append)

    def made(matcher: NeighbourMatcher = MUTUAL, seeds: tuple[int, ...] = SEEDS) -> bool:
        said.clear()
        kept.poses(scene, matcher, seeds=seeds)
        return bool(said)

    assert made() and not made()
    assert made(STRICT) and not made(STRICT) and not made()
    assert made(seeds=(0, 7)) and made()
    monkeypatch.setattr(pipelines, "THRESHOLD", 2.0)
    assert made()
    monkeypatch.setattr(pipelines, "THRESHOLD", 1.0)
    assert not made()
    photo = scene / "images" / "1.png"
    photo.write_bytes((scene / "images" / "2.png").read_bytes())
    with pytest.raises(DataError, match=r"1\.png in .* is a different photo"):
        made()
    (data / "out" / f"counted-{BUDGET}" / f"{CASTLE}.h5").unlink()
    assert made() and not made()
    [plane] = read_planar_sequences(data / "oxford")
    first = kept.plane(plane, MUTUAL).scores["mma1"]
    (data / "oxford" / "plane" / "H_1_2").write_text("1 0 60 0 1 0 0 0 1")
    [plane] = read_planar_sequences(data / "oxford")
    assert kept.plane(plane, MUTUAL).scores["mma1"] < first


def test_a_stopped_study_resumes_where_it_was(data: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        study(data).row(contestant(Counted(fails_at=4)), MUTUAL)
    rest = Counted()
    study(data).row(contestant(rest), MUTUAL)
    assert len(rest.seen) == 9


def test_features_of_other_settings_are_not_taken_for_these(data: Path) -> None:
    study(data).row(contestant(Counted()), MUTUAL)
    with pytest.raises(KeypatchError, match="other settings"):
        study(data).row(contestant(Counted(sigma=2.0)), MUTUAL)


def test_the_best_matcher_of_each_kind_is_chosen_on_the_tuning_photos_alone(data: Path) -> None:
    pipeline, larger = Counted(), Counted("larger")
    ways = {"mutual": [MUTUAL], "ratio": [neighbours(ratio=0.01), neighbours(ratio=0.9)], "again": [MUTUAL]}
    chosen = study(data).choose(Contestant(larger, ways, pipeline))  # type: ignore[arg-type]
    assert [each.name for each in chosen] == ["mutual", "ratio 0.9"], "nothing survives a ratio of 0.01"
    assert len(pipeline.seen) == 6 and not larger.seen
    assert {path.name.split("-")[0] for path in (data / "out" / f"counted-{BUDGET}").glob("*.json")} == {"plane", "row"}


def test_ways_are_taken_by_kind_or_by_name() -> None:
    kept = keep_ways(WAYS, ["mutual", "ratio 0.9"])
    assert {kind: [way.name for way in some] for kind, some in kept.items()} == {
        "mutual": ["mutual"],
        "ratio": ["ratio 0.9"],
    }


def test_poses_of_one_scene_alone(data: Path) -> None:
    pipeline = Counted()
    alone = Study(data, data / "out", scenes=["photos/row"], parts=["poses"], say=silent)
    row = alone.row(contestant(pipeline), MUTUAL)
    assert list(row.poses) == ["row"] and not row.planes and not row.wide
    assert len(pipeline.seen) == 3
    text = table([row], {}, {}, [])
    assert "Poses" in text and "Planes" not in text and "Wide" not in text


def test_matchers_are_named_by_what_they_do() -> None:
    names = [matcher.name for kind in WAYS.values() for matcher in kind]
    assert len(set(names)) == len(names)
    assert {
        "mutual",
        "ratio 0.9",
        "AdaLAM",
        "AdaLAM, ratio 0.95",
        "ratio 0.85, 10 px apart",
    } <= set(names)
    assert neighbours(filter=AdaLAM()).settings != MUTUAL.settings != neighbours(apart=10.0).settings
    assert neighbours(filter=AdaLAM()).settings["filter"]["maps"] == AdaLAM().maps, "so other defaults are noticed"
    assert NeighbourMatcher(Matching()).name == "default"
    assert NeighbourMatcher(Matching(ratio=None, turn=180, filter=None, seed=5)).settings == MUTUAL.settings


def test_pipelines_take_turns_and_the_first_photo_is_a_rehearsal(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = read_posed_scene(data / SCENES[0])
    seen: list[tuple[str, int]] = []
    one, two = contestant(Counted("one", seen=seen)), contestant(Counted("two", 4096, seen=seen))
    clock = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock) ** 2)
    seconds = measure_seconds({one: [MUTUAL, STRICT], two: [MUTUAL]}, scene, count=1)
    assert [name for name, _ in seen] == ["one", "two"] * 3
    assert set(seconds) == {"one", "two, 4096", "one: mutual", "one: ratio 0.3", "two, 4096: mutual"}
    assert seconds["one: mutual"] > 30, "the pair of the rehearsal does not count"


def test_the_table_has_means_over_sequences_and_the_spread_over_seeds() -> None:
    def plane(share: float) -> dict[str, float]:
        accuracies = {f"accuracy3.{by}.{seed}": share + seed / 10 for by in ESTIMATORS for seed in (0, 1)}
        return {"mma1": share / 2, "mma3": share, "count.within3": 300.4, **accuracies}

    poses = {
        f"auc{degrees}.{by}.{seed}": 0.6 + seed / 10 for degrees in (1, 5, 10) for by in ESTIMATORS for seed in (0, 1)
    }
    wide = {f"solved.{by}": 4.0 for by in ESTIMATORS}
    row = Row(
        "ours", "mutual", {"boat": plane(0.9), "graf": plane(0.5), "ubc": plane(0.7)}, {"castle": poses}, {"evd": wide}
    )
    text = table([row], {"ours": 1.5, "ours: mutual": 0.05}, {"ours": {"mutual": 0.7}}, ["boat"])
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "ours" in line]
    assert lines[0] == ["ours", "mutual", "0.300", "0.600", "300", *["0.650 (0.600-0.700)"] * 2]
    assert lines[1][3] == "0.700", "with boat"
    assert lines[2] == ["ours", "mutual", *["0.650 / 0.650 / 0.650 (0.600-0.700)"] * 2]
    assert lines[3:] == [["ours", "mutual", "4", "4"], ["ours", "mutual", "1.50", "0.050"], ["ours", "0.7000"]]
    judged = {name: 1 - score if ".judged" in name else score for name, score in poses.items()}
    ours = table([Row("ours", "default", {}, {"castle": judged}, {})], {}, {}, [])
    assert "| 0.650 / 0.650 / 0.650 (0.600-0.700) | 0.350 / 0.350 / 0.350 (0.300-0.400) |" in ours, "judged by match"
    assert "## Seconds" not in table([row], {}, {}, ["boat"])
    assert over_seeds(poses, "auc1.poselib").tolist() == [0.6, 0.7]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained networks as their authors' files hold them, written by torch and kornia alone."""
    kornia = pytest.importorskip("kornia.feature")
    from safetensors.torch import save_file

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("weights")
    state = kornia.ALIKED("aliked-t16").state_dict()
    save_file(
        {name: tensor.clone() for name, tensor in state.items() if name != "dkd.hw_grid"},
        folder / "aliked-t16.safetensors",
    )
    torch.save({"extractor": kornia.DISK().state_dict()}, folder / "disk-depth-save.pth")
    torch.save(kornia.XFeat().net.state_dict(), folder / "xfeat.pt")
    glue = kornia.LightGlue(None, input_dim=128).state_dict()
    names = {
        name: name.replace("transformers.", "self_attn.").replace(".self_attn", "")
        for name in glue
        if "self_attn" in name
    }
    torch.save({names.get(name, name): tensor for name, tensor in glue.items()}, folder / "disk_lightglue.pth")
    return folder


@pytest.mark.parametrize("name", ["aliked-t16", "disk"])  # an untrained XFeat finds nothing
def test_networks_give_features_inside_the_photo(weights: Path, name: str) -> None:
    path = find_weights([weights], NETWORKS[name].file)
    assert path is not None
    found = NetworkPipeline(name, path, 50)(PHOTO)
    assert 0 < len(found) <= 50
    assert found.image_size == (300, 240) and found.descriptor == name
    assert (found.keypoints.xy >= 0).all() and (found.keypoints.xy <= (299, 239)).all()
    np.testing.assert_allclose(np.linalg.norm(found.descriptors, axis=1), 1, atol=1e-5)


def test_xfeats_places_are_of_the_photo_as_it_was_before_it_was_resized(weights: Path) -> None:
    class Corner:
        def detectAndCompute(self, image: Any, top_k: int) -> list[dict[str, Any]]:
            return [{"keypoints": torch.zeros(1, 2), "scores": torch.ones(1), "descriptors": torch.ones(1, 64)}]

    xy = NETWORKS["xfeat"].ask(Corner(), torch.zeros(1, 1, 48, 64), 1).xy
    assert xy.tolist() == [[0, 0.25]], "the first of 32 rows is the mean of the first 1.5 of 48"


def test_a_file_of_another_network_is_refused(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "aliked-n16rot.safetensors"
    other.write_bytes((weights / "aliked-t16.safetensors").read_bytes())
    with pytest.raises(KeypatchError, match="does not hold the weights of ALIKED"):
        NetworkPipeline("aliked-n16rot", other, 50)(PHOTO)
    with pytest.raises(KeypatchError, match="does not hold the weights of Linear"):
        load_module(torch.nn.Linear(2, 2), weights / "xfeat.pt")


def test_lightglue_takes_its_authors_names_and_matches_features(weights: Path) -> None:
    disk = NetworkPipeline("disk", weights / "disk-depth-save.pth", 40)
    features, none = disk(PHOTO), disk(np.full((64, 64), 128, np.uint8))
    glue = LightGlue(GLUES["disk"].features, weights / "disk_lightglue.pth")
    found = glue(features, features)
    assert found.indices.shape == (len(found), 2)
    assert len(glue(features, replace(none, keypoints=none.keypoints.take([]), descriptors=none.descriptors[:0]))) == 0


def test_a_peer_without_its_file_is_left_out(weights: Path) -> None:
    names = {each.name: set(each.ways) for each in make_contestants([weights])}
    ours = {"hynet-notredame", "hynet-notredame, 4096", "hynet-notredame, 8000"}
    assert set(names) == {"sift", "rootsift", "aliked-t16", "disk", "xfeat"} | ours
    assert "glue" in names["disk"] and "glue" not in names["aliked-t16"]


def test_the_shared_peers_are_there(shared: Path) -> None:
    names = [each.name for each in make_contestants([shared / "data" / "peers"])]
    assert {"hardtfeat", "aliked-t16", "aliked-n16rot"} < set(names)
