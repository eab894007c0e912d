"""Make docs/example-report.html: `python docs/example_report.py`; the quickstart's page, with fewer pictures in it.

Where there is a Chromium, also docs/report.png, a picture of its beginning while a curve is read.
"""

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image

import keypatch
from keypatch.cli.main import answer
from keypatch.progress import ProgressBar

ROOT = Path(__file__).parent.parent
OUT, PICTURE = ROOT / "docs" / "example-report.html", ROOT / "docs" / "report.png"
WIDTH = 1180  # pixels of the picture, which ends below the first curves
WITH_PICTURES = ("sift", "trained")  # of hardest pairs; those of all four would double the file


def main() -> None:
    done = keypatch.quickstart(progress=ProgressBar())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "quickstart")
        copy.mkdir()
        shutil.copy(done.folder / "log.jsonl", copy)
        for result in done.results:
            kept = result if result.descriptor in WITH_PICTURES else replace(result, pictures={})
            kept.save(copy / f"{result.descriptor}.json")
        keypatch.report([copy], OUT, title="Quickstart")
    print(f"{OUT.name}: {OUT.stat().st_size:,} bytes")
    if photograph(OUT, PICTURE):
        print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


def photograph(page: Path, picture: Path) -> bool:
    """A picture of the beginning of the page with the pointer on its first curves; False without Chromium."""
    sys.path.insert(0, str(ROOT / "tests"))
    from chromium import CHROMIUM, Browser  # which the tests use

    if CHROMIUM is None:
        return False
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        browser.open(page, WIDTH)
        left, top, right, bottom = browser.run(
            "(r => [r.left, r.top, r.right, r.bottom])(document.querySelector('svg.curves').getBoundingClientRect())"
        )
        browser.open(page, WIDTH, round(bottom) + 16)
        browser.move(left + 0.45 * (right - left), (top + bottom) / 2)
        browser.shot(picture, whole=False)
    Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)  # half of the bytes
    return True


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
