"""One function over many items: in this process, or by a crew of workers that may die and are replaced."""

import os
import pickle
import socket
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from keypatch import parts
from keypatch.engines.options import Parallel
from keypatch.errors import DataError, KeypatchError
from keypatch.progress import Progress, counted

Item = TypeVar("Item")
Result = TypeVar("Result")
ItemIn = TypeVar("ItemIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)

ATTEMPTS = 3  # an item that has ended so many workers is given up
_STARTS = 3  # workers that end one after the other before they are ready
_LOOK = 0.2  # seconds until a wish to stop is noticed
_PATIENCE = 60.0  # seconds without a worker, after which the user is told
_NAMED = 10  # items
_USUAL = Parallel()

_used: ContextVar[Parallel] = ContextVar("parallel", default=_USUAL)


@contextmanager
def use(parallel: Parallel) -> Iterator[None]:
    """Within the block, stages that are reached through functions of others, as benchmarks are, work this way."""
    token = _used.set(parallel)
    try:
        yield
    finally:
        _used.reset(token)


def used() -> Parallel:
    return _used.get()


class Task(Protocol[ItemIn, ResultOut]):
    """A value that can be pickled; what takes long to load or holds files open is made by `open`, once in a worker."""

    def open(self) -> "AbstractContextManager[Callable[[tuple[ItemIn, ...]], ResultOut]]":
        """The function of a batch of items, as long as it is needed. A KeypatchError of it is the batch's outcome."""


@dataclass(frozen=True)
class Done(Generic[Item, Result]):
    """What became of a batch of items: a result, or an error that the user can fix."""

    items: tuple[Item, ...]
    result: Result | None = None
    error: KeypatchError | None = None


@dataclass(frozen=True)
class Event:
    """What a worker tells, or what is told of it."""

    worker: int
    kind: Literal["ready", "done", "gone"]
    answer: "Answer | None" = None  # of "done"
    where: str = ""  # of "ready": the process and its machine; of "gone": how it ended


@dataclass(frozen=True)
class Answer:
    """What a worker sends back for a batch."""

    result: Any = None
    error: KeypatchError | None = None
    fault: str = ""  # the traceback of any other error
    warnings: tuple[str, ...] = ()


class Crew(Protocol):
    """Workers, known by their numbers; each has one batch at most."""

    size: int

    def start(self) -> int:
        """A new worker, which is ready later."""

    def give(self, worker: int, batch: tuple[Any, ...]) -> None: ...

    def wait(self, seconds: float) -> list[Event]:
        """What happened, at the latest after so many seconds."""

    def close(self) -> None:
        """End all workers, whatever they are doing."""


def run(
    task: Task[Item, Result],
    items: Iterable[Item],
    parallel: Parallel,
    progress: Progress,
    *,
    size: Callable[[int], int] = lambda workers: 1,
    stop: Callable[[], bool] = lambda: False,
    name: Callable[[Item], str] = str,
) -> Iterator[Done[Item, Result]]:
    """What becomes of the items, batch by batch as they are finished; nothing is kept of those handed out.

    size: of a batch, by the number of workers.
    stop: once true, no batch is begun; those that workers have are finished.
    name: of an item, for the user.

    A worker that is killed is replaced and its batch done again; the second time item by item, so that the one that
    ends workers is found, and given up after `ATTEMPTS`.

    Raises:
        KeypatchError: no worker can be started, or the task cannot be sent to one.
    """
    if parallel.engine == "local" and (parallel.workers or 1) == 1:
        yield from _here(task, _batches(items, size(1)), stop)
        return
    with closing(_hire(task, parallel, progress)) as crew:
        yield from _Foreman(crew, _batches(items, size(crew.size)), progress, stop, name).run()


def _here(
    task: Task[Item, Result], batches: Iterator[tuple[Item, ...]], stop: Callable[[], bool]
) -> Iterator[Done[Item, Result]]:
    first = None if stop() else next(batches, None)
    if first is None:
        return
    with task.open() as function:
        for batch in chain([first], batches):
            if stop():
                return
            try:
                done = Done[Item, Result](batch, function(batch))
            except KeypatchError as error:
                done = Done(batch, error=error)
            yield done


def _batches(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    rest = iter(items)
    while batch := tuple(islice(rest, size)):
        yield batch


def _hire(task: Task[Any, Any], parallel: Parallel, progress: Progress) -> "Crew":
    if parallel.engine == "ray":
        from keypatch.engines.cluster import RayCrew

        return RayCrew(task, parallel, progress)
    from keypatch.engines.processes import ProcessCrew

    return ProcessCrew(pack(task, pickle.dumps), parallel)


def pack(task: Task[Any, Any], dumps: Callable[[Any], bytes]) -> bytes:
    """The task as bytes; KeypatchError where that cannot be."""
    try:
        return dumps(task)
    except KeypatchError:
        raise
    except Exception as error:  # pickle raises what it likes
        raise KeypatchError(
            f"This cannot be sent to workers ({error}). Define it in a module of its own, or work in one process "
            "(--workers 1)."
        ) from error


@dataclass
class _Batch(Generic[Item]):
    items: tuple[Item, ...]
    attempts: int = 0


@dataclass
class _Foreman(Generic[Item, Result]):
    """Hands batches to workers, and again where one has died."""

    crew: Crew
    batches: Iterator[tuple[Item, ...]]
    progress: Progress
    stop: Callable[[], bool]
    name: Callable[[Item], str]
    again: deque[_Batch[Item]] = field(default_factory=deque)
    idle: list[int] = field(default_factory=list)
    busy: dict[int, _Batch[Item]] = field(default_factory=dict)
    starting: set[int] = field(default_factory=set)
    where: dict[int, str] = field(default_factory=dict)
    lost_at_start: int = 0
    finished: int = 0

    def run(self) -> Iterator[Done[Item, Result]]:
        following = self._next()
        if following is None:
            return
        self.starting = {self.crew.start() for _ in range(self.crew.size)}
        waiting_since: float | None = time.monotonic()
        while following is not None or self.busy:
            while following is not None and self.idle:
                worker = self.idle.pop()
                self.busy[worker] = following
                self.crew.give(worker, following.items)
                following = self._next()
            for event in self.crew.wait(_LOOK):
                yield from self._hear(event)
            if following is None or self.stop():
                following = self._next()
            if self.busy or self.idle:
                waiting_since = None
            elif waiting_since is not None and time.monotonic() - waiting_since > _PATIENCE:
                self.progress.say("No worker has started yet: are any cores free? Still waiting; Ctrl-C to stop.")
                waiting_since = None

    def _next(self) -> _Batch[Item] | None:
        if self.stop():
            return None
        if self.again:
            return self.again.popleft()
        items = next(self.batches, None)
        return None if items is None else _Batch(items)

    def _hear(self, event: Event) -> Iterator[Done[Item, Result]]:
        if event.kind == "ready":
            self.starting.discard(event.worker)
            self.idle.append(event.worker)
            self.where[event.worker], self.lost_at_start = event.where, 0
        elif event.kind == "gone":
            yield from self._replace(event)
        else:
            batch, answer = self.busy.pop(event.worker), event.answer or Answer()
            self.idle.append(event.worker)
            for text in answer.warnings:
                warnings.warn(text, stacklevel=2)
            if answer.fault:
                raise RuntimeError(f"A worker failed:\n{answer.fault}")
            self.finished += len(batch.items)
            yield Done(batch.items, answer.result, answer.error)

    def _replace(self, event: Event) -> Iterator[Done[Item, Result]]:
        batch = self.busy.pop(event.worker, None)
        if event.worker in self.idle:
            self.idle.remove(event.worker)
        if event.worker in self.starting or batch is None:
            self.starting.discard(event.worker)
            self.lost_at_start += 1
            if self.lost_at_start > _STARTS:
                raise KeypatchError(
                    f"Workers end as soon as they start ({event.where}). Is there enough memory, and does your script "
                    'start its work under `if __name__ == "__main__":`?'
                )
        if batch is not None:
            yield from self._do_again(batch, event)
        if not self.stop():
            self.starting.add(self.crew.start())

    def _do_again(self, batch: _Batch[Item], event: Event) -> Iterator[Done[Item, Result]]:
        batch.attempts += 1
        names = [self.name(item) for item in batch.items]
        if batch.attempts >= ATTEMPTS:
            yield Done(
                batch.items,
                error=DataError(
                    f"{', '.join(names)} ended the worker {batch.attempts} times (last by {event.where}). It may need "
                    "more memory than is available: leave it out, or make it smaller."
                ),
            )
            return
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        self.progress.say(
            f"A worker ({self.where.get(event.worker, 'starting')}) ended by {event.where} after "
            f"{counted(self.finished, 'item')} were finished in all. Done again: {', '.join(names[:_NAMED])}{more}."
        )
        split = [_Batch((item,), batch.attempts) for item in batch.items] if batch.attempts > 1 else [batch]
        self.again.extendleft(reversed(split))


class Serving:
    """What a worker holds: the opened function of the task. Made in the worker's process."""

    def __init__(self, packed: bytes, threads: int, plugins: tuple[str, ...], number: int = 0) -> None:
        for plugin in plugins:
            parts.load_plugin(Path(plugin))
        task = pickle.loads(packed)
        use_threads(threads, number)
        self._opened = ExitStack()
        self._function = self._opened.enter_context(task.open())

    def close(self) -> None:
        self._opened.close()

    def answer(self, batch: tuple[Any, ...]) -> Answer:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            try:
                answer = Answer(self._function(batch))
            except KeypatchError as error:
                answer = Answer(error=error)
            except Exception:
                answer = Answer(fault=traceback.format_exc())
        texts = tuple(str(each.message) for each in caught if issubclass(each.category, UserWarning))
        return Answer(answer.result, answer.error, answer.fault, texts)


def this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def use_threads(threads: int, number: int = 0) -> None:
    """So many threads of the libraries that the task has brought in; of several GPUs the one for this worker."""
    torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
    if cv2 is not None:
        cv2.setNumThreads(threads)
    if torch is not None:
        torch.set_num_threads(threads)
        if torch.cuda.device_count() > 1:
            torch.cuda.set_device(number % torch.cuda.device_count())
