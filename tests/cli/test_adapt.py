"""`keypatch adapt` from the command line: options from the table of methods, what is printed, sentences, exit codes."""

from collections.abc import Callable
from pathlib import Path

import cv2
import pytest
from skimage import data

from keypatch.commands.adapt import pipeline

QUICK = ("--points", 60, "--views", 3, "--contrast", 0.01, "--list-size", 200, "--budget", 200, "--threads", 1)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three crops of photographs that show different things."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in ("camera", "coins", "brick"):
        cv2.imwrite(str(folder / f"{name}.png"), getattr(data, name)()[:240, :320])
    return folder


@pytest.fixture
def quick(small_set: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[object, ...]:
    """Words for a short adaptation of a thin network, which forgets on a small set."""
    monkeypatch.setattr(pipeline, "OTHERS", str(small_set))
    return ("--method", "homographies", *QUICK, "--descriptor", run_folder, "--set", "compile=off")


def test_options_of_building_and_training_are_offered_and_those_of_strips_are_not(keypatch: Callable) -> None:
    shown = keypatch("adapt", "--help").out
    options = (
        "--budget",
        "--learning-rate",
        "--held-out",
        "--masks",
        "--model",
        "--share-camera",
        "--views",
        "--threads",
    )
    assert all(option in shown for option in options)
    assert "[tracks|pairs|homogr" in shown and "0.25]" in shown
    assert "sequences" not in shown and "--tensorboard" not in shown


def test_photos_become_a_descriptor_that_other_commands_take(
    keypatch: Callable, photographs: Path, tmp_path: Path, quick: tuple[object, ...]
) -> None:
    out = tmp_path / "mine"
    said = keypatch("adapt", photographs, "--out", out, *quick)
    assert said.code == 0, said.err
    assert "fine-tuning on" in said.err and "scoring on the held-out part" in said.err
    assert all(name in said.out for name in ("rootsift", "mine", "FPR95 % hard", "rank-1 %"))
    assert "points are held out, so only large differences can be shown" in said.out
    assert said.out.splitlines()[-1] == f"Written: {out}, {out / 'adapt.html'}"
    again = keypatch("adapt", photographs, "--out", out, *quick)
    assert again.code == 0 and again.out == said.out and f"{out} already has the finished adaptation." in again.err
    pair = photographs / "camera.png", photographs / "coins.png"
    assert keypatch("describe", *pair, "--out", tmp_path / "f.h5", "--descriptor", out, "--keypoints", 20).code == 0
    assert "descriptor adapted to photos" in keypatch("inspect", out).out
    other = keypatch("adapt", photographs, "--out", out, *quick, "--learning-rate", 0.1)
    assert other.code == 2 and "was adapted otherwise: adapting.learning_rate" in other.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--descriptor", "sift"), '"sift" is hand-crafted and has no network'),
        (("--method", "sequences"), "--method sequences: there is no such method"),
        (("--method", "homographies", "--track-length", 3), "--track-length has no effect with --method homographies"),
        (("--method", "homographies", "--share-camera"), "--share-camera has no effect with --method homographies"),
        (("--held-out", 0), "set --held-out above 0"),
        (("--budget", 0), "--budget"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_leaves_no_folder(
    keypatch: Callable, photographs: Path, tmp_path: Path, words: tuple[object, ...], sentence: str
) -> None:
    said = keypatch("adapt", photographs, "--out", tmp_path / "mine", *words)
    assert said.code == 2 and sentence in said.err and len(said.err.splitlines()) == 1
    assert not (tmp_path / "mine").exists()


def test_photos_that_do_not_overlap_are_one_sentence(
    keypatch: Callable, photographs: Path, tmp_path: Path, run_folder: Path
) -> None:
    pytest.importorskip("pycolmap")
    words = ("--descriptor", run_folder, "--keypoints", 200)
    said = keypatch("adapt", photographs, "--out", tmp_path / "mine", *words)
    assert said.code == 2 and "COLMAP found no model" in said.err.splitlines()[-1]
