"""Describing, killed for real at random moments: the file is readable each time, and a rerun completes it."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

# One process imports everything once; its children describe, and are killed. It reads the file with plain h5py.
SCRIPT = """
import os, random, signal, sys, time
from pathlib import Path

import h5py
import numpy as np

import torch
from keypatch.features import Extraction, growing_file
from keypatch.features.description import describe
from keypatch.engines import Parallel

growing_file._FEW = 2  # merge often
photos, folder, kills = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])


def start(out, workers):
    child = os.fork()
    if child == 0:
        try:
            describe(photos, out, "sift", Extraction(keypoints=10), parallel=Parallel(workers=workers))
        finally:
            os._exit(0)
    return child


def contents(out):
    found = {}
    if out.exists():
        with h5py.File(out, "r") as file:
            assert file.attrs["format"] == "keypatch-features"
            for name in file:
                found[name] = {key: file[name][key][()] for key in file[name]}
                assert len(found[name]["keypoints"]) == found[name]["descriptors"].shape[1] == len(found[name]["oris"])
    return found


began = time.monotonic()
os.waitpid(start(folder / "whole.h5", 1), 0)
usual = time.monotonic() - began
whole = contents(folder / "whole.h5")
assert len({arrays["descriptors"].tobytes() for arrays in whole.values()}) == len(list(photos.iterdir()))

draw = random.Random(0)
out, before, cut_short = folder / "f.h5", set(), 0
for number in range(kills):
    child = start(out, 1 + number % 2)
    time.sleep(draw.uniform(0, 0.5 * usual))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = contents(out)
    assert before <= found.keys(), "a photo was lost"
    before = set(found)
    cut_short += len(found) < len(whole)
    if len(found) == len(whole):
        out.unlink()
        before = set()
os.waitpid(start(out, 2), 0)
last = contents(out)
assert last.keys() == whole.keys()
for name, arrays in whole.items():
    for key, array in arrays.items():
        np.testing.assert_array_equal(last[name][key], array)
left = [path.name for path in folder.iterdir()]
assert sorted(left) == ["f.h5", "whole.h5"], left
print(cut_short)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_file_survives_kills_at_any_moment(photos: Path, tmp_path: Path) -> None:
    crops, folder = tmp_path / "photos", tmp_path / "out"
    crops.mkdir()
    folder.mkdir()
    for number in range(16):  # different ones: features under another's name would be seen
        Image.open(photos / "a.png").crop((number, 2 * number, 150 + number, 150 + 2 * number)).save(
            crops / f"{number:02d}.png"
        )
    command = [sys.executable, "-c", SCRIPT, str(crops), str(folder), "12"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 6  # most kills came before the end
