"""`keypatch build` from the command line: options from the table of methods, sentences, exit codes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from room_fixtures import FOCAL, Room

from keypatch.building.methods import METHODS

QUICK = ("--descriptor", "rootsift", "--keypoints", 700)


def test_every_method_is_offered_with_its_options(keypatch: Callable) -> None:
    shown = keypatch("build", "--help").out
    assert all(name in shown for name in METHODS)
    for option in (
        "--points",
        "--views",
        "--largest-sigma",
        "default: 700, sequences 1000",
        "--track-length",
        "--model",
        "--aligned",
        "--held-out",
        "--masks",
        "--terms",
        "--share-camera",
    ):
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
        (("--method", "homographies", "--track-length", 4), "--track-length has no effect with --method homographies"),
        (("--method", "homographies", "--pairs", "exhaustive"), "--pairs has no effect with --method homographies"),
        (("--method", "homographies", "--keypoints", 5), "--keypoints has no effect with --method homographies"),
        (("--method", "homographies", "--views", 1), "views is 1; it must be 2 or more"),
        (("--method", "homographies", "--contrast", 9), "Lower --contrast or --smallest-sigma"),
        (("--method", "sequences", "--held-out", 0.2), "--held-out has no effect with --method sequences"),
        (("--method", "sequences", "--views", 4), "--views has no effect with --method sequences"),
        (("--method", "sequences"), "has no sequences (folders with img1.png"),
        (("--points", 5), "--points has no effect with --method tracks"),
        (("--set", "homographies.points=5"), "--set has no effect with --method tracks"),
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


@pytest.fixture
def plane(tmp_path: Path) -> Path:
    """A folder with a sequence of six photos whose camera moves by whole pixels."""
    from skimage import data

    folder, photo = tmp_path / "sequences" / "cat", data.chelsea()[:, :, 1]
    folder.mkdir(parents=True)
    for number in range(1, 7):
        shift = 4 * (number - 1)
        Image.fromarray(photo[shift:, shift:]).save(folder / f"img{number}.png")
        if number > 1:
            np.savetxt(folder / f"H1to{number}p", [[1, 0, -shift], [0, 1, -shift], [0, 0, 1]])
    return folder.parent


def test_single_photos_are_built_split_and_scored(keypatch: Callable, room: Room, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    words = ("--method", "homographies", "--points", 40, "--views", 3, "--held-out", 0.3, "--terms", "CC0")
    said = keypatch("build", room.photos, "--out", out, *words)
    assert said.code == 0, said.err
    assert "patches (train)" in said.out and "exact by construction" in said.out
    shown = keypatch("inspect", out)
    assert shown.code == 0 and "method homographies" in shown.out and "exact by construction" in shown.out
    scored = keypatch("evaluate", "rootsift", "--data", out / "test")
    assert scored.code == 0, scored.err
    again = keypatch("build", room.photos, "--out", out, *words)
    assert again.code == 0 and "already built" in again.err and again.out == said.out
    other = keypatch("build", room.photos, "--out", out, *words, "--turn", 10)
    assert other.code == 2 and "built otherwise: homographies.turn = 45.0 (now 10.0)" in other.err


def test_sequences_become_strips_that_are_inspected_and_scored(keypatch: Callable, plane: Path, tmp_path: Path) -> None:
    out = tmp_path / "strips"
    words = ("--method", "sequences", "--points", 30, "--set", "smallest_sigma=2", "--terms", "CC0")
    said = keypatch("build", plane, "--out", out, *words)
    assert said.code == 0, said.err
    assert "480 in 30 classes" in said.out and f"Written: {out}, {out / 'build.html'}" in said.out
    shown = keypatch("inspect", out)
    assert shown.code == 0 and "method sequences" in shown.out and "30, 16 patches each" in shown.out
    assert "CC0" in shown.out and "6 photos with fingerprints" in shown.out
    scored = keypatch("evaluate", "rootsift", "--on", "hpatches", "--data", out)
    assert scored.code == 0 and "rank-1" in scored.out, scored.err


def test_a_sequence_without_a_homography_is_a_sentence(keypatch: Callable, plane: Path, tmp_path: Path) -> None:
    (plane / "cat" / "H1to4p").unlink()
    said = keypatch("build", plane, "--out", tmp_path / "out", "--method", "sequences")
    assert said.code == 2 and "has a photo 4 but no homography H_1_4 or H1to4p" in said.err
    assert len(said.err.splitlines()) == 1 and not (tmp_path / "out").exists()


def test_a_photo_without_points_is_a_sentence(keypatch: Callable, tmp_path: Path) -> None:
    Image.fromarray(np.full((200, 200), 90, np.uint8)).save(tmp_path / "blank.png")
    said = keypatch("build", tmp_path / "blank.png", "--out", tmp_path / "out", "--method", "homographies")
    assert (
        said.code == 2
        and "No point in blank.png passes the thresholds." in said.err
        and not (tmp_path / "out").exists()
    )
