"""The unpacked patches: made once, current, whole, wherever they lie and whoever else makes them."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch import cache, files
from keypatch.errors import KeypatchError
from keypatch.patches.phototour import read_phototour

Make = Callable[..., Any]


def caches(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.npy"))


def partials(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.partial"))


@pytest.fixture
def no_sheet_is_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def forbid() -> None:
        def read(path: Path) -> None:
            raise AssertionError(f"{path} was read although the cache is current")

        monkeypatch.setattr("keypatch.patches.phototour.read_sheet", read)

    return forbid


def test_sheets_are_read_once(phototour: Make, no_sheet_is_read: Callable[[], None]) -> None:
    made = phototour()
    read_phototour(made.folder)
    no_sheet_is_read()
    assert np.array_equal(read_phototour(made.folder).patches, made.patches)
    assert len(caches(made.folder)) == 1


def test_a_changed_sheet_is_noticed(phototour: Make) -> None:
    made = phototour()
    read_phototour(made.folder)
    sheet = made.folder / "patches0000.bmp"
    before = sheet.stat()
    Image.new("L", (1024, 1024), 7).save(sheet)
    os.utime(sheet, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert sheet.stat().st_size == before.st_size
    assert read_phototour(made.folder).patches[:256].max() == 7
    assert len(caches(made.folder)) == 1, "the old cache should be gone"


def test_an_added_and_a_removed_sheet_are_noticed(phototour: Make) -> None:
    made = phototour(n=256)
    read_phototour(made.folder)
    Image.new("L", (1024, 1024), 9).save(made.folder / "patches0001.bmp")
    with (made.folder / "info.txt").open("a") as file:
        file.write("1000 0\n" * 256)
    assert read_phototour(made.folder).patches[511, 0, 0] == 9
    (made.folder / "patches0001.bmp").unlink()
    assert len(read_phototour(made.folder, allow_partial=True)) == 256
    assert len(caches(made.folder)) == 1


def test_a_changed_info_needs_no_new_cache(phototour: Make, no_sheet_is_read: Callable[[], None]) -> None:
    made = phototour()
    read_phototour(made.folder)
    no_sheet_is_read()
    (made.folder / "info.txt").write_text("3 0\n" * 280)
    assert len(read_phototour(made.folder)) == 280


def test_a_cache_that_was_cut_off_is_made_again(phototour: Make) -> None:
    made = phototour()
    read_phototour(made.folder)
    (path,) = caches(made.folder)
    for size in (10, 5000):
        path.write_bytes(path.read_bytes()[:size])
        assert np.array_equal(read_phototour(made.folder).patches, made.patches)


def forbid_writing(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """As on a read-only disk; permissions alone would not stop root."""
    temporary = tempfile.TemporaryFile

    def guarded(*, dir: Path) -> Any:
        if dir in folders:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return temporary(dir=dir)

    monkeypatch.setattr("keypatch.cache.tempfile.TemporaryFile", guarded)


def test_beside_a_read_only_folder_the_users_cache_is_used(
    phototour: Make, own_cache: Path, monkeypatch: pytest.MonkeyPatch, no_sheet_is_read: Callable[[], None]
) -> None:
    made, other = phototour(), phototour("notredame", seed=1)
    forbid_writing(monkeypatch, made.folder, other.folder)
    for each in (made, other):
        assert np.array_equal(read_phototour(each.folder).patches, each.patches)
        assert not caches(each.folder)
    assert len(caches(own_cache)) == 2
    no_sheet_is_read()
    monkeypatch.chdir(made.folder.parent)
    assert np.array_equal(read_phototour(Path("liberty")).patches, made.patches)
    assert np.array_equal(read_phototour(Path("notredame")).patches, other.patches)


def test_in_the_users_cache_the_sets_used_longest_ago_make_room(
    phototour: Make, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = phototour(), phototour("notredame", seed=1)
    forbid_writing(monkeypatch, made.folder, other.folder)
    mapped = read_phototour(made.folder)
    (first,) = caches(own_cache)
    monkeypatch.setattr(cache, "LIMIT", first.stat().st_size + 1)
    read_phototour(other.folder)
    (second,) = caches(own_cache)
    assert second != first
    if sys.platform != "win32":
        assert np.array_equal(mapped.patches, made.patches)  # what is mapped stays readable


def test_no_place_at_all_is_a_sentence(phototour: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = phototour()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    forbid_writing(monkeypatch, made.folder)
    with pytest.raises(KeypatchError, match=r"No room for .* \(.*read-only file system; .*set KEYPATCH_CACHE"):
        read_phototour(made.folder)


def test_a_disk_with_too_little_room_is_passed_over_or_told(
    phototour: Make, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = phototour()
    usage = shutil.disk_usage(made.folder)

    def full_there(path: Path) -> Any:
        return usage._replace(free=0 if path == made.folder else usage.free)

    monkeypatch.setattr("keypatch.cache.shutil.disk_usage", full_there)
    read_phototour(made.folder)
    assert not caches(made.folder) and len(caches(own_cache)) == 1
    monkeypatch.setattr("keypatch.cache.shutil.disk_usage", lambda path: usage._replace(free=0))
    shutil.rmtree(own_cache)
    with pytest.raises(KeypatchError, match=r"need 2 MB of disk \(.*0 MB free"):
        read_phototour(made.folder)


def test_a_disk_that_fills_up_leaves_nothing_behind(phototour: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = phototour()

    def fill_up(path: Path) -> NDArray[np.uint8]:
        if path.name == "patches0001.bmp":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return np.zeros((256, 64, 64), np.uint8)

    monkeypatch.setattr("keypatch.patches.phototour.read_sheet", fill_up)
    with pytest.raises(KeypatchError, match=r"\.npy cannot be written: no space left on device\. Free some space"):
        read_phototour(made.folder)
    assert not caches(made.folder) and not partials(made.folder)


LIMITED = """
import resource, sys
from pathlib import Path
from keypatch.errors import KeypatchError
from keypatch.patches.phototour import read_phototour
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    read_phototour(Path(sys.argv[1]))
except KeypatchError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_write_that_really_fails_leaves_nothing_behind(phototour: Make) -> None:
    made = phototour()
    process = subprocess.run(
        [sys.executable, "-c", LIMITED, str(made.folder)], capture_output=True, text=True, check=True
    )
    assert ".npy cannot be written: file too large" in process.stdout
    assert not caches(made.folder) and not partials(made.folder)


def test_parts_are_written_as_they_come(tmp_path: Path) -> None:
    """Never the whole set in memory: each part is in the file before the next one is asked for."""
    (tmp_path / "a.bmp").write_bytes(b"x")
    part = np.zeros((64, 64, 64), np.uint8)

    def parts() -> Iterator[NDArray[np.uint8]]:
        for k in range(20):
            if k:
                (partial,) = partials(tmp_path)
                assert partial.stat().st_size >= (k - 1) * part.nbytes
            yield part + np.uint8(k)

    array = cache.unpack_once(tmp_path, "x", [tmp_path / "a.bmp"], lambda: ((20 * 64, 64, 64), parts()))
    assert array.shape == (1280, 64, 64) and array[::64, 0, 0].tolist() == list(range(20))


READER = """
import sys
from pathlib import Path
from keypatch.patches.phototour import read_phototour
sys.stdin.readline()
found = read_phototour(Path(sys.argv[1]))
print(len(found), int(found.patches.astype("int64").sum()), flush=True)
"""


def test_processes_at_once_all_get_the_whole_set(phototour: Make) -> None:
    made = phototour(n=2000)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(made.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for reader in readers:
        assert reader.stdin is not None
        reader.stdin.write("go\n")
        reader.stdin.flush()
    expected = f"2000 {made.patches.astype(np.int64).sum()}\n"
    assert [reader.communicate(timeout=60)[0] for reader in readers] == [expected] * 3
    assert len(caches(made.folder)) == 1 and not partials(made.folder)


KILLED = """
import os, signal, sys
from pathlib import Path
from keypatch.patches import phototour
read = phototour.read_sheet
def read_or_die(path):
    if path.name == "patches0005.bmp":
        os.kill(os.getpid(), signal.SIGKILL)
    return read(path)
phototour.read_sheet = read_or_die
phototour.read_phototour(Path(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_a_killed_writer_does_no_harm_and_its_rest_goes(phototour: Make) -> None:
    made = phototour(n=2000)
    process = subprocess.run([sys.executable, "-c", KILLED, str(made.folder)], check=False)
    assert process.returncode == -signal.SIGKILL
    (rest,) = partials(made.folder)
    elsewhere = rest.with_name(".cache.npy.1-000000-00000000.partial")  # of another machine
    shutil.copy(rest, elsewhere)
    assert np.array_equal(read_phototour(made.folder).patches, made.patches)
    assert partials(made.folder) == [elsewhere], "it could be at work"
    long_ago = time.time() - 2 * files.SECONDS_UNTIL_ABANDONED
    os.utime(elsewhere, (long_ago, long_ago))
    os.utime(made.folder / "patches0000.bmp")
    read_phototour(made.folder)
    assert not partials(made.folder)


def test_a_cache_that_cannot_be_replaced_because_another_process_has_it_is_used(
    phototour: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = phototour()
    replace = os.replace

    def as_windows(source: str, target: Path) -> None:
        replace(source, target)  # the other process was faster ...
        raise PermissionError(errno.EACCES, "the file is mapped")  # ... and ours is refused

    monkeypatch.setattr("keypatch.files.os.replace", as_windows)
    assert np.array_equal(read_phototour(made.folder).patches, made.patches)
