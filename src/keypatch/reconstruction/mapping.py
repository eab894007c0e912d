"""Runs COLMAP in a child process, so that its crash is a sentence and not ours."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from keypatch.errors import KeypatchError
from keypatch.features.progress import counted
from keypatch.reconstruction.child import Job
from keypatch.reconstruction.outcome import Outcome

CHILD = (sys.executable, "-P", "-m", "keypatch.reconstruction.child")  # -P: nothing is imported from where one stands
GRACE = 60.0  # seconds over the limit until the process is ended: the mapper itself stops at the limit, with its model

Progress = Callable[[str], None]  # "verifying", "mapping: 7 photos", ...


def run_colmap(job: Job, progress: Progress = lambda _: None, *, lasting: bool = True) -> Outcome:
    """Verification and mapping of a database that is validated already; `lasting`: its folder outlives an error.

    Raises:
        KeypatchError: COLMAP crashed, raised an error or took too long; the sentence says where a lasting database is.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        process = subprocess.Popen(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True)
        with _ended(process), _time_limit(process, job.seconds) as late:
            stage, end = _listen(process, job, progress)
            code = process.wait()
        if "outcome" in end:
            return Outcome.from_json(end["outcome"])
        reason = _reason(code, stage, end, job, late.is_set())
        raise KeypatchError(f"{reason}{_last_line(complaints)} {_remedy(job, lasting)}")


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """No child outlives the block, however that is left."""
    try:
        yield
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


@contextmanager
def _time_limit(process: "subprocess.Popen[str]", seconds: float | None) -> Iterator[threading.Event]:
    """Kills the process when it is late; the event tells so."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else seconds + GRACE, stop)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _listen(process: "subprocess.Popen[str]", job: Job, progress: Progress) -> tuple[str, dict[str, Any]]:
    """Where the child was when it stopped talking, and its last words: an outcome, an error, or nothing."""
    stage, registered = "starting", 0
    end: dict[str, Any] = {}
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the child has no pipes")
    try:
        process.stdin.write(json.dumps(job.to_json()) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return stage, end
    for line in process.stdout:
        news = _news(line)
        if "outcome" in news or "error" in news:
            end = news
            break
        stage = news.get("stage", stage)
        registered = news.get("registered", registered + news.get("more", 0))
        progress(f"mapping: {counted(registered, 'photo')}" if registered and stage == "mapping" else stage)
    process.stdin.close()
    return stage, end


def _news(line: str) -> dict[str, Any]:
    """What the child tells in a line; nothing if it is COLMAP's own printing."""
    with suppress(ValueError):
        value = json.loads(line)
        if isinstance(value, dict):
            return value
    return {}


def _reason(code: int, stage: str, end: dict[str, Any], job: Job, late: bool) -> str:
    if "error" in end:
        error = " ".join(end["error"].split()).rstrip(".")
        return f"COLMAP (pycolmap {end['version']}) failed while {stage}: {error}."
    if late:
        return f"COLMAP was still {stage} after the time limit of {job.seconds:g} seconds and was stopped."
    if code < 0:
        return f"COLMAP stopped with signal {-code} ({signal.Signals(-code).name}) while {stage}."
    return f"COLMAP's process ended with code {code} while {stage}."


def _last_line(complaints: IO[str]) -> str:
    complaints.seek(0)
    lines = [line.strip() for line in complaints if line.strip()]
    return f' Its last words: "{lines[-1]}".' if lines else ""


def _remedy(job: Job, lasting: bool) -> str:
    attempt = "Try another seed, or give the focal length if it is known"
    if not lasting:
        return f"{attempt}; the database is gone, as nothing of this run is kept."
    return f"The database is kept at {job.database}. {attempt}; features and matches are not made again."
