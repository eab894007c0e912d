"""`build`: what it writes, skips, refuses and resumes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from build_fixtures import Told, content
from PIL import Image
from room_fixtures import QUICK, Room

import keypatch as kp
from keypatch.errors import DataError, Interrupted, KeypatchError


def test_every_file_is_there_and_nothing_unfinished(built: kp.BuiltSet) -> None:
    names = {name.split("0")[0] for name in content(built.folder)}
    assert {"build.html", "build.json", "card.json", "info.txt", "interest.txt", "patches"} <= names
    assert not (built.folder / "unfinished").exists() and not (built.folder / ".lock").exists()
    assert built.page.exists() and built.sets == {"": built.folder}


def test_a_stage_is_told_with_its_counts(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    told = Told()
    kp.build(room.photos, tmp_path / "out", kp.Tracks(model=built.folder / "reconstruction"), progress=told)
    assert told.units == ["photos checked", "photos for keypoints", "photos cut", "photos hashed"]


@pytest.mark.parametrize(("unit", "at"), [("photos", 3), ("pairs", 9), ("photos cut", 3), ("photos hashed", 2)])
def test_an_interrupted_build_is_resumed_to_the_same_bytes(
    built: kp.BuiltSet, room: Room, tmp_path: Path, unit: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.building.cutting.EVERY", 0.0)
    out = tmp_path / built.folder.name
    if unit not in ("photos", "pairs"):  # the slow part before is as it was
        out.mkdir()
        shutil.copytree(built.folder / "reconstruction", out / "reconstruction")
        state = json.loads((built.folder / "build.json").read_text()) | {"finished": False}
        (out / "build.json").write_text(json.dumps(state))
    with pytest.raises(Interrupted):
        kp.build(room.photos, out, kp.Tracks(), progress=Told(unit, at), **QUICK)
    assert not (out / "info.txt").exists()
    if unit == "photos cut":
        assert (out / "unfinished" / "patches-done.txt").read_text().count("\n") >= at
    told = Told()
    kp.build(room.photos, out, kp.Tracks(), progress=told, **QUICK)
    assert content(out) == content(built.folder)


def test_what_was_cut_before_a_stop_is_not_cut_again(
    built: kp.BuiltSet, room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = kp.Tracks(model=built.folder / "reconstruction")
    with pytest.raises(Interrupted):
        kp.build(room.photos, tmp_path / "out", model, progress=Told("photos cut", 5))
    from keypatch.building.cutting import PatchCutter

    cut = list[int]()
    monkeypatch.setattr("keypatch.building.cutting.PatchCutter", lambda image: (cut.append(1), PatchCutter(image))[1])
    kp.build(room.photos, tmp_path / "out", model)
    assert len(cut) == 2  # of seven


def test_patches_of_another_plan_are_cut_again(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    """A journal of other rows, as of a changed model, counts for nothing."""
    out, model = tmp_path / "out", kp.Tracks(model=built.folder / "reconstruction")
    with pytest.raises(Interrupted):
        kp.build(room.photos, out, model, progress=Told("photos cut", 5))
    journal = out / "unfinished" / "patches-done.txt"
    journal.write_text("another\n" + "".join(f"{number}\n" for number in range(7)))
    kp.build(room.photos, out, model)
    assert (out / "patches0000.bmp").read_bytes() == (built.folder / "patches0000.bmp").read_bytes()


def test_a_finished_build_is_not_built_again_and_other_settings_are_refused(built: kp.BuiltSet, room: Room) -> None:
    before = content(built.folder)
    again = kp.build(room.photos, built.folder, kp.Tracks(), **QUICK)
    assert again.cards == built.cards
    with pytest.raises(KeypatchError, match=r"built otherwise: tracks.track_length = 3 \(now 4\).*--model"):
        kp.build(room.photos, built.folder, kp.Tracks(track_length=4), **QUICK)
    assert content(built.folder) == before


def test_a_corrupt_photo_is_named_and_skipped(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    shutil.copytree(room.photos, photos)
    whole = (photos / "6.png").read_bytes()
    (photos / "6.png").write_bytes(whole[: len(whole) // 2])
    (photos / "7.jpg").write_bytes(b"no photo")
    told = Told()
    made = kp.build(photos, tmp_path / "out", kp.Tracks(model=built.folder / "reconstruction"), progress=told)
    assert ["6.png" in told.messages[0], "7.jpg" in told.messages[1]] == [True, True]
    assert [source["name"] for source in made.cards[""]["sources"]] == [f"{number}.png" for number in range(6)]
    assert len(made.skipped) == 2 and "7.jpg" in made.page.read_text()


@pytest.mark.slow
def test_a_corrupt_photo_does_not_stop_the_reconstruction(room: Room, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    shutil.copytree(room.photos, photos)
    (photos / "6.png").write_bytes(b"\x89PNG")
    made = kp.build(photos, tmp_path / "out", kp.Tracks(), progress=Told(), **QUICK)
    assert made.cards[""]["counts"]["photos"] == 6


def test_photos_without_overlap_end_with_the_step_that_found_nothing(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="no model: no two photos have matches that agree on a geometry"):
        kp.build(photos, tmp_path / "out", describer="rootsift", extraction=kp.Extraction(keypoints=200))


def test_two_photos_have_no_tracks(room: Room, tmp_path: Path) -> None:
    both = [room.photos / "0.png", room.photos / "1.png"]
    with pytest.raises(KeypatchError, match=r"mapping step found no 3D model.*--method pairs"):
        kp.build(both, tmp_path / "out", **QUICK)


def test_one_photo_and_none_are_a_sentence_and_leave_nothing(room: Room, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match=r"two photos or more, but .*0.png has only 0.png"):
        kp.build(room.photos / "0.png", tmp_path / "out")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="No photos found"):
        kp.build(empty, tmp_path / "out")
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("a.png", "b.png"):
        (broken / name).write_bytes(b"no photo")
    with pytest.raises(KeypatchError, match=r"has none \(2 photos could not be read\)"):
        kp.build(broken, tmp_path / "out", progress=Told())
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_not_touched(room: Room, tmp_path: Path) -> None:
    (tmp_path / "info.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty and is not a keypatch build"):
        kp.build(room.photos, tmp_path)
    assert (tmp_path / "info.txt").read_text() == "mine"
    with pytest.raises(KeypatchError, match=r'no method "track"\. Did you mean "tracks"'):
        kp.build(room.photos, tmp_path / "out", "track")


def test_a_held_out_region_shares_no_place_with_the_rest(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    method = kp.Tracks(model=built.folder / "reconstruction")
    made = kp.build(room.photos, tmp_path / "out", method, kp.Building(held_out=0.25))
    train, test = (kp.open_patches(made.sets[part]) for part in ("train", "test"))
    assert 0.15 < len(test.classes().starts) / (len(train.classes().starts) + len(test.classes().starts)) < 0.4
    for image in range(7):
        here, there = train.image_id == image, test.image_id == image
        apart = np.linalg.norm(train.keypoints.xy[here][:, None] - test.keypoints.xy[there][None], axis=2)
        reach = 12 * np.maximum(train.keypoints.sigma[here][:, None], test.keypoints.sigma[there][None])
        assert np.all(apart > reach * (1 - 1e-6))
    assert not (made.folder / "info.txt").exists()
    assert {card["part"] for card in made.cards.values()} == {"train", "test"}
    assert kp.inspect(made.folder).facts["test patches"].startswith(f"{len(test):,}")


def test_memory_holds_no_more_than_a_chunk(built: kp.BuiltSet, room: Room, tmp_path: Path) -> None:
    """The patches that are written come from a file on disk, not from memory."""
    from keypatch.building import cutting

    seen = list[object]()
    original = cutting.cut_into

    def spy(*arguments: object) -> np.ndarray:
        made = original(*arguments)
        seen.append(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keypatch.building.cutting.cut_into", spy)
        kp.build(room.photos, tmp_path / "out", kp.Tracks(model=built.folder / "reconstruction"))
    assert isinstance(seen[0], np.memmap) or isinstance(seen[0].base, np.memmap)


def test_the_page_is_one_file_with_the_numbers_of_the_card(built: kp.BuiltSet) -> None:
    page, card = built.page.read_text(), built.cards[""]
    assert f"{card['counts']['patches']:,} in {card['counts']['classes']:,} classes" in page
    assert page.count("data:image/png;base64") == 24 + 36
    assert "http" not in page.replace("http-equiv", "") and "<script" not in page


def test_inspect_knows_the_set_and_an_unfinished_one(built: kp.BuiltSet, tmp_path: Path) -> None:
    found = kp.inspect(built.folder)
    assert found.kind == "patch set built from photos" and found.problems == ()
    assert found.facts["built by"] == "method tracks" and "label noise" in found.facts
    shutil.copy(built.folder / "build.json", tmp_path / "build.json")
    state = json.loads((tmp_path / "build.json").read_text()) | {"finished": False}
    (tmp_path / "build.json").write_text(json.dumps(state))
    assert "not finished" in kp.inspect(tmp_path).problems[0]


def test_photos_of_16_bits_and_in_colour_are_cut_as_they_are_read(
    room: Room, built: kp.BuiltSet, tmp_path: Path
) -> None:
    photos = tmp_path / "photos"
    shutil.copytree(room.photos, photos)
    grey = np.asarray(Image.open(photos / "3.png"))
    Image.fromarray(grey.astype(np.uint16) * 257).save(photos / "3.png")
    made = kp.build(photos, tmp_path / "out", kp.Tracks(model=built.folder / "reconstruction"))
    assert (made.folder / "patches0000.bmp").read_bytes() == (built.folder / "patches0000.bmp").read_bytes()
