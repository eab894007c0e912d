"""Where many items are worked on, `Parallel`, and which share of them, `Shard`."""

import re
import zlib
from dataclasses import dataclass
from typing import Literal

from keypatch.errors import KeypatchError
from keypatch.settings import CheckedFields, brief, option

EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class Parallel(CheckedFields):
    """Where many photos or pairs are processed: in this process, in several, or on a Ray cluster.

    >>> kp.Parallel(workers=4).engine
    'local'
    """

    engine: EngineName = option("local", "Where to run: on this machine, or on a Ray cluster (extra `ray`).")
    workers: int | None = option(
        None, "Number of worker processes; by default only this one, or with ray one per core of the cluster.", least=1
    )
    address: str | None = option(
        None, "Ray cluster to use, as host:port; by default, one is started for this machine only."
    )
    worker_threads: int = option(1, "Threads per worker process, and cores it reserves on a cluster.", least=1)
    worker_gpus: float = option(
        0.0, "GPUs each worker reserves on a Ray cluster; 0.25 puts four workers on one GPU.", least=0
    )

    __repr__ = brief

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "ray" and (self.address is not None or self.worker_gpus):
            idle = "--address" if self.address is not None else "--worker-gpus"
            raise KeypatchError(f"{idle} is for a Ray cluster. Add --engine ray, or leave it out.")


@dataclass(frozen=True)
class Shard:
    """One of several shares of all items, for the tasks of a Slurm array: each item is in exactly one of them.

    By the name alone, so that tasks need not agree on an order, and photos that are added later move no others.
    """

    number: int  # from 1
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """From "2/8". Raises KeypatchError."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise KeypatchError(f"--shard {text}: expected i/N with i from 1 to N, such as 2/8.")
        return cls(int(found[1]), int(found[2]))

    def has(self, name: str) -> bool:
        return zlib.crc32(name.encode()) % self.of == self.number - 1
