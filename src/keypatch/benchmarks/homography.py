"""Photographs of planes with known homographies: which matches are right, and how good a homography they give."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.result import Result
from keypatch.errors import DataError
from keypatch.features import Features, Photo, find_photos
from keypatch.files import hash_folder, reason, require_folder
from keypatch.geometry import apply_homography
from keypatch.matching.matches import Matches
from keypatch.matching.verifying import verify
from keypatch.metrics import corner_error, share_within
from keypatch.provenance import provenance

WITHIN = (1, 3)  # pixels: matches that are right
THRESHOLD = 1.0  # pixels: of MAGSAC
SEEDS = (0, 1, 2, 3, 4)  # of MAGSAC
ACCURATE = 3.0  # pixels: mean corner error of a homography that is right

Matrix = NDArray[np.float64]
Matcher = Callable[[Features, Features], Matches]


@dataclass(frozen=True, eq=False)
class PlanarSequence:
    """One plane in several photographs; the k-th homography leads from the first photograph to the (k + 1)-th."""

    name: str
    photos: tuple[Photo, ...]
    homographies: tuple[Matrix, ...]

    @property
    def files(self) -> list[Path]:
        """Everything that the scores depend on."""
        folder = self.photos[0].path.parent
        return [photo.path for photo in self.photos] + sorted(folder.glob("H_1_*"))


@dataclass(frozen=True)
class PairScore:
    """What the matches of two photographs are worth."""

    matches: int
    within: tuple[float, ...]  # share of the matches within each of WITHIN; 0 without matches
    right: int  # matches within the last of WITHIN
    corner_errors: tuple[float, ...]  # pixels, by seed of the estimator; inf if no homography was found


def read_planar_sequences(folder: str | Path) -> list[PlanarSequence]:
    """The sequences in a folder, in the layout of Oxford (img1.png ...) or of HPatches (1.ppm ...) with H_1_2 ... .

    Photos are named as `describe` names those of the same folder: boat/img1.png.
    """
    folder = Path(folder)
    require_folder(folder)
    sequences = [_read_sequence(path, folder) for path in sorted(folder.iterdir()) if (path / "H_1_2").is_file()]
    if not sequences:
        raise DataError(f"{folder} holds no sequences: folders with img1.png or 1.ppm and so on, and H_1_2 and so on.")
    return sequences


def evaluate_homographies(
    features: Mapping[str, Features],
    sequences: Sequence[PlanarSequence],
    match: Matcher,
    seeds: Sequence[int] = SEEDS,
) -> Result:
    """Scores of matches between the first and every other photograph of each sequence, means over all pairs.

    "within1" and "within3" are the shares of a pair's matches that end within so many pixels of where the homography
    takes their first point (one direction, as D2-Net; points that leave the photograph are not excused), "accuracy" the
    share of pairs whose estimated homography misses the corners by less than 3 px in the mean, over seeds of the
    estimator, "accuracy.lowest" and "accuracy.highest" their spread. "count.within3" and "count.matches" are numbers of
    matches. With a sequence's name behind a dot, its own mean.
    """
    scores: dict[str, list[float]] = {}
    accurate = []  # (pairs, seeds)
    for sequence in sequences:
        first = features[sequence.photos[0].name]
        for photo, homography in zip(sequence.photos[1:], sequence.homographies, strict=True):
            second = features[photo.name]
            pair = score_pair(first, second, match(first, second), homography, seeds)
            accurate.append([error < ACCURATE for error in pair.corner_errors])
            for name, score in _flat(pair).items():
                scores.setdefault(name, []).append(score)
                scores.setdefault(f"{name}.{sequence.name}", []).append(score)
    by_seed = np.mean(accurate, axis=0)
    spread = {"accuracy.lowest": float(by_seed.min()), "accuracy.highest": float(by_seed.max())}
    descriptors = {each.descriptor for each in features.values()}
    return Result(
        benchmark="homography",
        descriptor=", ".join(sorted(descriptors)),
        settings={"sequences": [sequence.name for sequence in sequences], "threshold": THRESHOLD, "seeds": list(seeds)},
        scores={name: float(np.mean(values)) for name, values in scores.items()} | spread,
        curves={},
        provenance=provenance(data=hash_folder(path for sequence in sequences for path in sequence.files)),
    )


def score_pair(
    first: Features, second: Features, matches: Matches, homography: Matrix, seeds: Sequence[int] = SEEDS
) -> PairScore:
    """The matches of two photographs against the homography that leads from the first to the second."""
    if not len(matches):
        return PairScore(0, (0.0,) * len(WITHIN), 0, (float("inf"),) * len(seeds))
    here, there = first.keypoints.xy[matches.indices[:, 0]], second.keypoints.xy[matches.indices[:, 1]]
    errors = np.linalg.norm(apply_homography(homography, here) - there, axis=1)
    estimates = [
        verify(matches, first.keypoints, second.keypoints, "H", threshold=THRESHOLD, seed=seed).matrix for seed in seeds
    ]
    return PairScore(
        matches=len(matches),
        within=tuple(share_within(errors, WITHIN)),
        right=int((errors <= WITHIN[-1]).sum()),
        corner_errors=tuple(corner_error(estimate, homography, first.image_size) for estimate in estimates),
    )


def _flat(pair: PairScore) -> dict[str, float]:
    shares = {f"within{pixels}": share for pixels, share in zip(WITHIN, pair.within, strict=True)}
    counts = {f"count.within{WITHIN[-1]}": float(pair.right), "count.matches": float(pair.matches)}
    return shares | {"accuracy": float(np.mean(np.array(pair.corner_errors) < ACCURATE))} | counts


def _read_sequence(folder: Path, root: Path) -> PlanarSequence:
    photos = {photo.path.stem.removeprefix("img"): photo for photo in find_photos([folder], root)}
    numbers = sorted(int(path.name.removeprefix("H_1_")) for path in folder.glob("H_1_*[0-9]"))
    for number in [1, *numbers]:
        if str(number) not in photos:
            raise DataError(f"{folder} has no photo {number}, neither img{number}.png nor {number}.ppm or the like.")
    homographies = tuple(_read_matrix(folder / f"H_1_{number}") for number in numbers)
    return PlanarSequence(folder.name, tuple(photos[str(number)] for number in [1, *numbers]), homographies)


def _read_matrix(path: Path) -> Matrix:
    try:
        values = np.array(path.read_text(encoding="utf-8").split(), np.float64)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from None
    except ValueError as error:
        raise DataError(f"{path} is not a homography ({error}). Copy it again.") from None
    if values.size != 9 or not np.isfinite(values).all():
        raise DataError(f"{path} should hold nine finite numbers, the rows of a homography. Copy it again.")
    return values.reshape(3, 3)
