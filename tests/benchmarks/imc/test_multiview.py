"""The multiview task: which bags there are, models of exact correspondences, what is kept and not done again."""

import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keypatch.benchmarks.imc import bags as multiview_models
from keypatch.benchmarks.imc.bags import Bag, BagOutcome, find_bags
from keypatch.benchmarks.imc.multiview import Multiview, evaluate_multiview
from keypatch.benchmarks.imc.scenes import read_posed_scene
from keypatch.benchmarks.imc.scores import bag_replicates, bag_scores
from keypatch.colmap import process as mapping
from keypatch.errors import DataError, Interrupted, KeypatchError, MissingExtra
from keypatch.matching.matching import Matching

INF = float("inf")
needs_pycolmap = pytest.mark.skipif(find_spec("pycolmap") is None, reason="pycolmap is not installed")


def write_bags(folder: Path, **bags: str) -> None:
    """write_bags(folder, bag_000="012") writes 3bag_000.txt with the photos 0, 1 and 2."""
    (folder / "sub_set").mkdir()
    for name, photos in bags.items():
        text = "".join(f"images/{number}.png\n" for number in photos)
        (folder / "sub_set" / f"{len(photos)}{name}.txt").write_text(text)


def test_bags_are_those_of_the_files(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_challenge(tmp_path / "scene")
    write_bags(folder, bag_000="051", bag_001="234")
    bags = find_bags(read_posed_scene(folder), (3,), each=7, seed=0)
    assert [bag.name for bag in bags] == ["3bag_000", "3bag_001"]
    assert bags[0].photos == ("0.png", "5.png", "1.png")


def test_without_files_different_bags_are_drawn_by_seed(ring: Any, tmp_path: Path) -> None:
    scene = read_posed_scene(ring.write_strecha(tmp_path / "ring"))
    bags = find_bags(scene, (3, 5, 6, 25), each=10, seed=0)
    assert [sum(bag.size == size for bag in bags) for size in (3, 5, 6, 25)] == [10, 6, 1, 0]  # 6 are all there can be
    assert len({frozenset(bag.photos) for bag in bags}) == 17
    assert all(len(set(bag.photos)) == bag.size and set(bag.photos) <= set(ring.names) for bag in bags)
    assert find_bags(scene, (3,), each=10, seed=0) == bags[:10] != find_bags(scene, (3,), each=10, seed=1)
    assert find_bags(scene, (3,), each=4, seed=0) == bags[:4]


def test_bags_with_a_withdrawn_photo_are_left_out(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_challenge(tmp_path / "london_bridge")
    write_bags(folder, bag_000="012", bag_001="345")
    (folder / "sub_set" / "3bag_002.txt").write_text("images/0.png\nimages/21416139_3508932720.png\nimages/1.png\n")
    assert [bag.name for bag in find_bags(read_posed_scene(folder), (3,), 1, 0)] == ["3bag_000", "3bag_001"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("images/0.png\nimages/9.png\nimages/1.png\n", ["3bag_000.txt, line 2", '"images/9.png"']),
        ("images/0.png\nimages/1.png\n", ["3 different photos but names 2"]),
        ("images/0.png\nimages/1.png\nimages/1.png\n", ["3 different photos but names 2"]),
    ],
)
def test_a_wrong_bag_file_is_told(ring: Any, tmp_path: Path, text: str, words: list[str]) -> None:
    folder = ring.write_challenge(tmp_path / "scene")
    write_bags(folder, bag_000="012")
    (folder / "sub_set" / "3bag_000.txt").write_text(text)
    with pytest.raises(DataError) as error:
        find_bags(read_posed_scene(folder), (3,), 1, 0)
    assert all(word in str(error.value) for word in words), error.value


def test_too_few_photos_for_any_bag_are_told(ring: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too few for a bag of 25"):
        find_bags(read_posed_scene(ring.write_strecha(tmp_path / "ring")), (25, 30), 1, 0)


def outcome(*errors: float, registered: int = 3, points: int = 10, track_length: float | None = 2.5) -> BagOutcome:
    return BagOutcome(errors, registered, points, track_length)


THREE, FOUR = Bag("3bag_000", 3, ("a", "b", "c")), Bag("4bag_000", 4, ("a", "b", "c", "d"))


def test_scores_are_means_over_bags_then_over_sizes() -> None:
    good, half = outcome(0.5, 0.5, 0.5), outcome(0.5, 9.5, 10.0)
    none = outcome(*6 * [INF], registered=0, points=0, track_length=None)
    scores = bag_scores({"scene": [(THREE, good), (THREE, half), (FOUR, none)]})
    assert scores["maa10.bag3"] == pytest.approx((1 + (1 + 0.1 + 0.1) / 3) / 2)
    assert scores["maa5.bag3"] == pytest.approx((1 + 1 / 3) / 2)
    assert scores["maa10.bag4"] == 0 and scores["maa10"] == pytest.approx(scores["maa10.bag3"] / 2)
    assert scores["registered"] == 0.5 and scores["registered.bag3"] == 1 and scores["count.points"] == 5
    assert scores["track_length"] == 2.5 and np.isnan(scores["track_length.bag4"])  # of models there are


def test_scenes_count_the_same_and_bags_are_drawn_again() -> None:
    good, bad = outcome(0.5, 0.5, 0.5), outcome(INF, INF, INF)
    outcomes = {"one": [(THREE, good)] * 3, "two": [(THREE, bad)]}
    scores, replicates = bag_scores(outcomes), bag_replicates(outcomes)
    assert scores["maa10"] == 0.5 and scores["maa10.one"] == 1 and scores["maa10.two"] == 0
    np.testing.assert_allclose(replicates["maa10"].values, 0.5)
    assert replicates["maa10.bag3"].count == 1 and replicates["maa5"].units == "bags in the smallest group"
    mixed = bag_replicates({"one": [(THREE, good), (THREE, bad)]})["maa10"].values
    assert set(mixed.tolist()) == {0.0, 0.5, 1.0}


def test_an_outcome_is_kept_and_a_damaged_one_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "bag.json"
    outcome(1.0, INF, 2.0, track_length=None).save(path)
    assert BagOutcome.load(path) == outcome(1.0, INF, 2.0, track_length=None)
    assert BagOutcome.load(tmp_path / "none.json") is None
    for text in ("{", "[]", '{"errors": [1]}'):
        path.write_text(text)
        assert BagOutcome.load(path) is None


@pytest.mark.parametrize("choice", [{"bags": ()}, {"bags": (2,)}, {"bags": (5, 5)}, {"drawn_bags": 0},
                                    {"matching": Matching()}, {"max_error": 0.0}, {"seed": -1}], ids=str)  # fmt: skip
def test_wrong_choices_are_told_before_any_work(choice: dict[str, Any]) -> None:
    with pytest.raises(KeypatchError):
        Multiview(**choice)


def test_a_missing_pycolmap_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pycolmap", None)
    with pytest.raises(MissingExtra, match=r"keypatch\[colmap\]"):
        evaluate_multiview("toy.h5", tmp_path)


@needs_pycolmap
def test_models_of_exact_correspondences_have_exact_poses_and_are_kept(
    ring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, features = ring.write_strecha(tmp_path / "ring"), ring.write_hloc(tmp_path / "toy.h5")
    settings, told = Multiview(bags=(5, 25), drawn_bags=1), list[tuple[int, int, str]]()
    result = evaluate_multiview(features, folder, settings, lambda *done: told.append(done), tmp_path / "kept")
    assert result.scores["maa10"] == result.scores["maa10.bag5"] > 0.95
    assert result.scores["registered"] == 1 and result.scores["count.points"] > 200
    assert result.scores["track_length"] > 4 and told[-1] == (1, 1, "bags")
    assert result.settings["bags"] == {"5": 1} and result.settings["bags_left_out"] == [25]
    assert result.settings["known_cameras"] is False and result.settings["pycolmap"]
    assert re.fullmatch(
        r"pycolmap \S+, max error 4 px, ratio 0\.9, keypoints [\d,]+, .*known cameras no", result.conditions()
    )
    (kept,) = (tmp_path / "kept").iterdir()
    assert {path.name for path in kept.glob("*bag*")} == {"5bag_000.json"}

    def crash(*_: object, lasting: bool) -> None:
        raise KeypatchError("COLMAP stopped.")

    monkeypatch.setattr(multiview_models, "run_colmap", crash)
    again = evaluate_multiview(features, folder, settings, folder=tmp_path / "kept")  # COLMAP is not asked
    assert dict(again.scores) == dict(result.scores)
    with pytest.raises(KeypatchError, match=r"ring, 5bag_000: COLMAP stopped\."):  # it is for other matches
        evaluate_multiview(
            features,
            folder,
            replace(settings, matching=replace(settings.matching, ratio=0.8)),
            folder=tmp_path / "kept",
        )


@needs_pycolmap
def test_pairs_with_few_points_in_common_are_not_matched_and_no_model_is_a_failure(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_challenge(tmp_path / "scene")
    write_bags(folder, bag_000="012")
    (folder / "visibility").mkdir()
    (folder / "visibility" / "none.txt").write_text("100 " * 6)
    (folder / "visibility.txt").write_text("visibility/none.txt\n" * 6)
    source, settings = ring.write_challenge_features(tmp_path / "toy"), Multiview(bags=(3,), known_cameras=True)
    result = evaluate_multiview(source, folder, settings, folder=tmp_path / "kept")
    assert result.scores["maa10"] == result.scores["registered"] == result.scores["count.points"] == 0
    found = evaluate_multiview(source, folder, replace(settings, shared_points=99), folder=tmp_path / "kept")
    assert found.scores["maa10"] == 1 and found.scores["registered"] == 1


@needs_pycolmap
def test_a_cache_that_cannot_be_written_costs_a_warning(
    ring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    folder, features = ring.write_strecha(tmp_path / "ring"), ring.write_challenge_features(tmp_path / "toy")
    with pytest.warns(UserWarning, match="Bags cannot be cached .* Set KEYPATCH_CACHE"):
        result = evaluate_multiview(features, folder, Multiview(bags=(3,), drawn_bags=1))
    assert result.scores["registered"] == 1 and result.settings["keypoints"] == 260


@needs_pycolmap
def test_ctrl_c_says_that_bags_are_kept_only_where_they_are(
    ring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, features = ring.write_strecha(tmp_path / "ring"), ring.write_hloc(tmp_path / "toy.h5")

    def stop_after_one(done: int, of: int, unit: str) -> None:
        if (done, unit) == (1, "bags"):
            raise KeyboardInterrupt

    def evaluate() -> None:
        evaluate_multiview(features, folder, Multiview(bags=(3,), drawn_bags=2), stop_after_one)

    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(Interrupted, match="reconstructed is kept; run the same command to resume"):
        evaluate()
    assert len(list((tmp_path / "cache").rglob("3bag_*.json"))) == 1
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning), pytest.raises(Interrupted, match="nothing was written"):
        evaluate()


@needs_pycolmap
def test_a_crash_names_a_database_only_where_it_is_kept(
    ring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "CHILD", (sys.executable, "-c", "import os; os.abort()"))
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    folder, features = ring.write_strecha(tmp_path / "ring"), ring.write_hloc(tmp_path / "toy.h5")
    settings = Multiview(bags=(3,), drawn_bags=1)
    for chosen, where in ((None, tmp_path / "cache"), (tmp_path / "kept", tmp_path / "kept")):
        with pytest.raises(KeypatchError, match="The bags before it are kept") as error:
            evaluate_multiview(features, folder, settings, folder=chosen)
        (database,) = where.rglob("database.db")
        assert f"kept at {database}" in str(error.value)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning), pytest.raises(KeypatchError, match="the database was not kept") as error:
        evaluate_multiview(features, folder, settings)
    assert "database.db" not in str(error.value) and "bags before it" not in str(error.value)
