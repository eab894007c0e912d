"""Kept features: nothing is made twice, nothing is mixed up, and whatever is wrong with the cache costs time only."""

import gc
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray

from keypatch import cache as module
from keypatch.benchmarks.caching import KeptFeatures
from keypatch.cache import without_cache
from keypatch.detection import Dog, Orb
from keypatch.features import Extraction, extract
from keypatch.zoo import load

FEW = Extraction(keypoints=40)
PHOTO = np.ascontiguousarray(skimage.data.camera()[60:220, 150:330])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


class Seen:
    """A photo that counts how often it is looked at."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> NDArray[np.uint8]:
        self.times += 1
        return PHOTO


class Plain:
    """A describer of which nothing is known but its name."""

    name, dim, patch_size, patch_sigmas, unit_length = "plain", 64, 8, 12.0, False

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        return patches[:, :8, :8].reshape(len(patches), -1).astype(np.float32)


def test_an_image_is_described_once_and_as_extract_does(cache: Path) -> None:
    photo, expected = Seen(), extract(PHOTO, load("rootsift"), FEW)
    for _ in range(2):
        found = KeptFeatures(load("rootsift"), FEW).read("a", photo)
        np.testing.assert_array_equal(found.descriptors, expected.descriptors)
        np.testing.assert_array_equal(found.keypoints.xy, expected.keypoints.xy)
        assert (found.image_size, found.descriptor) == ((180, 160), "rootsift")
    assert photo.times == 1
    KeptFeatures(load("rootsift"), FEW).read("b", photo)
    assert photo.times == 2
    [folder] = cache.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["a.h5", "b.h5"]


@pytest.mark.parametrize(
    ("descriptor", "extraction", "more"),
    [
        ("sift", FEW, {}),
        ("rootsift", replace(FEW, keypoints=41), {}),
        ("rootsift", replace(FEW, rule="strongest"), {}),
        ("rootsift", replace(FEW, patch_sigmas=20.0), {}),
        ("rootsift", replace(FEW, detector=Dog(contrast_threshold=0.02)), {}),
        ("rootsift", replace(FEW, detector=Orb()), {}),
        ("rootsift", FEW, {"short_side": 480}),
    ],
)
def test_features_of_other_settings_are_not_taken_for_these(
    descriptor: str, extraction: Extraction, more: dict[str, int]
) -> None:
    usual, other = KeptFeatures(load("rootsift"), FEW), KeptFeatures(load(descriptor), extraction, **more)
    assert usual.folder != other.folder
    assert usual.folder == KeptFeatures(load("rootsift"), Extraction(keypoints=40)).folder


@pytest.mark.parametrize("damage", [b"", b"no HDF5", None])
def test_a_damaged_file_is_made_again(damage: bytes | None) -> None:
    photo, kept = Seen(), KeptFeatures(load("rootsift"), FEW)
    path = kept.file("a", photo)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert len(kept.read("a", photo)) == 40
    assert photo.times == 2


def test_an_unknown_describer_is_not_believed_to_be_the_same_and_leaves_nothing(cache: Path) -> None:
    kept = KeptFeatures(Plain(), FEW)
    folder = kept.folder
    assert len(kept.read("a", Seen())) == 40 and folder.is_dir()
    assert not cache.exists()
    del kept
    gc.collect()
    assert not folder.exists()


def test_without_the_cache_nothing_is_read_from_it_or_written_to_it(cache: Path) -> None:
    KeptFeatures(load("rootsift"), FEW).read("a", Seen())
    before, photo = sorted(cache.rglob("*")), Seen()
    with without_cache():
        KeptFeatures(load("rootsift"), FEW).read("a", photo)
        KeptFeatures(load("sift"), FEW).read("a", photo)
    assert photo.times == 2
    assert sorted(cache.rglob("*")) == before


def test_a_cache_that_cannot_be_written_costs_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="Features cannot be cached .* Set KEYPATCH_CACHE"):
        kept = KeptFeatures(load("rootsift"), FEW)
    assert len(kept.read("a", Seen())) == 40


def test_what_was_not_used_for_long_makes_room(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []
    for number, descriptor in enumerate(("sift", "rootsift")):
        kept = KeptFeatures(load(descriptor), FEW)
        kept.file("a", Seen())
        folders.append(kept.folder)
        os.utime(kept.folder, (0, time.time() - (9 - number) * 86400))
    size = sum(path.stat().st_size for path in cache.rglob("*.h5"))
    monkeypatch.setattr(module, "LIMIT", size - 1)
    of_late = KeptFeatures(load("sift"), replace(FEW, keypoints=7))
    assert [folder.exists() for folder in folders] == [False, True], "the older one goes, and that is enough"
    of_late.file("a", Seen())
    monkeypatch.setattr(module, "LIMIT", 0)
    KeptFeatures(load("sift"), replace(FEW, keypoints=8))
    assert [folder.exists() for folder in folders] == [False, False]
    assert of_late.folder.exists(), "another process may be at work there"


SCRIPT = """
import sys
import numpy as np
from keypatch.benchmarks.caching import KeptFeatures
from keypatch.features import Extraction
from keypatch.zoo import load
photo = np.load(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
kept = KeptFeatures(load("rootsift"), Extraction(keypoints=40))
for number in range(12):
    assert len(kept.read(str(number), lambda: photo)) == 40
"""


def test_two_processes_at_once_fill_the_same_folder(tmp_path: Path, cache: Path) -> None:
    np.save(tmp_path / "photo.npy", PHOTO)
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / "photo.npy")]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in both:
        process.communicate()
    assert [process.returncode for process in both] == [0, 0]
    [folder] = cache.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{number}.h5" for number in range(12))
