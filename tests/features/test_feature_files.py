"""Feature files: hloc and plain h5py read ours, we read theirs, and nothing hostile in them goes anywhere."""

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from keypatch.errors import DataError, KeypatchError
from keypatch.features import FeatureReader, Features, read_features, read_names
from keypatch.features.feature_files import feature_attributes, write_features
from keypatch.geometry import Keypoints
from keypatch.provenance import provenance

RNG = np.random.default_rng(0)


def made(count: int, *, sheared: bool = False, settings: dict[str, object] | None = None) -> Features:
    x, y, sigma, angle, response = RNG.uniform(1, 3000, (5, count)).astype(np.float32)
    shape = np.tile(np.float32([[2, 0], [0, 0.5]]), (count, 1, 1)) if sheared else None
    keypoints = Keypoints(x, y, sigma, angle % 3, shape, response)
    descriptors = RNG.normal(size=(count, 16)).astype(np.float32)
    return Features(keypoints, descriptors, (4000, 3000), "fake", {"patch_sigmas": 24.0, **(settings or {})})  # type: ignore[dict-item]


def write(path: Path, name: str, features: Features, *, half: bool = False) -> None:
    with h5py.File(path, "w") as file:
        file.attrs.update(feature_attributes(features.descriptor, features.settings, provenance()))
        write_features(file.create_group(name), features, half=half)


def write_foreign(path: Path, name: str = "x.jpg", count: int = 5, **arrays: object) -> None:
    """As hloc does, but with plain h5py; an array of None is left out."""
    xy = RNG.uniform(0, 100, (count, 2)).astype(np.float16)
    default = {"keypoints": xy, "descriptors": RNG.normal(size=(16, count)).astype(np.float16)}
    with h5py.File(path, "w") as file:
        group = file.create_group(name)
        for key, array in (default | arrays).items():
            if array is not None:
                group[key] = array


def test_plain_h5py_reads_ours_as_hloc_would(tmp_path: Path) -> None:
    features = made(5)
    write(tmp_path / "f.h5", "sub/a.jpg", features)
    with h5py.File(tmp_path / "f.h5") as file:
        group = file["sub/a.jpg"]
        np.testing.assert_array_equal(group["keypoints"][()], features.keypoints.xy.astype(np.float32))
        np.testing.assert_array_equal(group["descriptors"][()], features.descriptors.T)
        np.testing.assert_array_equal(group["scales"][()], features.keypoints.sigma)
        np.testing.assert_allclose(group["oris"][()], np.degrees(features.keypoints.angle), rtol=1e-6)
        np.testing.assert_array_equal(group["scores"][()], features.keypoints.response)
        np.testing.assert_array_equal(group["image_size"][()], [4000, 3000])
        assert {
            key: group[key].dtype.str[1:] for key in ("keypoints", "descriptors", "scales", "oris")
        } == dict.fromkeys(("keypoints", "descriptors", "scales", "oris"), "f4")
        assert group["keypoints"].attrs["uncertainty"] == 1.0


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", "a.jpg", made(1))
    with h5py.File(tmp_path / "f.h5") as file:
        head = dict(file.attrs)
    assert (head["format"], head["format_number"], head["descriptor"]) == ("keypatch-features", 1, "fake")
    assert "(0, 0)" in head["convention"] and "sigma" in head["convention"] and "clockwise" in head["convention"]
    assert head["patch_sigmas"] == 24.0
    assert json.loads(head["settings"]) == {"patch_sigmas": 24.0}
    assert json.loads(head["provenance"])["version"]


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("sheared", [False, True])
def test_what_is_written_is_read(tmp_path: Path, count: int, sheared: bool) -> None:
    features = made(count, sheared=sheared)
    write(tmp_path / "f.h5", "sub/a b.jpg", features)
    assert read_names(tmp_path / "f.h5") == ["sub/a b.jpg"]
    again = read_features(tmp_path / "f.h5", "sub/a b.jpg")
    np.testing.assert_array_equal(again.descriptors, features.descriptors)
    np.testing.assert_array_equal(again.keypoints.xy, features.keypoints.xy)
    np.testing.assert_allclose(again.keypoints.frames(), features.keypoints.frames(), rtol=1e-5, atol=1e-3)
    assert (again.image_size, again.descriptor, again.settings) == ((4000, 3000), "fake", features.settings)


def test_half_halves_descriptors_and_nothing_else(tmp_path: Path) -> None:
    features = made(5)
    write(tmp_path / "f.h5", "a.jpg", features, half=True)
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["a.jpg/descriptors"].dtype == np.float16
        assert file["a.jpg/keypoints"].dtype == np.float32
    again = read_features(tmp_path / "f.h5", "a.jpg")
    assert again.descriptors.dtype == np.float32
    np.testing.assert_allclose(again.descriptors, features.descriptors, rtol=1e-3)
    np.testing.assert_array_equal(again.keypoints.xy, features.keypoints.xy)


def test_the_uncertainty_grows_with_the_shrinking(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", "a.jpg", made(2, settings={"max_size": 1000}))
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["a.jpg/keypoints"].attrs["uncertainty"] == 4.0


def test_hlocs_own_files_are_read(tmp_path: Path) -> None:
    write_foreign(tmp_path / "h.h5", "db/x.jpg", oris=np.full(5, 90.0, np.float16), scales=np.full(5, 2.0, np.float16))
    features = read_features(tmp_path / "h.h5", "db/x.jpg")
    assert features.descriptors.shape == (5, 16) and features.image_size == (0, 0)
    np.testing.assert_allclose(features.keypoints.angle, np.pi / 2, rtol=1e-3)
    np.testing.assert_allclose(features.keypoints.sigma, 2)


def test_keypoints_without_scales_need_a_sigma_to_be_described_but_not_to_be_matched(tmp_path: Path) -> None:
    write_foreign(tmp_path / "h.h5")
    assert read_features(tmp_path / "h.h5", "x.jpg").keypoints.sigma.tolist() == [1.0] * 5
    with FeatureReader(tmp_path / "h.h5") as reader:
        assert reader.keypoints("x.jpg", sigma=3.0).sigma.tolist() == [3.0] * 5
        with pytest.raises(DataError, match=r"h\.h5: x\.jpg: .*Pass sigma"):
            reader.keypoints("x.jpg")


def test_descriptors_row_by_row_are_read_too(tmp_path: Path) -> None:
    rows = RNG.normal(size=(5, 16)).astype(np.float32)
    write_foreign(tmp_path / "h.h5", descriptors=rows)
    np.testing.assert_array_equal(read_features(tmp_path / "h.h5", "x.jpg").descriptors, rows)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"descriptors": np.zeros((16, 4))}, r"5 keypoints but descriptors of shape \(16, 4\)"),
        ({"descriptors": np.zeros(80)}, r"descriptors of shape \(80,\)"),
        ({"descriptors": None}, "no descriptors"),
        ({"descriptors": np.full((16, 5), np.nan)}, "not finite"),
        ({"descriptors": np.array([b"text"] * 5)}, "not an array of numbers"),
        ({"keypoints": np.zeros(10)}, r"shape \(n, 2\)"),
        ({"keypoints": np.zeros((5, 1))}, r"shape \(n, 2\)"),
        ({"keypoints": np.full((5, 2), np.inf)}, "must be finite"),
        ({"scales": np.ones(4)}, r"sigma must have shape \(5,\)"),
        ({"scales": np.zeros(5)}, "must be above 0"),
        ({"oris": np.zeros((5, 2))}, r"angle must have shape \(5,\)"),
        ({"image_size": np.zeros(3)}, "image_size of x.jpg is not a width and a height"),
        ({"image_size": np.array([np.nan, 5])}, "image_size of x.jpg is not a width and a height"),
        ({"image_size": np.array([-1, 5])}, "image_size of x.jpg is not a width and a height"),
    ],
)
def test_wrong_arrays_are_told(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    write_foreign(tmp_path / "h.h5", **arrays)
    with pytest.raises(DataError, match=message):
        read_features(tmp_path / "h.h5", "x.jpg")


def test_an_array_larger_than_its_file_is_not_allocated(tmp_path: Path) -> None:
    write_foreign(tmp_path / "h.h5", descriptors=None)
    with h5py.File(tmp_path / "h.h5", "a") as file:
        file["x.jpg"].create_dataset("descriptors", (2**34, 5), np.float32, chunks=(1024, 5))
    with pytest.raises(DataError, match="more than the file can hold"):
        read_features(tmp_path / "h.h5", "x.jpg")


def test_values_that_were_never_stored_are_not_allocated(tmp_path: Path) -> None:
    write_foreign(tmp_path / "h.h5", descriptors=None, ballast=np.zeros(2**21, np.uint8))
    with h5py.File(tmp_path / "h.h5", "a") as file:
        file["x.jpg"].create_dataset("descriptors", (2**26, 5), np.float32, chunks=(1024, 5), fillvalue=1)
    assert 1000 * (tmp_path / "h.h5").stat().st_size > 2**26 * 5 * 4  # so the file could hold it
    with pytest.raises(DataError, match="claims 1342177280 bytes, more than"):
        read_features(tmp_path / "h.h5", "x.jpg")


def test_compressed_arrays_are_read(tmp_path: Path) -> None:
    write_foreign(tmp_path / "h.h5", count=5000, descriptors=None)
    with h5py.File(tmp_path / "h.h5", "a") as file:
        file["x.jpg"].create_dataset("descriptors", data=np.zeros((128, 5000), np.float32), compression="gzip")
    assert read_features(tmp_path / "h.h5", "x.jpg").descriptors.shape == (5000, 128)


@pytest.mark.parametrize("name", ["../evil.jpg", "a/../../evil.jpg", "..\\evil.jpg", "C:/a.jpg"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    write_foreign(tmp_path / "h.h5", name)
    with pytest.raises(DataError, match=r"h\.h5: the name .* is not a plain path"):
        read_names(tmp_path / "h.h5")


def test_names_of_no_photo_are_told(tmp_path: Path) -> None:
    write(tmp_path / "h.h5", "x.jpg", made(2))
    for name in ("missing", "x.jpg/keypoints", "", "x.jpg/"):
        with pytest.raises(DataError, match=f'has no photo "{name}"'):
            read_features(tmp_path / "h.h5", name)


@pytest.mark.parametrize("place", ["y.jpg", "x.jpg/scales"])
@pytest.mark.parametrize("link", [h5py.ExternalLink("other.h5", "/x.jpg"), h5py.SoftLink("/x.jpg")])
def test_links_are_refused(tmp_path: Path, place: str, link: object) -> None:
    write(tmp_path / "other.h5", "x.jpg", made(2))
    write_foreign(tmp_path / "h.h5")
    with h5py.File(tmp_path / "h.h5", "a") as file:
        file[place] = link
    with pytest.raises(DataError, match=rf'h\.h5: "{place}" is a link'):
        read_names(tmp_path / "h.h5")
    with pytest.raises(DataError, match=r'h\.h5: "[a-z./]+" is a link'):
        read_features(tmp_path / "h.h5", place.split("/")[0])


def external(group: h5py.Group, secret: Path) -> None:
    group.create_dataset("scales", (5,), "f4", external=[(secret, 0, 20)])


def virtual(group: h5py.Group, secret: Path) -> None:
    layout = h5py.VirtualLayout((5,), "f4")
    layout[:] = h5py.VirtualSource(secret.with_name("other.h5"), "x.jpg/scales", (5,))
    group.create_virtual_dataset("scales", layout)


@pytest.mark.parametrize("plant", [external, virtual])
def test_arrays_kept_in_another_file_are_refused(tmp_path: Path, plant: Callable[[h5py.Group, Path], None]) -> None:
    (tmp_path / "secret").write_bytes(np.arange(1, 6, dtype=np.float32).tobytes())
    write(tmp_path / "other.h5", "x.jpg", made(5))
    write_foreign(tmp_path / "h.h5")
    with h5py.File(tmp_path / "h.h5", "a") as file:
        plant(file["x.jpg"], tmp_path / "secret")
    with pytest.raises(DataError, match=r"h\.h5: /x\.jpg/scales is stored in another file"):
        read_features(tmp_path / "h.h5", "x.jpg")


def test_whatever_h5py_raises_is_a_sentence_about_the_file(tmp_path: Path) -> None:
    """Flipped bytes: h5py raises KeyError, OSError, RuntimeError, TypeError and ValueError for them."""
    write(tmp_path / "f.h5", "a.jpg", made(2))
    content, rng = (tmp_path / "f.h5").read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for place in rng.integers(0, len(damaged), 4):
            damaged[place] = rng.integers(256)
        (tmp_path / "d.h5").write_bytes(damaged)
        try:
            for name in read_names(tmp_path / "d.h5"):
                read_features(tmp_path / "d.h5", name)
        except KeypatchError as error:
            refused += 1
            assert "d.h5" in str(error)
    assert refused > 20


def test_an_empty_array_is_told(tmp_path: Path) -> None:
    write_foreign(tmp_path / "h.h5")
    with h5py.File(tmp_path / "h.h5", "a") as file:
        file["x.jpg/scales"] = h5py.Empty("f")
    with pytest.raises(DataError, match=r"h\.h5 is not a readable HDF5 file"):
        read_features(tmp_path / "h.h5", "x.jpg")


def test_a_photo_may_be_called_keypoints(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", "keypoints", made(2))
    assert read_names(tmp_path / "f.h5") == ["keypoints"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), "There is no feature file"),
        (lambda path: path.write_bytes(b""), "is not a readable feature file"),
        (lambda path: path.write_bytes(path.read_bytes()[:300]), "is not a readable feature file"),
        (lambda path: path.write_text("text"), "is not a readable feature file"),
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    write(tmp_path / "f.h5", "a.jpg", made(2))
    spoil(tmp_path / "f.h5")
    with pytest.raises(DataError, match=message):
        read_names(tmp_path / "f.h5")


def test_newer_and_other_files_of_ours_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", "a.jpg", made(2))
    with h5py.File(tmp_path / "f.h5", "a") as file:
        file.attrs["format_number"] = 2
    with pytest.raises(DataError, match="newer keypatch"):
        read_names(tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5", "a") as file:
        file.attrs["format"] = "keypatch-matches"
    with pytest.raises(DataError, match=r"is not a feature file .its format is keypatch-matches"):
        read_names(tmp_path / "f.h5")


@pytest.mark.parametrize("array", ["a/b/matches0", "keypoints", "net/weights"])
def test_a_file_without_features_is_refused_by_the_reader(tmp_path: Path, array: str) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file[array] = [1.0]
    with pytest.raises(DataError, match=r"f\.h5 is not a feature file: .*keypatch describe"):
        read_names(tmp_path / "f.h5")


@pytest.mark.parametrize(
    ("names", "wanted", "hint"),
    [
        ("a.jpg b.jpg c.jpg d.jpg", "x.jpg", r'It has "a\.jpg", "b\.jpg", "c\.jpg" and 1 more\.'),
        ("a.jpg", "x.jpg", r'It has "a\.jpg"\.'),
        ("db/2/a.jpg", "a.jpg", r'It has "db/2/a\.jpg": give the folder that contains db/2, or set --root to it'),
        ("a.jpg", "db/2/a.jpg", r'It has "a\.jpg": give the folder db/2, or set --root to it'),
        ("", "a.jpg", "It has none"),
    ],
)
def test_a_photo_that_is_not_there_is_compared_with_those_that_are(
    tmp_path: Path, names: str, wanted: str, hint: str
) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "sift", "settings": "{}"})
        for name in names.split():
            file[f"{name}/keypoints"] = np.zeros((1, 2), np.float32)
    with (
        FeatureReader(tmp_path / "f.h5") as reader,
        pytest.raises(DataError, match=f"no features for {wanted}. {hint}"),
    ):
        reader.require([*names.split(), wanted])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format_number", None),
        ("format_number", "abc"),
        ("format_number", [1, 2]),
        ("format", ["keypatch-features", "keypatch-features"]),
        ("format", 5),
        ("format", h5py.Empty("f")),
        ("settings", None),
        ("settings", "{"),
        ("settings", "[1]"),
        ("settings", 5),
        ("descriptor", None),
        ("descriptor", [1.0, 2.0]),
    ],
)
def test_a_damaged_head_is_told_in_a_sentence(tmp_path: Path, name: str, value: object) -> None:
    write(tmp_path / "f.h5", "a.jpg", made(2))
    with h5py.File(tmp_path / "f.h5", "a") as file:
        del file.attrs[name]
        if value is not None:
            file.attrs[name] = value
    with pytest.raises(DataError, match=rf'f\.h5, attribute "{name}" is not a readable value'):
        read_names(tmp_path / "f.h5")
