"""Faults while many items become groups: dead workers, full disks, killed drivers. Nothing is lost."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.engines import Parallel
from keypatch.errors import DataError, KeypatchError
from keypatch.features.feature_files import FEATURES, make_head
from keypatch.features.filling import Filled, Group, fill, open_output
from keypatch.features.store import Store
from keypatch.progress import Progress
from keypatch.provenance import provenance

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals and limits of POSIX")
HEAD = make_head(FEATURES, {"made": "up"}, provenance())


def write(group: Any, number: int) -> None:
    group.create_dataset("keypoints", data=np.full((500, 2), number, np.float32))


@dataclass(frozen=True)
class Numbers:
    """A group for each number. `fault` is a file that the first worker with `at` takes away before its fault."""

    fault: Path
    at: int
    kind: str = "none"  # or "kill", "full"
    pause: float = 0.0

    def key(self, number: int) -> str:
        return f"{number:03d}"

    @contextmanager
    def open(self) -> Iterator[Callable[[int], Group]]:
        yield self.make

    def make(self, number: int) -> Group:
        time.sleep(self.pause)
        if number == self.at and self.kind != "none" and self.fault.exists():
            self.fault.unlink()
            if self.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return Group(partial(write, number=number))


class Told(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def make_groups(place: Path, task: Numbers, told: Told, count: int = 24, workers: int = 2) -> Filled[int]:
    with open_output(place, HEAD) as output:
        left = [number for number in range(count) if task.key(number) not in output.keys]
        return fill(output, task, left, count, Parallel(workers=workers), told, "numbers", "numbers made so far")


def groups(place: Path) -> dict[str, float]:
    """By plain h5py, which would not read a file that is not whole."""
    found = dict[str, float]()
    for path in sorted(place.glob("*.h5")) if place.is_dir() else [place]:
        with h5py.File(path) as file:
            for name in file:
                assert name not in found
                found[name] = float(file[name]["keypoints"][:].mean())
    return found


WHOLE = {f"{number:03d}": float(number) for number in range(24)}


@pytest.mark.parametrize("name", ["store", "file.h5"])
def test_a_killed_worker_costs_nothing(tmp_path: Path, name: str) -> None:
    fault, told = tmp_path / "fault", Told()
    fault.touch()
    assert not make_groups(tmp_path / name, Numbers(fault, 10, "kill"), told).failures
    assert groups(tmp_path / name) == WHOLE
    assert len(told.said) == 1 and "ended by signal 9 (SIGKILL)" in told.said[0] and "010" in told.said[0]


def test_a_full_disk_of_one_worker_stops_with_a_sentence_and_what_others_made_is_kept(tmp_path: Path) -> None:
    fault, store = tmp_path / "fault", tmp_path / "store"
    fault.touch()
    with pytest.raises(KeypatchError, match=r"\.h5 cannot be written: file too large\. Check the disk"):
        make_groups(store, Numbers(fault, 10, "full"), Told())
    kept = groups(store)
    assert kept and kept.items() < WHOLE.items() and "010" not in kept
    assert not list(store.glob(".*"))  # of the file that was not finished nothing is left
    make_groups(store, Numbers(fault, 10), Told(), workers=1)
    assert groups(store) == WHOLE


DRIVER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path

if __name__ == "__main__":
    from test_filling import Numbers, Told, make_groups

    class Telling(Told):
        def count(self, done, total, unit, detail=""):
            print(done, flush=True)

    make_groups(Path(sys.argv[1]), Numbers(Path("none"), -1, pause=0.1), Telling())
"""


def test_a_driver_that_is_killed_and_started_again_goes_on(tmp_path: Path) -> None:
    script, store = tmp_path / "driver.py", tmp_path / "store"
    script.write_text(DRIVER)
    driver = subprocess.Popen([sys.executable, str(script), str(store)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    while int(driver.stdout.readline()) < 6:
        pass
    driver.kill()
    driver.communicate(timeout=120)  # until its workers, which share the pipe, have ended too
    kept = groups(store)
    assert 6 <= len(kept) < 24
    with Store(store) as opened:  # readable as it is, without an index
        assert list(opened.names) == sorted(kept)
    before = {path: path.stat().st_mtime_ns for path in store.glob("*.h5")}
    make_groups(store, Numbers(Path("none"), -1), Told(), workers=1)
    assert groups(store) == WHOLE
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())  # nothing was made twice


def test_a_shard_that_was_written_by_a_worker_that_died_is_not_made_again(tmp_path: Path) -> None:
    from keypatch.features.filling import _IntoShards
    from keypatch.storage import Folder

    make_groups(tmp_path / "store", Numbers(Path("none"), -1), Told(), count=1, workers=1)
    with _IntoShards(_Never(), Folder(tmp_path / "store"), HEAD).open() as function:
        assert [made.key for made in function((0,))] == ["000"]


class _Never(Numbers):
    def __init__(self) -> None:
        super().__init__(Path("none"), -1)

    def make(self, number: int) -> Group:
        raise DataError("made again")


def test_the_state_of_a_store_is_json(tmp_path: Path) -> None:
    make_groups(tmp_path / "store", Numbers(Path("none"), -1), Told(), count=2, workers=1)
    about = json.loads((tmp_path / "store" / "store.json").read_text())
    assert about["format"] == "keypatch-store" and about["attributes"]["format"] == "keypatch-features"
