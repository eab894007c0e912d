"""Ctrl-C before the work begins: one sentence says what is kept, and the exit code is 130."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.cli import commands
from keypatch.cli.main import run

NOTHING = "keypatch: Stopped; nothing was written. Run the same command to start again.\n"

# The signal comes when the named module is about to be imported. A shell that starts the tests in the background has
# SIGINT ignored, and so would its children.
CHILD = """
import os, signal, sys
from keypatch.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
module = sys.argv.pop(1)
class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
main()
"""


def interrupted(module: str, *words: object) -> str:
    command = [sys.executable, "-c", CHILD, module, *map(str, words)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 130, process.stderr
    assert process.stdout == ""
    return process.stderr.lstrip("\n")


posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@posix
@pytest.mark.parametrize("words", [("describe", "photos", "--out", "f.h5"), ("evaluate", "sift"), ()])
def test_while_the_commands_themselves_are_imported(words: tuple[str, ...]) -> None:
    assert interrupted("typer", *words) == NOTHING


WORK = {
    "describe": ("keypatch.features.description", "describe photos --out {out}"),
    "match": ("keypatch.matching.pairs", "match --features f.h5 --pairs exhaustive --out {out}"),
    "match two": ("keypatch.matching.image_matches", "match a.jpg b.jpg --out {out}"),
    "reconstruct": ("keypatch.reconstruction.pipeline", "reconstruct photos --out {out}"),
    "train": ("keypatch.commands.train", "train hardnet --data embedded --out {out}"),
}


@posix
@pytest.mark.parametrize(("module", "line"), WORK.values(), ids=WORK)
def test_before_anything_was_written(tmp_path: Path, module: str, line: str) -> None:
    assert interrupted(module, *line.format(out=tmp_path / "out").split()) == NOTHING
    assert not any(tmp_path.iterdir())


@posix
def test_what_an_earlier_command_wrote_is_kept_and_said_so(tmp_path: Path) -> None:
    out = tmp_path / "f.h5"
    out.write_bytes(b"features")
    module, line = WORK["describe"]
    assert interrupted(module, *line.format(out=out).split()) == (
        f"keypatch: Stopped. {out} has what was saved so far; run the same command to resume.\n"
    )
    assert out.read_bytes() == b"features"


@pytest.mark.parametrize("spelled", ["hynet --out {}", "hynet --out={}", "--resume {}", "--resume={}"])
def test_the_folder_is_found_however_it_is_spelled(
    spelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(commands, "app", stop)
    assert run(["train", *spelled.format(tmp_path).split()]) == 130
    assert (
        capsys.readouterr().err
        == f"keypatch: Stopped. {tmp_path} has what was saved so far; run the same command to resume.\n"
    )


def test_a_table_of_matches_written_before_the_picture_was_stopped_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png"):
        Image.fromarray(rng.integers(0, 256, (64, 64), dtype=np.uint8)).save(tmp_path / name)
    monkeypatch.setattr("keypatch.matching.image_matches._write_picture", stop)
    table, picture = tmp_path / "m.csv", tmp_path / "m.png"
    line = f"match {tmp_path / 'a.png'} {tmp_path / 'b.png'} --descriptor sift --out {table} --draw {picture}"
    assert run(line.split()) == 130
    said = capsys.readouterr().err
    assert said.endswith(f"keypatch: Stopped. {table} has what was saved so far; run the same command to resume.\n")
    assert table.exists() and not picture.exists()


@pytest.mark.parametrize(
    "words", ["describe photos --out f.h5", "--debug train hynet", "inspect train", "evaluate sift"]
)
def test_while_the_words_are_read(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typer's answer to Ctrl-C there is an exit code."""

    def stop(*_: object, **__: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(commands, "app", stop)
    assert run(words.split()) == 130
    assert capsys.readouterr().err.endswith(NOTHING)


@posix
def test_an_interrupt_of_the_work_itself_is_told_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a second Ctrl-C, which the loop no longer takes for a wish."""

    def work(*_: object, **__: object) -> None:
        (tmp_path / "f.h5").touch()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("keypatch.features.description.describe", work)
    try:
        assert run(["describe", str(tmp_path), "--out", str(tmp_path / "f.h5")]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert f"{tmp_path / 'f.h5'} has what was saved so far" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_after_the_last_line_tears_nothing(name: str) -> None:
    """Libraries clean up while Python ends; an interrupt there was a trace below a finished result."""
    script = (
        "import atexit, os, signal, sys\nfrom keypatch.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"atexit.register(lambda: os.kill(os.getpid(), signal.{name}))\n"
        "sys.argv = ['keypatch', 'list', 'detectors']\nmain()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
