"""`inspect` of feature files and match files, written by plain h5py."""

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.commands.inspect.inspection import inspect


def write_photo(path: Path, name: str = "a.jpg", count: int = 20, **changed: Any) -> Path:
    """A sound photo as hloc writes it, but for what is changed; None leaves an array out."""
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(count, 16))
    arrays = {
        "keypoints": rng.uniform(0, 100, (count, 2)).astype(np.float32),
        "descriptors": (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T.astype(np.float32),
        "image_size": np.array([120, 110]),
    }
    with h5py.File(path, "a") as file:
        group = file.create_group(name)
        for key, array in {**arrays, **changed}.items():
            if array is not None:
                group[key] = array
    return path


def test_a_feature_file_of_hloc_is_counted(tmp_path: Path) -> None:
    for name, count in {"sub/a.jpg": 20, "b.jpg": 40, "c.jpg": 0}.items():
        write_photo(tmp_path / "f.h5", name, count)
    found = inspect(tmp_path / "f.h5")
    assert found.kind == "feature file (hloc's layout)"
    assert found.problems == ()
    assert found.facts["photos"] == "3"
    assert found.facts["keypoints"] == "60, 0 to 40 a photo (mean 20.0)"
    assert found.facts["descriptors"] == "16 numbers"
    assert found.facts["descriptor"] == "unknown"
    assert found.facts["keypoints kept as"] == found.facts["descriptors kept as"] == "float32"
    assert found.facts["with each keypoint"] == "only its position"
    assert found.facts["convention"].startswith("not recorded")


def test_a_file_of_ours_tells_its_settings_and_may_have_raw_descriptors(tmp_path: Path) -> None:
    ones = np.ones(20, np.float32)
    path = write_photo(tmp_path / "f.h5", scales=ones, oris=ones, scores=ones, descriptors=np.full((8, 20), 3.0))
    with h5py.File(path, "a") as file:
        settings = {"detector": "dog", "keypoints": 20, "half": False}
        file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "tfeat"})
        file.attrs.update({"settings": json.dumps(settings), "convention": "pixels"})
    found = inspect(path)
    assert (found.kind, found.problems) == ("feature file", ())
    assert found.facts["descriptor"] == "tfeat"
    assert found.facts["settings"] == "detector = dog, keypoints = 20, half = False"
    assert found.facts["convention"] == "pixels"
    assert found.facts["with each keypoint"] == "scales, oris, scores"


PLACES = np.linspace(0, 100, 40).reshape(20, 2).astype(np.float32)
UNIT = np.full((20, 16), 0.25, np.float32)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keypoints": PLACES.astype(np.float16)}, "has float16 keypoints"),
        ({"keypoints": PLACES + 30}, "outside its image_size"),
        ({"keypoints": PLACES - 2}, "outside its image_size"),
        ({"keypoints": np.where(PLACES == 100, np.nan, PLACES)}, "keypoints that are not finite"),
        ({"scales": np.zeros(20)}, "scales that are not above 0"),
        ({"descriptors": UNIT}, r"descriptors in rows \(n, dim\)"),
        ({"descriptors": 512 * UNIT.T}, "length is not 1"),
        ({"descriptors": np.full((16, 20), np.nan)}, "descriptors that are not finite"),
        ({"descriptors": UNIT[:7].T}, "different numbers of descriptors and keypoints"),
        ({"descriptors": None}, "has no descriptors"),
    ],
)
def test_what_is_wrong_with_photos_is_said_once(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = write_photo(tmp_path / "f.h5", "sound.jpg")
    for name in ("x.jpg", "y.jpg", "z.jpg"):
        write_photo(path, name, **changed)
    found = inspect(path)
    assert len(found.problems) == 1
    assert found.problems[0].startswith("x.jpg (and 2 more) has ")
    assert re.search(message, found.problems[0])
    assert found.facts["photos"] == "4"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"descriptors": np.full((4, 20), 0.5)}, "mixes descriptors of 4 and 16 dimensions"),
        ({"keypoints": np.float32(3)}, "keypoints of x.jpg are not an (n, 2) array"),
        ({"keypoints": np.zeros(5)}, "keypoints of x.jpg are not an (n, 2) array"),
        ({"descriptors": "text"}, "x.jpg/descriptors is not an array of numbers"),
    ],
)
def test_a_photo_unlike_the_others_is_told_and_they_are_counted(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    found = inspect(write_photo(write_photo(tmp_path / "f.h5", "sound.jpg"), "x.jpg", **changed))
    assert [message in problem for problem in found.problems] == [True]
    assert found.facts["keypoints"].startswith(("20, ", "40, "))


def test_keypoints_alone_are_no_fault(tmp_path: Path) -> None:
    found = inspect(write_photo(tmp_path / "f.h5", descriptors=None))
    assert found.problems == ()
    assert found.facts["descriptors"] == found.facts["descriptors kept as"] == "none"


def write_pair(path: Path, key: str, partners: Any, kind: type, model: str | None = None) -> Path:
    with h5py.File(path, "a") as file:
        group = file.create_group(key)
        group["matches0"] = np.asarray(partners, kind)
        group["matching_scores0"] = np.ones(len(partners), np.float32)
        if model:
            group.attrs["model"] = model
    return path


def test_a_match_file_of_hloc_is_counted(tmp_path: Path) -> None:
    write_pair(tmp_path / "m.h5", "a.jpg/b.jpg", [3, -1, 0], np.int16)
    write_pair(tmp_path / "m.h5", "a.jpg_c.jpg", [-1, -1, -1], np.int16)
    found = inspect(tmp_path / "m.h5")
    assert (found.kind, found.problems) == ("match file (hloc's layout)", ())
    assert found.facts["pairs"] == "2"
    assert found.facts["matches"] == "2, 0 to 2 a pair (mean 1.0)"
    assert found.facts["verified"] == "not recorded"
    assert found.facts["numbers as"].startswith("int16; keypoint numbers above 32,767")


def test_numbers_that_wrapped_are_wrong(tmp_path: Path) -> None:
    partners = np.array([40_000, -1, 0]).astype(np.int16)
    found = inspect(write_pair(tmp_path / "m.h5", "a.jpg/b.jpg", partners, np.int16))
    assert found.problems[0].startswith("a.jpg/b.jpg has negative keypoint indices")


def test_a_match_file_of_ours_tells_what_was_verified(tmp_path: Path) -> None:
    path = write_pair(tmp_path / "m.h5", "a.jpg/b.jpg", [3, -1, 40_000], np.int32, "F")
    with h5py.File(path, "a") as file:
        file.attrs.update({"format": "keypatch-matches", "format_number": 1})
    found = inspect(path)
    assert (found.kind, found.problems) == ("match file", ())
    assert (found.facts["verified"], found.facts["numbers as"]) == ("1 pairs (F)", "int32")


def test_any_other_h5_has_a_kind_and_a_problem(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["table"] = [1, 2]
    (tmp_path / "text.h5").write_text("mine")
    cut = write_photo(tmp_path / "cut.h5").read_bytes()[:1000]
    (tmp_path / "cut.h5").write_bytes(cut)
    kinds = {"other": "HDF5 file of an unknown kind", "text": "unreadable file", "cut": "unreadable file"}
    for name, kind in kinds.items():
        found = inspect(tmp_path / f"{name}.h5")
        assert found.kind == kind
        assert len(found.problems) == 1 and f"{name}.h5" in found.problems[0]


@pytest.mark.parametrize("kind", ["keypatch-features", "keypatch-matches"])
def test_a_newer_format_is_a_problem(tmp_path: Path, kind: str) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs.update({"format": kind, "format_number": 99})
    assert "newer keypatch" in inspect(tmp_path / "f.h5").problems[0]


@pytest.mark.parametrize("kind", ["keypatch-features", "keypatch-matches"])
def test_an_empty_file_of_ours_is_sound(tmp_path: Path, kind: str) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs.update({"format": kind, "format_number": 1, "settings": "{}", "descriptor": "sift"})
    found = inspect(tmp_path / "f.h5")
    assert found.problems == ()
    assert "none" in (found.facts.get("keypoints"), found.facts.get("matches"))
