"""One file per benchmark: a describer and a data folder in, a Result out."""

from keypatch.benchmarks.comparison import Comparison, Difference, compare, paired_difference
from keypatch.benchmarks.embedding import Embedding, evaluate_embedding
from keypatch.benchmarks.hpatches.benchmark import Hpatches, evaluate_hpatches
from keypatch.benchmarks.hpatches.rank1 import evaluate_rank1
from keypatch.benchmarks.result import Replicates, Result, load_result
from keypatch.benchmarks.ubc import Ubc, evaluate_ubc

__all__ = [
    "Comparison",
    "Difference",
    "Embedding",
    "Hpatches",
    "Replicates",
    "Result",
    "Ubc",
    "compare",
    "evaluate_embedding",
    "evaluate_hpatches",
    "evaluate_rank1",
    "evaluate_ubc",
    "load_result",
    "paired_difference",
]
