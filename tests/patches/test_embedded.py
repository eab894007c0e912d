"""The embedded data: classes, honest test pairs, and a folder that is always whole."""

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import cv2
import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.geometry import frame_overlap
from keypatch.metrics.verification import fpr95
from keypatch.patches import embedded
from keypatch.patches.embedded import (
    SPLITS,
    TEST_PHOTOS,
    TRAIN_PHOTOS,
    embedded_folder,
    read_embedded_photo,
    write_embedded,
)
from keypatch.patches.layouts import open_patches
from keypatch.patches.phototour import find_pair_lists, read_phototour
from keypatch.patches.single_photos import find_points, make_classes

SMALL = replace(
    SPLITS["test"], photos=TEST_PHOTOS[:2], making=replace(SPLITS["test"].making, points=20, views=3), matches=60
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(SPLITS, "test", SMALL)


@pytest.fixture(scope="module")
def test_set(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded") / "test"
    write_embedded(folder, SPLITS["test"], seed=0)
    return read_phototour(folder)


def rootsift(patches):
    sift, keypoint = cv2.SIFT.create(), cv2.KeyPoint(31.5, 31.5, 64 / 6, 0.0)
    rows = np.concatenate([sift.compute(patch, [keypoint])[1] for patch in patches])
    return np.sqrt(rows / rows.sum(axis=1, keepdims=True).clip(1e-9))


def test_photographs_of_test_and_training_differ():
    names = [photo.file for photo in TRAIN_PHOTOS + TEST_PHOTOS]
    assert len(set(names)) == len(names)
    assert not any(name == "motorcycle_right.png" for name in names)  # the same places as motorcycle_left.png


def test_test_frames_overlap_as_in_hpatches_hard(test_set):
    assert 0.70 < test_set.card["median_overlap"] < 0.74
    assert {source["name"] for source in test_set.card["sources"]} == {photo.file for photo in TEST_PHOTOS}
    assert test_set.card["patch_sigmas"] == 24


def test_recorded_overlap_is_that_of_the_frames_used():
    """Without views and changes the true frames are those of the photograph itself."""
    still = replace(SMALL.making.view_range, turn=0, zoom=(1, 1), stretch=1, perspective=0)
    made = make_classes([read_embedded_photo(TEST_PHOTOS[0])], replace(SMALL.making, view_range=still), [0])
    true = made.keypoints.take(np.repeat(np.flatnonzero(made.is_reference), 3))
    np.testing.assert_allclose(made.overlap, frame_overlap(true, made.keypoints), atol=0.01)


def test_rootsift_finds_the_hard_pairs_hard(test_set):
    lists = {pairs.name.split("_")[0]: pairs for pairs in find_pair_lists(test_set)}
    described = rootsift(test_set.patches)
    scores = {}
    for name, pairs in lists.items():
        distances = np.linalg.norm(described[pairs.first] - described[pairs.second], axis=1)
        scores[name] = fpr95(distances, pairs.is_match)
    assert scores["hard"] >= 0.05
    assert scores["m50"] < scores["hard"]


def test_pairs_are_half_matches_and_never_mislabelled(test_set):
    for pairs in find_pair_lists(test_set):
        assert len(pairs) == 8000
        assert pairs.is_match.mean() == 0.5
        same = test_set.point_id[pairs.first] == test_set.point_id[pairs.second]
        np.testing.assert_array_equal(same, pairs.is_match)
        assert np.all(pairs.first != pairs.second)
        matches = np.stack([pairs.first, pairs.second], axis=1)[pairs.is_match]
        assert len(np.unique(matches, axis=0)) == len(matches)


def test_half_of_the_hard_negatives_look_alike(test_set):
    def likeness(pairs):
        small = np.stack([cv2.resize(p, (16, 16), interpolation=cv2.INTER_AREA).ravel() for p in test_set.patches])
        rows = small - small.mean(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return np.sum(rows[pairs.first] * rows[pairs.second], axis=1)[~pairs.is_match]

    hard, easy = (likeness(pairs) for pairs in find_pair_lists(test_set))
    assert np.quantile(hard, 0.75) > np.quantile(easy, 0.75) + 0.2  # the near half
    assert abs(np.quantile(hard, 0.1) - np.quantile(easy, 0.1)) < 0.1  # the random half


def test_two_points_are_never_the_same_place():
    making = SPLITS["test"].making
    points = find_points(read_embedded_photo(TEST_PHOTOS[0]), making)
    first, second = np.triu_indices(len(points), k=1)
    near = np.hypot(points.x[first] - points.x[second], points.y[first] - points.y[second]) < 60
    overlap = frame_overlap(points.take(first[near]), points.take(second[near]))
    assert overlap.max() <= making.overlap + 0.01
    assert overlap.max() > making.overlap - 0.1  # the rule is at work


def test_patches_lie_inside_the_photograph():
    photo = read_embedded_photo(TEST_PHOTOS[2])
    points = find_points(photo, SPLITS["train"].making)
    corners = points.xy[:, :, None] + points.frames() @ (12 * np.array([[-1, -1, 1, 1], [-1, 1, 1, -1]]))
    assert corners.min() >= 0
    assert corners[:, 0].max() <= photo.shape[1] - 1
    assert corners[:, 1].max() <= photo.shape[0] - 1


def test_the_seed_decides_and_other_photographs_do_not_matter():
    photos = [read_embedded_photo(photo) for photo in TEST_PHOTOS[:2]]
    both, again, other = (make_classes(photos, SMALL.making, [seed]).patches for seed in (0, 0, 1))
    np.testing.assert_array_equal(both, again)
    assert not np.array_equal(both, other)
    np.testing.assert_array_equal(both[:60], make_classes(photos[:1], SMALL.making, [0]).patches)


def test_folder_is_made_once_and_opened_like_any_other(small):
    folder = embedded_folder("test")
    made_at = (folder / "info.txt").stat().st_mtime_ns
    assert (embedded_folder("test") / "info.txt").stat().st_mtime_ns == made_at
    opened = open_patches("embedded-test")
    assert len(opened) == 2 * 20 * 3
    assert opened.classes().count == 40
    assert opened.keypoints is not None
    assert embedded_folder("test", seed=1) != folder


@pytest.mark.parametrize("damage", ["cut", "missing", "list", "half", "no proof", "proof"])
def test_a_damaged_folder_is_made_again(small, damage):
    folder = embedded_folder("test")
    whole = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "card.json"}
    if damage == "cut":
        (folder / "patches0000.bmp").write_bytes(whole["patches0000.bmp"][:1000])
    elif damage in ("missing", "list", "no proof"):
        names = {"missing": "info.txt", "list": "hard_120_120_0.txt", "no proof": "files.json"}
        (folder / names[damage]).unlink()
    elif damage == "half":  # what a killed process leaves
        folder.rename(folder.with_name(f"{folder.name}.unfinished"))
    else:
        (folder / "files.json").write_text('["patch')
    again = embedded_folder("test")
    assert {path.name: path.read_bytes() for path in again.iterdir() if path.name != "card.json"} == whole
    assert not again.with_name(f"{again.name}.unfinished").exists()


def _embed(cache):
    import os

    os.environ["KEYPATCH_CACHE"] = cache
    SPLITS["test"] = SMALL
    return str(embedded_folder("test"))


def test_two_processes_at_once(tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        folders = set(pool.map(_embed, [str(tmp_path / "both")] * 2))
    assert len(folders) == 1
    sizes = json.loads((tmp_path / "both" / "embedded-v2-test-0" / "files.json").read_text())
    assert "patches0000.bmp" in sizes


def test_a_place_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(KeypatchError, match="set KEYPATCH_CACHE to another folder"):
        embedded_folder("test")


def test_a_failed_making_leaves_no_set(small, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedded, "write_phototour", fail)
    with pytest.raises(KeypatchError, match="no space left on device"):
        embedded_folder("test")
    assert [path.suffix for path in embedded.cache_folder().iterdir()] == [".lock"]
