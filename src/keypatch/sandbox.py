"""Foreign files are tried in a child process, with limits on time and memory, before this process reads them.

HDF5 and COLMAP hang on some damaged files, or end the process, and no handler of ours runs then. The child reads such a
file first; what stops the child is told in a sentence. It is started with the first file and serves all later ones.
"""

import atexit
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from keypatch.errors import DataError
from keypatch.files import reading

CHILD = (sys.executable, "-P", "-m", "keypatch.sandbox")  # -P: nothing is imported from the working directory
SECONDS, BYTES_PER_SECOND = 30.0, 2e6  # for any file, and a second more for every so many bytes: machines are busy
MEMORY, MEMORY_PER_BYTE = 4 * 2**30, 20  # of addresses, beyond those that the libraries take themselves
_LACK = re.compile("memory alloc|alloc[a-z]* memory|bad_alloc", re.IGNORECASE)

FITS = "fits\n"

_tried = dict[tuple[object, ...], str]()  # what is wrong with a file, by what it is; empty where nothing is


def try_reading(check: Callable[..., object], path: Path, *arguments: bool) -> None:
    """Let the child call `check(path, *arguments)`, a function of this package, once for a file that does not change.

    `path` may be a folder of files, as COLMAP's models are.

    Raises:
        DataError: the check took too long or too much memory, or ended the child. What it raises is no matter: it comes
            again when this process reads the file.
    """
    size, known = _identify(path)
    key = (check, arguments, known)
    if key not in _tried:
        _tried[key] = _child(os.getpid()).ask(check, path, arguments, size)
    if _tried[key]:
        raise DataError(f"{path} cannot be read: {_tried[key]}. The file is damaged: write or copy it again.")


def trust(check: Callable[..., object], path: Path, *arguments: bool) -> None:
    """What this process has just written is not tried."""
    _tried[check, arguments, _identify(path)[1]] = ""


def _identify(path: Path) -> tuple[int, tuple[object, ...]]:
    """The size in bytes, and what changes with the content; a file that is renamed is still the same."""
    with reading(path):
        files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        found = [each.stat() for each in files]
    known = tuple((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in found)
    return sum(each.st_size for each in found), known


class _Child:
    """The process that tries files, one at a time."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self._end)

    def ask(self, check: Callable[..., object], path: Path, arguments: tuple[bool, ...], size: int) -> str:
        """What is wrong; empty where nothing is."""
        seconds, memory = SECONDS + size / BYTES_PER_SECOND, MEMORY + MEMORY_PER_BYTE * size
        question = [check.__module__, check.__qualname__, str(path.absolute()), arguments, seconds, memory]
        answer = ""
        with self._turn:
            process = self._running()
            try:
                with suppress(BrokenPipeError):
                    print(json.dumps(question), file=process.stdin, flush=True)
                    self._line()  # libraries are loaded now, which may take long
                with time_limit(process, seconds) as late:
                    answer = self._line()
            finally:
                if not answer:  # too late, a crash, or Ctrl-C
                    self._end()
        if late.is_set():
            return f"a trial read took more than {seconds:.0f} seconds"
        if not answer:
            return f"a trial read ended with {_name(process.returncode)}"
        return "" if answer == FITS else f"a trial read needed more than {memory / 2**30:.0f} GB of memory"

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each would take addresses
            self._process = subprocess.Popen(CHILD, text=True, env=os.environ | threads, **pipes)
        return self._process

    def _line(self) -> str:
        return self._process.stdout.readline() if self._process and self._process.stdout else ""

    def _end(self) -> None:
        if self._process is not None:
            end_process(self._process)
        self._process = None


@cache
def _child(owner: int) -> _Child:
    """The child of this process; a forked process has none of its own yet."""
    return _Child()


def _name(code: int) -> str:
    return f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"code {code}"


def end_process(process: "subprocess.Popen[str]") -> None:
    """Whatever it is doing."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


@contextmanager
def time_limit(process: "subprocess.Popen[str]", seconds: float | None) -> Iterator[threading.Event]:
    """Kills the process when its time is over, and sets the event."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def lacks_memory(error: Exception) -> bool:
    """Libraries have errors of their own for that."""
    return isinstance(error, MemoryError) or _LACK.search(str(error)) is not None


def main() -> None:
    """The child: questions come in as lines of JSON, answers go out; it ends with the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this process
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        module, name, path, arguments, seconds, memory = json.loads(line)
        answer, check = FITS, getattr(importlib.import_module(module), name)
        print(file=answers, flush=True)
        _limit(seconds, memory)
        try:
            check(Path(path), *arguments)
        except Exception as error:  # any other comes again where the file is read, and is told there
            answer = "too large\n" if lacks_memory(error) else FITS
        _limit(0, memory)
        answers.write(answer)
        answers.flush()


def _limit(seconds: float, memory: int) -> None:
    """As far as the system can. The parent keeps the time, but may be killed while this process hangs; 0: no limit."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    if hasattr(signal, "alarm"):
        signal.alarm(2 * int(seconds))


if __name__ == "__main__":
    main()
