"""Descriptors are computed once for each describer and data, and never taken for others."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from keypatch import cache, files
from keypatch.benchmarks.caching import describe_cached, describer_identity
from keypatch.cache import without_cache
from keypatch.describers import SiftDescriber
from keypatch.describers.network import NetworkDescriber
from keypatch.networks import L2Net

PATCHES = np.random.default_rng(0).integers(0, 256, (50, 64, 64), np.uint8)


class Patches:
    """The part of a patch set that describing needs."""

    def __init__(self, patches: NDArray[np.uint8] = PATCHES) -> None:
        self.patches = patches

    def __len__(self) -> int:
        return len(self.patches)

    def take(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        return self.patches[indices]


class Rows:
    """Some pixels, and how often more than one patch was described, for the probe is of one."""

    name, dim, patch_size, patch_sigmas, unit_length = "rows", 8, 64, 12.0, False

    def __init__(self) -> None:
        self.calls = 0

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.calls += len(patches) > 1
        return patches[:, 0, :8].astype(np.float32)


class LearnedRows(Rows):
    def __init__(self, weights_hash: str = "abc") -> None:
        super().__init__()
        self.weights_hash = weights_hash


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "descriptors"


def kept(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def test_the_second_call_describes_nothing(folder: Path) -> None:
    describer = LearnedRows()
    first = describe_cached(describer, Patches(), "data")
    second = describe_cached(describer, Patches(), "data")
    assert describer.calls == 1
    assert np.array_equal(first, PATCHES[:, 0, :8]) and np.array_equal(first, second)
    assert not first.flags.writeable and not second.flags.writeable
    (file,) = kept(folder)
    assert file.name == f"{(describer_identity(describer) or '')[:16]}-data.npy"


def test_other_data_or_another_describer_share_nothing(folder: Path) -> None:
    describe_cached(LearnedRows(), Patches(), "data")
    other = describe_cached(LearnedRows(), Patches(PATCHES[::-1]), "reversed")
    assert np.array_equal(other, PATCHES[::-1, 0, :8])
    describe_cached(LearnedRows("def"), Patches(), "data")
    assert len(kept(folder)) == 3


def test_a_describer_that_nothing_is_known_of_is_never_kept(folder: Path) -> None:
    describer = Rows()
    assert describer_identity(describer) is None
    for _ in range(2):
        describe_cached(describer, Patches(), "data")
    assert describer.calls == 2 and not kept(folder)


def test_without_cache_nothing_is_read_and_nothing_kept(folder: Path) -> None:
    describer = LearnedRows()
    with without_cache():
        describe_cached(describer, Patches(), "data")
    assert not kept(folder)
    describe_cached(describer, Patches(), "data")
    with without_cache():
        describe_cached(describer, Patches(), "data")
    assert describer.calls == 3


def test_progress_is_told_only_of_work(folder: Path) -> None:
    steps: list[tuple[int, int]] = []
    for _ in range(2):
        describe_cached(LearnedRows(), Patches(), "data", lambda done, total, _: steps.append((done, total)))
    assert steps == [(0, 50), (50, 50)]


def networks() -> dict[str, NetworkDescriber]:
    """The same weights; each differs from the first in what its name says."""
    torch.manual_seed(0)
    module = L2Net(dim=16, width=8).build().eval()
    twin, moved = deepcopy(module), deepcopy(module)
    with torch.no_grad():
        next(moved.parameters()).view(-1)[0] += 1e-3
    made = {"the same under another name": twin, "a weight": moved}
    for field, value in {"value_range": 255.0, "normalization": "instance", "resize": "antialias", "size": 30}.items():
        other = deepcopy(module)
        other.preprocessing = replace(module.preprocessing, **{field: value})
        made[field] = other
    raw = deepcopy(module)
    raw.unit_length = False
    made["unit length"] = raw
    return {name: NetworkDescriber(each, name, device="cpu") for name, each in made.items()}


def test_the_identity_changes_with_all_that_acts_on_the_numbers() -> None:
    found = {name: describer_identity(describer) for name, describer in networks().items()}
    torch.manual_seed(0)
    first = describer_identity(NetworkDescriber(L2Net(dim=16, width=8).build().eval(), "first", device="cpu"))
    assert found.pop("the same under another name") == first
    assert len({first, *found.values()}) == 1 + len(found)


def test_the_identity_changes_with_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keypatch.describers.network.has_fast_bfloat16", lambda place: True)
    torch.manual_seed(0)
    module = L2Net(dim=16, width=8).build().eval()
    exact, coarse = (NetworkDescriber(module, "x", "cpu", precision) for precision in ("float32", "bfloat16"))
    assert describer_identity(exact) != describer_identity(coarse)


def test_the_identity_does_not_depend_on_the_threads() -> None:
    describer, before = networks()["unit length"], torch.get_num_threads()
    try:
        identities = set()
        for threads in (1, 2):
            torch.set_num_threads(threads)
            identities.add(describer_identity(describer))
    finally:
        torch.set_num_threads(before)
    assert len(identities) == 1


def test_sift_has_an_identity_for_each_of_its_kinds() -> None:
    kinds = [SiftDescriber(), SiftDescriber(root=True), SiftDescriber(patch_sigmas=18.0), SiftDescriber(patch_size=29)]
    assert len({describer_identity(each) for each in kinds}) == 4
    assert describer_identity(SiftDescriber()) == describer_identity(SiftDescriber())


def save(array: NDArray) -> Callable[[Path], None]:
    return lambda path: np.save(path, array)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "header only": lambda path: path.write_bytes(path.read_bytes()[:60]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no array"),
    "float64": save(np.zeros((50, 8))),
    "fewer rows": save(np.zeros((49, 8), np.float32)),
    "another width": save(np.zeros((50, 9), np.float32)),
    "nan at the end": save(np.array([[0] * 8] * 49 + [[0] * 7 + [np.nan]], np.float32)),
    "pickled": lambda path: path.write_bytes(b"\x80\x04N."),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_computed_again_and_replaced(folder: Path, damage: str) -> None:
    describer = LearnedRows()
    describe_cached(describer, Patches(), "data")
    DAMAGES[damage](kept(folder)[0])
    again = describe_cached(describer, Patches(), "data")
    assert describer.calls == 2 and np.array_equal(again, PATCHES[:, 0, :8])
    describe_cached(describer, Patches(), "data")
    assert describer.calls == 2 and len(kept(folder)) == 1


def test_where_nothing_can_be_written_the_scores_come_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match=r"cannot be cached in .*file.descriptors .*KEYPATCH_CACHE"):
        found = describe_cached(LearnedRows(), Patches(), "data")
    assert np.array_equal(found, PATCHES[:, 0, :8])


def test_a_full_disk_leaves_no_part_and_one_note(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("keypatch.cache.npy.write_array_header_1_0", full)
    with pytest.warns(UserWarning, match="no space left on device") as told:
        for number in range(3):
            describe_cached(LearnedRows(), Patches(), f"data{number}")
    assert len({str(each.message) for each in told}) == 1  # python shows equal warnings once
    assert not kept(folder)


def test_what_was_used_longest_ago_makes_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describer = LearnedRows()
    for number in range(3):
        describe_cached(describer, Patches(), f"data{number}")
        for path in kept(folder):
            os.utime(path, (path.stat().st_atime - 60, path.stat().st_mtime - 60))
    describe_cached(describer, Patches(), "data0")  # the oldest is used again
    monkeypatch.setattr(cache, "LIMIT", 3 * kept(folder)[0].stat().st_size)
    describe_cached(describer, Patches(), "data3")
    assert [path.stem[-5:] for path in kept(folder)] == ["data0", "data2", "data3"]


def test_what_is_larger_than_the_limit_drives_nothing_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe_cached(LearnedRows(), Patches(PATCHES[:5]), "small")
    monkeypatch.setattr(cache, "LIMIT", 50 * 8 * 4 - 1)
    describe_cached(LearnedRows(), Patches(), "large")
    assert [path.stem[-5:] for path in kept(folder)] == ["small"]


def test_parts_of_killed_writers_go_and_those_of_living_ones_stay(folder: Path) -> None:
    folder.mkdir(parents=True)
    dead, living = folder / ".a.npy.1.partial", folder / ".b.npy.2.partial"
    for path in (dead, living):
        path.touch()
    long_ago = time.time() - files.SECONDS_UNTIL_ABANDONED - 1
    os.utime(dead, (long_ago, long_ago))
    describe_cached(LearnedRows(), Patches(), "data")
    assert not dead.exists() and living.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove a file that is mapped")
def test_descriptors_in_use_survive_the_removal_of_their_file(folder: Path) -> None:
    describe_cached(LearnedRows(), Patches(), "data")
    mapped = describe_cached(LearnedRows(), Patches(), "data")
    kept(folder)[0].unlink()
    assert np.array_equal(mapped, PATCHES[:, 0, :8])


PROCESS = """
import numpy as np
from keypatch.benchmarks.caching import describe_cached
from keypatch.describers import SiftDescriber

class Patches:
    patches = np.random.default_rng(0).integers(0, 256, (300, 64, 64), np.uint8)
    def __len__(self): return 300
    def take(self, indices): return self.patches[indices]

for _ in range(20):
    found = describe_cached(SiftDescriber(), Patches(), "data")
    for path in __import__("pathlib").Path(__import__("sys").argv[1]).glob("*.npy"):
        path.unlink(missing_ok=True)
print(found.sum(dtype=np.float64))
"""


def test_two_processes_write_and_remove_the_same_file(folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", PROCESS, str(folder)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], told
    assert told[0][0] == told[1][0]
    assert not list(folder.glob("*.partial")) and not list(folder.glob(".*"))
