"""Killed, crowded, without room, without rights: nothing is lost, and the same command completes."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kills import NOBODY, TRIALS, ordinary_user, small_disk

SCRIPT = Path(__file__).parent / "kills.py"
WORDS = (sys.executable, "-m", "keypatch", "evaluate", "rootsift", "--data")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks into /proc")


def trials(*words: str) -> str:
    ended = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_a_killed_command_completes_and_leaves_nothing_behind() -> None:
    assert "4 kills, 0 faults" in trials("--kills", "4", "--only", "match pairs", "report")


@pytest.mark.slow
def test_a_hundred_kills_over_all_commands_that_write() -> None:
    assert "100 kills, 0 faults" in trials("--kills", "100")


@pytest.mark.slow
def test_four_processes_on_one_run_one_study_one_file_or_one_cache() -> None:
    trials(
        "--crowd", "--only", "train", "study methods", "describe", "reconstruct", "evaluate patches", "evaluate photos"
    )


@pytest.mark.slow
def test_commands_complete_once_there_is_room() -> None:
    trials("--no-room", "--only", "train", "describe", "match two photos", "match pairs", "evaluate patches", "report")


@pytest.fixture
def nobody() -> tuple[str, ...]:
    """Words that run a command as an ordinary user."""
    return ordinary_user() or pytest.skip("needs root, setpriv and a Python that an ordinary user can run")


def test_an_ordinary_user_without_rights_on_the_data_without_home_and_room(
    small_set: Path, nobody: tuple[str, ...]
) -> None:
    """The data cannot be written to, there is no HOME, the disk of the cache and the result is full; then it is not."""
    place = Path(tempfile.mkdtemp())  # pytest closes its own folders to others whenever a session begins
    own, data = place / "own", place / "data"
    shutil.copytree(small_set, data, ignore=shutil.ignore_patterns("keypatch-*"))
    own.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", own], capture_output=True).returncode != 0:
        shutil.rmtree(place)
        pytest.skip("needs the right to mount a small disk")
    try:
        own.chmod(0o700)
        os.chown(own, NOBODY, NOBODY)
        place.chmod(0o755)
        ballast = own / "ballast"
        ballast.write_bytes(bytes(4 * 2**20 - 3 * 4096))
        environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "KEYPATCH_CACHE")}
        environment |= {"TMPDIR": str(own), "PYTHONPATH": os.pathsep.join(sys.path)}

        def evaluate() -> "subprocess.CompletedProcess[str]":
            words = [*nobody, *WORDS, str(data), "--out", "result.json"]
            return subprocess.run(words, cwd=own, env=environment, capture_output=True, text=True)

        full = evaluate()
        assert full.returncode == 2 and "Traceback" not in full.stderr, full.stderr
        assert f"{own}/keypatch-{NOBODY}/patches: 0 MB free" in full.stderr
        assert not (own / "result.json").exists() and not list(own.rglob("*.partial"))
        ballast.unlink()
        again = evaluate()
        assert again.returncode == 0, again.stderr
        assert (own / "result.json").exists() and not list(data.glob("keypatch-*"))
    finally:
        subprocess.run(["umount", "--lazy", own], check=True)
        shutil.rmtree(place)


@pytest.mark.slow
@pytest.mark.usefixtures("nobody")
def test_every_command_completes_for_an_ordinary_user_once_there_is_room(tmp_path: Path) -> None:
    try:
        with small_disk(tmp_path / "own"):
            pass
    except OSError as error:
        pytest.skip(f"needs the right to mount a small disk: {error}")
    assert trials("--no-rights").count("as on an empty disk") == len(TRIALS)
