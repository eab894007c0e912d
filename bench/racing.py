"""Contestants in fresh processes that take turns, so that other work on the machine meets all of them alike."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

PRODUCTS = 8  # of 1024x1024 matrices


def race(
    script: str, field: Sequence[Mapping[str, Any]], arguments: Sequence[str], rounds: int
) -> list[dict[str, float]]:
    """The best seconds of each contestant and the MB it added; each is a process `script --contestant JSON`."""
    processes = [_start([sys.executable, script, "--contestant", json.dumps(dict(who)), *arguments]) for who in field]
    best = [{"seconds": float("inf"), "peak_mb": 0.0} for _ in field]
    try:
        for turn in range(-1, rounds):  # the turn before the first one warms up
            for result, process in zip(best, processes, strict=True):
                answer = _ask(process)
                if turn >= 0:
                    result["seconds"] = min(result["seconds"], answer["seconds"])
                result["peak_mb"] = max(result["peak_mb"], answer["peak_mb"])
    finally:  # also on Ctrl-C
        for process in processes:
            process.kill()
            process.communicate()
    return best


def take_turns(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> None:
    """In a contestant's process: work once for every line that comes in, and answer with seconds and memory added.

    With `time.process_time` as the clock and one thread, other work on the machine counts for little.
    """
    base = peak_mb()
    for _ in sys.stdin:
        start = clock()
        work()
        print(json.dumps({"seconds": clock() - start, "peak_mb": peak_mb() - base}), flush=True)


def peak_mb() -> float:
    """Largest resident memory of this process so far; 0 where the system does not tell (Windows)."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def gemm() -> Callable[[], object]:
    """The machine's own float32 rate: `PRODUCTS` products of 1024x1024 matrices."""
    a, b = torch.rand(2, 1024, 1024)
    return lambda: [a @ b for _ in range(PRODUCTS)]


def gemm_flops(seconds: float) -> float:
    return PRODUCTS * 2 * 1024**3 / seconds


def _start(command: list[str]) -> "subprocess.Popen[str]":
    # a session of its own: Ctrl-C is for the parent, which then ends the contestants
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def _ask(process: "subprocess.Popen[str]") -> dict[str, float]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the contestant has no pipes")
    process.stdin.write("go\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError("a contestant died; its message is above")
    values: dict[str, float] = json.loads(answer)
    return values
