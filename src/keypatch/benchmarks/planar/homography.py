"""Photographs of planes with known homographies: mean matching accuracy, and how good a homography the matches give."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import resized
from keypatch.benchmarks.contamination import seen_photos
from keypatch.benchmarks.photo_features import photo_features, refuse_idle_extraction
from keypatch.benchmarks.result import Replicates, Result
from keypatch.benchmarks.stages import BenchmarkExtraction, recorded_matching, refuse_idle
from keypatch.describers.protocol import Describer
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Features, read_photo
from keypatch.files import hash_folder
from keypatch.geometry.homographies import Matrix
from keypatch.images import as_png
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.drawing import draw_matches
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Estimator, Matching, Model
from keypatch.matching.neighbours import find_matches
from keypatch.matching.verification import verify
from keypatch.metrics import Curve, bootstrap, corner_error, recall_area, share_within, transfer_errors
from keypatch.patches.planar_sequences import HPATCHES, LARGE, PlanarSequence, read_planar_sequences
from keypatch.progress import Progress, track
from keypatch.provenance import provenance
from keypatch.settings import CheckedFields, option, other_default

WITHIN = tuple(range(1, 11))  # pixels: matches that are right
RIGHT = 3  # pixels: of those that are counted, and drawn in green
LINES, WIDTH, COLOURS = 100, 900, 48  # of a picture: legible, and some 150 kB
SEEDS = (0, 1, 2, 3, 4)  # of the estimator
ACCURATE = (1, 3, 5)  # pixels: mean corner error of a homography that is right
KINDS = ("i", "v")  # what HPatches names begin with: changed light, changed viewpoint


@dataclass(frozen=True, repr=False)
class PlanarMatching(Matching):
    """Mutual neighbours without a ratio test, and a homography."""

    ratio: float | None = other_default(Matching, "ratio", None)
    turn: float = other_default(Matching, "turn", 180.0)
    filter: AdaLAM | None = other_default(Matching, "filter", None)
    model: Model | None = other_default(Matching, "model", "H")
    estimator: Estimator = other_default(Matching, "estimator", "magsac")


@dataclass(frozen=True)
class Homography(CheckedFields):
    """How planar sequences are scored."""

    extraction: BenchmarkExtraction = option(factory=BenchmarkExtraction)
    matching: PlanarMatching = option(factory=PlanarMatching)
    seeds: tuple[int, ...] = option(SEEDS, "Random seeds of the estimator; scores are averaged over them.")
    all_sequences: bool = option(False, "Include the eight large sequences of HPatches.")
    short_side: int | None = option(
        None, "Resize photos to this shorter side in pixels first; glue-factory uses 480.", above=0
    )
    pictures: bool = option(True, "Draw the matches of one pair.")

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "Homographies are estimated with each seed in seeds."
        refuse_idle("matching", self.matching, ("model", "seed"), why)
        if not self.seeds:
            raise KeypatchError("The estimator needs one seed or more, but seeds is empty.")

    def match(self, first: Features, second: Features) -> Matches:
        """The matches that are scored: of equally near neighbours none, so that equal descriptors match nothing."""
        return find_matches(first, second, self.matching)

    def recorded(self) -> dict[str, Any]:
        """Everything that the scores of given features on given sequences depend on."""
        return {
            **recorded_matching(self.matching, ("mode", "ratio", "estimator", "threshold")),
            "short_side": self.short_side,
            "confidence": self.matching.confidence,
            "iterations": self.matching.iterations,
            "seeds": list(self.seeds),
            "within": list(WITHIN),
            "accurate": list(ACCURATE),
        }


def evaluate_homography(
    source: Describer | str | Path,
    data: str | Path,
    settings: Homography = Homography(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """The scores of `evaluate_homographies` for a describer, or for a feature file of all photographs in the folder."""
    refuse_idle_extraction(source, settings.extraction)
    found = read_planar_sequences(data)
    sequences = [each for each in found if settings.all_sequences or each.name not in LARGE]
    if not sequences:
        raise DataError(f"All sequences in {data} are skipped as too large. Set all_sequences.")
    photos = [photo for sequence in sequences for photo in sequence.photos]
    features = photo_features(source, photos, settings.extraction, progress, settings.short_side)
    result = evaluate_homographies(features, sequences, settings, progress)
    left_out = [each.name for each in found if each not in sequences]
    named = {"data": Path(data).resolve().name, "left_out": left_out, "features": dict(features.settings)}
    return replace(
        result,
        settings={**result.settings, **named},
        provenance=features.provenance(result.provenance.hashes["data"]),
        contamination=seen_photos(source, photos),
    )


def evaluate_homographies(
    features: Mapping[str, Features],
    sequences: Sequence[PlanarSequence],
    settings: Homography = Homography(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """Scores of matches between the first and every other photograph of each sequence.

    "mma1" to "mma10": mean over pairs of the share of matches that end at most so many pixels from where the homography
    takes their first point (D2-Net: one direction; points that leave the photograph are not excused; 0 without
    matches). "accuracy1", "accuracy3", "accuracy5": share of pairs whose estimated homography is off by at most so many
    pixels in the mean of the corners; "auc1" ...: area under the curve of that share up to there (`recall_area`). Both
    are means over seeds of the estimator; ".lowest" and ".highest" are their spread. "count.keypoints",
    "count.matches", "count.within3": mean numbers of a pair. With ".i" and ".v" behind them, of the sequences whose
    names begin so; with a sequence's name, its own. The curve "mma" and those of groups and sequences are over 1 to 10
    pixels. Intervals are over sequences, of a single one over its photo pairs. `progress` counts sequences.
    """
    if settings.short_side is not None:
        sequences = [sequence.resized(settings.short_side) for sequence in sequences]
    counted = track(sequences, "sequences", progress)
    pairs = {sequence.name: _score_sequence(features, sequence, settings) for sequence in counted}
    groups = _groups(pairs)
    scores = {f"{name}{group}": value for group, some in groups.items() for name, value in _scores(some).items()}
    return Result(
        benchmark="homography",
        descriptor=", ".join(sorted({features[sequence.photos[0].name].descriptor for sequence in sequences})),
        settings={
            "sequences": list(pairs),
            "pairs": len(groups[""]),
            **_completeness(pairs, settings.all_sequences),
            **settings.recorded(),
        },
        scores=scores | _spread(groups[""]),
        curves={f"mma{group}": Curve(np.array(WITHIN), _shares(some)) for group, some in groups.items()},
        provenance=provenance(data=hash_folder(path for sequence in sequences for path in sequence.files)),
        replicates=_replicates(pairs),
        pictures=_picture(features, sequences, pairs, settings) if settings.pictures else {},
    )


@dataclass(frozen=True)
class PairScore:
    """Scores of the matches of two photographs."""

    keypoints: float  # mean of both
    matches: int
    right: int  # matches within RIGHT
    within: tuple[float, ...]  # share of the matches within each of WITHIN; 0 without matches
    corner_errors: tuple[float, ...]  # pixels, by seed of the estimator; inf if no homography was found


def score_pair(
    first: Features,
    second: Features,
    matches: Matches,
    homography: Matrix,
    seeds: tuple[int, ...],
    matching: Matching = PlanarMatching(),  # noqa: B008  a frozen value
) -> PairScore:
    """The matches of two photographs against the homography that leads from the first to the second."""
    errors = match_errors(first, second, matches, homography)
    estimates = [
        verify(matches, first.keypoints, second.keypoints, replace(matching, seed=seed)).matrix for seed in seeds
    ]
    return PairScore(
        keypoints=(len(first) + len(second)) / 2,
        matches=len(matches),
        right=int(np.sum(errors <= RIGHT)),
        within=tuple(share_within(errors, WITHIN)) if len(errors) else (0.0,) * len(WITHIN),
        corner_errors=tuple(corner_error(estimate, homography, first.image_size) for estimate in estimates),
    )


def match_errors(first: Features, second: Features, matches: Matches, homography: Matrix) -> NDArray[np.float64]:
    """(m,) pixels in the second photograph from where the homography takes the first point; inf beyond its horizon."""
    here, there = first.keypoints.xy[matches.indices[:, 0]], second.keypoints.xy[matches.indices[:, 1]]
    return transfer_errors(homography, here, there)


def draw_pair(
    photos: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    features: tuple[Features, Features],
    matches: Matches,
    homography: Matrix,
    caption: str,
) -> bytes:
    """A small PNG of the matches, right ones green and wrong ones red."""
    right = match_errors(*features, matches, homography) <= RIGHT
    keypoints = features[0].keypoints, features[1].keypoints
    return as_png(draw_matches(photos, keypoints, matches, caption, right, LINES), WIDTH, COLOURS)


def _score_sequence(
    features: Mapping[str, Features], sequence: PlanarSequence, settings: Homography
) -> list[PairScore]:
    first, scores = features[sequence.photos[0].name], []
    for photo, homography in zip(sequence.photos[1:], sequence.homographies, strict=True):
        second = features[photo.name]
        matches = settings.match(first, second)
        scores.append(score_pair(first, second, matches, homography, settings.seeds, settings.matching))
    return scores


def _completeness(names: Iterable[str], all_sequences: bool) -> dict[str, str]:
    """How many of the sequences of HPatches there are, where there are any."""
    found = sum(name.startswith(tuple(f"{kind}_" for kind in KINDS)) for name in names)
    return {"of_hpatches": f"{found} of {HPATCHES if all_sequences else HPATCHES - len(LARGE)}"} if found else {}


def _groups(pairs: Mapping[str, list[PairScore]]) -> dict[str, list[PairScore]]:
    """All pairs, those of each kind that is there, and those of each sequence, by what stands behind a score's name."""
    groups = {"": [pair for some in pairs.values() for pair in some]}
    for kind in KINDS:
        if of_kind := [pair for name, some in pairs.items() if name.startswith(f"{kind}_") for pair in some]:
            groups[f".{kind}"] = of_kind
    return groups | {f".{name}": some for name, some in pairs.items()}


def _shares(pairs: Sequence[PairScore]) -> NDArray[np.float64]:
    """(thresholds,) mean matching accuracy."""
    return np.asarray(np.mean([pair.within for pair in pairs], axis=0))


def _corner_errors(pairs: Sequence[PairScore]) -> NDArray[np.float64]:
    return np.array([pair.corner_errors for pair in pairs])  # (pairs, seeds)


def _by_seed(errors: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Accuracies and areas (seeds,) of corner errors (pairs, seeds)."""
    areas = np.array([recall_area(of_seed, ACCURATE) for of_seed in errors.T])
    accuracies = {f"accuracy{pixels}": np.mean(errors <= pixels, axis=0) for pixels in ACCURATE}
    return accuracies | {f"auc{pixels}": column for pixels, column in zip(ACCURATE, areas.T, strict=True)}


def _scores(pairs: Sequence[PairScore]) -> dict[str, float]:
    scores = {f"mma{pixels}": float(share) for pixels, share in zip(WITHIN, _shares(pairs), strict=True)}
    scores |= {name: float(values.mean()) for name, values in _by_seed(_corner_errors(pairs)).items()}
    counts = {"keypoints": "keypoints", "matches": "matches", f"within{RIGHT}": "right"}
    return scores | {
        f"count.{name}": float(np.mean([getattr(pair, attribute) for pair in pairs]))
        for name, attribute in counts.items()
    }


def _spread(pairs: Sequence[PairScore]) -> dict[str, float]:
    return {
        f"{name}.{end}": float(choose(values))
        for name, values in _by_seed(_corner_errors(pairs)).items()
        for end, choose in (("lowest", np.min), ("highest", np.max))
    }


def _replicates(sequences: Mapping[str, list[PairScore]]) -> dict[str, Replicates]:
    """Of sequences drawn with all their pairs, which share a plane; the pairs of one are a sample of its own plane."""
    pairs = [pair for some in sequences.values() for pair in some]
    units, sizes = "sequences", [len(some) for some in sequences.values()]
    if len(sequences) == 1:
        units, sizes = "photo pairs", [1] * len(pairs)
    errors, within = _corner_errors(pairs), np.array([pair.within[WITHIN.index(3)] for pair in pairs])

    def statistic(counts: NDArray[np.int64]) -> tuple[float, ...]:
        drawn = np.repeat(np.arange(len(pairs)), np.repeat(counts, sizes))
        area = np.mean([recall_area(of_seed, [5])[0] for of_seed in errors[drawn].T])
        return float(within[drawn].mean()), float(np.mean(errors[drawn] <= 3)), float(area)

    columns = bootstrap(statistic, len(sizes)).T
    return {
        name: Replicates(column, units, len(sizes))
        for name, column in zip(("mma3", "accuracy3", "auc5"), columns, strict=True)
    }


def _picture(
    features: Mapping[str, Features],
    sequences: Sequence[PlanarSequence],
    pairs: Mapping[str, list[PairScore]],
    settings: Homography,
) -> dict[str, bytes]:
    """The matches of a usual pair: the one in the middle, by the share of right matches."""
    numbered = [(sequence, number) for sequence in sequences for number in range(len(sequence.homographies))]
    ranked = sorted(numbered, key=lambda each: pairs[each[0].name][each[1]].within[WITHIN.index(RIGHT)])
    sequence, number = ranked[len(ranked) // 2]
    score, photos = pairs[sequence.name][number], (sequence.photos[0], sequence.photos[number + 1])
    first, second = (features[photo.name] for photo in photos)
    images = [resized(read_photo(photo.path), settings.short_side) for photo in photos]
    title = f"{sequence.name}: {photos[0].path.name} and {photos[1].path.name}"
    caption = f"{title}: {score.right:,} of {score.matches:,} matches are right, within {RIGHT} px"
    matches = settings.match(first, second)
    return {title: draw_pair((images[0], images[1]), (first, second), matches, sequence.homographies[number], caption)}
