"""Classes from two views each: by verified matches, or at the same places of aligned photos."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from room_fixtures import K, Room
from skimage import data

import keypatch as kp
from keypatch.building.pairs import PhotoPairs, find_motion, named_pairs
from keypatch.errors import KeypatchError
from keypatch.geometry import apply_homography
from keypatch.images import Photo
from keypatch.matching.matches import Matches

SMALL = {"describer": "rootsift", "extraction": kp.Extraction(keypoints=900)}
MOTION = np.array([[1.01, 0.015, 4.0], [-0.012, 0.99, -3.0], [0, 0, 1]])  # x_b ~ MOTION x_a
NONE = Matches(np.empty((0, 2)), np.empty(0))


def test_pairs_are_found_by_their_names_or_a_list(tmp_path: Path) -> None:
    names = ["1_a.jpg", "1_b.png", "2_a.jpg", "sub/1_a.jpg", "sub/1_b.jpg", "x.jpg", "_a.jpg"]
    photos = [Photo(name, tmp_path / name) for name in names]
    assert named_pairs(photos, None) == [("1_a.jpg", "1_b.png"), ("sub/1_a.jpg", "sub/1_b.jpg")]
    (tmp_path / "list.txt").write_text("x.jpg 2_a.jpg\n")
    assert named_pairs(photos, tmp_path / "list.txt") == [("x.jpg", "2_a.jpg")]
    with pytest.raises(KeypatchError, match=r"No pairs among x.jpg.*N_a and N_b.*--pairs FILE"):
        named_pairs([Photo("x.jpg", tmp_path)], None)


@pytest.fixture(scope="module")
def views(room: Room, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Views 1 and 2 of the room, and 4 and 5, as pairs."""
    folder = tmp_path_factory.mktemp("views")
    for name, view in (("1_a", 1), ("1_b", 2), ("2_a", 4), ("2_b", 5)):
        (folder / f"{name}.png").write_bytes((room.photos / f"{view}.png").read_bytes())
    return folder


def test_verified_matches_become_classes_of_two(views: Path, room: Room, tmp_path: Path) -> None:
    made = kp.build(views, tmp_path / "out", "pairs", **SMALL)
    patches = kp.open_patches(made.folder)
    view = np.array([1, 2, 4, 5])[patches.image_id]
    assert np.array_equal(np.unique(patches.point_id, return_counts=True)[1], np.full(len(patches) // 2, 2))
    first, second = np.arange(0, len(patches), 2), np.arange(1, len(patches), 2)
    assert set(zip(view[first].tolist(), view[second].tolist(), strict=True)) == {(1, 2), (4, 5)}
    off = []
    for one, other in zip(first, second, strict=True):
        place = room.places(view[one], patches.keypoints.xy[[one]])[0]
        local = room.rotations[view[other]] @ (place - room.centres[view[other]])
        off.append(np.linalg.norm((K @ local)[:2] / local[2] - patches.keypoints.xy[other]))
    assert len(off) > 300 and np.quantile(off, 0.97) < 3  # along an epipolar line nothing verifies
    assert made.cards[""]["viewing_angle_degrees"] is None and made.cards[""]["label_noise"]["by_angles"] is None
    assert made.cards[""]["found"] == {"pairs": 2, "pairs used": 2, "aligned": False}
    assert not made.cards[""]["label_noise"]["at_most"]


@pytest.mark.slow
def test_workers_build_the_same_set(views: Path, tmp_path: Path) -> None:
    alone, both = (
        kp.open_patches(
            kp.build(views, tmp_path / str(workers), "pairs", **SMALL, parallel=kp.Parallel(workers=workers)).folder
        )
        for workers in (1, 2)
    )
    np.testing.assert_array_equal(np.asarray(alone.patches), np.asarray(both.patches))
    np.testing.assert_array_equal(alone.point_id, both.point_id)


def test_a_method_that_describes_nothing_takes_no_workers(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="--method homographies does not describe photos: leave out --workers"):
        kp.build(photos, tmp_path / "out", "homographies", parallel=kp.Parallel(workers=2))


def test_pairs_are_not_mapped(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match=r"^--share-camera has no effect with --method pairs"):
        kp.build(photos, tmp_path / "set", "pairs", mapping=kp.Mapping(share_camera=True))


def test_a_held_out_part_is_a_whole_pair(views: Path, tmp_path: Path) -> None:
    made = kp.build(views, tmp_path / "out", "pairs", kp.Building(held_out=0.5), **SMALL)
    images = {part: {source["name"][0] for source in card["sources"]} for part, card in made.cards.items()}
    assert sorted(map(sorted, images.values())) == [["1"], ["2"]]


def test_a_photo_in_two_pairs_gives_a_point_one_number(room: Room, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("1.png 2.png\n2.png 3.png\n")
    made = kp.build(room.photos, tmp_path / "out", "pairs", kp.Building(pairs=tmp_path / "pairs.txt"), **SMALL)
    patches = kp.open_patches(made.folder)
    sizes = np.unique(patches.point_id, return_counts=True)[1]
    assert set(sizes.tolist()) == {2, 3} and (sizes == 3).sum() > 50
    assert np.unique(np.stack([patches.point_id, patches.image_id]), axis=1).shape[1] == len(patches)


def test_pairs_that_do_not_overlap_are_named(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("a.png b.jpg\n")
    building = kp.Building(pairs=tmp_path / "pairs.txt")
    with (
        pytest.warns(UserWarning, match=r"Left out: a.png and b.jpg \(\d+\): fewer than 20"),
        pytest.raises(
            KeypatchError, match=r"The matching step found nothing: none of the 1 photo pairs .* 20 verified matches"
        ),
    ):
        kp.build(photos, tmp_path / "out", "pairs", building, **SMALL)


def changed(invert: bool) -> tuple[np.ndarray, np.ndarray]:
    """A photo, and the same moved a little, darker; or in another band, where light is dark."""
    photo = cv2.cvtColor(data.coffee(), cv2.COLOR_RGB2GRAY)
    moved = cv2.warpPerspective(
        photo, MOTION, photo.shape[::-1], flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return photo, (255 - moved) if invert else (40 + 0.6 * moved).astype(np.uint8)


def test_the_motion_of_another_band_is_found_by_edges() -> None:
    homography, why = find_motion(*changed(invert=True), NONE, PhotoPairs(aligned=True))
    assert homography is not None, why
    corners = np.array([[0.0, 0], [599, 0], [0, 399], [599, 399], [300, 200]])
    apart = np.linalg.norm(apply_homography(homography, corners) - apply_homography(MOTION, corners), axis=1)
    assert apart.max() < 1.5 and apart[-1] < 0.5


def test_unrelated_photos_and_large_motions_are_not_aligned() -> None:
    photo, other = (cv2.cvtColor(each(), cv2.COLOR_RGB2GRAY) for each in (data.coffee, data.chelsea))
    assert find_motion(photo, other[:, :400], NONE, PhotoPairs(aligned=True))[0] is None
    assert find_motion(photo, cv2.flip(photo, 0), NONE, PhotoPairs(aligned=True))[0] is None
    assert find_motion(photo, np.full_like(photo, 90), NONE, PhotoPairs(aligned=True))[0] is None
    far = np.array([[1, 0, 200.0], [0, 1, 0], [0, 0, 1]])
    sure = Matches(np.stack([np.arange(50)] * 2, axis=1), np.ones(50), True, "H", far)
    homography, why = find_motion(photo, photo, sure, PhotoPairs(aligned=True))
    assert homography is not None and np.allclose(homography, np.eye(3), atol=1e-2)  # by edges: they did not move
    moved = np.roll(photo, 200, axis=1)
    homography, why = find_motion(photo, moved, sure, PhotoPairs(aligned=True))
    assert homography is None and "33%" in why


@pytest.mark.parametrize("invert", [False, True])
def test_aligned_photos_are_cut_at_the_same_places(invert: bool, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, photo in zip(("1_a.png", "1_b.png"), changed(invert), strict=True):
        Image.fromarray(photo).save(folder / name)
    made = kp.build(folder, tmp_path / "out", PhotoPairs(aligned=True), **SMALL)
    patches = kp.open_patches(made.folder)
    first, second = patches.keypoints.take(slice(0, None, 2)), patches.keypoints.take(slice(1, None, 2))
    apart = np.linalg.norm(apply_homography(MOTION, first.xy) - second.xy, axis=1)
    assert len(first) > 300 and apart.max() < 2
    turn = np.angle(np.exp(1j * (first.angle - second.angle)))
    assert np.abs(turn).max() < 0.1 and np.abs(np.log(first.sigma / second.sigma)).max() < 0.1
    noise = made.cards[""]["label_noise"]
    assert noise["at_most"] and made.facts()["label noise"].startswith("at most")
    if invert:  # the change is kept, where matching would have found next to nothing
        assert noise["patches"] > 0.2 and any("the scene changed there" in text for text in made.warnings)
        both = zip(patches.patches[::2], patches.patches[1::2], strict=True)
        assert np.median([np.corrcoef(one.ravel(), other.ravel())[0, 1] for one, other in both]) < -0.8


def test_matches_must_be_verified(views: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="Matching needs a model"):
        kp.build(views, tmp_path / "out", "pairs", matching=kp.Matching(model=None), **SMALL)
