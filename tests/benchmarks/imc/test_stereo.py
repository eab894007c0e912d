"""The stereo task: exact correspondences give exact poses; what counts, what fails, what is recorded."""

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.benchmarks.imc import stereo
from keypatch.benchmarks.imc.features import ChallengeExtraction
from keypatch.benchmarks.imc.relative_pose import match_views
from keypatch.benchmarks.imc.stereo import Stereo, StereoMatching, evaluate_stereo
from keypatch.benchmarks.result import Result
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Extraction, Features
from keypatch.geometry import Keypoints
from keypatch.matching.matching import Matching

BEND = 0.3  # of a lens
STEREO = Stereo()


def npy(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def near() -> Stereo:
    return Stereo(reach=1)  # five pairs


def evaluate(ring: Any, tmp_path: Path, settings: Stereo = STEREO) -> Result:
    folder = ring.write_strecha(tmp_path / "ring")
    return evaluate_stereo(ring.write_hloc(tmp_path / "toy.h5"), folder, settings)


def test_exact_correspondences_give_exact_poses(ring: Any, tmp_path: Path) -> None:
    result = evaluate(ring, tmp_path)
    assert result.scores["maa10"] == 1  # every error below one degree
    assert result.scores["maa5"] == 1 and result.scores["failed"] == 0
    assert result.scores["count.matches"] == result.scores["count.keypoints"] == 260
    assert 200 < result.scores["count.inliers"] <= 260
    np.testing.assert_array_equal(result.curves["maa"].x, np.arange(1, 11))
    np.testing.assert_array_equal(result.curves["maa"].y, np.ones(10))


def test_everything_that_a_score_depends_on_is_recorded(ring: Any, tmp_path: Path) -> None:
    result = evaluate(ring, tmp_path, near())
    wanted = {"estimator": "poselib", "threshold": 0.5, "confidence": 0.999999, "iterations": 100_000, "seeds": [0]}
    wanted |= {"ratio": 0.9, "neighbours": "exact", "pairs": 5, "photos": 6, "scenes": ["ring"], "reach": 1}
    assert {key: result.settings[key] for key in wanted} == wanted
    assert result.settings["estimator_version"].startswith("poselib ")
    assert result.conditions() == "estimator poselib, threshold 0.5 px, ratio 0.9, keypoints 260, pairs 5"
    assert result.settings["pairs_chosen_by"].startswith("all pairs: the scene has no lists")
    assert result.descriptor == "toy" and set(result.provenance.hashes) == {"data", "features"}
    assert {name: (each.units, each.count) for name, each in result.replicates.items()} == {
        "maa10": ("photo pairs", 5),
        "maa5": ("photo pairs", 5),
    }


def test_a_describer_records_how_much_of_the_photo_a_patch_covers(ring: Any, tmp_path: Path) -> None:
    from keypatch.zoo import load

    result = evaluate_stereo(load("sift"), ring.write_strecha(tmp_path / "ring"), near())
    assert result.scores["failed"] == 1 and result.scores["count.keypoints"] == 0  # the photos are grey
    assert result.scores["maa10"] == 0
    assert result.settings["patch_sigmas"] == 18 and result.settings["keypoints"] == 2048


@pytest.mark.parametrize("count", [0, 7])
def test_fewer_than_eight_matches_are_a_failure(ring: Any, tmp_path: Path, count: int) -> None:
    few = replace(ring, rays=[rays[:count] for rays in ring.rays], descriptors=[d[:count] for d in ring.descriptors])
    result = evaluate(few, tmp_path, near())
    assert result.scores["failed"] == 1 and result.scores["maa10"] == 0 and result.scores["count.inliers"] == 0


def test_a_wrong_camera_is_an_error_of_as_many_degrees(ring: Any, tmp_path: Path) -> None:
    angle = np.radians(4.5)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    rotations = ring.rotations.copy()
    rotations[0] = turn @ rotations[0]  # about its own axis
    result = evaluate(replace(ring, rotations=rotations), tmp_path, near())
    assert result.scores["maa10"] == pytest.approx(4 / 5 + 0.6 / 5)  # one of five pairs is right from 5 degrees on
    assert result.scores["maa5"] == pytest.approx(4 / 5 + 0.2 / 5)


def test_seeds_are_averaged(ring: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noisy = replace(ring, rays=[rays + rng.normal(0, 0.004, rays.shape) for rays in ring.rays])
    folder, features = noisy.write_strecha(tmp_path / "ring"), noisy.write_hloc(tmp_path / "toy.h5")
    alone = [evaluate_stereo(features, folder, replace(near(), seeds=(seed,))).scores for seed in (0, 1)]
    both = evaluate_stereo(features, folder, replace(near(), seeds=(0, 1))).scores
    assert alone[0]["count.inliers"] != alone[1]["count.inliers"]
    for score in ("maa10", "count.inliers"):
        assert both[score] == pytest.approx((alone[0][score] + alone[1][score]) / 2)


def test_a_lens_with_known_distortion_is_straightened(ring: Any, tmp_path: Path) -> None:
    bent = replace(ring, rays=[rays * (1 + BEND * np.square(rays).sum(1, keepdims=True)) for rays in ring.rays])
    features, settings = (
        bent.write_hloc(tmp_path / "bent.h5"),
        replace(near(), tuned=False, matching=replace(near().matching, threshold=0.25)),
    )
    as_it_is = evaluate_stereo(features, ring.write_strecha(tmp_path / "straight"), settings)
    write_bent_model(ring, tmp_path / "bent")
    straightened = evaluate_stereo(features, tmp_path / "bent", settings)
    assert straightened.scores["maa10"] == 1 and straightened.scores["count.inliers"] > 255
    assert as_it_is.scores["maa10"] < 0.97 and as_it_is.scores["count.inliers"] < 250


def write_bent_model(ring: Any, folder: Path) -> None:
    from scipy.spatial.transform import Rotation

    ring.write_photos(folder / "images")
    (folder / "cameras").mkdir()
    (folder / "cameras" / "cameras.txt").write_text(f"1 OPENCV 640 480 700 703 323.75 237.25 {BEND} 0 0 0\n")
    lines = []
    for number, (name, rotation, centre) in enumerate(zip(ring.names, ring.rotations, ring.centres, strict=True)):
        x, y, z, w = Rotation.from_matrix(rotation).as_quat()
        values = " ".join(repr(float(value)) for value in (w, x, y, z, *(-rotation @ centre)))
        lines.append(f"{number + 1} {values} 1 {name}\n\n")
    (folder / "cameras" / "images.txt").write_text("".join(lines))


def test_the_challenges_layout_and_features_are_read(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_challenge(tmp_path / "sacre_coeur")
    (folder / "new-vis-pairs").mkdir()
    np.save(folder / "new-vis-pairs" / "keys-th-0.1.npy", np.array(["1-0", "5-4", "3-0"]))
    result = evaluate_stereo(ring.write_challenge_features(tmp_path / "toy"), tmp_path / "sacre_coeur", STEREO)
    assert result.settings["pairs"] == 3 and result.settings["pairs_chosen_by"] == "covisibility 0.1"
    assert result.settings["scenes"] == ["sacre_coeur"] and result.descriptor == "toy"
    assert result.scores["maa10"] == 1 and result.scores["count.matches"] == 260
    assert result.settings["keypoints"] == 260


def test_the_keypoints_of_given_features_are_recorded(ring: Any, tmp_path: Path) -> None:
    """The largest number of any photo: a budget of 2,000 and one of 8,000 are two protocols."""
    fewer = [slice(100), slice(120), *4 * [slice(50)]]
    few = replace(
        ring,
        rays=[rays[some] for rays, some in zip(ring.rays, fewer, strict=True)],
        descriptors=[rows[some] for rows, some in zip(ring.descriptors, fewer, strict=True)],
    )
    folder = few.write_strecha(tmp_path / "ring")
    for source in (few.write_challenge_features(tmp_path / "toy"), few.write_hloc(tmp_path / "toy.h5")):
        assert evaluate_stereo(source, folder, near()).settings["keypoints"] == 120


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_an_extraction_that_does_nothing_is_refused(ring: Any, tmp_path: Path, kind: str) -> None:
    folder = ring.write_strecha(tmp_path / "ring")
    source = ring.write_hloc(tmp_path / "a.h5") if kind == "file" else ring.write_challenge_features(tmp_path / "toy")
    settings = replace(near(), extraction=replace(near().extraction, keypoints=8000))
    with pytest.raises(KeypatchError, match=r"Leave out extraction\.keypoints"):
        evaluate_stereo(source, folder, settings)


def test_without_lists_of_pairs_points_in_common_decide(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_challenge(tmp_path / "scene")
    write_visibility(folder, 100 * np.ones((6, 6)) + np.eye(6, k=1))
    result = evaluate_stereo(ring.write_challenge_features(tmp_path / "toy"), folder, STEREO)
    assert result.settings["pairs"] == 5
    assert result.settings["pairs_chosen_by"] == "more than 100 points in common"


def write_visibility(folder: Path, table: np.ndarray) -> None:
    (folder / "visibility").mkdir()
    for number, row in enumerate(table):
        (folder / "visibility" / f"vis_{number}.txt").write_text("\n".join(f"{value:.1f}" for value in row))
    names = [f"visibility/vis_{number}.txt\n" for number in range(len(table))]
    (folder / "visibility.txt").write_text("".join(names))


def test_scenes_count_the_same_whatever_their_size(ring: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    ring.write_strecha(data / "good")
    wrong = replace(ring, rotations=ring.rotations[::-1])
    folder = wrong.write_strecha(data / "wrong")
    for number in (3, 4, 5):
        (folder / "cameras" / f"{number}.png.camera").unlink()
    result = evaluate_stereo(ring.write_hloc(tmp_path / "toy.h5", ("good/", "wrong/")), data, near())
    assert result.scores["maa10.good"] == 1 and result.scores["maa10.wrong"] == 0
    assert result.scores["maa10"] == 0.5 and result.settings["pairs"] == 7
    assert (result.replicates["maa10"].count, result.replicates["maa10"].units) == (
        2,
        "photo pairs in the smallest scene",
    )
    np.testing.assert_allclose(result.replicates["maa10"].values, 0.5)


def test_matches_of_the_same_places_count_once() -> None:
    rows = np.eye(6, dtype=np.float32)
    x = np.array([1, 1, 1, 2, 3, 3], np.float32)
    first, second = (
        Features(Keypoints(x, y, np.ones(6), np.zeros(6)), rows, (9, 9), "toy")  # type: ignore[arg-type]
        for y in (np.zeros(6), np.array([0, 0, 5, 0, 0, 0]))
    )
    assert match_views((first, second), Matching(ratio=None, filter=None)).indices[:, 0].tolist() == [0, 2, 3, 4]


def test_flann_finds_the_same_where_it_is_easy(ring: Any, tmp_path: Path) -> None:
    result = evaluate(ring, tmp_path, replace(near(), matching=replace(near().matching, neighbours="flann")))
    assert result.scores["count.matches"] > 250 and result.settings["neighbours"] == "flann"


def test_a_missing_estimator_names_the_extra_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(stereo, "version", missing)
    with pytest.raises(MissingExtra, match=r"keypatch\[degensac\]"):
        evaluate_stereo("toy.h5", tmp_path / "none", Stereo(matching=StereoMatching(estimator="degensac")))


def test_the_estimator_is_the_same_whatever_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pydegensac", "poselib"):
        module = ModuleType(package)
        module.__spec__ = ModuleSpec(package, None)  # as find_spec sees an installed one
        monkeypatch.setitem(sys.modules, package, module)
    estimation = Stereo().estimation()
    assert (estimation.estimator, estimation.threshold) == ("poselib", 0.5)


def test_another_estimator_or_threshold_is_taken_when_asked_for() -> None:
    assert Stereo(matching=StereoMatching(estimator="poselib")).estimation().threshold == 0.5
    assert Stereo(matching=StereoMatching(threshold=2.0), tuned=False).estimation().threshold == 2


CHOICES: list[tuple[dict[str, Any], str]] = [
    ({"matching": StereoMatching(model="H")}, r"Leave out matching\.model"),
    ({"matching": StereoMatching(seed=3)}, r"with each seed in seeds. Leave out matching\.seed"),
    ({"matching": StereoMatching(threshold=2.0)}, r"Leave out matching\.threshold, .*, or set tuned=false"),
    ({"seeds": ()}, "one seed or more"),
    ({"seeds": (0, -1)}, "must be 0 or more"),
    ({"seeds": (2**31,)}, "must be below 2,147,483,648"),
    ({"covisibility": 1.5}, "covisibility"),
    ({"covisibility": 0.25}, "covisibility must .* not 0.25"),
    ({"covisibility": 0.95}, "covisibility must .* not 0.95"),
    ({"reach": 0}, "reach"),
]


@pytest.mark.parametrize(("choice", "word"), CHOICES, ids=str)
def test_wrong_choices_are_told_before_any_work(choice: dict[str, Any], word: str) -> None:
    with pytest.raises(KeypatchError, match=word):
        Stereo(**choice)


def spoil_pairs(keys: list[str]) -> Callable[[Path, Path], object]:
    def spoil(folder: Path, features: Path) -> None:
        (folder / "new-vis-pairs").mkdir()
        np.save(folder / "new-vis-pairs" / "keys-th-0.1.npy", np.array(keys))

    return spoil


def lose_a_photo(folder: Path, features: Path) -> None:
    with h5py.File(features / "keypoints.h5", "r+") as file:
        del file["3"]


def spoil_a_descriptor(folder: Path, features: Path) -> None:
    with h5py.File(features / "descriptors.h5", "r+") as file:
        file["3"][5, 1] = np.nan


def lose_rows(folder: Path, features: Path) -> None:
    with h5py.File(features / "descriptors.h5", "r+") as file:
        rows = file["3"][:-1]
        del file["3"]
        file["3"] = rows


def lengthen(folder: Path, features: Path) -> None:
    with h5py.File(features / "descriptors.h5", "r+") as file:
        rows = file["3"][()]
        del file["3"]
        file["3"] = np.hstack([rows, rows])


def name_in_list(folder: Path, name: str) -> None:
    (folder.parent / "secret").write_text("password")
    (folder / "visibility.txt").write_text(f"{name}\n" * 6)


def link_outside(folder: Path, _: Path) -> None:
    name_in_list(folder, "link.txt")
    (folder / "link.txt").symlink_to(folder.parent / "secret")


WRONG: dict[str, tuple[Callable[[Path, Path], object], list[str]]] = {
    "unknown pair": (spoil_pairs(["1-0", "1-9"]), ["keys-th-0.1.npy", '"1-9"']),
    "no list": (lambda f, _: (f / "new-vis-pairs").mkdir(), ["keys-th-0.1.npy", "none does"]),
    "short row": (lambda f, _: write_visibility(f, np.ones((6, 5))), ["vis_0.txt", "6 numbers", "has 5"]),
    "lost file": (lambda f, _: (f / "visibility.txt").write_text("a.txt\n" * 6), ["a.txt cannot be read"]),
    "short list": (lambda f, _: (f / "visibility.txt").write_text("a.txt\n"), ["images.txt has 6", "visibility.txt 1"]),
    "path outside": (
        lambda f, _: name_in_list(f, "/etc/hostname"),
        ["visibility.txt", "'/etc/hostname' is not a plain"],
    ),
    "path upwards": (lambda f, _: name_in_list(f, "../secret"), ["visibility.txt", "'../secret' is not a plain path"]),
    "link outside": (link_outside, ["visibility.txt", "'link.txt' points outside"]),
    "no pair": (lambda f, _: write_visibility(f, np.zeros((6, 6))), ["No pair of scene qualifies"]),
    "lost photo": (lose_a_photo, ["keypoints.h5 has no 3"]),
    "nan": (spoil_a_descriptor, ["descriptors.h5", "3 is not finite"]),
    "another dimension": (lengthen, ["24-dimensional", "3.png has 48"]),
    "rows": (lose_rows, ["3.png", "260 keypoints", "259"]),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_with_the_data_is_one_sentence_before_any_matching(
    ring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(stereo, "match_views", None)
    folder, features = ring.write_challenge(tmp_path / "scene"), ring.write_challenge_features(tmp_path / "toy")
    spoil, words = WRONG[fault]
    spoil(folder, features)
    with pytest.raises(KeypatchError) as error:
        evaluate_stereo(features, folder, STEREO)
    assert all(word in str(error.value) for word in words) and "\n" not in str(error.value), error.value


def test_replacing_one_field_keeps_the_challenges_others() -> None:
    changed = Stereo(ChallengeExtraction(keypoints=8000), StereoMatching(ratio=0.8))
    assert changed.matching == replace(STEREO.matching, ratio=0.8) and changed.matching.iterations == 100_000
    assert changed.extraction == replace(STEREO.extraction, keypoints=8000) and changed.extraction.rule == "strongest"
    with pytest.raises(KeypatchError, match=r"matching must be .* other defaults. Use StereoMatching\(ratio=0\.8\)"):
        Stereo(matching=Matching(ratio=0.8))  # type: ignore[arg-type]
    with pytest.raises(KeypatchError, match=r"Use ChallengeExtraction\(upright=True\)"):
        Stereo(extraction=Extraction(upright=True))  # type: ignore[arg-type]


SAVED = BytesIO()
np.savez(SAVED, np.array(["1-0"]))
LISTS = {
    "empty": b"",
    "text": b"1-0\n",
    "archive": SAVED.getvalue(),
    "cut archive": SAVED.getvalue()[:40],
    "numbers": npy(np.ones(3)),
    "bytes": npy(np.array([b"1-0"])),
    "objects": npy(np.array(["1-0", None])),
    "cut": npy(np.array(["1-0"]))[:-3],
    "longer than the file": npy(np.zeros(7, "U3")).replace(b"(7,)", b"(9,)"),
}


@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS)
def test_a_list_that_holds_no_names_is_one_sentence(ring: Any, tmp_path: Path, content: bytes) -> None:
    folder = ring.write_challenge(tmp_path / "scene")
    (folder / "new-vis-pairs").mkdir()
    (folder / "new-vis-pairs" / "keys-th-0.1.npy").write_bytes(content)
    with pytest.raises(KeypatchError, match=r"keys-th-0\.1\.npy is not a readable list of pairs") as caught:
        evaluate_stereo(tmp_path, tmp_path / "scene", STEREO)
    assert "pickle.load" not in str(caught.value)
