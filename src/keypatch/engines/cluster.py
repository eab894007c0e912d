"""Workers that are actors of a Ray cluster."""

import logging
import os
import re
import socket
from dataclasses import replace
from typing import Any

from keypatch import parts
from keypatch.engines.options import Parallel
from keypatch.engines.work import Answer, Event, Serving, Task, pack, this_process
from keypatch.errors import DataError, KeypatchError, MissingExtra
from keypatch.progress import Progress, counted

# Ray takes a reachable address of the machine for "127.0.0.1", unless it is told that there is no cluster to join
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}


_PROBE = 10.0  # seconds for a cluster to answer
_FAREWELL = 10.0  # seconds for idle workers to close their files


class _Actor:
    """A worker on some machine of the cluster."""

    def __init__(self, packed: bytes, threads: int, plugins: tuple[str, ...]) -> None:
        self._serving = Serving(packed, threads, plugins)

    def place(self) -> str:
        return this_process()

    def answer(self, batch: tuple[Any, ...]) -> Answer:
        answer = self._serving.answer(batch)
        if answer.error is not None and not isinstance(answer.error, DataError):  # a full disk, whose machine matters
            return replace(answer, error=KeypatchError(f"On {socket.gethostname()}: {answer.error}"))
        return answer

    def close(self) -> None:
        self._serving.close()


class RayCrew:
    """Actors of the cluster at the address, or of one that lives in this machine as long as the crew."""

    def __init__(self, task: Task[Any, Any], parallel: Parallel, progress: Progress) -> None:
        self._ray, self._owns = _join(parallel)
        packed = pack(task, self._ray.cloudpickle.dumps)  # which also sends what a notebook has defined
        self._packed, self._parallel = self._ray.put(packed), parallel
        self._actors, self._pending, self._count = dict[int, Any](), dict[Any, tuple[int, bool]](), 0
        cores = int(self._ray.cluster_resources().get("CPU", 0)) // parallel.worker_threads
        self.size = min(parallel.workers or cores, cores)
        if self.size < 1:
            self.close()
            raise KeypatchError(
                f"The Ray cluster does not have {counted(parallel.worker_threads, 'core')} for a worker."
            )
        if parallel.workers is not None and self.size < parallel.workers:
            progress.say(f"The Ray cluster has cores for {counted(self.size, 'worker')}, not {parallel.workers}.")

    def start(self) -> int:
        self._count += 1
        options = {"num_cpus": self._parallel.worker_threads, "num_gpus": self._parallel.worker_gpus}
        kind = self._ray.remote(_Actor).options(**options, max_restarts=0)
        actor = kind.remote(self._packed, self._parallel.worker_threads, parts.loaded_plugins())
        self._actors[self._count] = actor
        self._pending[actor.place.remote()] = (self._count, True)
        return self._count

    def give(self, worker: int, batch: tuple[Any, ...]) -> None:
        self._pending[self._actors[worker].answer.remote(batch)] = (worker, False)

    def wait(self, seconds: float) -> list[Event]:
        if not self._pending:
            return []
        ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=seconds)
        return [self._hear(reference) for reference in ready]

    def _hear(self, reference: Any) -> Event:
        worker, is_start = self._pending.pop(reference)
        try:
            told = self._ray.get(reference)
        except self._ray.exceptions.RayActorError as error:
            del self._actors[worker]
            return Event(worker, "gone", where=_ending(str(error)))
        return Event(worker, "ready", where=told) if is_start else Event(worker, "done", told)

    def close(self) -> None:
        busy = {worker for worker, _ in self._pending.values()}
        ending = [actor.close.remote() for worker, actor in self._actors.items() if worker not in busy]
        if ending:
            self._ray.wait(ending, num_returns=len(ending), timeout=_FAREWELL)
        for actor in self._actors.values():
            self._ray.kill(actor)
        if self._owns:
            self._ray.shutdown()


def _join(parallel: Parallel) -> tuple[Any, bool]:
    """Ray, connected; and whether it was by us."""
    if parallel.address is None:
        for name, value in _LOOPBACK.items():
            os.environ.setdefault(name, value)
    try:
        import ray as package
    except ImportError as error:
        raise MissingExtra.of("--engine ray needs Ray", "ray", "use several processes with --workers") from error
    ray: Any = package
    if ray.is_initialized():  # by the program that calls us
        return ray, False
    if parallel.address is not None:
        _require_answer(parallel.address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if parallel.address is not None:
            ray.init(address=parallel.address, **quiet)
            return ray, True
        cores = None if parallel.workers is None else parallel.workers * parallel.worker_threads
        ray.init(address="local", num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except Exception as error:  # Ray raises ConnectionError, ValueError, RuntimeError and others
        where = f"The Ray cluster at {parallel.address}" if parallel.address else "Ray"
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise KeypatchError(f"{where} cannot be used: {why.rstrip('.')}. Check `ray status`.") from error
    if any(not node["NodeManagerAddress"].startswith("127.") for node in ray.nodes()):
        ray.shutdown()
        raise KeypatchError(
            "Ray was imported before keypatch and would listen on the network. Import keypatch first, start Ray "
            "yourself, or give --address."
        )
    return ray, True


def _require_answer(address: str) -> None:
    """KeypatchError where nobody listens: Ray itself would try for many minutes."""
    found = re.fullmatch(r"(?:ray://)?(.+):(\d{1,5})", address)
    if found is None:
        raise KeypatchError(f"--address {address}: expected host:port, as `ray start` prints it.")
    try:
        socket.create_connection((found[1], int(found[2])), _PROBE).close()
    except (OSError, OverflowError) as error:
        raise KeypatchError(f"No Ray cluster answers at {address} ({error}). Start one with `ray start`.") from error


def _ending(message: str) -> str:
    """What Ray says of an actor that is gone, short: the reasons that it guesses fill paragraphs."""
    if "creation task" in message:  # the last line is the error that was raised
        return message.strip().splitlines()[-1].strip().rstrip(".")[:160]
    return "the loss of its node" if "node" in message.lower().split("worker exit")[0] else "the loss of its process"
