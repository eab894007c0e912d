"""What the defaults for photographs were chosen by: keypoints, how wide a patch is, which ratio test.

    python bench/defaults.py --data $DATA --out runs/defaults [--study ratio keypoints extent]

Scores on the sequences boat, leuven, trees and wall of oxford/ and on scenes of photos/, against the poses beside them.
Rows are kept in --out, so that a stopped run is resumed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from poses import DEGREES, ESTIMATORS, evaluate_poses, over_seeds

from keypatch.benchmarks.imc.scenes import read_posed_scene
from keypatch.benchmarks.planar.homography import Homography, PlanarMatching, evaluate_homographies
from keypatch.cli.main import answer
from keypatch.detection import Dog, keep_orientations
from keypatch.detection.budget import suppression_radius
from keypatch.features import Features, Photo, read_photo
from keypatch.features.extraction import describe_keypoints
from keypatch.files import write_json
from keypatch.geometry import Keypoints
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.patches.planar_sequences import read_planar_sequences
from keypatch.zoo import load

SEQUENCES = ("boat", "leuven", "trees", "wall")
SCENES = ("sceaux", "lund_door", "cyprus", "kermit", "et", "tire")
BUDGETS = 2048, 512  # the second for photographs that are large for their budget: a quarter of the points per pixel
SHIPPED = "hynet-notredame"

Choice = Callable[[Keypoints, int], NDArray[Any]]  # of points and a budget, a rank: the larger, the sooner kept


def strength(found: Keypoints, power: float = 0) -> NDArray[np.float32]:
    """Response times a power of sigma."""
    if found.response is None:
        raise ValueError("DoG points have responses")
    return found.response * found.sigma**power


def strongest(power: float = 0) -> Choice:
    return lambda found, _: strength(found, power)


def largest(found: Keypoints, budget: int) -> NDArray[Any]:
    return found.sigma


def spread(power: float = 0, among: int | None = None) -> Choice:
    """Rank by the radius without a clearly stronger point; only `among` times the budget, the strongest, take part."""

    def rank(found: Keypoints, budget: int) -> NDArray[Any]:
        strengths = strength(found, power)
        radius = suppression_radius(found.xy, strengths)
        if among is not None:
            radius[np.argsort(-strengths, kind="stable")[among * budget :]] = -1
        return radius

    return rank


def turns(*choices: Choice) -> Choice:
    """The first of each, the second of each, and so on."""

    def rank(found: Keypoints, budget: int) -> NDArray[Any]:
        places = [np.argsort(np.argsort(-choice(found, budget), kind="stable"), kind="stable") for choice in choices]
        return np.negative(np.min(places, axis=0))

    return rank


def one(choice: Choice) -> Choice:
    """The same among the points with the first direction of every place."""

    def rank(found: Keypoints, budget: int) -> NDArray[Any]:
        numbered = replace(found, response=np.arange(len(found), dtype=np.float32))
        first = strength(keep_orientations(numbered, "one")).astype(int)
        ranks = np.full(len(found), -np.inf)
        ranks[first] = choice(found.take(first), budget)
        return ranks

    return rank


CHOICES: dict[str, Choice] = {
    "spread": spread(),
    "strongest": strongest(),
    "largest": largest,
    "response x sigma": strongest(1),
    "spread response x sqrt sigma": spread(0.5),
    "spread response x sigma": spread(1),
    "spread among four times as many": spread(among=4),
    "spread, one direction": one(spread()),
    "strongest and spread in turns": turns(strongest(), spread()),
    "largest and spread in turns": turns(largest, spread()),
}


@dataclass(frozen=True)
class Line:
    """One row: DoG points chosen by one of CHOICES, described at some extent (None: the descriptor's own), matched."""

    descriptor: str = SHIPPED
    choice: str = "spread"
    budget: int = BUDGETS[0]
    sigmas: float | None = None
    ratio: float | None = None

    @property
    def cells(self) -> list[str]:
        own = str(self.sigmas or "own"), str(self.ratio or "none")
        return [self.descriptor, self.choice, str(self.budget), *own]


STUDIES: dict[str, list[Line]] = {
    "ratio": [
        Line(descriptor, ratio=ratio) for descriptor in (SHIPPED, "rootsift") for ratio in (None, 0.95, 0.9, 0.85, 0.8)
    ],
    "keypoints": [
        Line(choice=choice, budget=budget, ratio=ratio)
        for budget, ratio in ((BUDGETS[0], 0.9), (BUDGETS[0], None), (BUDGETS[1], None))
        for choice in CHOICES
    ],
    "extent": [Line(sigmas=sigmas, budget=budget) for budget in BUDGETS for sigmas in (12, 16, 20, 24, 28, 32)],
}


@cache
def detect(path: Path) -> Keypoints:
    return Dog()(read_photo(path))


class Bank:
    """Descriptors of the points of photographs, each computed when first asked for."""

    def __init__(self, descriptor: str, sigmas: float | None) -> None:
        self._describer, self._sigmas = load(descriptor), sigmas
        self._rows: dict[Path, NDArray[np.float32]] = {}
        self._known: dict[Path, NDArray[np.bool_]] = {}

    def features(self, photos: Sequence[Photo], line: Line) -> dict[str, Features]:
        return {photo.name: self._of(photo.path, line) for photo in photos}

    def _of(self, path: Path, line: Line) -> Features:
        found, image = detect(path), read_photo(path)
        kept = np.argsort(-CHOICES[line.choice](found, line.budget), kind="stable")[: line.budget]
        rows = self._rows.setdefault(path, np.empty((len(found), self._describer.dim), np.float32))
        known = self._known.setdefault(path, np.zeros(len(found), bool))
        missing = kept[~known[kept]]
        rows[missing] = describe_keypoints(image, found.take(missing), self._describer, self._sigmas)
        known[missing] = True
        return Features(found.take(kept), rows[kept], (image.shape[1], image.shape[0]), self._describer.name)


def score(line: Line, bank: Bank, data: Path, scenes: Sequence[str]) -> dict[str, float]:
    sequences = [each for each in read_planar_sequences(data / "oxford") if each.name in SEQUENCES]
    photos = [photo for sequence in sequences for photo in sequence.photos]
    planes = evaluate_homographies(
        bank.features(photos, line), sequences, Homography(matching=PlanarMatching(ratio=line.ratio), pictures=False)
    ).scores
    scores = {name: planes[name] for name in ("mma1", "mma3", "count.within3", "accuracy3")}
    for name in scenes:
        scene = read_posed_scene(data / "photos" / name)
        features = bank.features(scene.photos, line)
        poses = evaluate_poses(
            features,
            scene,
            lambda first, second: match_descriptors(first.descriptors, second.descriptors, Matching(ratio=line.ratio)),
        ).scores
        for estimator in ESTIMATORS:
            areas = {f"{estimator}.auc{degrees}": f"auc{degrees}.{estimator}" for degrees in DEGREES}
            scores |= {f"{name}.{short}": float(over_seeds(poses, full).mean()) for short, full in areas.items()}
    return scores


def row(line: Line, scores: Mapping[str, float]) -> str:
    def area(estimator: str, degrees: int) -> float:
        return float(np.mean([value for name, value in scores.items() if name.endswith(f".{estimator}.auc{degrees}")]))

    areas = {estimator: [area(estimator, degrees) for degrees in DEGREES] for estimator in ESTIMATORS}
    cells = [*line.cells, f"{scores['mma1']:.3f}", f"{scores['mma3']:.3f}", f"{scores['count.within3']:.0f}"]
    cells.append(f"{scores['accuracy3']:.3f}")
    cells += [" / ".join(f"{each:.3f}" for each in some) for some in areas.values()]
    return f"| {' | '.join(cells)} | {np.mean([some[DEGREES.index(5)] for some in areas.values()]):.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--study", choices=STUDIES, nargs="+", default=list(STUDIES))
    parser.add_argument("--scenes", nargs="+", default=SCENES)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    bank: tuple[tuple[str, float | None], Bank] | None = None  # one is held at a time
    for study in arguments.study:
        estimators = " | ".join(f"AUC 1 / 5 / 10 {estimator}" for estimator in ESTIMATORS)
        print("\n| descriptor | keypoints | budget | sigmas | ratio | within 1 px | 3 px | right | H |", end="")
        print(f" {estimators} | mean AUC 5 |")
        print("|" + "---|" * 12)
        for line in STUDIES[study]:
            path = arguments.out / f"{'-'.join(line.cells).replace(', ', '-').replace(' ', '-')}.json"
            if not path.exists():
                if bank is None or bank[0] != (line.descriptor, line.sigmas):
                    bank = (line.descriptor, line.sigmas), Bank(line.descriptor, line.sigmas)
                write_json(path, score(line, bank[1], arguments.data, arguments.scenes))
            print(row(line, json.loads(path.read_text(encoding="utf-8"))), flush=True)


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
