"""The processes of one training, as torchrun starts them: which rows each has, what they exchange, who is gone."""

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from keypatch.errors import Interrupted, KeypatchError
from keypatch.networks import choose_device
from keypatch.progress import Progress

_BEAT = 2.0  # seconds between two signs of life
_PATIENCE = 30.0  # seconds without one after which a rank is gone; torchrun itself kills what is left after 30
_WAIT = timedelta(minutes=30)  # for the others at one exchange: the first rank may be validating
_SAID_ELSEWHERE = 2  # exit code of a rank that ends because of another

Value = TypeVar("Value")


class LostRank(KeypatchError):
    """Another process of the training has ended, or cannot be reached."""


@dataclass(frozen=True)
class Ranks:
    """This process among all of one training. Every exchange is in the order of the ranks, the same on all of them.

    A batch is shared out in consecutive rows, so that ranks in order are rows in order: all that is computed from what
    was gathered, mined negatives and memories too, is what one process would compute.
    """

    rank: int = 0
    size: int = 1
    local: int = 0  # rank on this machine
    store: Any = field(default=None, repr=False, compare=False)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and reports."""
        return self.rank == 0

    def share(self, pairs: int) -> range:
        """This rank's rows of a batch; the first ranks have one more where they cannot be equal."""
        return self._shares(pairs)[self.rank]

    def _shares(self, pairs: int) -> list[range]:
        ends = [-(-pairs * rank // self.size) for rank in range(self.size + 1)]
        return [range(start, stop) for start, stop in pairwise(ends)]

    def gather(self, own: Tensor, pairs: int) -> Tensor:
        """(views, own pairs, ...) of every rank -> (views, pairs, ...), without gradients."""
        if self.size == 1:
            return own
        shares = self._shares(pairs)
        longest = max(map(len, shares))
        padded = own.new_zeros((own.shape[0], longest, *own.shape[2:]))
        padded[:, : own.shape[1]] = own
        parts = self._all(padded)
        return torch.cat([part[:, : len(share)] for part, share in zip(parts, shares, strict=True)], dim=1)

    def stack(self, x: Tensor) -> Tensor:
        """(size, ...): the same tensor of every rank."""
        return x[None] if self.size == 1 else torch.stack(self._all(x.contiguous()))

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Each tensor summed over the ranks; all have one type."""
        if self.size == 1 or not tensors:
            return list(tensors)
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with _exchange():
            dist.all_reduce(flat)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def any(self, wish: bool) -> bool:
        """Whether one of the ranks wishes it."""
        if self.size == 1:
            return wish
        flag = torch.tensor([int(wish)])
        with _exchange():
            dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag)

    def wait(self) -> None:
        """Until all ranks are here."""
        self.any(False)

    def from_first(self, value: Value) -> Value:
        """The first rank's value on every rank."""
        if self.size == 1:
            return value
        box = [value if self.first else None]
        with _exchange():
            dist.broadcast_object_list(box)
        received: Any = box[0]
        return value if self.first else received

    def gather_values(self, value: Value) -> list[Value]:
        """Every rank's value, on every rank."""
        if self.size == 1:
            return [value]
        box: list[Any] = [None] * self.size
        with _exchange():
            dist.all_gather_object(box, value)
        return box

    def device(self, name: str) -> torch.device:
        """The device of this rank: on a machine with several GPUs, each of its ranks has one."""
        device = choose_device(name)
        if self.size == 1 or device.type == "cpu":
            return device
        if device.type != "cuda" or device.index is not None:
            raise KeypatchError(
                f"--device {name} is a single device, but there are {self.size} ranks. Choose cpu, cuda or auto."
            )
        if self.local >= torch.cuda.device_count():
            raise KeypatchError(
                f"This machine has {torch.cuda.device_count()} GPUs, fewer than its ranks. Lower torchrun's "
                "--nproc-per-node, or choose --device cpu."
            )
        return torch.device("cuda", self.local)

    def progress(self, progress: Progress) -> Progress:
        """On the first rank the progress itself; the others say nothing."""
        return progress if self.first else _Quiet()

    def speaks(self, error: BaseException) -> bool:
        """Whether this process is the one to say why the training ends: the first to know, and only once."""
        if self.size == 1:
            return True
        if isinstance(error, Interrupted | KeyboardInterrupt) and not self.first:
            return False
        try:
            return int(self.store.add("spoken", 1)) == 1
        except RuntimeError:  # whoever keeps the store is gone
            return self.first

    def _all(self, x: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(x) for _ in range(self.size)]
        with _exchange():
            dist.all_gather(parts, x)
        return parts


ALONE = Ranks()


class _Quiet(Progress):
    def say(self, message: str) -> None:
        return None


@contextmanager
def _exchange() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo has no type of its own; nccl's is a child of it
        raise LostRank(f"Another process of this training has ended or cannot be reached ({_brief(error)}).") from error


def _brief(error: RuntimeError) -> str:
    """What the backend says, without the place in its source and its advice."""
    return re.sub(r"^\[[^]]*\] ", "", str(error)).split(". ")[0].splitlines()[0]


def launched() -> tuple[int, int]:
    """Rank and number of processes that torchrun, or another launcher with its variables, has started."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def launch_name() -> str | None:
    """What is the same for all attempts of one torchrun, and for no other; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    if name is None:
        return None
    return name if name != "none" else f"{socket.gethostname()}-{os.getppid()}"  # its parent is torchrun


def is_restarted() -> bool:
    """Whether torchrun has started the processes again after one had failed (--max-restarts)."""
    return _attempt() > 0


def _attempt() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def join_ranks() -> Iterator[Ranks]:
    """The group of processes that torchrun has started, for as long as a training lasts; `ALONE` where it has not.

    Inside, a rank that dies, or whose machine does, ends the others within a minute. An error is told by one rank: in
    the others it becomes the exit of the process.
    """
    rank, size = launched()
    if size < 2:
        yield ALONE
        return
    store, rank, size = next(rendezvous("env://", timeout=_WAIT))
    store = PrefixStore(f"keypatch/{_attempt()}", store)  # what the attempt before has left there is of dead processes
    ranks = Ranks(rank, size, int(os.environ.get("LOCAL_RANK", rank)), store)
    pulse = None
    try:
        with _exchange():
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
            dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_WAIT)
        pulse = _Pulse(ranks)
        yield ranks
        ranks.wait()
    except BaseException as error:
        if pulse is not None:
            pulse.stop()
        if not ranks.speaks(error):
            raise SystemExit(_SAID_ELSEWHERE) from None
        raise
    pulse.stop()
    dist.destroy_process_group()


class _Pulse:
    """Signs of life through the store, for what closes no connection: a machine without power, a network that is down.

    In a thread of its own: the main one may be inside an exchange that would last as long as the other is missing.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.stopped = ranks, threading.Event()
        self._beat(0)
        ranks.wait()  # every rank has given its first sign
        self.thread = threading.Thread(target=self._watch, name="keypatch-pulse", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join(timeout=_BEAT)  # inside a call of the store, it would be torn when the interpreter ends

    def _beat(self, count: int) -> None:
        self.ranks.store.set(f"alive/{self.ranks.rank}", str(count))

    def _watch(self) -> None:
        others = [rank for rank in range(self.ranks.size) if rank != self.ranks.rank]
        names = [f"alive/{rank}" for rank in others]
        seen: dict[int, tuple[bytes, float]] = {}
        count = 0
        while not self.stopped.wait(_BEAT):
            count += 1
            try:
                self._beat(count)
                signs = self.ranks.store.multi_get(names)
            except RuntimeError:
                self._end("The process that coordinates this training can no longer be reached.")
                return
            now = time.monotonic()
            for rank, sign in zip(others, signs, strict=True):
                if rank not in seen or seen[rank][0] != sign:
                    seen[rank] = sign, now
                elif now - seen[rank][1] > _PATIENCE:
                    self._end(f"Rank {rank} of this training has not responded for {_PATIENCE:.0f} seconds.")

    def _end(self, sentence: str) -> None:
        if self.stopped.wait(_BEAT):  # the main thread knows already
            return
        if self.ranks.speaks(LostRank(sentence)):
            print(
                f"keypatch: {sentence} The run folder has the last checkpoint: resume it with --resume.",
                file=sys.stderr,
            )
            sys.stderr.flush()
        os._exit(_SAID_ELSEWHERE)
