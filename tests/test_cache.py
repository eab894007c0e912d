"""Folders of the cache: held by one process, below a limit; where none can be made, one that does not last."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from keypatch import cache as module
from keypatch.cache import cache_folder, hold_kept_folder, is_cache_writable, make_once, without_cache
from keypatch.errors import KeypatchError
from keypatch.files import hold_chosen_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fill(name: str, days_ago: int) -> Path:
    """100 bytes, not in the folder itself but below it."""
    with hold_kept_folder("sfm", name, "Matches") as folder:
        (folder / "matches").mkdir()
        (folder / "matches" / "a.bin").write_bytes(bytes(100))
    os.utime(folder, (0, time.time() - days_ago * 86400))
    return folder


def test_a_folder_is_kept_and_held_by_one_at_a_time(cache: Path) -> None:
    with hold_kept_folder("sfm", "a", "Matches") as folder:
        assert folder == cache / "sfm" / "a" and is_cache_writable()
        with pytest.raises(KeypatchError, match="another process"), hold_kept_folder("sfm", "a", "Matches"):
            pass
    assert folder.is_dir()


def test_the_oldest_make_room_but_none_that_is_held_or_was_used_of_late(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [fill(name, days) for name, days in (("older", 9), ("old", 8), ("held", 7), ("late", 0))]
    monkeypatch.setattr(module, "LIMIT", 250)
    fill("new", 0)
    assert [folder.exists() for folder in folders] == [False, False, True, True], "two are enough"
    monkeypatch.setattr(module, "LIMIT", 0)
    with hold_chosen_folder(folders[2]):
        os.utime(folders[2], (0, 0))
        fill("newer", 0)
    assert [folder.exists() for folder in folders[2:]] == [True, True]


def test_without_the_cache_a_folder_lasts_as_long_as_it_is_held(cache: Path) -> None:
    with without_cache(), hold_kept_folder("sfm", "a", "Matches") as folder:
        assert folder.is_dir() and not is_cache_writable()
    assert not folder.exists() and not cache.exists()


def test_a_cache_that_cannot_be_written_costs_a_warning(cache: Path) -> None:
    cache.write_text("no folder")
    with (
        pytest.warns(UserWarning, match=r"Matches cannot be cached in .*sfm .* Set KEYPATCH_CACHE"),
        hold_kept_folder("sfm", "a", "Matches") as folder,
    ):
        assert folder.is_dir() and not is_cache_writable()
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs users without an entry in passwd")
def test_a_user_without_a_home_has_a_private_cache_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "KEYPATCH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = cache_folder()
    assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700 and cache_folder() == folder
    with hold_kept_folder("sfm", "a", "Matches") as kept:
        assert kept == folder / "sfm" / "a"
    folder.chmod(0o777)
    with pytest.raises(KeypatchError, match=r"is open to other users\. Set KEYPATCH_CACHE"):
        cache_folder()
    monkeypatch.setenv("KEYPATCH_CACHE", "~/mine")
    with pytest.raises(KeypatchError, match="KEYPATCH_CACHE is ~/mine, but you have no home folder"):
        cache_folder()


@pytest.mark.skipif(os.name != "posix", reason="a home on another system")
def test_a_home_that_is_not_there_and_cannot_be_made_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the user "nobody", whose home is /nonexistent."""
    for name in ("XDG_CACHE_HOME", "KEYPATCH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "absent" / "me"))
    assert cache_folder().is_relative_to(tmp_path / "absent")  # can be made
    monkeypatch.setattr(os, "access", lambda place, mode: False)  # root may write anywhere
    assert cache_folder() == tmp_path / f"keypatch-{os.geteuid()}"


def test_a_chosen_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("words")
    with pytest.raises(KeypatchError, match="is a file, not a folder"), hold_chosen_folder(tmp_path / "file"):
        pass


def test_a_file_is_made_once_and_nothing_stays_of_a_failure(tmp_path: Path) -> None:
    calls = list[Path]()

    def make(place: Path) -> None:
        calls.append(place)
        place.write_text("half")
        if len(calls) == 1:
            raise OSError("full")

    path = tmp_path / "kind" / "a.so"
    with pytest.raises(OSError, match="full"):
        make_once(path, make)
    assert [each.name for each in path.parent.iterdir()] == ["a.so.lock"]
    assert make_once(path, make).read_text() == "half" and make_once(path, make) == path
    assert len(calls) == 2


def test_a_damaged_folder_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "set"
    path.mkdir()
    (path / "old").touch()

    def make(place: Path) -> None:
        place.mkdir()
        (place / "new").touch()

    make_once(path, make, lambda folder: (folder / "new").exists())
    assert [each.name for each in path.iterdir()] == ["new"]
