"""Many items through one function: the same whoever does it, also where workers die."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from keypatch.engines import Parallel, Shard, run
from keypatch.errors import DataError, KeypatchError
from keypatch.progress import Progress

TWO = Parallel(workers=2)
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")


class Told(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


@dataclass(frozen=True)
class Square:
    """Squares numbers; ends its own process at some: the first time only, where `once` is a file to remember it in."""

    fatal: tuple[int, ...] = ()
    once: Path | None = None
    wrong: int = -1

    @contextmanager
    def open(self) -> Iterator[Callable[[tuple[int, ...]], list[tuple[int, int]]]]:
        yield lambda batch: [(self._square(number), os.getpid()) for number in batch]

    def _square(self, number: int) -> int:
        if number == self.wrong:
            raise DataError(f"{number} is wrong.")
        if number in self.fatal and (self.once is None or not self.once.exists()):
            if self.once is not None:
                self.once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number


def squares(task: Square, count: int, parallel: Parallel, told: Told, size: int = 1) -> tuple[dict[int, int], set[int]]:
    found, processes = dict[int, int](), set[int]()
    for done in run(task, range(count), parallel, told, size=lambda workers: size):
        if done.error is not None:
            raise done.error
        for item, (square, process) in zip(done.items, done.result or (), strict=True):
            assert item not in found, "an item was done twice"
            found[item] = square
            processes.add(process)
    return found, processes


def test_processes_give_what_one_gives() -> None:
    alone, here = squares(Square(), 20, Parallel(), Told(), 3)
    both, processes = squares(Square(), 20, TWO, Told(), 3)
    assert alone == both == {number: number * number for number in range(20)}
    assert here == {os.getpid()} and os.getpid() not in processes


@posix
def test_items_of_a_killed_worker_are_done_again_once(tmp_path: Path) -> None:
    told = Told()
    found, _ = squares(Square(fatal=(5,), once=tmp_path / "killed"), 12, TWO, told, 3)
    assert found == {number: number * number for number in range(12)}
    assert len(told.said) == 1
    assert re.fullmatch(
        r"A worker \(process \d+ on .+\) ended by signal 9 \(SIGKILL\) after \d items? were finished in all\. "
        r"Done again: 3, 4, 5\.",
        told.said[0],
    )


@posix
def test_an_item_that_ends_every_worker_is_named_and_the_others_done() -> None:
    told, found, errors = Told(), set[int](), list[tuple[tuple[int, ...], str]]()
    for done in run(Square(fatal=(2,)), range(6), TWO, told, size=lambda workers: 3):
        if done.error is not None:
            errors.append((done.items, str(done.error)))
        else:
            found |= set(done.items)
    assert found == {0, 1, 3, 4, 5}
    assert [items for items, _ in errors] == [(2,)]
    assert errors[0][1].startswith("2 ended the worker 3 times (last by signal 9 (SIGKILL)).")
    assert [said.partition("Done again: ")[2] for said in told.said] == ["0, 1, 2.", "0, 1, 2."]


def test_an_error_of_the_function_is_the_outcome_of_its_batch() -> None:
    outcomes = list(run(Square(wrong=1), range(3), Parallel(), Told()))
    assert [str(each.error) for each in outcomes] == ["None", "1 is wrong.", "None"]


def test_a_function_that_cannot_be_sent_is_told() -> None:
    @dataclass(frozen=True)
    class Local:
        def open(self) -> AbstractContextManager[Callable[[tuple[int, ...]], int]]:
            return nullcontext(len)

    with pytest.raises(KeypatchError, match=r"cannot be sent to workers .*\(--workers 1\)"):
        list(run(Local(), range(3), TWO, Told()))


ORPHANS = """
import os, sys, time
from contextlib import contextmanager
from dataclasses import dataclass
from keypatch.engines import Parallel, run
from keypatch.progress import Progress

@dataclass(frozen=True)
class Sleep:
    @contextmanager
    def open(self):
        print(os.getpid(), flush=True)
        yield lambda batch: time.sleep(600)

if __name__ == "__main__":
    list(run(Sleep(), range(4), Parallel(workers=2), Progress()))
"""


@posix
def test_workers_end_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    driver = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    workers = [int(driver.stdout.readline()) for _ in range(2)]
    driver.kill()
    driver.communicate(timeout=60)  # the pipe ends when the last of them has
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [worker for worker in workers if Path(f"/proc/{worker}/cmdline").exists() and _alive(worker)]


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_item_is_in_one_shard() -> None:
    names = [f"photos/{number:05d}.jpg" for number in range(10_000)]
    shares = [{name for name in names if Shard(number, 7).has(name)} for number in range(1, 8)]
    assert set().union(*shares) == set(names) and sum(map(len, shares)) == len(names)
    assert all(1200 < len(share) < 1700 for share in shares)


@pytest.mark.parametrize("text", ["0/8", "9/8", "8", "a/b", "-1/8", "1/0", "1/8/2", ""])
def test_a_shard_is_i_of_n(text: str) -> None:
    with pytest.raises(KeypatchError, match="expected i/N with i from 1 to N, such as 2/8"):
        Shard.parse(text)


def test_options_of_a_cluster_need_one() -> None:
    with pytest.raises(KeypatchError, match=r"--address is for a Ray cluster\. Add --engine ray"):
        Parallel(address="host:6379")
    with pytest.raises(KeypatchError, match="workers is 0; it must be 1 or more"):
        Parallel(workers=0)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"No Ray cluster answers at 127\.0\.0\.1:1 \(.*refused\)\. Start one with `ray start`"),
        ("nonsense", r"--address nonsense: expected host:port"),
        ("127.0.0.1:99999", "No Ray cluster answers at"),
    ],
)
def test_a_cluster_that_is_not_there_is_told_at_once(address: str, message: str) -> None:
    from keypatch.engines.cluster import _require_answer

    with pytest.raises(KeypatchError, match=message):
        _require_answer(address)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "0")  # so that what is set there is undone
    with pytest.raises(KeypatchError, match=r"--engine ray needs Ray: pip install 'keypatch\[ray\]', or use several"):
        list(run(Square(), range(3), Parallel(engine="ray"), Told()))
