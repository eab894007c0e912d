"""Files are tried in a child first: what hangs, crashes or takes too much memory is told in a sentence."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from planted import count, crash, fail, hang, take_memory

from keypatch import sandbox
from keypatch.errors import DataError
from keypatch.sandbox import trust, try_reading


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file, and a child of its own that can import the planted checks."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    child = sandbox._Child()
    monkeypatch.setattr(sandbox, "_child", lambda owner: child)
    (tmp_path / "a.bin").write_bytes(b"abc")
    yield tmp_path / "a.bin"
    child._end()


def test_a_file_is_tried_once_until_it_changes(file: Path) -> None:
    for _ in range(3):
        try_reading(count, file)
    file.rename(file.with_name("b.bin"))
    try_reading(count, file.with_name("b.bin"))
    assert file.with_suffix(".count").read_text() == "x"
    file.write_bytes(b"other")
    try_reading(count, file)
    assert file.with_suffix(".count").read_text() == "xx"


def test_what_was_just_written_is_not_tried(file: Path) -> None:
    trust(count, file)
    try_reading(count, file)
    assert not file.with_suffix(".count").exists()


def test_an_error_of_the_check_is_left_to_the_reader(file: Path) -> None:
    try_reading(fail, file)


def test_a_hang_is_told_and_the_next_file_gets_another_child(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "SECONDS", 0.5)
        with pytest.raises(
            DataError, match=r"a\.bin cannot be read: a trial read took more than 1 seconds|than 0 seconds"
        ):
            try_reading(hang, file)
    try_reading(count, file)
    assert file.with_suffix(".count").read_text() == "x"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_crash_is_told_with_its_signal(file: Path) -> None:
    with pytest.raises(
        DataError, match=r"a\.bin cannot be read: a trial read ended with signal 11 \(SIGSEGV\)\. The file"
    ):
        try_reading(crash, file)
    try_reading(count, file)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory hold on Linux")
def test_too_much_memory_is_told(file: Path) -> None:
    with pytest.raises(DataError, match=r"a\.bin cannot be read: a trial read needed more than 4 GB of memory"):
        try_reading(take_memory, file)


def test_threads_take_turns(file: Path) -> None:
    files = [file.with_name(f"{number}.bin") for number in range(8)]
    for each in files:
        each.write_bytes(each.name.encode())
    threads = [threading.Thread(target=try_reading, args=(count, each)) for each in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.with_suffix(".count").read_text() for each in files] == ["x"] * 8


WAITING = """
import signal, sys
from pathlib import Path
from planted import hang_after_a_word
from keypatch import sandbox
sandbox.SECONDS = float(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # which processes in the background ignore
sandbox.try_reading(hang_after_a_word, Path(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process that is not its child")
@pytest.mark.parametrize(("kill", "seconds"), [(signal.SIGINT, 60), (signal.SIGKILL, 1)])
def test_the_child_ends_with_its_parent_and_ctrl_c_is_heard(file: Path, kill: signal.Signals, seconds: int) -> None:
    path = file.with_name("fifo")
    os.mkfifo(path)
    parent = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(path), str(seconds)], stderr=subprocess.PIPE, text=True
    )
    child = os.pidfd_open(int(path.read_text()))  # it is in the middle of its trial
    parent.send_signal(kill)
    said = parent.communicate()[1]
    assert (kill == signal.SIGINT) == ("KeyboardInterrupt" in said)
    assert select.select([child], [], [], 60)[0], "the child lives on"  # an alarm ends it where the parent was killed
    os.close(child)


def test_the_reader_of_others_models_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    from keypatch.colmap.models import read_model

    texts = {"cameras": "1 PINHOLE 9 9 5 5 4 4\n", "images": "1 1 0 0 0 0 0 0 1 a.jpg\n1 2 7\n", "points3D": ""}
    for name, text in {**texts, "points3D": "7 4 5 6 40 50 60 0.5 1 0\n"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    binary = tmp_path / "binary"
    binary.mkdir()
    pycolmap.Reconstruction(str(tmp_path)).write_binary(str(binary))
    images = binary / "images.bin"
    images.write_bytes(images.read_bytes()[:70])  # in the middle of the name
    monkeypatch.setattr(sandbox, "SECONDS", 3.0)
    with pytest.raises(
        DataError,
        match=r"binary cannot be read: a trial read (took more than|needed more than|ended)|not a readable COLMAP",
    ):
        read_model(binary)
