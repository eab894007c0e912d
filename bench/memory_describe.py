"""Peak memory of `keypatch describe` for one large photo, each way in a process of its own.

python bench/memory_describe.py --megapixels 50
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from keypatch.cli.main import answer

WAYS = {
    "sift, 2,048 keypoints": ["--descriptor", "sift"],
    "hynet-notredame, 2,048 keypoints": [],
    "hynet-notredame, 50,000 keypoints": ["--keypoints", "50000"],
    "hynet-notredame, --max-size 3200": ["--max-size", "3200"],
    "hynet-notredame, keypoints of a file": ["--keypoints-from", "grid.csv"],
}
CHILD = """
import resource, sys
from keypatch.cli.main import answer
from keypatch.cli.main import run
code = run(sys.argv[1:])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def make_photo(path: Path, megapixels: float) -> None:
    """A 4:3 photo with structure at every scale: random greys, finer and finer, added up."""
    height = round((megapixels * 1e6 * 3 / 4) ** 0.5)
    width = round(height * 4 / 3)
    rng = np.random.default_rng(0)
    photo = np.full((height, width), 127, np.float32)
    for cells in (8, 32, 128, 512):
        coarse = Image.fromarray(rng.normal(0, 20, (cells, cells)).astype(np.float32))
        photo += np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    Image.fromarray(photo.clip(0, 255).astype(np.uint8)).save(path, quality=90)
    print(f"{width} x {height} pixels")


def peak_megabytes(folder: Path, words: list[str]) -> float:
    command = [sys.executable, "-c", CHILD, "describe", "photo.jpg", "--out", "features.h5", *words]
    (folder / "features.h5").unlink(missing_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    code, kilobytes = done.stdout.split()[-2:]
    if code != "0":
        raise SystemExit(done.stderr)
    return int(kilobytes) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megapixels", type=float, default=50)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_photo(folder / "photo.jpg", chosen.megapixels)
        places = [(x, y) for y in range(100, 1000, 20) for x in range(100, 1000, 20)]
        (folder / "grid.csv").write_text("x,y,sigma\n" + "".join(f"{x},{y},3\n" for x, y in places))
        for way, words in WAYS.items():
            print(f"{way:40} {peak_megabytes(folder, words):8,.0f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
