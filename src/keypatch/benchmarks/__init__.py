"""One file per benchmark: a describer and a data folder in, a Result out."""

from keypatch.benchmarks.embedding import evaluate_embedding
from keypatch.benchmarks.hpatches import evaluate_rank1
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.ubc import evaluate_ubc

__all__ = ["Result", "evaluate_embedding", "evaluate_rank1", "evaluate_ubc"]
