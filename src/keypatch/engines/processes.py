"""Workers that are processes of this machine.

The standard library's pool is broken for good once a worker is killed, and loky's too; here each worker has a pipe of
its own, so that the death of one is known and costs the others nothing.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from keypatch import parts
from keypatch.engines.options import Parallel
from keypatch.engines.work import Answer, Event, Serving, this_process

_SPAWN = multiprocessing.get_context("spawn")  # torch and OpenMP do not survive a fork
_FAREWELL = 10.0  # seconds for an idle worker to close its files
_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read when they are loaded


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: "Connection[Any, Any]"


class ProcessCrew:
    """Processes that are started afresh and end with this one, whatever ends it."""

    def __init__(self, packed: bytes, parallel: Parallel) -> None:
        self.size, self._threads = parallel.workers or 1, parallel.worker_threads
        self._packed, self._workers, self._count = packed, dict[int, _Worker](), 0
        self._busy = set[int]()

    def start(self) -> int:
        self._count += 1
        ours, theirs = _SPAWN.Pipe()
        arguments = (theirs, self._packed, self._threads, parts.loaded_plugins(), self._count - 1)
        process = _SPAWN.Process(target=_serve, args=arguments, name=f"keypatch-{self._count}", daemon=True)
        with _environment(dict.fromkeys(_LIBRARIES, str(self._threads))):
            process.start()
        theirs.close()
        self._workers[self._count] = _Worker(process, ours)
        return self._count

    def give(self, worker: int, batch: tuple[Any, ...]) -> None:
        self._busy.add(worker)
        with suppress(OSError):  # it has died, which `wait` tells
            self._workers[worker].pipe.send(batch)

    def wait(self, seconds: float) -> list[Event]:
        owners: dict[Any, int] = {each.pipe: number for number, each in self._workers.items()}
        return [self._hear(owners[pipe]) for pipe in wait(list(owners), seconds)]

    def _hear(self, number: int) -> Event:
        process, pipe = self._workers[number]
        try:
            told = pipe.recv()
        except (EOFError, OSError):  # the pipe of a dead process ends, behind what it had sent
            process.join()
            del self._workers[number]
            pipe.close()
            return Event(number, "gone", where=_ending(process.exitcode))
        if isinstance(told, Answer):
            self._busy.discard(number)
            return Event(number, "done", told)
        return Event(number, "ready", where=told)

    def close(self) -> None:
        for _, pipe in self._workers.values():
            with suppress(OSError):
                pipe.send(None)
        for number, (process, pipe) in self._workers.items():
            process.join(0 if number in self._busy else _FAREWELL)
            process.kill()
            process.join()
            pipe.close()
        self._workers.clear()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"signal {-code} ({signal.Signals(-code).name})"
    return f"exit code {code}"


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """The environment that a process is started with: its libraries look at it before any code of ours."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: "Connection[Any, Any]", packed: bytes, threads: int, plugins: tuple[str, ...], number: int) -> None:
    """The life of a worker."""
    for each in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C and Slurm reach it too; the parent ends it after its batch
        signal.signal(each, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serving = Serving(packed, threads, plugins, number)
    with suppress(EOFError, OSError):  # the parent is gone
        pipe.send(this_process())
        while (batch := pipe.recv()) is not None:
            pipe.send(serving.answer(batch))
    serving.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
