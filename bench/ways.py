"""How far one must walk to read a command: files of src with a function that runs, and hops, pairs of files that call.

python bench/ways.py          # the table of docs/architecture.md; about a minute
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

import keypatch
from keypatch.cli.main import answer

SOURCE = str(Path(keypatch.__file__).parent) + "/"
FUNCTION = 0x2  # of code flags: the bodies of modules and classes lack it
WAYS = {
    "train": "train hardnet --data embedded --pairs 256 --out run --set sampler.pairs=64",
    "describe": "describe photos --out features.h5 --keypoints 300",
    "match": "match photos/0.png photos/1.png --draw matches.png --keypoints 300",
    "evaluate": "evaluate rootsift --data embedded-test --out result.json",
    "reconstruct": "reconstruct photos --out scene --keypoints 300",
    "report": "report result.json --out page.html",
}


def walk(words: list[str]) -> tuple[int, int]:
    """Runs one command line; the files and hops of this process, all its threads included."""
    from keypatch.cli.main import run

    files, hops = set[str](), set[tuple[str, str]]()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(SOURCE) or not code.co_flags & FUNCTION:
            return
        while caller is not None and not caller.f_code.co_filename.startswith(SOURCE):
            caller = caller.f_back
        if caller is not None and not caller.f_code.co_flags & FUNCTION:
            return  # while a module is imported
        files.add(code.co_filename)
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            hops.add((caller.f_code.co_filename, code.co_filename))

    threading.setprofile(watch)
    sys.setprofile(watch)
    code = run(words)
    sys.setprofile(None)
    if code:
        sys.exit(f"keypatch {' '.join(words)} ended with {code}")
    return len(files), len(hops)


def write_photos(folder: Path) -> None:
    from PIL import Image
    from skimage import data

    folder.mkdir()
    photo = Image.fromarray(data.astronaut()).convert("L")
    for index, (left, top) in enumerate([(0, 0), (40, 30), (80, 60)]):
        photo.crop((left, top, left + 360, top + 360)).save(folder / f"{index}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=WAYS, help="only this one, in this process and in the folder one is in")
    way = parser.parse_args().way
    if way:
        print(json.dumps(walk(WAYS[way].split())))
        return
    print("| way | files | hops |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder, "photos"))
        for way in WAYS:
            command = [sys.executable, str(Path(__file__).absolute()), "--way", way]
            cache = {
                **os.environ,
                "KEYPATCH_CACHE": str(Path(folder, "cache")),
            }  # empty: what fills it counts
            said = subprocess.run(command, cwd=folder, env=cache, stdout=subprocess.PIPE, check=True, text=True).stdout
            files, hops = json.loads(said.splitlines()[-1])
            print(f"| {way} | {files} | {hops} |")


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
