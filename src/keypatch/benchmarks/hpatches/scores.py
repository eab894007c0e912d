"""All tasks of HPatches on given descriptors: scores under their flat names, curves, replicates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches.descriptors import LEVELS, StripDescriptors
from keypatch.benchmarks.hpatches.distances import Distance
from keypatch.benchmarks.hpatches.lists import Tasks
from keypatch.benchmarks.hpatches.matching import ALL, Retrieval, match_strips, retrieve
from keypatch.benchmarks.hpatches.verification import StripScores, verify_pairs
from keypatch.benchmarks.result import Replicates
from keypatch.metrics import bootstrap, bootstrap_mean
from keypatch.metrics.listed import ApRule, Ties

KINDS = ("i_", "v_")  # sequences of changed light, of changed viewpoint


def score_strips(
    descriptors: StripDescriptors,
    tasks: Tasks,
    distance: Distance = "L2",
    ties: Ties = "pessimistic",
    ap: ApRule = "trapezoid",
) -> StripScores:
    """Verification, matching, retrieval and rank-1; `evaluate_hpatches` says what the names mean."""
    names = descriptors.names
    matching = match_strips(descriptors, distance, ties, ap)
    retrieval = retrieve(descriptors, tasks, distance, ties, ap)
    verification = verify_pairs(descriptors, tasks, distance, ap)
    scores = {
        **{f"verification.{name}": score for name, score in verification.scores.items()},
        **_group_scores("matching.map", matching.precision, names),
        **_group_scores("matching.sr", matching.success, names),
        **_retrieval_scores(retrieval),
        **level_scores("rank1", matching.alone, names),
    }
    replicates = {f"verification.{name}": drawn for name, drawn in verification.replicates.items()}
    of_sequences = bootstrap_mean(matching.precision.mean(axis=(1, 2)))
    replicates["matching.map"] = Replicates(of_sequences, "sequences", len(names))
    replicates["retrieval.map"] = _retrieval_replicates(retrieval, tasks)
    defined = {name: each for name, each in replicates.items() if not np.isnan(scores[name])}
    return StripScores(scores, verification.curves, defined)


def level_scores(name: str, values: NDArray[np.float64], names: Sequence[str]) -> dict[str, float]:
    """Of values (sequences, levels, images): "<name>.e", "<name>.e.i", "<name>.e.v" and "<name>.e.<sequence>", ..."""
    scores = {}
    for level, of_level in zip(LEVELS, values.swapaxes(0, 1), strict=True):
        scores[f"{name}.{level}"] = float(of_level.mean())
        scores |= _kind_scores(f"{name}.{level}", of_level, names)
        scores |= {f"{name}.{level}.{each}": float(v.mean()) for each, v in zip(names, of_level, strict=True)}
    return scores


def _group_scores(name: str, values: NDArray[np.float64], names: Sequence[str]) -> dict[str, float]:
    """Beside those of the levels: "<name>", "<name>.i" and "<name>.v" over all levels."""
    return {name: float(values.mean())} | _kind_scores(name, values, names) | level_scores(name, values, names)


def _kind_scores(name: str, values: NDArray[np.float64], names: Sequence[str]) -> dict[str, float]:
    kinds = {kind: [each.startswith(kind) for each in names] for kind in KINDS}
    return {f"{name}.{kind[0]}": float(values[chosen].mean()) for kind, chosen in kinds.items() if any(chosen)}


def _retrieval_replicates(retrieval: Retrieval, tasks: Tasks) -> Replicates:
    """Of "retrieval.map", on sequences drawn with all of their queries; a sequence without queries is none to draw."""
    asked, sequence = np.unique(tasks.queries[:, 0], return_inverse=True)
    sums = np.bincount(sequence, retrieval.precision[:, :, -1].mean(axis=1))
    sizes = np.bincount(sequence)
    drawn = bootstrap(lambda counts: float(counts @ sums / (counts @ sizes)), len(asked))
    return Replicates(drawn, "sequences", len(asked))


def _retrieval_scores(retrieval: Retrieval) -> dict[str, float]:
    """ "retrieval.map" and "retrieval.map.e" among all distractors, "retrieval.map.100", "retrieval.map.e.100", ..."""
    scores = {}
    for pool, values in reversed([*zip(retrieval.pools, np.moveaxis(retrieval.precision, 2, 0), strict=True)]):
        suffix = "" if pool == ALL else f".{pool}"
        scores[f"retrieval.map{suffix}"] = float(values.mean())
        for level, of_level in zip(LEVELS, values.T, strict=True):
            scores[f"retrieval.map.{level}.{pool}"] = float(of_level.mean())
    return scores
