"""Make docs/example-report.html: `python docs/example_report.py`; the quickstart's page, with fewer pictures in it."""

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import keypatch
from keypatch.cli.main import answer
from keypatch.progress import ProgressBar

OUT = Path(__file__).parent / "example-report.html"
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


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
