"""Describing many photos: everything described, once, as each option says."""

import hashlib
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
import torch
from PIL import Image

import keypatch
from keypatch import progress
from keypatch.detection import Dog, Orb
from keypatch.engines import Parallel
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features import Extraction, description, extract, read_features, read_names, read_photo
from keypatch.features.description import Description, describe
from keypatch.features.extraction import FileOptions
from keypatch.geometry import Keypoints
from keypatch.progress import Progress

TWENTY = Extraction(keypoints=20)
NAMES = ["a.png", "b.jpg", "sub/c.png", "sub/d e.png"]


class Told(Progress):
    """Keeps what it is told; asks the process to stop, as Ctrl-C does, when so many are done."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.messages, self.notes, self.counts, self.stop_at = list[str](), list[str](), list[int](), stop_at

    def say(self, message: str) -> None:
        self.messages.append(message)

    def note(self, message: str) -> None:
        self.notes.append(message)

    def count(self, done: int, total: int, unit: str = "photos", detail: str = "") -> None:
        self.counts.append(done)
        if done == self.stop_at:
            signal.raise_signal(signal.SIGINT)


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Every array in the file, by plain h5py."""
    found = dict[str, np.ndarray]()
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def assert_same(a: Path, b: Path) -> None:
    first, second = arrays(a), arrays(b)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


@pytest.mark.parametrize("descriptor", ["rootsift", "hynet-notredame"])
def test_a_folder_becomes_a_file_with_what_extract_gives(photos: Path, tmp_path: Path, descriptor: str) -> None:
    out = describe(photos, tmp_path / "f.h5", descriptor, Extraction(keypoints=60))
    assert read_names(out) == NAMES
    for name in NAMES:
        features = read_features(out, name)
        again = extract(read_photo(photos / name), keypatch.load(descriptor), Extraction(keypoints=60))
        np.testing.assert_array_equal(features.keypoints.xy, again.keypoints.xy)
        np.testing.assert_allclose(features.descriptors, again.descriptors, atol=2e-6)  # another number of threads
        assert features.image_size == (200, 200)
        assert features.settings.items() >= again.settings.items()


def test_a_describer_at_hand_gives_what_its_name_gives(photos: Path, tmp_path: Path) -> None:
    few = Extraction(keypoints=20)
    by_name = describe(photos, tmp_path / "name.h5", "rootsift", few)
    assert_same(describe(photos, tmp_path / "value.h5", keypatch.load("rootsift"), few).path, by_name.path)


def test_settings_name_the_weights(photos: Path, tmp_path: Path) -> None:
    out = describe(photos / "a.png", tmp_path / "f.h5", extraction=Extraction(keypoints=5))
    describer = keypatch.load("hynet-notredame")
    assert read_features(out, "a.png").settings["weights"] == describer.weights_hash  # type: ignore[attr-defined]


@pytest.mark.parametrize("descriptor", ["sift", "hynet-notredame"])
def test_workers_change_nothing_but_the_time(photos: Path, tmp_path: Path, descriptor: str) -> None:
    threads = torch.get_num_threads(), cv2.getNumThreads()
    describe(photos, tmp_path / "1.h5", descriptor, Extraction(keypoints=50))
    describe(photos, tmp_path / "2.h5", descriptor, Extraction(keypoints=50), parallel=Parallel(workers=2))
    first, second = arrays(tmp_path / "1.h5"), arrays(tmp_path / "2.h5")
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_allclose(array, second[name], atol=2e-6)
    assert (torch.get_num_threads(), cv2.getNumThreads()) == threads


def test_what_is_there_is_skipped(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "f.h5"
    describe([photos / "a.png", photos / "b.jpg"], out, "sift", TWENTY, files=FileOptions(root=photos))
    read = list[str]()
    monkeypatch.setattr(
        description, "read_photo", lambda path, **options: (read.append(path.name), read_photo(path))[1]
    )
    told = Told()
    describe(photos, out, "sift", TWENTY, progress=told)
    assert sorted(read) == ["c.png", "d e.png"]
    assert told.counts == [2, 3, 4]
    describe(photos, tmp_path / "whole.h5", "sift", TWENTY)
    assert_same(out, tmp_path / "whole.h5")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"extraction": Extraction(keypoints=30)}, r"keypoints = 20 \(now 30\)"),
        ({"extraction": Extraction(Orb(), keypoints=20)}, r"detector = dog \(now orb\)"),
        ({"describer": "rootsift"}, r"descriptor = sift \(now rootsift\)"),
        ({"files": FileOptions(half=True)}, r"half = False \(now True\)"),
        ({"files": FileOptions(turn_by_exif=True)}, r"turn_by_exif = False \(now True\)"),
        ({"extraction": replace(TWENTY, patch_sigmas=20.0)}, r"patch_sigmas = 18.0 \(now 20.0\)"),
        (
            {"extraction": replace(TWENTY, max_size=100, upright=True)},
            r"max_size = None \(now 100\), upright = False \(now True\)",
        ),
    ],
)
def test_other_settings_are_refused(photos: Path, tmp_path: Path, changed: dict[str, object], message: str) -> None:
    describe(photos / "a.png", tmp_path / "f.h5", "sift", TWENTY)
    with pytest.raises(KeypatchError, match=message):
        describe(photos / "a.png", tmp_path / "f.h5", **{"describer": "sift", "extraction": TWENTY, **changed})  # type: ignore[arg-type]


@pytest.fixture
def ctrl_c_heard() -> Iterator[None]:
    """A shell that starts the tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_heard")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_what_is_done_and_the_same_call_resumes(photos: Path, tmp_path: Path, workers: int) -> None:
    copies = tmp_path / "photos"
    copies.mkdir()
    for number in range(9):
        (copies / f"{number}.png").write_bytes((photos / NAMES[number % 4]).read_bytes())
    told = Told(stop_at=2)
    with pytest.raises(Interrupted, match=r"f\.h5 keeps the \d photos described so far; run the same command"):
        describe(copies, tmp_path / "f.h5", "sift", TWENTY, progress=told, parallel=Parallel(workers=workers))
    assert told.notes == ["describing 9 photos with sift", "Stopping after the current photos."]
    assert 2 <= len(read_names(tmp_path / "f.h5")) < 9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h5", "photos"]
    describe(copies, tmp_path / "f.h5", "sift", TWENTY)
    describe(copies, tmp_path / "whole.h5", "sift", TWENTY)
    assert_same(tmp_path / "f.h5", tmp_path / "whole.h5")


def test_broken_photos_are_told_at_the_end_and_the_others_kept(photos: Path, tmp_path: Path) -> None:
    for name in NAMES[:2]:
        (tmp_path / name).write_bytes((photos / name).read_bytes())
    (tmp_path / "0.png").write_text("text")
    with pytest.raises(DataError) as caught:
        describe(tmp_path, tmp_path / "f.h5", "sift", TWENTY, show=tmp_path / "show.png")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("1 of 3 photos could not be described; fix them or leave them out.")
    assert lines[0].endswith(f"{tmp_path / 'f.h5'} has the others.")
    assert lines[1] == f"{tmp_path / '0.png'} is not an image that can be read."
    assert read_names(tmp_path / "f.h5") == NAMES[:2]
    assert (tmp_path / "show.png").exists()
    (tmp_path / "0.png").write_bytes((photos / "a.png").read_bytes())
    describe([tmp_path / name for name in ("0.png", "a.png", "b.jpg")], tmp_path / "f.h5", "sift", TWENTY)
    assert read_names(tmp_path / "f.h5") == ["0.png", *NAMES[:2]]


def test_a_stop_before_the_first_photo_leaves_no_file(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress.StopWish, "__bool__", lambda wish: True)
    with pytest.raises(Interrupted, match=f"^{re.escape(str(Interrupted()))}$"):
        describe(photos / "a.png", tmp_path / "f.h5", "sift", TWENTY)
    assert not list(tmp_path.iterdir())


def test_if_no_photo_can_be_described_the_list_is_named_and_no_file_left(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk\n\nbread\n")
    with pytest.raises(DataError) as caught:
        describe(tmp_path / "notes.txt", tmp_path / "f.h5", "sift")
    lines = str(caught.value).splitlines()
    assert lines[0] == "None of the 2 photos could be described."
    assert (
        lines[1] == f"{tmp_path / 'notes.txt'}, line 1: {tmp_path / 'milk'} cannot be read: no such file or directory."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    describe(photos / "a.png", tmp_path / "f.h5", "sift", Extraction(keypoints=5))
    with pytest.raises(DataError, match="None of the 2"):
        describe(tmp_path / "notes.txt", tmp_path / "f.h5", "sift", Extraction(keypoints=5))
    assert read_names(tmp_path / "f.h5") == ["a.png"]


def test_of_another_descriptor_nothing_else_is_told(photos: Path, tmp_path: Path) -> None:
    describe(photos / "a.png", tmp_path / "f.h5", "hynet-notredame", Extraction(keypoints=5))
    with pytest.raises(KeypatchError, match=r"settings: descriptor = hynet-notredame \(now sift\)\. Choose"):
        describe(photos / "a.png", tmp_path / "f.h5", "sift", Extraction(keypoints=5))


def test_a_picture_that_cannot_be_written_hides_no_broken_photo(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "0.png").write_text("text")
    given, nowhere, told = [photos / "a.png", tmp_path / "0.png"], tmp_path / "0.png" / "show.png", Told()
    with pytest.raises(DataError, match=r"1 of 2 photos could not be described"):
        describe(given, tmp_path / "f.h5", "sift", TWENTY, show=nowhere, progress=told)
    assert told.messages == [f"{nowhere.parent} is a file, not a folder. Choose another name."]
    with pytest.raises(KeypatchError, match=r"0\.png is a file, not a folder"):
        describe(given[:1], tmp_path / "f.h5", "sift", TWENTY, show=nowhere)


@pytest.mark.parametrize("function", ["read_photo", "extract_grey"])
def test_a_photo_too_large_for_the_memory_is_told_as_the_others(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(description, function, exhausted)
    with pytest.raises(DataError, match=r"a\.png could not be described \(no room\)"):
        describe(photos / "a.png", tmp_path / "f.h5", "sift")


def test_another_photo_of_the_same_name_is_not_taken_for_the_old_one(photos: Path, tmp_path: Path) -> None:
    photo, out = tmp_path / "x.png", tmp_path / "f.h5"
    photo.write_bytes((photos / "a.png").read_bytes())
    describe(photo, out, "sift", TWENTY)
    before = out.read_bytes()
    with h5py.File(out) as file:
        stamp = dict(file["x.png"].attrs)
    content = photo.read_bytes()
    assert stamp == {"photo_bytes": len(content), "photo_sha256": hashlib.sha256(content).hexdigest()}
    changed = bytearray(content)
    changed[-1] ^= 1  # the size stays
    for other in ((photos / "sub" / "c.png").read_bytes(), bytes(changed)):
        photo.write_bytes(other)
        with pytest.raises(
            DataError, match=r"^x\.png in .*f\.h5 is a different photo from .*x\.png\. Choose another output"
        ):
            describe(photo, out, "sift", TWENTY)
        assert out.read_bytes() == before
    photo.write_bytes(content)
    describe(photo, out, "sift", TWENTY)
    with h5py.File(out, "a") as file:  # as an older version wrote it
        for name in stamp:
            del file["x.png"].attrs[name]
    photo.write_bytes(bytes(changed))
    describe(photo, out, "sift", TWENTY)


def test_many_failures_are_summed_up(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("".join(f"{number:02d}.png\n" for number in range(25)))
    with pytest.raises(
        DataError,
        match=r"(?s)None of the 25 photos .*00\.png cannot be read.*09\.png cannot be read.*\nand 15 more$",
    ) as e:
        describe(tmp_path / "list.txt", tmp_path / "f.h5", "sift")
    assert "10.png" not in str(e.value)


def tagged(path: Path, source: Path, tag: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = tag
    Image.open(source).save(path, exif=exif)


def test_photos_with_exif_tags_are_named_in_a_warning(photos: Path, tmp_path: Path) -> None:
    for name, tag in {"a.png": 1, "b.png": 1, "c.png": 6, "d.png": 3}.items():
        tagged(tmp_path / name, photos / "a.png", tag)
    told = Told()
    describe(tmp_path, tmp_path / "f.h5", "sift", TWENTY, progress=told)
    assert told.messages == [
        "Rotated by an EXIF tag: 2 of 4 photos, c.png (6), d.png (3). Their pixels are used as stored, but viewers and "
        "cv2.imread rotate them; so do describe and match with --turn-by-exif."
    ]
    with pytest.warns(UserWarning, match=r"c\.png \(6\), d\.png \(3\)"):
        describe(tmp_path, tmp_path / "g.h5", "sift", TWENTY)


def test_equal_tags_are_told_too_unless_photos_are_turned_by_them(photos: Path, tmp_path: Path) -> None:
    tagged(tmp_path / "a.png", photos / "a.png", 3)
    told = Told()
    stored = describe(tmp_path, tmp_path / "f.h5", "sift", Extraction(keypoints=None), progress=told)
    turned = describe(
        tmp_path,
        tmp_path / "g.h5",
        "sift",
        Extraction(keypoints=None),
        progress=told,
        files=FileOptions(turn_by_exif=True),
    )
    assert [message.split(".")[0] for message in told.messages] == ["Rotated by an EXIF tag: 1 of 1 photos, a"]
    plain = describe(photos / "a.png", tmp_path / "h.h5", "sift", Extraction(keypoints=None))
    assert_same(stored, plain)
    there = {tuple(row) for row in (199 - read_features(plain, "a.png").keypoints.xy).round(0)}
    here = {tuple(row) for row in read_features(turned, "a.png").keypoints.xy.round(0)}
    assert len(there & here) > 0.8 * len(there)


def test_keypoints_of_a_file_are_described_in_their_order(photos: Path, tmp_path: Path) -> None:
    xy = np.float32([[150, 20], [20, 150], [100, 100]])
    with h5py.File(tmp_path / "k.h5", "w") as file:
        file["a.png/keypoints"], file["a.png/scales"], file["a.png/oris"] = (
            xy,
            np.float32([2, 3, 4]),
            np.float32([9] * 3),
        )
        file["../evil.png/keypoints"] = xy  # never asked for
    out = describe(photos / "a.png", tmp_path / "f.h5", "rootsift", keypoints_from=tmp_path / "k.h5")
    features = read_features(out, "a.png")
    np.testing.assert_array_equal(features.keypoints.xy, xy)
    given = Keypoints(xy[:, 0], xy[:, 1], np.float32([2, 3, 4]), np.radians(np.float32([9] * 3)))
    again = extract(read_photo(photos / "a.png"), keypatch.load("rootsift"), Extraction(), given)
    np.testing.assert_array_equal(features.descriptors, again.descriptors)
    assert features.settings["detector"] == "file" and "keypoints" not in features.settings
    assert read_names(out) == ["a.png"]


def test_keypoints_of_another_file_or_another_size_are_refused(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text("x,y,sigma\n10,20,2\n")
    describe(photos / "a.png", tmp_path / "f.h5", "sift", keypoints_from=tmp_path / "k.csv")
    (tmp_path / "k.csv").write_text("x,y,sigma\n10,20,2\n250,20,2\n")
    with pytest.raises(KeypatchError, match=r"detector\.hash = "):
        describe(photos / "a.png", tmp_path / "f.h5", "sift", keypoints_from=tmp_path / "k.csv")
    with pytest.raises(DataError, match=r"a\.png: keypoint 1 at \(250, 20\) lies outside the photo of 200 x 200"):
        describe(photos / "a.png", tmp_path / "g.h5", "sift", keypoints_from=tmp_path / "k.csv")


def test_half_is_half(photos: Path, tmp_path: Path) -> None:
    out = describe(photos / "a.png", tmp_path / "f.h5", "rootsift", TWENTY, files=FileOptions(half=True))
    with h5py.File(out) as file:
        assert file["a.png/descriptors"].dtype == np.float16 and file["a.png/keypoints"].dtype == np.float32


def test_broken_weights_stop_everything(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = keypatch.load("sift")
    monkeypatch.setattr(
        type(broken), "describe", lambda self, patches: np.full((len(patches), 128), np.nan, np.float32)
    )
    with pytest.raises(KeypatchError, match="non-finite descriptors"):
        describe(photos, tmp_path / "f.h5", "sift")
    assert not (tmp_path / "f.h5").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"files": FileOptions(sigma=2.0)},
            "--sigma is the scale of keypoints from a file. Leave it out",
        ),
        ({"keypoints_from": "k.csv", "extraction": TWENTY}, "Leave out --keypoints, which would have no effect"),
        (
            {"keypoints_from": "k.csv", "extraction": Extraction(rule="largest", max_size=99)},
            "Leave out --rule, --max-size, which",
        ),
        ({"keypoints_from": "k.csv", "extraction": Extraction(Orb())}, "Leave out --detector, which"),
        ({"keypoints_from": "k.csv", "extraction": Extraction(Dog(0.02))}, "Leave out --detector, which"),
        ({"describer": "siift"}, 'Did you mean "sift"'),
        ({"keypoints_from": "absent.csv"}, r"absent\.csv cannot be read"),
    ],
)
def test_wrong_options_are_told_before_anything_is_written(
    photos: Path, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(KeypatchError, match=message):
        describe(photos, tmp_path / "f.h5", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_values_that_cannot_be_are_refused() -> None:
    with pytest.raises(KeypatchError, match="workers is 0; it must be 1 or more"):
        Parallel(workers=0)
    with pytest.raises(KeypatchError, match=r"rule must be one of .*'best'"):
        Extraction(rule="best")  # type: ignore[arg-type]


def test_what_was_done_is_told_and_stands_for_the_file(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.h5"
    assert describe(photos / "a.png", out, "sift", TWENTY) == Description(out, described=1, skipped=0)
    made = describe(photos, out, "sift", TWENTY)
    assert (made.described, made.skipped, Path(made)) == (3, 1, out)
    assert read_names(made) == sorted(NAMES)


@pytest.fixture
def masks(photos: Path, tmp_path: Path) -> Path:
    """The left half of a.png is black in COLMAP's naming; other photos have no mask."""
    mask = np.full((200, 200), 255, np.uint8)
    mask[:, :100] = 0
    folder = tmp_path / "masks"
    folder.mkdir()
    Image.fromarray(mask).save(folder / "a.png.png")
    return folder


def test_no_keypoint_lies_where_the_mask_is_black_and_the_budget_is_spent_on_the_rest(
    photos: Path, masks: Path, tmp_path: Path
) -> None:
    out = tmp_path / "f.h5"
    describe(photos, out, "sift", TWENTY, files=FileOptions(masks=masks))
    masked, whole = (read_features(out, name).keypoints for name in ("a.png", "b.jpg"))
    assert len(masked) == 20 and masked.x.min() > 99  # rounded to the pixel that it lies on
    assert whole.x.min() < 99


def test_masks_are_part_of_the_settings_of_a_file(photos: Path, masks: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.h5"
    describe(photos, out, "sift", TWENTY, files=FileOptions(masks=masks))
    with pytest.raises(KeypatchError, match="masks"):
        describe(photos, out, "sift", TWENTY)


def test_masks_of_no_photo_or_of_another_size_are_refused(photos: Path, masks: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no mask for any photo.*b\.jpg\.png"):
        describe(photos / "b.jpg", tmp_path / "f.h5", "sift", TWENTY, files=FileOptions(masks=masks))
    Image.new("L", (100, 200), 255).save(masks / "a.png.png")
    with pytest.raises(DataError, match=r"100 x 200 pixels, but its photo has 200 x 200"):
        describe(photos / "a.png", tmp_path / "f.h5", "sift", TWENTY, files=FileOptions(masks=masks))
    with pytest.raises(KeypatchError, match="--masks"):
        describe(
            photos / "a.png", tmp_path / "g.h5", "sift", keypoints_from=_csv(tmp_path), files=FileOptions(masks=masks)
        )


def _csv(folder: Path) -> Path:
    (folder / "k.csv").write_text("x,y,sigma\n50,50,3\n")
    return folder / "k.csv"
