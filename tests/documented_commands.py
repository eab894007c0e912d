"""Every command and Python block of README, CONTRIBUTING and docs, run as it is written.

`python tests/documented_commands.py [PAGE ...] --out table.md` writes a table: page, command, exit code, seconds,
remark. Each page has a copy of this tree of its own, with the photographs that its reader is supposed to have, and
runs from top to bottom, so that a command finds what those before it have written. $DATA is the reader's folder of
data sets (`docs/data.md`); a command that names a set which is not there must end with exit code 2 and a sentence.
"""

import argparse
import importlib.util
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from skimage import data

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = {
    "adapt",
    "build",
    "compare",
    "convert",
    "describe",
    "doctor",
    "evaluate",
    "export",
    "gradients",
    "inspect",
    "match",
    "methods",
    "reconstruct",
    "report",
    "study",
    "sweep",
    "train",
    "ubc",
}
COMMANDS |= {"quickstart"}
INLINE = re.compile(r"(?<!`)`((?:keypatch|python|pip|make|unzip) [^`]+)`")

# Left out of every run, and why.
NOT_RUN = {
    re.compile(r"\bmake (test|test-slow)\b"): "the suite itself",
    re.compile(
        r"\bhynet_pulled\b|\bdimming\b|\bmine\.py\b|\bruns/own\b|\bresnet50\b"
    ): "names what the reader of the page adds to the package",
}
# May be stopped at the limit: experiments of hours, and races.
STOPPABLE = re.compile(r"bench/|examples/|make bench|runs/omniglot")
# Takes minutes: left out of the short part.
LONG = re.compile(
    r"\bmake |bench/|examples/|docs/\w+\.py|keypatch (adapt|build|train|study)|kp\.(adapt|build)|\.train\(|run_training"
    r"|--on (sfm|multiview)"
)
ENDED_BY_SIGINT = (130, -signal.SIGINT)


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    kind: str  # "shell", "python", "hloc" (Python that needs hloc) or a path: of a file to put into hloc
    text: str


@dataclass(frozen=True)
class Row:
    command: Command
    code: int | None
    seconds: float
    remark: str

    @property
    def failed(self) -> bool:
        return self.remark.startswith("FAILED")


def find_commands(page: Path) -> Iterator[Command]:
    """What the page's reader may paste: commands and Python in fences, and commands in the text that are whole."""
    name = page.relative_to(ROOT).as_posix()
    fence: list[str] | None = None
    kind, start, seen = "", 0, set[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            if fence is None:
                kind, fence, start = line.strip(" `"), [], number + 1
                continue
            if kind == "python":
                yield Command(name, start, "python", "\n".join(fence))
            elif kind.startswith("python hloc"):
                yield Command(name, start, kind.removeprefix("python "), "\n".join(fence))
            elif kind in ("", "sh") and not _is_tree(fence):
                yield from _statements(name, start, fence)
            fence = None
        elif fence is not None:
            fence.append(line)
        else:
            for text in INLINE.findall(line):
                if text not in seen and not set(text.split()[1:]) <= COMMANDS:  # else only a command's name
                    seen.add(text)
                    yield Command(name, number, "shell", text)


def _is_tree(lines: list[str]) -> bool:
    """A folder's tree, and no commands: it begins with a path."""
    return "/" in lines[0].split()[0]


def _statements(page: str, start: int, lines: list[str]) -> Iterator[Command]:
    whole = list[str]()
    for number, line in enumerate(lines, start):
        whole.append(line)
        text = "\n".join(whole)
        if line.endswith("\\") or subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode:
            continue  # a loop or a line that continues
        if text.strip() and not text.lstrip().startswith("#"):
            yield Command(page, number - len(whole) + 1, "shell", text)
        whole = []
    assert not whole, f"{page}, line {start}: {whole}"


def lay_out(folder: Path, page: str) -> None:
    """A copy of this tree with its environment, and what readers have: photographs, images by class, a database."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in tracked.strip("\0").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    environment = folder / ".venv"
    environment.mkdir()
    for part in ("bin", "lib", "pyvenv.cfg"):
        (environment / part).symlink_to(Path(sys.prefix, part))
    for stamp in (".installed", ".installed-dev"):
        (environment / stamp).touch()  # newer than pyproject.toml: make installs nothing
    wrapper = environment / "dry" / "pip"  # resolves and builds what a page installs, and leaves the environment alone
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@" --dry-run\n')
    wrapper.chmod(0o755)
    (folder / "photos").mkdir()
    for name, photo in zip("abcde", _photos(), strict=False):
        Image.fromarray(photo).save(folder / "photos" / f"{name}.jpg", quality=95)
    for name, photo in (("a", "a"), ("b", "b"), ("photo", "a")):
        shutil.copy(folder / "photos" / f"{photo}.jpg", folder / f"{name}.jpg")
    if re.search(r"(--keypoints-from|--database) database.db", page) and importlib.util.find_spec("pycolmap"):
        make_database = (
            "import pycolmap; options = pycolmap.FeatureExtractionOptions(); options.use_gpu = False;"
            "pycolmap.extract_features('database.db', 'photos', extraction_options=options)"
        )
        subprocess.run([sys.executable, "-c", make_database], cwd=folder, check=True, capture_output=True)
    for part, source in (("train", data.coffee()), ("test", data.astronaut())):
        for number in range(40):  # a class is a place of a photograph, seen through eight windows
            place = folder / "images" / part / f"place{number:02d}"
            place.mkdir(parents=True)
            for view in range(8):
                y, x = 20 + 60 * (number // 8) + 3 * (view // 3), 10 + 50 * (number % 8) + 3 * (view % 3)
                Image.fromarray(source[y : y + 96, x : x + 96]).save(place / f"{view}.png")


def _photos() -> list[np.ndarray[Any, Any]]:
    """Photographs of one place: of $DATA where it is there, else the two of scikit-image."""
    scene = Path(os.environ.get("DATA", ""), "photos", "et", "images")
    if "DATA" in os.environ and scene.is_dir():
        return [np.asarray(Image.open(path).convert("RGB")) for path in sorted(scene.glob("*.jpg"))]
    return [view[::2, ::2] for view in data.stereo_motorcycle()[:2]]


@dataclass
class Reader:
    """Somebody who pastes the commands of one page, in the folder `here`."""

    here: Path
    limit: float
    log: Path
    variables: list[str] = field(default_factory=list)  # shell variables the page has set so far
    absent: set[str] = field(default_factory=set)  # what would have been written by commands that lacked their data
    session: "subprocess.Popen[str] | None" = None
    answers: int = -1

    def environment(self) -> dict[str, str]:
        path = f"{self.here / '.venv' / 'dry'}:{self.here / '.venv' / 'bin'}:{os.environ['PATH']}"
        packages = f"{self.here / 'src'}:{os.environ.get('PYTHONPATH', '')}"
        asked = {"PATH": path, "PYTHONPATH": packages, "COLUMNS": "160"}
        return {"DATA": str(self.here / "data"), **os.environ, **asked}

    def run(self, command: Command) -> Row:
        for left_out, reason in NOT_RUN.items():
            if command.kind == "shell" and left_out.search(command.text):
                return Row(command, None, 0, f"left out: {reason}")
        if command.kind.startswith("hloc"):
            hloc = importlib.util.find_spec("hloc")
            if hloc is None or hloc.origin is None:
                return Row(command, None, 0, "left out: hloc is not installed")
            if "/" in command.kind:
                Path(hloc.origin).parents[1].joinpath(command.kind).write_text(command.text, encoding="utf-8")
                return Row(command, 0, 0, "put into hloc")
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\n{command.page}:{command.line}\n$ {command.text}\n")
            log.flush()
            before, started = log.tell(), time.monotonic()
            stoppable = command.page.startswith("docs/results/") or STOPPABLE.search(command.text)
            limit = self.limit if stoppable else None
            code, stopped = (self._shell if command.kind == "shell" else self._python)(command.text, log, limit)
            if command.kind == "hloc":  # calls pycolmap in this process, after which the heap may be damaged
                self.close()
            seconds = time.monotonic() - started
        said = self.log.read_bytes()[before:].decode(errors="replace")
        return Row(command, code, seconds, self._remark(command, code, stopped, said))

    def _shell(self, text: str, log: Any, limit: float | None) -> tuple[int, bool]:
        if re.fullmatch(r"\w+=\S*\s*(#.*)?", text):
            self.variables.append(text)
        script = "\n".join([*self.variables, text])
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=self.here, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit), False
        except subprocess.TimeoutExpired:
            return _interrupt(process), True

    def _python(self, text: str, log: Any, limit: float | None) -> tuple[int, bool]:
        """The block in the page's one Python session."""
        if self.session is None or self.session.poll() is not None:
            self.answers, theirs = os.pipe()
            self.session = subprocess.Popen(
                [sys.executable, "-u", "-c", _SESSION, str(theirs)], cwd=self.here, env=self.environment(), text=True,
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, pass_fds=[theirs],
            )  # fmt: skip
            os.close(theirs)
        assert self.session.stdin is not None
        self.session.stdin.write(json.dumps([text, str(self.log)]) + "\n")
        self.session.stdin.flush()
        if select.select([self.answers], [], [], limit)[0]:
            answer = os.read(self.answers, 100)
            return int(answer) if answer else self.session.wait(), False
        return _interrupt(self.session), True

    def close(self) -> None:
        if self.session is not None and self.session.stdin is not None:
            self.session.stdin.close()
            self.session.wait()
            os.close(self.answers)
        self.session = None

    def _remark(self, command: Command, code: int, stopped: bool, said: str) -> str:
        folder, text = Path(self.environment()["DATA"]), command.text
        named = re.findall(r"\$DATA/([\w.-]+)|environ\[\"DATA\"\] \+ \"/([\w.-]+)", text)
        lacking = [name for names in named for name in names if name and not (folder / name).exists()]
        if lacking or (code != 0 and mentions(text, self.absent)):
            self.absent |= outputs(text)
            ours = command.kind == "shell" and re.match("keypatch|python", text)
            ended_well = code == 2 and "Traceback" not in said if ours else code != 0
            return "data not at hand" if ended_well else f"FAILED: should end with 2 and a sentence, without {lacking}"
        if stopped:
            remark = f"stopped after {self.limit:.0f} s"
            return remark if code in ENDED_BY_SIGINT and "Traceback" not in said else f"FAILED: {remark}, ended badly"
        return "" if code == 0 else f"FAILED: {(said.strip().splitlines() or [''])[-1][:120]}"


def outputs(text: str) -> set[str]:
    """What the command would have written, and the folders of it."""
    named = {name.rstrip("/") for name in re.findall(r"(?:--out |-d |^mv .* )([^\s;]+)(?=$|\s|;)", text)}
    return named | {name.split("/")[0] for name in named} - {"runs"}


def mentions(text: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<![\w/]){re.escape(name)}(?![\w-])", text) for name in names)


# Reads [source, log] and answers with the exit code that a script with the session's blocks would have had.
_SESSION = """
import json, os, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    source, log = json.loads(line)
    try:
        exec(compile(source, "page", "exec"), names)
        code = 0
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    os.write(int(sys.argv[1]), str(code).encode())
"""


def _interrupt(process: "subprocess.Popen[Any]") -> int:
    """Ctrl-C, as a terminal sends it to the whole group; again where a shell's loop went on with its next command."""
    for _ in range(20):
        os.killpg(process.pid, signal.SIGINT)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            continue
    os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def run_page(page: Path, folder: Path, limit: float = 240, short: bool = False) -> Iterator[Row]:
    """The page's commands one after the other, in a new `folder`; `short` leaves out what takes minutes."""
    folder.mkdir(parents=True)
    lay_out(folder, page.read_text(encoding="utf-8"))
    reader = Reader(folder, limit, folder.with_suffix(".log"))
    left_out = set[str]()
    try:
        for command in find_commands(page):
            if short and (LONG.search(command.text) or mentions(command.text, left_out)):
                left_out |= outputs(command.text)
                yield Row(command, None, 0, "left out: takes minutes, or needs what does")
            else:
                yield reader.run(command)
    finally:
        reader.close()


def as_table(rows: list[Row]) -> str:
    lines = ["| page | line | command | exit code | seconds | remark |", "|---|---|---|---|---|---|"]
    for row in rows:
        text = re.sub(r"\s*\\\n\s*", " ", row.command.text)
        if row.command.kind != "shell":
            text = f"Python: {row.command.text.splitlines()[0]} ... ({len(text.splitlines())} lines)"
        text = text.replace("\n", "; ").replace("|", "\\|")
        code = "" if row.code is None else 130 if row.code in ENDED_BY_SIGINT else row.code
        where = f"{row.command.page} | {row.command.line}"
        lines.append(f"| {where} | `{text}` | {code} | {row.seconds:.1f} | {row.remark.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES, help="default: all")
    parser.add_argument("--out", type=Path, required=True, help="where the table goes")
    parser.add_argument("--limit", type=float, default=240, help="seconds after which a command is stopped with Ctrl-C")
    parser.add_argument("--short", action="store_true", help="leave out what takes minutes")
    parser.add_argument(
        "--work", type=Path, help="where the pages' folders are made and kept; default: a temporary one"
    )
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    work = Path(tempfile.mkdtemp()) if asked.work is None else asked.work.resolve()
    rows = list[Row]()
    for page in (path.resolve() for path in asked.pages):
        folder = work / page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "-")
        for row in run_page(page, folder, asked.limit, asked.short):
            rows.append(row)
            print(f"{row.command.page}:{row.command.line}", row.code, f"{row.seconds:.1f} s", row.remark, flush=True)
            asked.out.write_text(as_table(rows), encoding="utf-8")
    if asked.work is None:
        shutil.rmtree(work)
    failed = sum(row.failed for row in rows)
    print(f"{len(rows)} commands, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
