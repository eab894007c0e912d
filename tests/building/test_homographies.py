"""The method `homographies`: pure classes of rendered views, one photo in memory, resumed to the same bytes."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from build_fixtures import Told, content
from numpy.typing import NDArray
from PIL import Image

import keypatch as kp
from keypatch.building import homographies
from keypatch.building.homographies import scaled_jitter
from keypatch.errors import Interrupted, KeypatchError
from keypatch.geometry import Keypoints, frame_overlap, jitter_keypoints
from keypatch.images import find_photos
from keypatch.patches.phototour import find_pair_lists
from keypatch.patches.sources import find_sources, sources_of

SMALL = kp.Homographies(points=25, views=3, contrast=0.01)
STILL = replace(SMALL, jitter=0, blur=0, darkest=1, brightest=1, gamma=1, slope=0, noise=0, quality=95)
FEW = kp.Building(list_size=60, terms="CC0")


@pytest.fixture(scope="module")
def made(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> kp.BuiltSet:
    return kp.build(photo_folder, tmp_path_factory.mktemp("made") / "set", SMALL, FEW)


def normalized(patches: NDArray[np.uint8]) -> NDArray[np.float64]:
    rows = patches.reshape(len(patches), -1).astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def likeness(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(n, n) correlations of the patches of a set, and whether both show one point."""
    patches = kp.open_patches(folder)
    rows = normalized(patches.take(np.arange(len(patches))))
    return rows @ rows.T, patches.point_id[:, None] == patches.point_id


def test_a_set_is_written_that_every_reader_can_use(made: kp.BuiltSet, photo_folder: Path) -> None:
    patches, card = kp.open_patches(made.folder), made.cards[""]
    assert card["counts"]["patches"] == len(patches) and card["counts"]["photos"] == 3
    assert set(card["counts"]["class_sizes"]) <= {"2", "3"} and card["counts"]["classes"] > 50
    assert patches.keypoints is not None and patches.image_id is not None
    assert set(patches.image_id.tolist()) == set(range(9))  # three photos of three views
    assert card["images"][:4] == ["0.png", "0.png view 1", "0.png view 2", "1.png"]
    lists = find_pair_lists(patches)
    assert sorted(pairs.name.split("_")[0] for pairs in lists) == ["hard", "m50"]
    assert sources_of(patches) == find_sources(find_photos([photo_folder]), "CC0")
    assert not (made.folder / "unfinished").exists() and made.page.read_text().count("data:image/png") == 24 + 36


def test_the_card_says_that_labels_are_exact_and_names_no_options_that_mean_nothing(made: kp.BuiltSet) -> None:
    card = made.cards[""]
    assert card["label_noise"]["exact"] and card["label_noise"]["patches"] == 0
    assert "exact by construction" in made.facts()["label noise"] and "exact by construction" in made.page.read_text()
    groups = {name.split(".")[0] for name in card["settings"]}
    assert groups == {"method", "photos", "homographies", "building"} and "building.pairs" not in card["settings"]
    assert 0.7 < card["found"]["median overlap of frames"] < 0.95


def test_every_class_is_pure(photo_folder: Path, tmp_path: Path) -> None:
    """Without errors and changes the views of a point are one picture, up to what resampling does to it."""
    kp.build(photo_folder, tmp_path / "set", STILL, FEW)
    alike, same = likeness(tmp_path / "set")
    assert alike[same].min() > 0.93
    assert np.quantile(alike[~same], 0.99) < 0.9


def test_changes_and_errors_make_a_class_harder(photo_folder: Path, tmp_path: Path) -> None:
    def mean_likeness(name: str, options: kp.Homographies) -> float:
        kp.build(photo_folder / "0.png", tmp_path / name, options, FEW)
        alike, same = likeness(tmp_path / name)
        return float(alike[same].mean())

    easy = mean_likeness("easy", STILL)
    changed = mean_likeness("changed", replace(SMALL, jitter=0))
    shaken = mean_likeness("shaken", replace(SMALL, jitter=1.5))
    assert easy > changed + 0.002 and changed > shaken + 0.05


@pytest.mark.parametrize("patch_sigmas", [10.0, 24.0])
def test_errors_of_hardness_one_overlap_as_hpatches_hard_patches_do(patch_sigmas: float) -> None:
    column = np.ones(4000, np.float32)
    frames = Keypoints(column, column, 3 * column, 0 * column)
    used = jitter_keypoints(frames, scaled_jitter(1.0, patch_sigmas), np.random.default_rng(0))
    assert np.median(frame_overlap(frames, used, patch_sigmas / 2)) == pytest.approx(0.72, abs=0.01)


def test_the_same_seed_gives_the_same_bytes_another_seed_others(
    made: kp.BuiltSet, photo_folder: Path, tmp_path: Path
) -> None:
    kp.build(photo_folder, tmp_path / "set", SMALL, FEW)
    assert content(tmp_path / "set") == content(made.folder)
    kp.build(photo_folder, tmp_path / "other", SMALL, replace(FEW, seed=1))
    assert content(tmp_path / "other")["patches0000.bmp"] != content(made.folder)["patches0000.bmp"]


def test_a_photo_gives_the_same_patches_whatever_others_there_are(
    made: kp.BuiltSet, photo_folder: Path, tmp_path: Path
) -> None:
    kp.build([photo_folder / "1.png"], tmp_path / "one", SMALL, FEW)
    alone, together = kp.open_patches(tmp_path / "one"), kp.open_patches(made.folder)
    rows = np.flatnonzero(np.isin(together.image_id, [3, 4, 5]))
    np.testing.assert_array_equal(alone.take(np.arange(len(alone))), together.take(rows))


@pytest.mark.parametrize(
    ("unit", "at", "found", "rendered"),
    [("photos searched for points", 2, 1, 9), ("views cut", 5, 0, 4), ("photos hashed", 1, 0, 0)],
)
def test_an_interrupted_build_is_resumed_to_the_same_bytes(
    made: kp.BuiltSet,
    photo_folder: Path,
    tmp_path: Path,
    unit: str,
    at: int,
    found: int,
    rendered: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "set"
    with pytest.raises(Interrupted):
        kp.build(photo_folder, out, SMALL, FEW, progress=Told(unit, at))
    assert not (out / "info.txt").exists()
    done: dict[str, list[Any]] = {"found": [], "rendered": []}
    find, render = homographies.find_points, kp.Homographies._render
    monkeypatch.setattr(homographies, "find_points", lambda *given: done["found"].append(1) or find(*given))
    monkeypatch.setattr(kp.Homographies, "_render", lambda *given: done["rendered"].append(1) or render(*given))
    kp.build(photo_folder, out, SMALL, FEW)
    assert (len(done["found"]), len(done["rendered"])) == (found, rendered)
    assert content(out) == content(made.folder)


def test_whole_photos_are_held_out(photo_folder: Path, tmp_path: Path) -> None:
    parts = kp.build(photo_folder, tmp_path / "set", SMALL, replace(FEW, held_out=0.3)).cards
    names = {part: {source["name"] for source in card["sources"]} for part, card in parts.items()}
    assert len(names["train"]) == 2 and len(names["test"]) == 1 and not names["train"] & names["test"]


def test_of_one_photo_a_region_is_held_out(photo_folder: Path, tmp_path: Path) -> None:
    held = kp.build(photo_folder / "0.png", tmp_path / "set", replace(SMALL, points=60), replace(FEW, held_out=0.3))
    train, test = (kp.open_patches(held.sets[part]) for part in ("train", "test"))
    for image in range(3):
        here, there = (each.keypoints.xy[each.image_id == image] for each in (train, test))
        assert len(here) and len(there) and np.linalg.norm(here[:, None] - there[None], axis=2).min() > 12


def test_a_photo_that_cannot_be_read_is_skipped_and_one_without_points_left_out(
    made: kp.BuiltSet, photo_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted(photo_folder.iterdir())[:2]:
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut off")
    Image.fromarray(np.full((100, 100), 90, np.uint8)).save(folder / "blank.png")
    told = Told()
    built = kp.build(folder, tmp_path / "set", SMALL, FEW, progress=told)
    assert "broken.jpg" in told.messages[0] and told.messages[1] == "Left out: blank.png: no suitable points."
    assert len(built.skipped) == 1 and [each["name"] for each in built.cards[""]["sources"]] == ["0.png", "1.png"]
    assert built.cards[""]["counts"]["left_out"]["photos without a point that fits"] == 1


def test_photos_without_points_are_a_sentence_and_leave_nothing(tmp_path: Path) -> None:
    Image.fromarray(np.full((100, 100), 90, np.uint8)).save(tmp_path / "blank.png")
    with pytest.raises(KeypatchError, match=r"No point in blank\.png passes the thresholds\. Lower --contrast"):
        kp.build(tmp_path / "blank.png", tmp_path / "set", SMALL)
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"building": kp.Building(pairs="exhaustive")}, "--pairs"),
        ({"extraction": kp.Extraction(keypoints=5)}, "--keypoints"),
        ({"mapping": kp.Mapping(share_camera=True)}, "--share-camera"),
        ({"describer": "rootsift"}, "--descriptor"),
        ({"matching": kp.Matching()}, "--matching"),
    ],
)
def test_what_would_do_nothing_is_refused(
    photo_folder: Path, tmp_path: Path, given: dict[str, Any], named: str
) -> None:
    with pytest.raises(KeypatchError, match=f"^{named} has no effect with --method homographies"):
        kp.build(photo_folder, tmp_path / "set", SMALL, **given)


def test_masks_keep_points_out_also_of_reduced_photos(photo_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "masks").mkdir()
    mask = np.zeros((240, 320), np.uint8)
    mask[:, 160:] = 255
    Image.fromarray(mask).save(tmp_path / "masks" / "0.png.png")
    how, building = replace(SMALL, longest_side=160), replace(FEW, masks=tmp_path / "masks")
    kp.build(photo_folder / "0.png", tmp_path / "set", replace(how, smallest_sigma=1.0), building)
    patches = kp.open_patches(tmp_path / "set")
    x = patches.keypoints.x[patches.image_id == 0]
    assert x.min() >= 79 and x.max() < 160


def test_memory_does_not_grow_with_the_number_of_photos(photo_folder: Path, tmp_path: Path) -> None:
    """Finding and cutting 18 more photos needs less room than the patches of three; the set is judged by a sample."""
    same_size = replace(SMALL, turn=0, zoom=1, stretch=1, perspective=0)  # of all views

    def peak(copies: int) -> int:
        folder = tmp_path / str(copies)
        folder.mkdir()
        for number in range(copies):
            (folder / f"{number}.png").write_bytes((photo_folder / "0.png").read_bytes())
        tracemalloc.start()
        try:
            with pytest.raises(Interrupted):  # once all is cut
                kp.build(folder, tmp_path / f"set{copies}", same_size, FEW, progress=Told("photos hashed", 1))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # what is made once stays
    assert peak(20) - peak(2) < 3 * 25 * 3 * 64 * 64
