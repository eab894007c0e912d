"""Matches of photographs of a plane against its homographies, whoever made the matches."""

from collections.abc import Mapping, Sequence

import numpy as np
from poses import ESTIMATORS, SEEDS, Estimation, Matcher, told

from keypatch.benchmarks.planar.homography import PairScore, score_pair
from keypatch.benchmarks.result import Result
from keypatch.features import Features
from keypatch.files import hash_folder
from keypatch.metrics import recall_area
from keypatch.patches.planar_sequences import PlanarSequence
from keypatch.provenance import provenance

ACCURATE, AREA = 3, 5  # pixels of mean corner error


def evaluate_plane(
    features: Mapping[str, Features],
    sequence: PlanarSequence,
    match: Matcher,
    estimators: Sequence[Estimation] = ESTIMATORS,
    seeds: Sequence[int] = SEEDS,
) -> Result:
    """The first photograph with each other one; shares of matches as in the benchmark "homography".

    "mma1", "mma3", "count.within3"; "accuracy3.poselib.0" is the share of pairs whose homography is off by 3 px at
    most in the mean of the corners, and "auc5.poselib.0" the area under the recall curve up to 5 px, of that estimator
    with that seed (`poses.over_seeds`).
    """
    first = features[sequence.photos[0].name]
    pairs: dict[Estimation, list[PairScore]] = {estimator: [] for estimator in estimators}
    for photo, homography in zip(sequence.photos[1:], sequence.homographies, strict=True):
        second = features[photo.name]
        matches = match(first, second)
        for estimator, scored in pairs.items():
            given, matching = told(estimator, matches, model="H")
            scored.append(score_pair(first, second, given, homography, tuple(seeds), matching))
    some = pairs[estimators[0]]
    scores = {f"mma{pixels}": float(np.mean([pair.within[pixels - 1] for pair in some])) for pixels in (1, 3)}
    scores["count.within3"] = float(np.mean([pair.right for pair in some]))
    for estimator, scored in pairs.items():
        for seed, errors in zip(seeds, np.transpose([pair.corner_errors for pair in scored]), strict=True):
            scores[f"accuracy{ACCURATE}.{estimator}.{seed}"] = float(np.mean(errors <= ACCURATE))
            scores[f"auc{AREA}.{estimator}.{seed}"] = recall_area(errors, [AREA])[0]
    return Result(
        benchmark="homography",
        descriptor=first.descriptor,
        settings={"sequence": sequence.name, "estimators": list(estimators), "seeds": list(seeds)},
        scores=scores,
        curves={},
        provenance=provenance(data=hash_folder(sequence.files)),
    )
