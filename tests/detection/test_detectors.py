"""What every detector of the table must do, and the table itself."""

import pickle
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from skimage import data

from keypatch.detection import DETECTORS, RULES, Grid, keep_orientations, make_detector, spend
from keypatch.errors import DataError, KeypatchError, MissingExtra

COLUMNS = ("x", "y", "sigma", "angle", "response")


def photo():
    return data.camera()[100:340, 130:450]  # with a head and a camera; a view, not contiguous


def assert_same(found, others):
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(found, column), getattr(others, column), err_msg=column)


def test_finds_the_same_in_every_run_and_leaves_the_photo_alone(detector):
    image = photo().copy()
    found = detector(image)
    assert len(found) > 20
    assert_same(found, detector(image))
    np.testing.assert_array_equal(image, photo())


def test_strongest_first_and_inside_the_photo(detector):
    found = detector(photo())
    assert found.response is not None
    assert np.all(np.diff(found.response) <= 0)
    height, width = photo().shape
    assert np.all((found.x >= -0.5) & (found.x <= width - 0.5) & (found.y >= -0.5) & (found.y <= height - 0.5))


@pytest.mark.parametrize("view", [np.s_[:, ::-1], np.s_[::2, 1::2], np.s_[::-1]], ids=["mirrored", "sparse", "upside"])
def test_a_view_of_an_array_is_read_as_it_looks(detector, view):
    image = photo()[view]
    assert not image.flags.c_contiguous
    assert_same(detector(image), detector(np.ascontiguousarray(image)))


@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (5, 5), (21, 21), (31, 31), (64, 64), (1, 700), (700, 3), (40, 1500)], ids=str
)
@pytest.mark.parametrize("kind", ["constant", "noise"])
def test_any_size_of_photo(detector, shape, kind):
    image = np.full(shape, 77, np.uint8)
    if kind == "noise":
        image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    found = detector(image)
    assert found.response is not None
    if isinstance(detector, Grid):
        assert len(found) >= 1
    elif kind == "constant":
        assert len(found) == 0


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        (np.zeros((90, 90, 3), np.uint8), r"grey image \(h, w\) of uint8, not uint8 of shape \(90, 90, 3\)"),
        (np.zeros((90, 90), np.float32), "not float32"),
        (np.zeros((90, 90), np.uint16), "not uint16"),
        (np.zeros(90, np.uint8), r"of shape \(90,\)"),
        (np.zeros((0, 90), np.uint8), "at least one pixel"),
    ],
    ids=["colour", "float", "16 bit", "flat", "empty"],
)
def test_what_is_no_grey_photo_is_named(detector, image, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        detector(image)


def test_upright_keypoints_are_no_two_of_one_place(detector):
    every = detector(photo())
    one, upright = keep_orientations(every, "one"), keep_orientations(every, "upright")
    assert not upright.angle.any()
    assert len(one) == len(upright)
    places = np.stack([upright.x, upright.y, np.log(upright.sigma).round(3)], axis=1)
    assert len(np.unique(places, axis=0)) == len(upright)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_found_stays_nothing(detector, rule):
    nothing = detector(np.zeros((80, 90), np.uint8)).take([])
    assert len(spend(keep_orientations(nothing, "upright"), 5, rule)) == 0


def test_settings_rebuild_the_detector(detector):
    assert make_detector(detector.name, **asdict(detector)) == detector
    assert pickle.loads(pickle.dumps(detector)) == detector  # as workers receive it


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("colmap", "pycolmap", "colmap"), ("keynet", "kornia.feature", "kornia")]
)
def test_a_missing_package_names_its_extra(monkeypatch, tmp_path, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    fields = {"weights": tmp_path / "none"} if name == "keynet" else {}
    with pytest.raises(MissingExtra, match=rf"The detector {name} needs .*: pip install 'keypatch\[{extra}\]'"):
        make_detector(name, **fields)


def test_a_pycolmap_that_cannot_be_loaded_is_told_with_the_reason(monkeypatch, tmp_path):
    (tmp_path / "pycolmap.py").write_text("raise ImportError('libGL.so.1: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pycolmap", raising=False)
    with pytest.raises(
        MissingExtra, match=r"The detector colmap needs pycolmap.*libGL\.so\.1: no such file.*reinstall"
    ):
        make_detector("colmap")


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("sift", {}, f'there is no "sift". Choose one of {", ".join(DETECTORS)}'),
        ("dog", {"contrast": 1}, 'Dog has no field "contrast". Its fields: contrast_threshold, orientations'),
        ("dog", {"orientations": "both"}, "must be one of all, one, upright"),
        ("keynet", {}, "KeyNet needs weights"),
        ("grid", {"step": 0.5}, "step is 0.5; it must be 1 or more"),
        ("grid", {"step": float("nan")}, "step must be a finite number"),
        ("grid", {"sigma": 0}, "sigma is 0.0; it must be above 0"),
    ],
)
def test_wrong_names_and_settings_are_told(name, fields, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        make_detector(name, **fields)


def test_files_that_hold_no_weights_of_keynet_are_named(tmp_path):
    pytest.importorskip("kornia")
    import torch
    from safetensors.torch import save_file

    text, other = tmp_path / "text.safetensors", tmp_path / "other.safetensors"
    text.write_text("not weights", encoding="utf-8")
    save_file({"layer.weight": torch.zeros(3)}, other)
    for path in (text, other):
        with pytest.raises(DataError, match=f"{path.name} is not a readable file of Key.Net's weights"):
            make_detector("keynet", weights=path)
    with pytest.raises(DataError, match=r"absent\.safetensors"):
        make_detector("keynet", weights=tmp_path / "absent.safetensors")


def test_the_page_has_a_row_for_every_detector():
    page = (Path(__file__).parents[2] / "docs" / "detectors.md").read_text(encoding="utf-8")
    assert [name for name in DETECTORS if f"\n| `{name}`" not in page] == []
