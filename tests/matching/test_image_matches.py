"""Two photographs, from files to matches, a table and a picture."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from skimage import data, transform

import keypatch
from keypatch.errors import KeypatchError
from keypatch.features import Extraction, Features, extract
from keypatch.matching.image_matches import ImageMatches, match, match_features
from keypatch.matching.matching import Matching


@pytest.fixture(scope="module")
def stereo(motorcycle: tuple[Path, Path]) -> ImageMatches:
    return match(*motorcycle, extraction=Extraction(keypoints=600))


def test_a_real_stereo_pair_is_matched_along_its_rows(stereo: ImageMatches) -> None:
    first, second = (stereo.features[k].keypoints.xy[stereo.matches.indices[:, k]] for k in (0, 1))
    assert len(stereo.matches) > 150
    assert stereo.matches.verified and stereo.matches.model == "F"
    assert np.mean(np.abs(first[:, 1] - second[:, 1]) < 1.5) > 0.95  # rectified: the same row
    assert np.mean(first[:, 0] > second[:, 0]) > 0.95  # nearer things are further left in the right photo


def test_counts_and_sentences_agree(stereo: ImageMatches) -> None:
    counts = stereo.counts()
    assert counts["keypoints0"] == counts["keypoints1"] == 600
    assert counts["matches"] == len(stereo.candidates) > counts["verified"] == len(stereo.matches)
    photos, found, left = stereo.sentences()
    assert "left.png: 600 keypoints" in photos and "hynet-notredame" in photos
    assert found.startswith(f"{counts['matches']} matches: mutual")
    assert left == f"{counts['verified']} agree with one fundamental matrix within 1 px"


def taken(features: Features, rows: np.ndarray) -> Features:
    return replace(features, keypoints=features.keypoints.take(rows), descriptors=features.descriptors[rows])


def several_orientations(features: Features, places: int = 60) -> Features:
    """The first places twice as often, each at a second orientation with a vector of its own, alike in every photo."""
    turned = np.random.default_rng(0).normal(size=(places, features.descriptors.shape[1])).astype(np.float32)
    rows = np.concatenate([features.descriptors, turned / np.linalg.norm(turned, axis=1, keepdims=True)])
    twice = features.keypoints.take(np.concatenate([np.arange(len(features)), np.arange(places)]))
    return replace(features, keypoints=twice, descriptors=rows)


def test_a_place_counts_once_whatever_orientations_it_has(stereo: ImageMatches, tmp_path: Path) -> None:
    kept = stereo.matches.indices
    first, second = (taken(each, kept[:, side]) for side, each in enumerate(stereo.features))
    plain = match(first, second)
    found = match(several_orientations(first), several_orientations(second))
    assert found.counts() == plain.counts() | {
        "keypoints0": len(kept) + 60,
        "keypoints1": len(kept) + 60,
        "repeats": 60,
    }
    assert np.array_equal(found.points0, plain.points0)
    assert "; 60 more at other orientations of the same places" in found.sentences()[1]
    assert "orientations" not in plain.sentences()[1]
    with found.save(tmp_path / "m.csv").open() as file:
        places = [(row["x0"], row["y0"], row["x1"], row["y1"]) for row in csv.DictReader(file)]
    assert len(places) == len(set(places)) == len(found)
    assert json.loads(found.save(tmp_path / "m.json").read_text())["counts"] == found.counts()


def test_match_files_keep_every_orientation_of_places_that_agree(stereo: ImageMatches) -> None:
    kept = stereo.matches.indices
    first, second = (taken(each, kept[:, side]) for side, each in enumerate(stereo.features))
    candidates, left = match_features(several_orientations(first), several_orientations(second))
    once = left.once(several_orientations(first).keypoints, several_orientations(second).keypoints)
    plain = match_features(first, second)[1]
    assert np.array_equal(once.indices, plain.indices)
    assert len(left) == len(once) + np.sum(once.indices[:, 0] < 60)
    assert len(candidates) == len(match_features(first, second)[0]) + 60


def test_a_photo_that_its_tag_turns_is_told_and_tables_say_in_which_pixels_they_are(
    motorcycle: tuple[Path, Path], tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    with Image.open(motorcycle[0]) as photo:
        photo.save(tmp_path / "a.png", exif=exif)
    few = Extraction(keypoints=200)
    with pytest.warns(UserWarning, match=r"Rotated by an EXIF tag: 1 of 2 photos, .*a\.png \(6\)\. .* cv2\.imread"):
        stored = match(tmp_path / "a.png", motorcycle[1], describer="rootsift", extraction=few)
    turned = match(tmp_path / "a.png", motorcycle[1], describer="rootsift", extraction=few, turn_by_exif=True)
    assert stored.features[0].image_size == turned.features[0].image_size[::-1]
    assert (stored.pixels, turned.pixels) == ("as stored", "turned by EXIF")
    shown = cv2.imread(str(tmp_path / "a.png"))
    assert turned.features[0].image_size == (shown.shape[1], shown.shape[0])
    assert '"pixels": "turned by EXIF"' in turned.save(tmp_path / "m.json").read_text()
    assert turned.save(tmp_path / "m.csv").read_text().splitlines()[-1].endswith(",turned by EXIF")
    assert match(*stored.features).pixels == "as given"


def test_so_few_that_agree_by_chance_are_told_as_such(tmp_path: Path) -> None:
    paths = tmp_path / "astronaut.png", tmp_path / "brick.png"
    for path, photo in zip(paths, (data.astronaut(), data.brick()), strict=True):
        Image.fromarray(photo).save(path)
    few = Extraction(keypoints=300)
    found = match(*paths, Matching(ratio=None, filter=None), describer="rootsift", extraction=few)
    assert "unrelated photos can have as many" in found.sentences()[2]
    filtered = match(*found.features)
    assert len(filtered.candidates) < 0.3 * len(found.candidates)


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, np.ndarray]:
    """The camera man, and the same turned by 30 degrees and made smaller; the homography between them."""
    folder = tmp_path_factory.mktemp("turned")
    photo = data.camera()
    map_ = transform.SimilarityTransform(scale=0.8, rotation=np.radians(30), translation=(150, -60))
    other = transform.warp(photo, map_.inverse, output_shape=(512, 512), order=3, preserve_range=True)
    Image.fromarray(photo).save(folder / "a.png")
    Image.fromarray(other.clip(0, 255).astype(np.uint8)).save(folder / "b.png")
    return folder / "a.png", folder / "b.png", np.asarray(map_.params)


def test_the_true_homography_tells_right_from_wrong(turned: tuple[Path, Path, np.ndarray], tmp_path: Path) -> None:
    first, second, homography = turned
    few = Extraction(keypoints=500)
    result = match(first, second, Matching(model="H"), describer="rootsift", extraction=few).judged(homography)
    result.save(tmp_path / "m.png")
    result.save(tmp_path / "m.csv")
    counts = result.counts()
    assert counts["matches"] > counts["right"] > 0.5 * counts["matches"]
    assert counts["right_verified"] > 0.95 * counts["verified"]
    assert f"{counts['right']} right" in result.sentences()[1]
    with Image.open(tmp_path / "m.png") as picture:
        assert picture.size[0] == 512 + 12 + 512
    with (tmp_path / "m.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == counts["verified"]
    assert sum(int(row["right"]) for row in rows) == counts["right_verified"]
    wrong_way = match(first, second, describer="rootsift", extraction=few).judged(np.linalg.inv(homography))
    assert wrong_way.counts()["right"] < 0.1 * counts["right"]


def test_tables_hold_places_and_counts(motorcycle: tuple[Path, Path], tmp_path: Path) -> None:
    result = match(*motorcycle, describer="sift", extraction=Extraction(keypoints=200))
    result.save(tmp_path / "m.json")
    result.save(tmp_path / "m.csv")
    written = json.loads((tmp_path / "m.json").read_text())
    assert written["format"] == "keypatch-photo-matches"
    assert written["counts"] == result.counts()
    assert written["images"] == ["left.png", "right.png"] and written["descriptor"] == "sift"
    assert np.array_equal(written["matrix"], result.matches.matrix)  # type: ignore[arg-type]
    with (tmp_path / "m.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["image0", "image1", "index0", "index1", "x0", "y0", "x1", "y1", "score", "pixels"]
    assert {row["pixels"] for row in rows} == {written["pixels"]} == {"as stored"}
    assert len(rows) == len(written["matches"]) == len(result.matches)
    for row, entry, (i, _) in zip(rows, written["matches"], result.matches.indices, strict=True):
        assert float(row["x0"]) == entry["x0"] == result.features[0].keypoints.x[i]  # no digit is lost


def test_a_photo_named_like_a_formula_is_none_in_a_table(motorcycle: tuple[Path, Path], tmp_path: Path) -> None:
    name = "=cmd|calc!A1.png"
    (tmp_path / name).write_bytes(motorcycle[0].read_bytes())
    result = match(tmp_path / name, motorcycle[1], describer="sift", extraction=Extraction(keypoints=100))
    with result.save(tmp_path / "m.csv").open() as file:
        assert {(row["image0"], row["image1"]) for row in csv.DictReader(file)} == {(f"'{name}", "right.png")}
    assert json.loads(result.save(tmp_path / "m.json").read_text())["images"][0] == name


@pytest.mark.parametrize("model", [None, "F", "E", "H"])
@pytest.mark.parametrize("ratio", [None, 0.8])
def test_photos_without_a_keypoint(tmp_path: Path, model: str | None, ratio: float | None) -> None:
    Image.new("L", (80, 60), 128).save(tmp_path / "plain.png")
    Image.fromarray(data.camera()[100:300, 150:350]).save(tmp_path / "camera.png")
    cameras = [[[500, 0, 40], [0, 500, 30], [0, 0, 1]]] if model == "E" else None
    for names in (("plain", "plain"), ("plain", "camera"), ("camera", "plain")):
        first, second = (tmp_path / f"{name}.png" for name in names)
        matching = Matching(model=model, ratio=ratio)  # type: ignore[arg-type]
        result = match(first, second, matching, describer="sift", intrinsics=cameras).judged(np.eye(3))
        result.save(tmp_path / "m.png")
        result.save(tmp_path / "m.csv")
        assert len(result.matches) == 0 and result.sentences()
        assert (tmp_path / "m.csv").read_text() == "image0,image1,index0,index1,x0,y0,x1,y1,score,pixels\n"


def test_one_keypoint_is_too_few_to_verify(motorcycle: tuple[Path, Path], tmp_path: Path) -> None:
    one = Extraction(keypoints=1)
    result = match(*motorcycle, describer="sift", extraction=one)
    result.save(tmp_path / "m.jpg")
    assert len(result.matches) == 0 and len(result.candidates) == 1
    assert "too few to verify" in result.sentences()[-1]
    assert len(match(*motorcycle, Matching(model=None), describer="sift", extraction=one).matches) == 1


@pytest.mark.parametrize(
    ("path", "part"),
    [("m.txt", r"\.csv or \.json"), ("m.gif", r"\.png or \.jpg"), (f"{__file__}/m.csv", "cannot be written")],
)
def test_a_file_that_cannot_be_written_is_named(stereo: ImageMatches, path: str, part: str) -> None:
    with pytest.raises(KeypatchError, match=part):
        stereo.save(path)


@pytest.mark.parametrize(("truth", "part"), [((np.eye(4),), "3x3"), ((np.eye(3), 0.0), "above 0")])
def test_a_truth_is_a_homography_and_a_distance(stereo: ImageMatches, truth: tuple[Any, ...], part: str) -> None:
    with pytest.raises(KeypatchError, match=part):
        stereo.judged(*truth)


def test_at_least_one_line_is_drawn(stereo: ImageMatches) -> None:
    with pytest.raises(KeypatchError, match="lines must be 1 or more"):
        stereo.draw(0)


def test_intrinsics_that_would_do_nothing_are_told_before_the_work(
    motorcycle: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.matching.image_matches.extract", lambda *_: pytest.fail("the work was begun"))
    with pytest.raises(KeypatchError, match="only used for an essential matrix"):
        match(*motorcycle, describer="sift", intrinsics=[np.eye(3)])


def test_paths_arrays_pil_images_and_features_give_the_same_matches(motorcycle: tuple[Path, Path]) -> None:
    few = Extraction(keypoints=200)
    pictures = [Image.open(path) for path in motorcycle]
    arrays = [np.asarray(picture.convert("L")) for picture in pictures]
    features = [extract(array, "rootsift", few) for array in arrays]
    expected = match(*motorcycle, describer="rootsift", extraction=few)
    assert expected.names == ("left.png", "right.png")
    for first, second in (pictures, arrays, features):
        found = match(first, second, describer="rootsift", extraction=few)
        assert np.array_equal(found.matches.indices, expected.matches.indices)
        assert np.array_equal(found.points0, expected.points0) and np.array_equal(found.points1, expected.points1)
    for picture in pictures:
        picture.close()


def test_it_shows_itself_in_a_notebook_and_as_a_line(stereo: ImageMatches, tmp_path: Path) -> None:
    with Image.open(io.BytesIO(stereo._repr_png_())) as picture:
        assert picture.format == "PNG" and picture.width <= 1100
    counts = stereo.counts()
    said = f"ImageMatches(left.png, right.png: {counts['matches']} matches, {counts['verified']} verified)"
    assert repr(stereo) == said and len(stereo) == counts["verified"]
    assert keypatch.draw(stereo, tmp_path / "m.jpg").size == stereo.draw().size and (tmp_path / "m.jpg").exists()


def test_features_without_their_photo_are_drawn_on_a_grey_sheet(stereo: ImageMatches) -> None:
    first, second = (replace(each, image=None) for each in stereo.features)
    assert replace(stereo, features=(first, second)).draw().size == stereo.draw().size
    assert first._repr_png_() is None
    with pytest.raises(KeypatchError, match="without their image"):
        first.draw()


def test_the_front_door_has_it() -> None:
    assert keypatch.match is match
