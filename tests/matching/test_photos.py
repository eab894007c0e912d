"""Two photographs, from files to matches, a table and a picture."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data, transform

import keypatch
from keypatch.errors import KeypatchError
from keypatch.matching import MatchedPhotos, match


@pytest.fixture(scope="module")
def stereo(motorcycle: tuple[Path, Path]) -> MatchedPhotos:
    return match(*motorcycle, keypoints=600)


def test_a_real_stereo_pair_is_matched_along_its_rows(stereo: MatchedPhotos) -> None:
    first, second = (stereo.features[k].keypoints.xy[stereo.matches.indices[:, k]] for k in (0, 1))
    assert len(stereo.matches) > 150
    assert stereo.matches.verified and stereo.matches.model == "F"
    assert np.mean(np.abs(first[:, 1] - second[:, 1]) < 1.5) > 0.95  # rectified: the same row
    assert np.mean(first[:, 0] > second[:, 0]) > 0.95  # nearer things are further left in the right photo


def test_counts_and_sentences_agree(stereo: MatchedPhotos) -> None:
    counts = stereo.counts()
    assert counts["keypoints0"] == counts["keypoints1"] == 600
    assert counts["matches"] == len(stereo.candidates) > counts["verified"] == len(stereo.matches)
    photos, found, left = stereo.sentences()
    assert "left.png: 600 keypoints" in photos and "hynet-notredame" in photos
    assert found.startswith(f"{counts['matches']} matches: mutual")
    assert left == f"{counts['verified']} agree with one fundamental matrix within 1 px"


def test_so_few_that_agree_by_chance_are_told_as_such(tmp_path: Path) -> None:
    paths = tmp_path / "astronaut.png", tmp_path / "brick.png"
    for path, photo in zip(paths, (data.astronaut(), data.brick()), strict=True):
        Image.fromarray(photo).save(path)
    assert "so few do in unrelated photos too" in match(*paths, "rootsift", keypoints=300, ratio=None).sentences()[-1]


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
    result = match(
        first, second, "rootsift", homography=homography, model="H", keypoints=500,
        draw=tmp_path / "m.png", out=tmp_path / "m.csv",
    )  # fmt: skip
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
    wrong_way = match(first, second, "rootsift", homography=np.linalg.inv(homography), keypoints=500)
    assert wrong_way.counts()["right"] < 0.1 * counts["right"]


def test_tables_hold_places_and_counts(motorcycle: tuple[Path, Path], tmp_path: Path) -> None:
    how = {"descriptor": "sift", "keypoints": 200}
    result = match(*motorcycle, **how, out=tmp_path / "m.json")  # type: ignore[arg-type]
    match(*motorcycle, **how, out=tmp_path / "m.csv")  # type: ignore[arg-type]
    written = json.loads((tmp_path / "m.json").read_text())
    assert written["format"] == "keypatch-photo-matches"
    assert written["counts"] == result.counts()
    assert written["images"] == ["left.png", "right.png"] and written["descriptor"] == "sift"
    assert np.array_equal(written["matrix"], result.matches.matrix)  # type: ignore[arg-type]
    with (tmp_path / "m.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["image0", "image1", "index0", "index1", "x0", "y0", "x1", "y1", "score"]
    assert len(rows) == len(written["matches"]) == len(result.matches)
    for row, entry, (i, _) in zip(rows, written["matches"], result.matches.indices, strict=True):
        assert float(row["x0"]) == entry["x0"] == result.features[0].keypoints.x[i]  # no digit is lost


@pytest.mark.parametrize("model", [None, "F", "E", "H"])
@pytest.mark.parametrize("ratio", [None, 0.8])
def test_photos_without_a_keypoint(tmp_path: Path, model: str | None, ratio: float | None) -> None:
    Image.new("L", (80, 60), 128).save(tmp_path / "plain.png")
    Image.fromarray(data.camera()[100:300, 150:350]).save(tmp_path / "camera.png")
    cameras = [[[500, 0, 40], [0, 500, 30], [0, 0, 1]]] if model == "E" else None
    for names in (("plain", "plain"), ("plain", "camera"), ("camera", "plain")):
        result = match(
            *(tmp_path / f"{name}.png" for name in names), "sift", model=model, ratio=ratio, homography=np.eye(3),
            intrinsics=cameras, draw=tmp_path / "m.png", out=tmp_path / "m.csv",
        )  # type: ignore[misc, arg-type]  # fmt: skip
        assert len(result.matches) == 0 and result.sentences()
        assert (tmp_path / "m.csv").read_text() == "image0,image1,index0,index1,x0,y0,x1,y1,score\n"


def test_one_keypoint_is_too_few_to_verify(motorcycle: tuple[Path, Path], tmp_path: Path) -> None:
    result = match(*motorcycle, "sift", keypoints=1, draw=tmp_path / "m.jpg")
    assert len(result.matches) == 0 and len(result.candidates) == 1
    assert "too few to verify" in result.sentences()[-1]
    assert len(match(*motorcycle, "sift", keypoints=1, model=None).matches) == 1


@pytest.mark.parametrize(
    ("how", "part"),
    [
        ({"out": "m.txt"}, r"\.csv or \.json"),
        ({"draw": "m.gif"}, r"\.png, \.jpg"),
        ({"out": "no/such/m.csv"}, "no folder"),
        ({"draw": "no/such/m.png"}, "no folder"),
        ({"lines": 0}, "0 lines"),
        ({"model": "X"}, '"X"'),
        ({"ratio": 2.0}, "ratio 2"),
        ({"homography": np.eye(4)}, "3x3"),
        ({"model": "E"}, "needs the intrinsics"),
    ],
)
def test_wrong_wishes_are_told_before_the_work(
    motorcycle: tuple[Path, Path], how: dict[str, object], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.matching.photos.extract", lambda *_: pytest.fail("the work was begun"))
    with pytest.raises(KeypatchError, match=part):
        match(*motorcycle, "sift", **how)  # type: ignore[arg-type]


def test_the_front_door_has_it() -> None:
    assert keypatch.match is match
