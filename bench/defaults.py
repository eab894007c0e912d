"""What the defaults for photographs were chosen by: how wide a patch is, how a budget is spent, which ratio test.

    python bench/defaults.py --data $DATA --out runs/defaults [--study extent budget ratio] [--scenes sceaux cyprus ...]

Scores on the sequences boat, leuven, trees and wall of oxford/ and on scenes of photos/, against the poses beside them.
Features and results are kept in --out, so that a stopped run goes on and another study starts from what is there.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.describers import Describer
from keypatch.describers.network import NetworkDescriber
from keypatch.detection import Dog
from keypatch.detection.budget import suppression_radius
from keypatch.features import Extraction, Features, extract
from keypatch.features.features import Setting
from keypatch.geometry import Keypoints
from keypatch.studies.pipeline_kinds import Image, Laps
from keypatch.studies.pipelines import KeptPipeline
from keypatch.zoo import find

SEQUENCES = ("boat", "leuven", "trees", "wall")
SCENES = ("boruszyn", "copr", "cyprus", "et", "kermit", "langley", "lund_door", "monstree", "office", "sceaux", "tire")
SEEDS = (0, 1, 2)
BUDGET = 2048
SHIPPED = "hynet-notredame"

Choice = Callable[[Keypoints], NDArray[Any]]  # a rank: the larger, the sooner kept


def response(found: Keypoints) -> NDArray[np.float32]:
    if found.response is None:
        raise ValueError("DoG points have responses")
    return found.response


def spread(power: float) -> Choice:
    """Rank by the radius without a clearly stronger point, strength being response times a power of sigma."""
    return lambda found: suppression_radius(found.xy, response(found) * found.sigma**power)


def turns(*choices: Choice) -> Choice:
    """The first of each, the second of each, and so on."""

    def rank(found: Keypoints) -> NDArray[Any]:
        places = [np.argsort(np.argsort(-choice(found), kind="stable"), kind="stable") for choice in choices]
        return -np.min(places, axis=0)

    return rank


CHOICES: dict[str, Choice] = {
    "strongest": response,
    "largest": lambda found: found.sigma,
    "spread": spread(0),
    "spread response x sqrt sigma": spread(0.5),
    "spread response x sigma": spread(1),
    "response x sigma": lambda found: response(found) * found.sigma,
    "strongest and spread in turns": turns(response, spread(0)),
    "largest and spread in turns": turns(lambda found: found.sigma, spread(0)),
}


@dataclass(frozen=True)
class Chosen:
    """DoG points chosen by one of CHOICES, described at some extent (None: the describer's own)."""

    descriptor: str = SHIPPED
    choice: str = "spread"
    sigmas: float | None = None

    @property
    def name(self) -> str:
        return f"{self.descriptor}, {self.choice}, {self.sigmas or 'own'} sigmas"

    @property
    def settings(self) -> Mapping[str, Setting]:
        describer = loaded(self.descriptor)
        weights = describer.weights_hash if isinstance(describer, NetworkDescriber) else None
        return {"weights": weights, "budget": BUDGET, "choice": self.choice, "patch_sigmas": self.sigmas}

    def __call__(self, image: Image, laps: Laps) -> Features:
        found = detect(image.tobytes(), image.shape)
        best = found.take(np.argsort(-CHOICES[self.choice](found), kind="stable")[:BUDGET])
        return extract(image, loaded(self.descriptor), Extraction(patch_sigmas=self.sigmas), best)


@lru_cache
def loaded(descriptor: str) -> Describer:
    return find(descriptor)


@lru_cache(maxsize=512)
def detect(pixels: bytes, shape: tuple[int, int]) -> Keypoints:
    return Dog()(np.frombuffer(pixels, np.uint8).reshape(shape))


Line = tuple[Chosen, float | None]  # and a ratio test
STUDIES: dict[str, list[Line]] = {
    "extent": [
        (Chosen(choice=choice, sigmas=sigmas), None)
        for choice in ("spread", "strongest")
        for sigmas in (24, 18, 32, 20, 28, 16, 12)
    ],
    "budget": [(Chosen(name, choice), None) for name in (SHIPPED, "rootsift") for choice in CHOICES],
    "ratio": [
        (Chosen(name, choice), ratio)
        for name in (SHIPPED, "rootsift")
        for choice in ("spread", "strongest")
        for ratio in (None, 0.95, 0.9, 0.85)
    ],
}


def scored(line: Line, data: Path, scenes: Sequence[str], out: Path) -> str:
    """A row of a table."""
    chosen, ratio = line
    kept = KeptPipeline(chosen, out, lambda _: None)
    planes = kept.planes(data / "oxford", ratio, SEQUENCES).scores
    poses = [kept.poses(data / "photos" / scene, ratio, seeds=SEEDS).scores for scene in scenes]
    areas = [float(np.mean([scene[f"auc{degrees}"] for scene in poses])) for degrees in (1, 5, 10)]
    cells = [chosen.descriptor, chosen.choice, str(chosen.sigmas or "own"), str(ratio or "none")]
    cells += [f"{planes['mma1']:.3f}", f"{planes['mma3']:.3f}", f"{planes['count.within3']:.0f}"]
    cells += [f"{planes['accuracy3']:.3f}", " / ".join(f"{area:.3f}" for area in areas)]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--study", choices=STUDIES, nargs="+", default=list(STUDIES))
    parser.add_argument("--scenes", nargs="+", default=SCENES)
    arguments = parser.parse_args()
    for study in arguments.study:
        areas = f"AUC 1 / 5 / 10, {len(arguments.scenes)} scenes"
        print(f"\n| descriptor | keypoints | sigmas | ratio | oxford 1 px | 3 px | right | H | {areas} |")
        print("|" + "---|" * 9)
        for line in STUDIES[study]:
            print(scored(line, arguments.data, arguments.scenes, arguments.out), flush=True)


if __name__ == "__main__":
    main()
