"""Runs COLMAP in a child process, so that its crash becomes a sentence and does not end our process."""

import json
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from keypatch.colmap.job import MappingJob, MappingOutcome
from keypatch.colmap.models import load_model
from keypatch.errors import KeypatchError
from keypatch.progress import Progress
from keypatch.sandbox import end_process, time_limit, trust

CHILD = (sys.executable, "-P", "-m", "keypatch.colmap.child")  # -P: nothing is imported from the working directory
GRACE = 60.0  # seconds past the limit before the process is killed: the mapper stops at the limit, with its model


def run_colmap(job: MappingJob, progress: Progress | None = None, *, lasting: bool = True) -> MappingOutcome:
    """Verify and map a database that is already validated; `lasting`: its folder outlives an error.

    `progress` is told the stages, and the photos registered of all.

    Raises:
        KeypatchError: COLMAP crashed, raised an error or took too long; the sentence says where a lasting database is.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        process = subprocess.Popen(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True)
        try:
            with time_limit(process, None if job.seconds is None else job.seconds + GRACE) as late:
                stage, end = _listen(process, job, Progress.of(progress))
                code = process.wait()
        finally:
            end_process(process)
        if "outcome" in end:
            outcome = MappingOutcome.from_json(end["outcome"])
            for number in range(len(outcome.models)):
                trust(load_model, Path(job.models, str(number)), False)
            return outcome
        reason = _reason(code, stage, end, job, late.is_set())
        raise KeypatchError(f"{reason}{_last_line(complaints)} {_remedy(job, lasting)}")


def _listen(process: "subprocess.Popen[str]", job: MappingJob, progress: Progress) -> tuple[str, dict[str, Any]]:
    """The stage in which the child stopped talking, and its last message: an outcome, an error, or nothing."""
    stage, registered = "starting", 0
    end: dict[str, Any] = {}
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the child has no pipes")
    with suppress(BrokenPipeError):  # it has ended already; what it said before is still to be read
        process.stdin.write(json.dumps(asdict(job)) + "\n")
        process.stdin.flush()
    for line in process.stdout:
        news = _news(line)
        if "outcome" in news or "error" in news:
            end = news
            break
        if news.get("stage", stage) != stage:
            stage, registered = news["stage"], 0
            progress.note(stage)
        if "registered" in news and registered and job.begun is None:
            progress.note(f"{registered} of {len(job.photos)} photos registered; mapping the rest as another model")
        # a photo that the mapper drops and takes up again is told twice
        registered = min(news.get("registered", registered + news.get("more", 0)), len(job.photos))
        if registered and stage.startswith("mapping") and job.begun is None:
            progress.count(registered, len(job.photos), "photos registered")
    with suppress(BrokenPipeError):
        process.stdin.close()
    return stage, end


def _news(line: str) -> dict[str, Any]:
    """The message in a line; empty if COLMAP itself printed the line."""
    with suppress(ValueError):
        value = json.loads(line)
        if isinstance(value, dict):
            return value
    return {}


def _reason(code: int, stage: str, end: dict[str, Any], job: MappingJob, late: bool) -> str:
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
    return f' Its last output: "{lines[-1]}".' if lines else ""


def _remedy(job: MappingJob, lasting: bool) -> str:
    attempt = "Try another seed, or give the focal length if it is known"
    if not lasting:
        return f"{attempt}; the database was not kept."
    return f"The database is kept at {job.database}. {attempt}; features and matches will be reused."
