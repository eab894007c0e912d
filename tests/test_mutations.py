"""Spoilt files of every kind are read or refused in a sentence; what is neither is caught by the same trial."""

import random
import sys
from pathlib import Path

import mutations
import pytest
from mutations import CASES, CRASH, GREED, HANG, READ, REFUSED, TRACEBACK, Case, Worker

SHORT = 2  # mutations of each reader: the whole number of them takes a quarter of an hour
COLMAP = {"COLMAP database", "COLMAP model, text", "COLMAP model, binary"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory hold on Linux")


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.end()


def tried(name: str, count: int, worker: Worker, folder: Path) -> mutations.Tally:
    if name in COLMAP:
        pytest.importorskip("pycolmap")
    return mutations.run(name, range(count), worker, folder)


@pytest.mark.parametrize("name", CASES)
def test_a_few_spoilt_files_are_read_or_refused(name: str, worker: Worker, tmp_path: Path) -> None:
    assert tried(name, SHORT, worker, tmp_path).failures == []


FOUND = {  # what such a file ended with before the boundary around readers
    "run log": 0,  # UnicodeDecodeError
    "published .pth of torch 1": 136,  # gigabytes
    "recipe": 148,  # OverflowError
    "photo, AVIF": 41,  # RuntimeError
    "photo, BMP": 26,  # OverflowError
    "photo, JPEG 2000": 127,  # gigabytes
    "COLMAP database": 103,  # UnicodeDecodeError
    "visibility lists": 185,  # SystemError
    "features": 10,  # gigabytes
    "COLMAP model, binary": 2,  # no end, and gigabytes
}


@pytest.mark.parametrize("name", FOUND)
def test_a_file_that_once_got_through_is_read_or_refused(name: str, worker: Worker, tmp_path: Path) -> None:
    if name in COLMAP:
        pytest.importorskip("pycolmap")
    assert mutations.run(name, [FOUND[name]], worker, tmp_path).failures == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_spoilt_files_are_read_or_refused(name: str, worker: Worker, tmp_path: Path) -> None:
    tally = tried(name, mutations.MUTATIONS, worker, tmp_path)
    assert tally.failures == []
    assert tally.counts[READ] + tally.counts[REFUSED] == mutations.MUTATIONS


PLANTED = """
import os, signal, sys
from mutations import CASES, Case, work
from keypatch.files import reading

def hang(folder):
    while True:
        pass

def take(folder):
    with reading(folder):  # which tells it in a sentence
        bytearray(8 * 2**30)

def raise_(folder):
    {}["no such key"]

def crash(folder):
    os.kill(os.getpid(), signal.SIGSEGV)

def spoilt(fault):
    return lambda folder: fault(folder) if (folder / "a.txt").read_bytes() != b"whole" else None

for fault in (hang, take, raise_, crash):
    CASES[fault.__name__] = Case(lambda folder: None, spoilt(fault))
work()
"""


@pytest.mark.parametrize(
    ("fault", "outcome"), [("hang", HANG), ("take", GREED), ("raise_", TRACEBACK), ("crash", CRASH)]
)
def test_a_planted_fault_is_caught_with_its_seed(fault: str, outcome: str, tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "a.txt").write_text("whole")

    planted = Worker(seconds=5.0 if fault == "hang" else 60.0, command=("-c", PLANTED))
    with_fault = Case(make, lambda folder: None)
    tally = mutations.run(fault, [7], planted, tmp_path, with_fault)
    planted.end()
    assert [(seed, told) for seed, told, _ in tally.failures] == [(7, outcome)]


def test_a_mutation_follows_from_the_seed_and_most_change_something() -> None:
    whole = b"12 0.5 name\n" * 9
    spoilt = [mutations.mutate(whole, random.Random(seed)) for seed in range(100)]
    assert spoilt == [mutations.mutate(whole, random.Random(seed)) for seed in range(100)]
    assert sum(each != whole for each in spoilt) > 90
