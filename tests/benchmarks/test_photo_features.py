"""Features of photographs for benchmarks: from a describer, from feature files of ours and of others."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.caching import resized
from keypatch.benchmarks.photo_features import photo_features, refuse_idle_extraction
from keypatch.detection import Orb
from keypatch.engines import Parallel, use
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, extract, find_photos, read_photo
from keypatch.features.description import describe
from keypatch.files import hash_file
from keypatch.images import resized_size
from keypatch.zoo import load

FEW = Extraction(keypoints=30)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """one.png, 180 x 160, and sub/two.png, 150 x 200."""
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    Image.fromarray(skimage.data.camera()[60:220, 150:330]).save(tmp_path / "photos" / "one.png")
    Image.fromarray(skimage.data.coffee()[80:280, 150:300]).save(tmp_path / "photos" / "sub" / "two.png")
    return tmp_path / "photos"


def test_every_photo_has_the_features_that_extract_gives(photos: Path) -> None:
    seen = list[tuple[int, int, str]]()
    found = photo_features(load("rootsift"), find_photos([photos]), FEW, lambda *done: seen.append(done))
    assert seen == [(done, 2, "photos") for done in range(3)]
    assert list(found) == ["one.png", "sub/two.png"] and len(found) == 2
    for name, size in {"one.png": (180, 160), "sub/two.png": (150, 200)}.items():
        expected = extract(read_photo(photos / name), load("rootsift"), FEW)
        np.testing.assert_array_equal(found[name].descriptors, expected.descriptors)
        assert found[name].image_size == size
    assert found.settings["keypoints"] == 30 and found.descriptor == "rootsift"
    assert found.provenance("abc").hashes == {"data": "abc"}
    with pytest.raises(KeyError):
        found["three.png"]


def test_workers_of_an_evaluation_give_the_same_features(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = photo_features(load("rootsift"), find_photos([photos]), FEW)
    monkeypatch.setenv("KEYPATCH_CACHE", str(photos.parent / "another"))
    with use(Parallel(workers=2)):
        both = photo_features(load("rootsift"), find_photos([photos]), FEW)
    for name in alone:
        np.testing.assert_array_equal(alone[name].descriptors, both[name].descriptors)
        np.testing.assert_array_equal(alone[name].keypoints.xy, both[name].keypoints.xy)


def test_features_are_read_when_they_are_asked_for(photos: Path) -> None:
    found = photo_features(load("rootsift"), find_photos([photos]), FEW)
    assert found.kept is not None
    found.kept.file(hash_file(photos / "one.png"), lambda: pytest.fail("it is described already")).unlink()
    assert len(found["sub/two.png"]) == 30
    with pytest.raises(DataError):
        found["one.png"]


def test_another_photo_of_the_same_name_has_features_of_its_own(photos: Path) -> None:
    first = photo_features(load("rootsift"), find_photos([photos / "one.png"]), FEW)
    before = first["one.png"].descriptors
    (photos / "one.png").write_bytes((photos / "sub" / "two.png").read_bytes())
    second = photo_features(load("rootsift"), find_photos([photos / "one.png"]), FEW)
    assert second["one.png"].image_size == (150, 200)
    np.testing.assert_array_equal(first["one.png"].descriptors, before)


def test_a_photo_that_cannot_be_read_is_told_and_the_others_are_kept(photos: Path, cache: Path) -> None:
    (photos / "sub" / "two.png").write_bytes(b"\x89PNG cut off")
    with pytest.raises(DataError, match=r"two\.png is cut off"):
        photo_features(load("rootsift"), find_photos([photos]), FEW)
    assert len(list(cache.rglob("*.h5"))) == 1


def write_hloc(path: Path, names: list[str], count: int = 5) -> NDArray[np.float32]:
    """A file as hloc writes it; returns the descriptors (dim, n)."""
    rng = np.random.default_rng(0)
    descriptors = rng.normal(size=(8, count)).astype(np.float32)
    with h5py.File(path, "w") as file:
        for name in names:
            group = file.create_group(name)
            group.create_dataset("keypoints", data=rng.uniform(10, 90, (count, 2)).astype(np.float16))
            group.create_dataset("descriptors", data=descriptors)
    return descriptors


def test_a_feature_file_of_hloc_is_taken_as_it_is(photos: Path, tmp_path: Path, cache: Path) -> None:
    descriptors = write_hloc(tmp_path / "superpoint.h5", ["one.png", "sub/two.png", "other.png"])
    found = photo_features(tmp_path / "superpoint.h5", find_photos([photos]))
    np.testing.assert_array_equal(found["sub/two.png"].descriptors, descriptors.T)
    assert found["sub/two.png"].image_size == (150, 200), "the file does not say, the photo does"
    assert found.descriptor == "superpoint" and list(found) == ["one.png", "sub/two.png"]
    assert set(found.provenance("abc").hashes) == {"data", "features"}
    assert not cache.exists()


def test_the_largest_number_of_keypoints_stands_for_the_budget_of_a_file_of_others(
    photos: Path, tmp_path: Path
) -> None:
    write_hloc(tmp_path / "few.h5", ["sub/two.png"], 7)
    with h5py.File(tmp_path / "few.h5", "a") as file:
        for name, count in {"one.png": 4, "not asked for.png": 90}.items():
            group = file.create_group(name)
            group["keypoints"], group["descriptors"] = np.ones((count, 2), np.float32), np.ones((8, count), np.float32)
    found = photo_features(tmp_path / "few.h5", find_photos([photos]))
    assert found.settings == {"keypoints": 7} == found["one.png"].settings


@pytest.mark.parametrize(
    ("asked", "named"),
    [(Extraction(keypoints=100), "keypoints"), (Extraction(Orb()), "detector"), (Extraction(upright=True), "upright")],
)
def test_an_extraction_that_would_change_nothing_is_refused(tmp_path: Path, asked: Extraction, named: str) -> None:
    file = tmp_path / "some.h5"
    with pytest.raises(KeypatchError, match=rf"some\.h5 already has features.* Leave out extraction\.{named}, which"):
        refuse_idle_extraction(file, asked)
    refuse_idle_extraction(file, Extraction())
    refuse_idle_extraction(load("rootsift"), asked)


def test_a_photo_that_the_feature_file_lacks_is_told(photos: Path, tmp_path: Path) -> None:
    write_hloc(tmp_path / "some.h5", ["one.png"])
    with pytest.raises(DataError, match=r"some\.h5 lacks 1 of 2 photos, such as sub/two\.png"):
        photo_features(tmp_path / "some.h5", find_photos([photos]))


def test_features_of_another_photo_of_the_same_name_are_refused(photos: Path, tmp_path: Path) -> None:
    describe(photos, tmp_path / "ours.h5", "rootsift", FEW)
    found = photo_features(tmp_path / "ours.h5", find_photos([photos]))
    assert found.descriptor == "rootsift" and found.settings["keypoints"] == 30
    (photos / "one.png").write_bytes((photos / "sub" / "two.png").read_bytes())
    with pytest.raises(DataError, match=r"one\.png .* is a different photo"):
        photo_features(tmp_path / "ours.h5", find_photos([photos]))


def test_resized_photos_have_the_asked_shorter_side(photos: Path) -> None:
    assert resized_size((1000, 750), 480) == (640, 480)
    assert resized_size((750, 1001), 480) == (480, 640)
    assert resized_size((300, 300), 480) == (480, 480)
    found = photo_features(load("rootsift"), find_photos([photos]), FEW, short_side=120)
    assert found["one.png"].image_size == (135, 120)
    assert found["sub/two.png"].image_size == (120, 160)
    assert found["one.png"].keypoints.x.max() < 135


def test_shrinking_does_not_alias() -> None:
    stripes = np.tile(np.array([0, 255], np.uint8), (90, 80))  # as fine as can be: a mean grey when made smaller
    small = resized(stripes, 30)
    assert small.shape == (30, 53)
    assert np.ptp(small[:, 3:-3].astype(int)) < 40


def test_a_feature_file_cannot_be_resized(photos: Path, tmp_path: Path) -> None:
    write_hloc(tmp_path / "some.h5", ["one.png", "sub/two.png"])
    with pytest.raises(KeypatchError, match="Leave out short_side"):
        photo_features(tmp_path / "some.h5", find_photos([photos]), short_side=480)
