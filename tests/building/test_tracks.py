"""Classes from the points of a model: pure on a room of known walls, whichever way the model came."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from room_fixtures import QUICK, VIEWS, K, Room

import keypatch as kp
from keypatch.building.projection import _is_before
from keypatch.errors import DataError, KeypatchError

pycolmap = pytest.importorskip("pycolmap")


def misplaced(folder: Path, room: Room) -> np.ndarray:
    """(patches,) sigmas between a keypoint and where its photo shows what the point's other patches are centred on."""
    patches = kp.open_patches(folder)
    image = np.zeros(len(patches), np.int64) if patches.image_id is None else patches.image_id
    names = json.loads((folder / "card.json").read_text())["images"]
    views = np.array([int(Path(names[number]).stem) for number in image])
    xy, place = patches.keypoints.xy, np.empty((len(patches), 3))
    for view in range(VIEWS):
        here = views == view
        place[here] = room.places(view, xy[here])
    off = np.empty(len(patches))
    for point in np.unique(patches.point_id):
        members = np.flatnonzero(patches.point_id == point)
        for one in members:
            others = np.median(place[members[members != one]], axis=0)
            local = room.rotations[views[one]] @ (others - room.centres[views[one]])
            off[one] = np.linalg.norm((K @ local)[:2] / local[2] - xy[one]) / patches.keypoints.sigma[one]
    return off


def test_every_class_shows_one_place_of_the_room(built: kp.BuiltSet, room: Room) -> None:
    off = misplaced(built.folder, room)
    assert len(off) > 2500 and off.max() < 3 and np.quantile(off, 0.99) < 0.6  # of 24 sigmas that a patch is wide


def test_what_slides_along_an_epipolar_line_is_left_out(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    """Such a match fits the model, for the point bends towards it; where the other views see the point it does not."""
    model = built.folder / "reconstruction"
    made = kp.build(room.photos, tmp_path / "out", kp.Tracks(model=model, held_out_error=1e6, reprojection_error=4.0))
    assert misplaced(made.folder, room).max() > 3 > misplaced(built.folder, room).max()


def test_a_class_has_two_patches_or_more_and_one_of_a_photo(built: kp.BuiltSet) -> None:
    patches = kp.open_patches(built.folder)
    sizes = np.unique(patches.point_id, return_counts=True)[1]
    assert sizes.min() >= 2 and len(sizes) > 500
    both = np.stack([patches.point_id, patches.image_id])
    assert np.unique(both, axis=1).shape[1] == len(patches)
    assert np.array_equal(np.unique(patches.point_id), np.arange(len(sizes)))


def test_no_two_classes_are_at_one_place_of_a_photo(built: kp.BuiltSet) -> None:
    """Second orientations are keypoints of their own and make points of their own: they are found, and left out."""
    patches = kp.open_patches(built.folder)
    assert any("second orientations" in name for name in patches.card["counts"]["left_out"])
    xy, sigma = patches.keypoints.xy, patches.keypoints.sigma
    for image in np.unique(patches.image_id):
        here = np.flatnonzero(patches.image_id == image)
        apart = np.linalg.norm(xy[here, None] - xy[None, here], axis=2)
        least = 2 * np.minimum(sigma[here, None], sigma[None, here])
        alike = np.abs(np.log(sigma[here, None] / sigma[None, here])) < np.log(1.5)
        assert np.sum((apart <= least) & alike) == len(here)  # each with itself


def test_a_patch_is_cut_at_the_keypoint_that_interest_txt_names(built: kp.BuiltSet, room: Room) -> None:
    from keypatch.geometry import cut_patches

    patches = kp.open_patches(built.folder)
    photo = np.asarray(Image.open(room.photos / "3.png"))
    here = np.flatnonzero(patches.image_id == 3)
    expected = cut_patches(photo, patches.keypoints.take(here), 24.0, 64)
    assert np.abs(expected.astype(int) - patches.patches[here]).max() <= 1  # nine digits of an angle


def test_every_patch_lies_inside_its_photo(built: kp.BuiltSet) -> None:
    patches = kp.open_patches(built.folder)
    corners = 12 * np.array([[-1, -1, 1, 1], [-1, 1, 1, -1]])
    reached = patches.keypoints.xy[:, :, None] + patches.keypoints.frames() @ corners
    assert reached.min() > -0.51 and np.all(reached.max(axis=(0, 2)) < np.array([479.51, 359.51]))


def test_the_lists_are_balanced_and_hard_negatives_are_nearer(built: kp.BuiltSet) -> None:
    from keypatch.patches.phototour import find_pair_lists

    patches = kp.open_patches(built.folder)
    lists = {pairs.name.split("_")[0]: pairs for pairs in find_pair_lists(patches)}
    assert set(lists) == {"m50", "hard"}
    likeness = {}
    for name, pairs in lists.items():
        assert pairs.is_match.sum() * 2 == len(pairs) and pairs.name == f"{name}_{len(pairs)}_{len(pairs)}_0"
        assert np.array_equal(patches.point_id[pairs.first] == patches.point_id[pairs.second], pairs.is_match)
        others = ~pairs.is_match
        first, second = (patches.patches[each[others]].astype(float) for each in (pairs.first, pairs.second))
        likeness[name] = np.mean([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(first, second, strict=True)])
    assert likeness["hard"] > likeness["m50"] + 0.2


def test_the_card_says_what_the_set_is_made_of(built: kp.BuiltSet, room: Room) -> None:
    card = json.loads((built.folder / "card.json").read_text())
    counts = card["counts"]
    assert sum(counts["class_sizes"].values()) == counts["classes"]
    assert sum(int(size) * count for size, count in counts["class_sizes"].items()) == counts["patches"]
    assert [source["name"] for source in card["sources"]] == room.names
    assert all(len(source["sha256"]) == 64 and source["perceptual"] for source in card["sources"])
    assert card["settings"]["tracks.track_length"] == 3 and card["patch_sigmas"] == 24
    assert 20 < card["viewing_angle_degrees"]["50%"] < 48  # the cameras stand on an arc of 48 degrees
    assert 1 < card["scale_change"]["50%"] < 1.5
    assert card["label_noise"]["patches"] < 0.01 and card["label_noise"]["by_angles"]["patches"] < 0.01


def test_thresholds_leave_out_what_they_say(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    usual = kp.open_patches(built.folder)
    model = built.folder / "reconstruction"
    long = kp.build(room.photos, tmp_path / "long", kp.Tracks(model=model, track_length=5))
    near = kp.build(room.photos, tmp_path / "near", kp.Tracks(model=model, reprojection_error=0.3, largest_angle=10.0))
    assert len(kp.open_patches(long.folder)) < len(usual)
    assert near.cards[""]["viewing_angle_degrees"]["95%"] < 21  # 10 to either side of the middle view
    assert near.cards[""]["counts"]["patches"] < len(usual)
    with pytest.raises(KeypatchError, match=r"No point of the model passes .*--smallest-angle"):
        kp.build(room.photos, tmp_path / "none", kp.Tracks(model=model, smallest_angle=80.0))
    with pytest.raises(KeypatchError, match=r"seen by 8 of these photos.*--track-length"):
        kp.build(room.photos, tmp_path / "none", kp.Tracks(model=model, track_length=8))
    assert not (tmp_path / "none").exists()


def test_a_model_of_colmap_with_its_database_gives_the_same_set(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    ours = built.folder / "reconstruction"
    made = kp.build(
        room.photos, tmp_path / "out", kp.Tracks(model=ours / "models" / "0", database=ours / "database.db")
    )
    assert (made.folder / "info.txt").read_bytes() == (built.folder / "info.txt").read_bytes()
    one, other = kp.open_patches(made.folder), kp.open_patches(built.folder)
    np.testing.assert_allclose(one.keypoints.xy, other.keypoints.xy, atol=1e-3)


def test_a_model_without_keypoints_takes_the_nearest_detections(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse" / "0"
    sparse.mkdir(parents=True)
    pycolmap.Reconstruction(str(built.folder / "reconstruction" / "models" / "0")).write_text(str(sparse))
    made = kp.build(room.photos, tmp_path / "out", kp.Tracks(model=tmp_path / "sparse"))
    off = misplaced(made.folder, room)
    assert len(off) > 0.8 * built.cards[""]["counts"]["patches"] and np.quantile(off, 0.99) < 0.6
    assert made.cards[""]["found"]["keypoints from"].startswith("detected")
    assert made.cards[""]["label_noise"]["by_angles"]["patches"] < 0.01  # of two orientations the one that agrees


def test_models_that_share_photos_give_a_point_one_number(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    """COLMAP may reconstruct a part of a scene twice: here all of it."""
    ours = tmp_path / "scene"
    shutil.copytree(built.folder / "reconstruction", ours)
    shutil.copytree(ours / "models" / "0", ours / "models" / "1")
    made = kp.build(room.photos, tmp_path / "out", kp.Tracks(model=ours, all_models=True))
    assert (made.folder / "info.txt").read_bytes() == (built.folder / "info.txt").read_bytes()


def test_models_apart_whose_keypoints_match_give_a_point_one_number(
    built: kp.BuiltSet, room: Room, tmp_path: Path
) -> None:
    """Four photos in one model and three in another, of the same walls."""
    ours, whole = tmp_path / "scene", built.folder / "reconstruction"
    shutil.copytree(whole, ours)
    shutil.rmtree(ours / "models")
    for number, views in enumerate(((0, 1, 2, 3), (4, 5, 6))):
        part = pycolmap.Reconstruction(str(whole / "models" / "0"))
        for image in list(part.images.values()):
            if int(Path(image.name).stem) not in views:
                part.deregister_frame(image.frame_id)
        (ours / "models" / str(number)).mkdir(parents=True)
        part.write_binary(str(ours / "models" / str(number)))
    largest = kp.build(room.photos, tmp_path / "largest", kp.Tracks(model=ours))
    both = kp.build(room.photos, tmp_path / "both", kp.Tracks(model=ours, all_models=True))
    assert largest.cards[""]["counts"]["photos"] == 4
    counts = both.cards[""]["counts"]
    assert counts["photos"] == 7 and counts["classes"] > largest.cards[""]["counts"]["classes"]
    patches = kp.open_patches(both.folder)
    place = np.empty((len(patches), 3))
    for view in range(VIEWS):
        place[patches.image_id == view] = room.places(view, patches.keypoints.xy[patches.image_id == view])
    first = np.unique(patches.point_id, return_index=True)[1]
    late = patches.image_id[first] > 3
    apart = np.linalg.norm(place[first][late][:, None] - place[first][~late][None], axis=2).min(axis=1)
    assert np.mean(apart < 0.01) < 0.2  # most points of the second model that the first has are gone


def test_a_model_of_other_photos_or_other_keypoints_is_refused(
    built: kp.BuiltSet, room: Room, photos: Path, tmp_path: Path
) -> None:
    ours = built.folder / "reconstruction"
    with pytest.raises(DataError, match=r'other photos, such as "0.png", but not "a.png"'):
        kp.build(photos, tmp_path / "out", kp.Tracks(model=ours))
    features = kp.describe(room.photos, tmp_path / "f.h5", "rootsift", kp.Extraction(keypoints=700))
    with pytest.raises(DataError, match="not the keypoints the model was made from"):
        kp.build(room.photos, tmp_path / "out", kp.Tracks(model=ours, database=features.path))
    with pytest.raises(DataError, match="has no model"):
        kp.build(room.photos, tmp_path / "out", kp.Tracks(model=room.photos))
    with pytest.raises(KeypatchError, match="--database"):
        kp.build(room.photos, tmp_path / "out", kp.Tracks(database=features.path))
    assert not (tmp_path / "out").exists()


def test_points_are_projected_into_photos_where_the_detector_missed_them(
    built: kp.BuiltSet, room: Room, tmp_path: Path
) -> None:
    method = kp.Tracks(model=built.folder / "reconstruction", project=True)
    made = kp.build(room.photos, tmp_path / "out", method)
    off, before = misplaced(made.folder, room), misplaced(built.folder, room)
    assert len(off) > 1.2 * len(before) and np.quantile(off, 0.99) < 1  # sigma
    assert np.mean(off > 3) < 0.002  # at a wall's edge
    noise = made.cards[""]["label_noise"]
    assert noise["patches"] < 0.01 and noise["by_angles"]["patches"] < 0.01  # angles are carried over rightly
    with pytest.raises(KeypatchError, match="--project or --all-models"):
        kp.Tracks(project=True, all_models=True)


def test_what_lies_behind_the_points_around_it_is_hidden() -> None:
    seen, depth = np.array([[100.0, 100], [110, 100], [100, 110], [300, 300]]), np.array([2.0, 2.05, 1.98, 5])
    places = np.array([[103.0, 103], [103, 103], [103, 103], [300, 302]])
    shown = _is_before(places, np.array([2.0, 2.5, 1.2, 5]), np.full(4, 3.0), seen, depth)
    assert shown.tolist() == [True, False, False, False]  # behind, before the surface, with one neighbour alone


def test_nothing_is_cut_behind_a_mask(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    masks.mkdir()
    black = np.full((360, 480), 255, np.uint8)
    black[:180] = 0
    for name in room.names:
        Image.fromarray(black).save(masks / f"{name}.png")
    model = built.folder / "reconstruction"
    made = kp.build(room.photos, tmp_path / "out", kp.Tracks(model=model), kp.Building(masks=masks))
    patches = kp.open_patches(made.folder)
    assert 100 < len(patches) < built.cards[""]["counts"]["patches"] and patches.keypoints.y.min() > 179


@pytest.mark.slow
def test_masks_hold_from_the_first_step(room: Room, tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    masks.mkdir()
    black = np.full((360, 480), 255, np.uint8)
    black[:, :160] = 0
    for name in room.names:
        Image.fromarray(black).save(masks / f"{name}.png")
    made = kp.build(room.photos, tmp_path / "out", kp.Tracks(), kp.Building(masks=masks), **QUICK)
    assert kp.read_features(made.folder / "reconstruction" / "features.h5", "0.png").keypoints.x.min() > 159
    assert kp.open_patches(made.folder).keypoints.x.min() > 159
