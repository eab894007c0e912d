"""A file that grows group by group: whole at every moment, of one process, with one set of settings."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.errors import DataError, KeypatchError
from keypatch.features import growing_file
from keypatch.features.growing_file import GrowingFile, grow_file

HEAD = {"format": "keypatch-matches", "format_number": 1, "settings": json.dumps({"ratio": None, "seed": 0})}


def fill(value: int, count: int = 3) -> Callable[[Any], None]:
    def write(group: Any) -> None:
        group["numbers"] = np.full(count, value)

    return write


def content(path: Path) -> dict[str, int]:
    """The first number of every group, by plain h5py."""
    found = dict[str, int]()
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                found.update({name.removesuffix("/numbers"): int(item[0])}) if name.endswith("/numbers") else None
            )
        )
    return found


def test_groups_are_there_in_the_end_and_nothing_else_is(tmp_path: Path) -> None:
    with grow_file(tmp_path / "m.h5", HEAD) as file:
        for k in range(80):
            file.add(f"a/{k}", fill(k))
    assert content(tmp_path / "m.h5") == {f"a/{k}": k for k in range(80)}
    assert [path.name for path in tmp_path.iterdir()] == ["m.h5"]
    with h5py.File(tmp_path / "m.h5") as h5:
        assert dict(h5.attrs) == HEAD


def test_a_second_sitting_adds_to_the_first(tmp_path: Path) -> None:
    for k in range(3):
        with grow_file(tmp_path / "m.h5", HEAD, every=100) as file:
            assert file.keys == {f"a/{j}" for j in range(k)}
            file.add(f"a/{k}", fill(k))
    assert content(tmp_path / "m.h5") == {"a/0": 0, "a/1": 1, "a/2": 2}


def test_a_readable_file_is_there_from_the_start_and_grows_by_doubling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_file, "_FEW", 1)
    sizes = []
    with grow_file(tmp_path / "m.h5", HEAD) as file:
        assert content(tmp_path / "m.h5") == {}
        for k in range(12):
            file.add(f"a/{k}", fill(k))
            sizes.append(len(content(tmp_path / "m.h5")))
    assert sizes == [0, 2, 2, 2, 5, 5, 5, 5, 5, 5, 11, 11]
    assert len(content(tmp_path / "m.h5")) == 12


@pytest.mark.parametrize(("every", "saved"), [(0.0, 5), (100.0, 0)])
def test_groups_are_saved_at_once_or_from_time_to_time(tmp_path: Path, every: float, saved: int) -> None:
    with grow_file(tmp_path / "m.h5", HEAD, every) as file:
        for k in range(5):
            file.add(f"a/{k}", fill(k))
        assert len(list(file.parts.glob("*.h5"))) == saved


def killed(path: Path, *numbers: int) -> Path:
    """What a process leaves that is killed before it merged its parts."""
    parts = path.with_name(f".{path.name}.parts")
    parts.mkdir()
    file = GrowingFile(path, parts, HEAD)
    for number in numbers:
        file.add(f"a/{number}", fill(number))
    (parts / ".half.h5.123-abc.partial").write_bytes(b"half")
    path.with_name(f".{path.name}.123-abc.partial").write_bytes(b"half")
    return parts


def test_what_a_killed_process_saved_is_taken_over(tmp_path: Path) -> None:
    killed(tmp_path / "m.h5", 1, 2)
    assert content(tmp_path / "m.h5") == {}
    with grow_file(tmp_path / "m.h5", HEAD) as file:
        assert file.keys == {"a/1", "a/2"}
        file.add("a/3", fill(3))
    assert content(tmp_path / "m.h5") == {"a/1": 1, "a/2": 2, "a/3": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["m.h5"]


def test_a_kill_between_the_merge_and_the_removal_of_parts_does_no_harm(tmp_path: Path) -> None:
    parts = killed(tmp_path / "m.h5", 1, 2)
    shutil.copytree(parts, tmp_path / "copy")
    with grow_file(tmp_path / "m.h5", HEAD):
        pass
    shutil.copytree(tmp_path / "copy", parts)
    with grow_file(tmp_path / "m.h5", HEAD) as file:
        assert file.keys == {"a/1", "a/2"}
    assert content(tmp_path / "m.h5") == {"a/1": 1, "a/2": 2}


def test_parts_of_a_file_deleted_since_count_only_with_the_same_settings(tmp_path: Path) -> None:
    killed(tmp_path / "m.h5", 1)
    (tmp_path / "m.h5").unlink()
    with grow_file(tmp_path / "m.h5", HEAD | {"settings": '{"ratio": 0.8}'}) as file:
        assert file.keys == set()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"settings": json.dumps({"ratio": 0.8, "seed": 1})},
            r"m\.h5 was started with other settings: ratio = None \(now 0\.8\), seed = 0 \(now 1\)\. Choose",
        ),
        (
            {"settings": json.dumps({"ratio": None, "seed": 0, "weights": "0123456789abcdef" * 4})},
            r"weights = None \(now 01234567\)",
        ),
        ({"format_number": 2}, r"format_number = 1 \(now 2\)"),
    ],
)
def test_other_settings_are_refused_and_named_and_change_nothing(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with grow_file(tmp_path / "m.h5", HEAD) as file:
        file.add("a/1", fill(1))
    before = (tmp_path / "m.h5").read_bytes()
    with pytest.raises(KeypatchError, match=message), grow_file(tmp_path / "m.h5", HEAD | changed):
        pass
    assert (tmp_path / "m.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.h5"]


def test_a_foreign_file_is_left_as_it_is(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "hloc.h5", "w") as file:
        file["a/b/matches0"] = [1]
        file.attrs["settings"] = "not JSON"
    (tmp_path / "text.h5").write_text("mine")
    (tmp_path / "empty.h5").touch()
    for name, message in {
        "hloc": "not a match file written by keypatch",
        "text": "is not a readable feature file",
        "empty": "is not a readable feature file",
    }.items():
        path = tmp_path / f"{name}.h5"
        before = path.read_bytes()
        with pytest.raises(DataError, match=message), grow_file(path, HEAD):
            pass
        assert path.read_bytes() == before


def test_two_processes_never_write_one_file(tmp_path: Path) -> None:
    holder = f"""
import sys
from pathlib import Path
from keypatch.features.growing_file import grow_file
with grow_file(Path({str(tmp_path / "m.h5")!r}), {HEAD!r}):
    print("held", flush=True)
    sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with (
            pytest.raises(KeypatchError, match=r"m\.h5 is being written by another process"),
            grow_file(tmp_path / "m.h5", HEAD),
        ):
            pass
    finally:
        process.communicate("")
    with grow_file(tmp_path / "m.h5", HEAD) as file:
        file.add("a/1", fill(1))


def test_an_error_in_between_keeps_what_was_added(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), grow_file(tmp_path / "m.h5", HEAD, every=100) as file:
        file.add("a/1", fill(1))
        raise RuntimeError
    assert content(tmp_path / "m.h5") == {"a/1": 1}


def test_a_folder_that_cannot_be_made_or_written_to_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match=r"is a folder\. Name a file in it"), grow_file(tmp_path, HEAD):
        pass
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(KeypatchError, match=r"m\.h5 cannot be written: not a directory"),
        grow_file(tmp_path / "file/m.h5", HEAD),
    ):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody may write to")
def test_a_read_only_folder_is_a_sentence() -> None:
    with (
        pytest.raises(KeypatchError, match=r"/proc/m\.h5 cannot be written: .* Choose another folder"),
        grow_file(Path("/proc/m.h5"), HEAD),
    ):
        pass


FULL = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_growing_file import HEAD, fill, grow_file
out, count = Path(sys.argv[1]), int(sys.argv[2])
with grow_file(out, HEAD) as file:
    file.add("first", fill(1))
limit = out.stat().st_size + 20_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with grow_file(out, HEAD) as file:
    for number in range(100):
        file.add(str(number), fill(number, count))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize("count", [5, 5000])  # the merge fails, or already the part
def test_a_disk_that_runs_full_is_a_sentence_and_leaves_the_file(tmp_path: Path, count: int) -> None:
    out = tmp_path / "m.h5"
    done = subprocess.run([sys.executable, "-c", FULL, out, str(count)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert re.search(r"KeypatchError: .*h5 cannot be written: file too large\.", done.stderr.splitlines()[-1])
    assert content(out) == {"first": 1}
    with grow_file(out, HEAD) as file:  # with space again, whatever was saved is there
        assert file.keys >= ({str(number) for number in range(33)} if count == 5 else {"first"})


MANY_NAMES = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_growing_file import HEAD, fill, grow_file
out, more = Path(sys.argv[1]), int(sys.argv[2])
with grow_file(out, HEAD, 100) as file:
    for number in range(1407):
        file.add(f"photo-{{number:06d}}-with-a-name.jpg", fill(number))
limit = out.stat().st_size + more
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with grow_file(out, HEAD, 100) as file:
    for number in range(1407, 1414):
        file.add(f"photo-{{number:06d}}-with-a-name.jpg", fill(number))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize("more", [20_000, 40_000, 60_000])
def test_also_when_the_table_of_names_finds_no_room(tmp_path: Path, more: int) -> None:
    """HDF5 lays the table out anew when it is full: one more name can need more room than its arrays."""
    command = [sys.executable, "-c", MANY_NAMES, tmp_path / "m.h5", str(more)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr  # not ended by a signal
    assert "cannot be written: file too large." in done.stderr.splitlines()[-1]
    assert len(content(tmp_path / "m.h5")) == 1407


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("settings", "{", ', attribute "settings" is not a readable value'),
        ("settings", "5", ', attribute "settings" is not a readable value'),
        ("format_number", [1, 1], ', attribute "format_number" is not a readable value'),
        ("format", ["keypatch-matches"] * 2, "exists and is not a match file written by keypatch"),
    ],
)
def test_a_file_with_a_damaged_head_is_left_alone(tmp_path: Path, name: str, value: object, message: str) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs.update({**HEAD, name: value})
    before = (tmp_path / "m.h5").read_bytes()
    with pytest.raises(DataError, match=message), grow_file(tmp_path / "m.h5", HEAD):
        pass
    assert (tmp_path / "m.h5").read_bytes() == before
