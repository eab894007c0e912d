"""Nothing half-written is ever seen, and every obstacle is a sentence."""

import errno
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from keypatch.cache import cache_folder
from keypatch.errors import DataError, Interrupted, KeypatchError, MissingExtra, RecipeError, Taken
from keypatch.files import (
    Format,
    csv_text,
    hash_file,
    hash_folder,
    hidden_path,
    lock,
    read_json,
    reading,
    require_folder,
    require_place,
    safe_name,
    safe_path,
    temporary_path,
    write_atomically,
    write_json,
    write_text,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_content_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with write_atomically(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("failure", [ValueError("ours"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, failure: BaseException) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with pytest.raises((type(failure), KeypatchError)), write_atomically(target) as file:
        file.write(b"new")
        raise failure
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_full_disk_is_a_sentence_with_the_path(tmp_path: Path) -> None:
    message = r"a\.bin cannot be written: no space left on device\. Free some space"
    with pytest.raises(KeypatchError, match=message), write_atomically(tmp_path / "a.bin"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_really_full_device_raises_when_written(tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="no space left"), write_atomically(tmp_path / "a.bin") as file:
        full = os.open("/dev/full", os.O_WRONLY)
        try:
            os.dup2(full, file.fileno())
        finally:
            os.close(full)
        file.write(b"x" * 100_000)
    assert names(tmp_path) == []


def test_missing_folders_are_made_when_the_file_is_written_and_a_file_in_their_place_is_told(tmp_path: Path) -> None:
    require_place(tmp_path / "a" / "b" / "c.txt")
    assert names(tmp_path) == []
    write_text(tmp_path / "a" / "b" / "c.txt", "x")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "x"
    with pytest.raises(KeypatchError, match=r"d\.txt cannot be written: .*\. Choose another folder"):
        require_place(tmp_path / "a" / "b" / "c.txt" / "d.txt")
    with pytest.raises(KeypatchError, match=r"c\.txt is a file, not a folder"):
        write_text(tmp_path / "a" / "b" / "c.txt" / "d.txt", "x")


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of at most 255 bytes")
@pytest.mark.parametrize("name", ["n" * 240, "ü" * 125, "n" * 255])
def test_a_long_name_leaves_room_for_temporary_ones(tmp_path: Path, name: str) -> None:
    require_place(tmp_path / name)
    for text in ("old", "new"):
        write_text(tmp_path / name, text)
    assert names(tmp_path) == [name] and (tmp_path / name).read_text() == "new"
    hidden = {hidden_path(tmp_path / each, ".parts") for each in (name, name[:-1], f"{name[:-1]}x")}
    assert len(hidden) == 3, "those of different files differ"


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of at most 255 bytes")
def test_a_name_too_long_is_told_before_the_work(tmp_path: Path) -> None:
    for attempt in (require_place, lambda path: write_text(path, "x")):
        with pytest.raises(KeypatchError, match=r"cannot be written: file name too long\. Choose a shorter name"):
            attempt(tmp_path / ("n" * 256))
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["=cmd|calc!A1.jpg", "+1.jpg", "-1.jpg", "@sum.jpg", "\t=1.jpg", "\r=1.jpg"])
def test_a_cell_is_no_formula(name: str) -> None:
    assert csv_text(name) == f"'{name}" and csv_text(f"a{name}") == f"a{name}" and csv_text("") == ""


def test_text_and_json_are_utf8_with_plain_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "ä\nb\n")
    assert (tmp_path / "a.txt").read_bytes() == "ä\nb\n".encode()
    write_json(tmp_path / "a.json", {"ü": [1, 2.5, None]})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"ü": [1, 2.5, None]}


def test_files_are_as_readable_as_those_of_a_plain_open(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_hash_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert hash_file(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(KeypatchError, match="b cannot be read: no such file"):
        hash_file(tmp_path / "b")


def test_hash_of_a_folder_follows_names_and_contents_only(tmp_path: Path) -> None:
    def made(name: str, files: dict[str, str]) -> list[Path]:
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [tmp_path / name / file for file in files]

    one = hash_folder(made("one", {"i_a/ref.png": "1", "i_b/ref.png": "2"}))
    assert hash_folder(reversed(made("two", {"i_a/ref.png": "1", "i_b/ref.png": "2"}))) == one
    assert hash_folder(made("three", {"i_a/ref.png": "2", "i_b/ref.png": "1"})) != one
    assert hash_folder(made("four", {"i_a/ref.png": "1", "i_c/ref.png": "2"})) != one
    assert hash_folder([]) == hashlib.sha256().hexdigest()


HOLDER = """
import sys
from pathlib import Path
from keypatch.files import lock
with lock(Path(sys.argv[1]), "runs/a"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_exclusive_between_processes_and_ends_with_a_killed_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(Taken, match="runs/a is being written by another process"), lock(path, "runs/a"):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with lock(path, "runs/a"):
        pass
    with lock(path, "runs/a"):
        pass


def test_a_lock_in_a_missing_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeypatchError, match="cannot be locked") as told, lock(tmp_path / "file" / "lock", "x"):
        pass
    assert not isinstance(told.value, Taken)


def test_a_lock_is_waited_for_where_that_is_asked(tmp_path: Path) -> None:
    order = list[str]()

    def wait() -> None:
        with lock(tmp_path / "lock", "x", wait=True):
            order.append("second")

    with lock(tmp_path / "lock", "x"):
        second = threading.Thread(target=wait)
        second.start()
        second.join(timeout=0.1)
        order.append("first")
    second.join()
    assert order == ["first", "second"]


def test_the_cache_folder_is_the_chosen_one_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", "~/somewhere")
    assert cache_folder() == Path.home() / "somewhere"
    monkeypatch.delenv("KEYPATCH_CACHE")
    assert "keypatch" in cache_folder().parts
    monkeypatch.setenv("KEYPATCH_CACHE", "")
    assert "keypatch" in cache_folder().parts


def test_a_required_folder_must_exist_be_one_and_hold_something(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    require_folder(tmp_path / "full")
    with pytest.raises(DataError, match="There is no folder"):
        require_folder(tmp_path / "absent")
    with pytest.raises(DataError, match="is a file"):
        require_folder(tmp_path / "full" / "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is empty"):
        require_folder(tmp_path / "empty")


@pytest.mark.parametrize("name", ["a.jpg", "sub/a b.jpg", "ä/..b.jpg", "...", "a..b/c", "ab:c", ".hidden"])
def test_plain_names_are_safe(tmp_path: Path, name: str) -> None:
    assert safe_name(name, "list.txt") == name
    assert safe_path(tmp_path, name, "list.txt") == tmp_path / name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../a",
        "a/../../b",
        "/etc/passwd",
        "a//b",
        "a/",
        "./a",
        r"..\a",
        r"\a",
        "C:/a",
        "c:a",
        "\0",
        "\ud800",
    ],
)
def test_names_that_could_lead_anywhere_are_refused_with_their_source(name: str) -> None:
    with pytest.raises(DataError, match=r"list\.txt: the name .* is not a plain path below a folder"):
        safe_name(name, "list.txt")


def test_a_link_out_of_the_folder_is_refused_and_one_within_it_is_not(tmp_path: Path) -> None:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "out").symlink_to(tmp_path)
    (tmp_path / "root" / "in").symlink_to(tmp_path / "root" / "sub")
    assert safe_path(tmp_path / "root", "in/a", "x") == tmp_path / "root" / "in" / "a"
    with pytest.raises(DataError, match="x: 'out/a' points outside"):
        safe_path(tmp_path / "root", "out/a", "x")


CAKE = Format("keypatch-cake", 3, "recipe of a cake")


@pytest.mark.parametrize("number", [1, 3, "2"])
def test_an_older_number_of_a_format_is_read(number: object) -> None:
    CAKE.check({"format": "keypatch-cake", "format_number": number}, "cake.json")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            {"format": "keypatch-cake", "format_number": 4},
            r"^cake\.json was written by a newer keypatch \(format 4, this one reads up to 3\): update keypatch\.$",
        ),
        ({"format": "keypatch-cake"}, "has no format number"),
        ({"format": "keypatch-cake", "format_number": -1}, "has no format number"),
        ({"format": "keypatch-pie", "format_number": 1}, r"not a recipe of a cake \(its format is keypatch-pie\)\.$"),
        ({}, "not a recipe of a cake written by keypatch"),
        ([1], "not a recipe of a cake written by keypatch"),
    ],
)
def test_another_format_and_a_newer_number_are_refused(head: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        CAKE.check(head, "cake.json")


def test_json_of_a_format_is_read_and_anything_else_named(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {**CAKE.head(), "eggs": 2})
    assert CAKE.read_json(tmp_path / "a.json")["eggs"] == 2
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DataError, match=r"a\.json is not a readable JSON file"):
        CAKE.read_json(tmp_path / "a.json")
    with pytest.raises(DataError, match=r"b\.json cannot be read: no such file"):
        CAKE.read_json(tmp_path / "b.json")


@pytest.mark.parametrize("text", [100_000 * "[", '{"scores": ' + 400 * "1" + "}", 5000 * "1", "{", "\ufeff{}"])
def test_json_that_cannot_be_used_is_told_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.json is not a readable JSON file"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (FileNotFoundError("b"), "a.txt cannot be read: no such file or directory."),
        (PermissionError(errno.EACCES, "Permission denied"), "a.txt cannot be read: permission denied."),
        (OSError("bad signature"), "a.txt is not a readable list (bad signature). REMEDY"),
        (RuntimeError("two\n  lines."), "a.txt is not a readable list (two lines). REMEDY"),
        (KeyError(), "a.txt is not a readable list (KeyError). REMEDY"),
        (EOFError(), "a.txt is not a readable list (it ends too early). REMEDY"),
        (MemoryError(), "a.txt is not a readable list (it needs more memory than is available). REMEDY"),
        (RecursionError("x"), "a.txt is not a readable list (it is nested too deeply). REMEDY"),
        (struct.error("x" * 500), "a.txt is not a readable list (...). REMEDY"),
        (KeypatchError("The sigma is 0."), "a.txt: The sigma is 0."),
        (DataError("a.txt, line 3: no number."), "a.txt, line 3: no number."),
    ],
)
def test_whatever_reading_raises_becomes_one_sentence_with_the_file(raised: Exception, sentence: str) -> None:
    with pytest.raises(DataError) as told, reading(Path("a.txt"), "list"):
        raise raised
    assert str(told.value) == sentence.replace("REMEDY", "It may be cut off: write or copy it again.")
    assert told.value is raised or told.value.__cause__ is raised


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt(), Interrupted(), MissingExtra("no pycolmap"), RecipeError("a.txt: no field")]
)
def test_what_is_no_fault_of_the_file_passes(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as told, reading("a.txt"):
        raise raised
    assert told.value is raised


def test_what_killed_writers_of_this_machine_left_goes_with_the_next_write(tmp_path: Path) -> None:
    """Also the beginning of another file: a resumed run may save its next checkpoint under another name."""
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    ours, other = temporary_path(tmp_path / "a.bin"), temporary_path(tmp_path / "b.bin")
    dead = tmp_path / other.name.replace(f".{os.getpid()}-", f".{int(child.stdout)}-")
    elsewhere = tmp_path / re.sub(r"-[0-9a-f]{6}-", "-000000-", dead.name)
    journal = tmp_path / f"{dead.name}-journal"
    for path in (ours, dead, journal, elsewhere):
        path.write_bytes(b"half")
    write_text(tmp_path / "c.txt", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ours.name, elsewhere.name, "c.txt"])
