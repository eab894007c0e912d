"""Items become groups of a feature or match file, or of a store of them, on whatever engine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from keypatch.engines import Parallel, Shard, Task, run
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features.feature_files import Attributes, group_names
from keypatch.features.growing_file import GrowingFile, Write, grow_file
from keypatch.features.store import Store, begin_store, is_store, pack_groups, shard_name
from keypatch.progress import Progress, StopWish, counted
from keypatch.storage import Folder, Place

Item = TypeVar("Item")
ItemIn = TypeVar("ItemIn", contravariant=True)

_SHARD_ITEMS = 64  # at most: of 4,096 keypoints each some 130 MB, which a worker holds until they are written
_NOTES = 1000
_SHARES = 4  # batches for each worker, so that all end at about the same time


class Group(NamedTuple):
    """What becomes of an item."""

    write: Write
    note: str = ""  # what the user should know about it


class GroupTask(Protocol[ItemIn]):
    """How an item becomes a group; a value that can be pickled."""

    def key(self, item: ItemIn) -> str:
        """The group's name."""

    def open(self) -> AbstractContextManager[Callable[[ItemIn], Group]]:
        """The function, made in each worker. A DataError that it raises is of this item alone."""


class Made(NamedTuple):
    key: str
    write: Write | None = None  # None: it is written already, or failed
    error: DataError | None = None
    note: str = ""


@dataclass
class Filled(Generic[Item]):
    """What went wrong with items, and what is to be told about others."""

    failures: list[tuple[Item, str]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)  # by the key; no more of them than are listed anywhere
    noted: int = 0


class GrowingStore:
    """A store that workers write shards into; this process only counts."""

    def __init__(self, store: Store, attributes: Attributes) -> None:
        self.path, self.keys, self.attributes = store.path, store.names, attributes
        self._added = 0

    def __len__(self) -> int:
        return len(self.keys) + self._added

    def add(self, made: Made) -> None:
        self._added += 1

    def task(self, task: GroupTask[Item]) -> Task[Item, list[Made]]:
        return _IntoShards(task, Folder(self.path), self.attributes)

    def batch(self, items: int, workers: int) -> int:
        return max(1, min(_SHARD_ITEMS, -(-items // (_SHARES * workers))))


class OneFile:
    """A file that this process writes, group by group, from what workers send."""

    def __init__(self, file: GrowingFile) -> None:
        self.path, self.keys, self._file = file.path, file.keys, file

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, made: Made) -> None:
        if made.write is not None:
            self._file.add(made.key, made.write)

    def task(self, task: GroupTask[Item]) -> Task[Item, list[Made]]:
        return _IntoMemory(task)

    def batch(self, items: int, workers: int) -> int:
        return 1


Output = GrowingStore | OneFile


@contextmanager
def open_output(
    place: Place, attributes: Attributes, every: float = 0.0, shard: Shard | None = None
) -> Iterator[Output]:
    """The file or store to add to, new or begun before; a file is whole at the end, a store indexed.

    With a `shard` of several tasks, each leaves the index to whoever opens the store when all are done.

    Raises:
        KeypatchError: other settings, another process, or a place that cannot be written to.
    """
    if not is_store(place):
        if shard is not None:
            raise KeypatchError(
                f"--shard needs an output that all tasks can write to at once, not the file {place}: name a folder."
            )
        with grow_file(place, attributes, every) as file:  # type: ignore[arg-type]
            try:
                yield OneFile(file)
            finally:
                file.drop_if_empty()
        return
    with begin_store(place, attributes) as store:
        yield GrowingStore(store, attributes)
    if shard is None:
        with Store(place) as store:
            store.save_index()


def fill(
    output: Output,
    task: GroupTask[Item],
    items: Sequence[Item],
    total: int,
    parallel: Parallel,
    progress: Progress,
    unit: str,
    done_so_far: str,
) -> Filled[Item]:
    """Makes the groups of all items; `total` counts those too that were there before.

    unit: of progress, in the plural; done_so_far: "photos described so far".

    Raises:
        KeypatchError: a disk is full, or the like. Whatever workers had begun is finished and kept.
        Interrupted: Ctrl-C.
    """
    filled, done, fatal, stopping = Filled[Item](), total - len(items), list[KeypatchError](), False
    progress.count(done, total, unit)
    with StopWish() as stop:
        outcomes = run(
            output.task(task),
            items,
            parallel,
            progress,
            size=lambda workers: output.batch(len(items), workers),
            stop=lambda: bool(stop or fatal),
            name=task.key,
        )
        for outcome in outcomes:
            if isinstance(outcome.error, DataError):  # of items that end their workers
                filled.failures += [(item, str(outcome.error)) for item in outcome.items]
            elif outcome.error is not None:
                fatal.append(outcome.error)
                continue
            for item, made in zip(outcome.items, outcome.result or (), strict=False):
                if made.error is not None:
                    filled.failures.append((item, str(made.error)))
                else:
                    output.add(made)
                if made.note:
                    filled.noted += 1
                    if len(filled.notes) < _NOTES:
                        filled.notes[made.key] = made.note
            done += len(outcome.items)
            progress.count(done, total, unit)
            if stop and not stopping:
                stopping = True
                progress.note(f"Stopping after the current {unit}.")
        if fatal:
            raise fatal[0]
        if stop and done < total:
            has = counted(len(output), done_so_far.split()[0].removesuffix("s"))
            raise Interrupted(f"{output.path} keeps the {has} {done_so_far.split(' ', 1)[1]}" if len(output) else "")
    return filled


def _make(task: GroupTask[Item], function: Callable[[Item], Group], item: Item) -> Made:
    try:
        group = function(item)
        return Made(task.key(item), group.write, note=group.note)
    except DataError as error:
        return Made(task.key(item), error=error)


@dataclass(frozen=True)
class _IntoMemory(Generic[Item]):
    task: GroupTask[Item]

    @contextmanager
    def open(self) -> Iterator[Callable[[tuple[Item, ...]], list[Made]]]:
        with self.task.open() as function:
            yield lambda batch: [_make(self.task, function, item) for item in batch]


@dataclass(frozen=True)
class _IntoShards(Generic[Item]):
    task: GroupTask[Item]
    folder: Folder
    attributes: Attributes

    @contextmanager
    def open(self) -> Iterator[Callable[[tuple[Item, ...]], list[Made]]]:
        with self.task.open() as function:
            yield lambda batch: self._write(function, batch)

    def _write(self, function: Callable[[Item], Group], batch: tuple[Item, ...]) -> list[Made]:
        name = shard_name(self.task.key(item) for item in batch)
        there = self._written(name)
        made = [
            Made(self.task.key(item)) if self.task.key(item) in there else _make(self.task, function, item)
            for item in batch
        ]
        groups: dict[str, Any] = {each.key: each.write for each in made if each.write is not None}
        if groups:
            self.folder.write(name, pack_groups(self.attributes, groups))
        return [each._replace(write=None) for each in made]

    def _written(self, name: str) -> set[str]:
        """What the shard holds, if a worker wrote it and died before it could tell."""
        if not self.folder.has(name):
            return set()
        with Store(self.folder.place) as store:
            return set(group_names(store.shard(name)))
