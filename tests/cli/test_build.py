"""`keypatch build` from the command line: options from the table of methods, sentences, exit codes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from room_fixtures import FOCAL, Room

from keypatch.building.methods import METHODS

QUICK = ("--descriptor", "rootsift", "--keypoints", 700)


def test_every_method_is_offered_with_its_options(keypatch: Callable) -> None:
    shown = keypatch("build", "--help").out
    assert f"[{'|'.join(METHODS)}]" in shown
    for option in ("--track-length", "--model", "--aligned", "--held-out", "--masks", "--terms", "--share-camera"):
        assert option in shown


def test_pairs_are_built_and_inspected(keypatch: Callable, room: Room, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("2.png 3.png\n")
    out = tmp_path / "mine"
    words = ("--method", "pairs", "--pairs", tmp_path / "pairs.txt", "--terms", "CC0", *QUICK)
    said = keypatch("build", room.photos, "--out", out, *words)
    assert said.code == 0, said.err
    assert "patches" in said.out and "label noise" in said.out and f"Written: {out}, {out / 'build.html'}" in said.out
    assert "The set is small" in said.out
    shown = keypatch("inspect", out)
    assert shown.code == 0 and "method pairs" in shown.out and "CC0" in shown.out
    again = keypatch("build", room.photos, "--out", out, *words)
    assert again.code == 0 and "already built" in again.err and again.out == said.out


def test_tracks_are_built_and_split(keypatch: Callable, room: Room, tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    out = tmp_path / "mine"
    said = keypatch("build", room.photos, "--out", out, "--held-out", 0.3, "--focal", FOCAL, "--share-camera", *QUICK)
    assert said.code == 0, said.err
    assert "patches (train)" in said.out and "patches (test)" in said.out
    for part in ("train", "test"):
        assert keypatch("inspect", out / part).code == 0
    scored = keypatch("evaluate", "rootsift", "--data", out / "test")
    assert scored.code == 0, scored.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--method", "homography"), "--method homography: there is no such method"),
        (("--method", "pairs", "--track-length", 4), "--track-length has no effect with --method pairs"),
        (("--aligned",), "--aligned has no effect with --method tracks"),
        (("--held-out", 1), "held_out is 1.0; it must be below 1"),
        (("--track-length", 1), "track_length is 1; it must be 2 or more"),
        (("--model", "nowhere"), "There is no folder nowhere"),
    ],
)
def test_wrong_options_are_a_sentence(
    keypatch: Callable, room: Room, tmp_path: Path, words: tuple[object, ...], sentence: str
) -> None:
    said = keypatch("build", room.photos, "--out", tmp_path / "out", *words)
    assert said.code == 2 and sentence in said.err and "Traceback" not in said.err, said.err
    assert not (tmp_path / "out").exists()


def test_one_photo_and_an_empty_folder_are_a_sentence(keypatch: Callable, room: Room, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for photos, sentence in ((room.photos / "0.png", "two photos or more"), (tmp_path / "empty", "No photos found")):
        said = keypatch("build", photos, "--out", tmp_path / "out")
        assert said.code == 2 and sentence in said.err and len(said.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
