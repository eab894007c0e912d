"""Ctrl-C before the work begins: one sentence says what is kept, and the exit code is 130."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keypatch.cli import commands
from keypatch.cli.main import run
from keypatch.cli.stopping import NOTHING, kept_in_out, kept_of_a_run, kept_of_matches

TOO_EARLY = "keypatch: Stopped before it began. The same command begins again.\n"

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
    assert interrupted("typer", *words) == TOO_EARLY


WORK = {
    "describe": ("keypatch.features.describing", "describe photos --out {out}"),
    "match": ("keypatch.matching.many_pairs", "match --features f.h5 --pairs exhaustive --out {out}"),
    "match two": ("keypatch.matching.photos", "match a.jpg b.jpg --out {out}"),
    "reconstruct": ("keypatch.reconstruction.reconstructing", "reconstruct photos --out {out}"),
    "train": ("keypatch.studies.training", "train hardnet --data embedded --out {out}"),
}


@posix
@pytest.mark.parametrize(("module", "line"), WORK.values(), ids=WORK)
def test_before_anything_was_written(tmp_path: Path, module: str, line: str) -> None:
    assert interrupted(module, *line.format(out=tmp_path / "out").split()) == f"keypatch: {NOTHING}\n"
    assert not any(tmp_path.iterdir())


@posix
def test_what_an_earlier_command_wrote_is_kept_and_said_so(tmp_path: Path) -> None:
    out = tmp_path / "f.h5"
    out.write_bytes(b"features")
    module, line = WORK["describe"]
    assert interrupted(module, *line.format(out=out).split()) == (
        f"keypatch: Stopped; {out} keeps what it has, and the same command goes on.\n"
    )
    assert out.read_bytes() == b"features"


def test_what_is_kept_of_each_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, missing = tmp_path, tmp_path / "missing"
    assert str(there) in kept_in_out(out=there, images=[]) and kept_in_out(out=missing) == NOTHING
    assert str(there) in kept_of_matches(features=Path("f.h5"), out=there)
    assert kept_of_matches(features=None, out=there) == kept_of_matches(features=None, out=None) == NOTHING
    assert kept_of_a_run(recipe="hynet", out=there) == NOTHING  # a folder, but not of a run
    (there / "recipe.toml").write_text('name = "mine"\n')
    assert kept_of_a_run(recipe="hynet", out=there) == (
        f"Stopped; {there} keeps its last checkpoint. Go on with the same command and --resume."
    )
    monkeypatch.chdir(tmp_path)
    Path("nameless.toml").write_text("pairs = 3\n")
    assert kept_of_a_run(recipe="nameless.toml", out=None) == NOTHING
    for name in ("hynet", "mine"):
        assert kept_of_a_run(recipe="recipe.toml" if name == "mine" else name, out=None) == NOTHING
        Path("runs", name).mkdir(parents=True)
        Path("runs", name, "recipe.toml").touch()
        kept = kept_of_a_run(recipe="recipe.toml" if name == "mine" else name, out=None)
        assert str(Path("runs", name)) in kept and "--resume" in kept


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("describe photos --out f.h5", TOO_EARLY),
        ("--debug train hynet", TOO_EARLY),
        ("inspect train", "keypatch: Stopped.\n"),
        ("evaluate sift", "keypatch: Stopped.\n"),
    ],
)
def test_while_the_words_are_read(
    words: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typer's answer to Ctrl-C there is an exit code."""

    def stop(*_: object, **__: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(commands, "app", stop)
    assert run(words.split()) == 130
    assert capsys.readouterr().err.endswith(sentence)


@posix
def test_an_interrupt_of_the_work_itself_is_told_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a second Ctrl-C, which the loop no longer takes for a wish."""

    def work(*_: object, **__: object) -> None:
        (tmp_path / "f.h5").touch()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("keypatch.features.describing.describe", work)
    try:
        assert run(["describe", str(tmp_path), "--out", str(tmp_path / "f.h5")]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert f"{tmp_path / 'f.h5'} keeps what it has" in capsys.readouterr().err
