"""Many items through one function: here, in several processes, on a Ray cluster, as a shard of a Slurm array."""

from keypatch.engines.options import Parallel, Shard
from keypatch.engines.work import Done, Task, run, use, used

__all__ = ["Done", "Parallel", "Shard", "Task", "run", "use", "used"]
