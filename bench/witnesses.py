"""Which of two models do independent matches agree with, where nobody knows the true poses?

    python bench/witnesses.py --data $DATA/photos --scenes kermit et --peers WEIGHTS --work runs/sfm

The scenes of bench/sfm.py, whose models are read from its folder of work, with the tests named there. Witnesses are the
matches of ALIKED n16 with LightGlue, which had no part in any of the models: the share of them within half a pixel and
within one of the epipolar lines of a model, over all pairs of photos. Beside each, the difference to the cameras of the
scene and its 95 % interval (pairs of photos drawn 1,000 times).
"""

import argparse
import sys
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from pipeline_kinds import GLUES, NETWORKS, LightGlue, NetworkPipeline, find_weights
from sfm import truth_of

from keypatch.cli.main import answer
from keypatch.colmap.cameras import PosedCamera, to_rays
from keypatch.colmap.known_cameras import read_cameras
from keypatch.errors import KeypatchError
from keypatch.features import Features, read_photo
from keypatch.geometry.poses import relative_pose
from keypatch.metrics.matching import epipolar_errors

WITNESS, BUDGET = "aliked-n16", 2048
NEAR = (0.5, 1.0)  # pixels
DRAWS = 1000

Cameras = Mapping[str, PosedCamera]
Seen = dict[tuple[str, str], NDArray[np.float64]]  # (m, 4) matched places by pair of photos


def witnesses(scene: Path, names: list[str], weights: list[Path]) -> Seen:
    """The places that ALIKED with LightGlue matches in every two photos."""
    files = [find_weights(weights, stem) for stem in (NETWORKS[WITNESS].file, GLUES[WITNESS].file)]
    if None in files:
        raise KeypatchError(
            f"The weights of {WITNESS} and its LightGlue are in none of {', '.join(map(str, weights))}."
        )
    pipeline = NetworkPipeline(WITNESS, files[0], BUDGET)  # type: ignore[arg-type]
    glue = LightGlue(GLUES[WITNESS].features, files[1])  # type: ignore[arg-type]
    features: dict[str, Features] = {name: pipeline(read_photo(scene / "images" / name)) for name in names}
    seen: Seen = {}
    for pair in combinations(names, 2):
        views = features[pair[0]], features[pair[1]]
        indices = glue(*views).indices
        seen[pair] = np.hstack([view.keypoints.xy[indices[:, side]] for side, view in enumerate(views)])
    return seen


def agreeing(seen: Seen, cameras: Cameras) -> NDArray[np.int64]:
    """(pairs, distances) how many witnesses of a pair are so near to its epipolar lines."""
    counts = []
    for (first, second), places in seen.items():
        one, two = cameras[first], cameras[second]
        pose = relative_pose(one.pose, two.pose)
        essential = np.cross(np.eye(3), pose.translation) @ pose.rotation
        rays = to_rays(places[:, :2], one.camera), to_rays(places[:, 2:], two.camera)
        pixels = float(np.mean([one.camera.focal, two.camera.focal])) * epipolar_errors(essential, *rays)
        counts.append([int((pixels < near).sum()) for near in NEAR])
    return np.array(counts)


def difference(ours: NDArray[np.int64], theirs: NDArray[np.int64], totals: NDArray[np.int64]) -> list[str]:
    """What a model gains over another in share, at each distance, with its interval over pairs of photos."""
    drawn = np.random.default_rng(0).integers(len(totals), size=(DRAWS, len(totals)))
    gain = ours - theirs
    spread = gain[drawn].sum(1) / totals[drawn].sum(1)[:, None]  # (draws, distances)
    low, high = np.percentile(spread, (2.5, 97.5), axis=0)
    means = gain.sum(0) / totals.sum()
    return [f"{mean:+.4f} ({a:+.4f} to {b:+.4f})" for mean, a, b in zip(means, low, high, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scenes", nargs="+", required=True)
    parser.add_argument("--peers", type=Path, nargs="+", required=True, help="folders of published weights")
    parser.add_argument("--work", type=Path, default=Path("runs/sfm"), help="folder of work of bench/sfm.py")
    parser.add_argument("--models", nargs="+", default=["hynet-notredame-4096-0.85-0", "hynet-notredame-4096-match-0"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    print("| scene | model | witnesses | " + " | ".join(f"within {near:g} px | gain" for near in NEAR) + " |")
    print("|---|---|---:|" + "---:|" * (2 * len(NEAR)))
    for name in arguments.scenes:
        scene = arguments.data / name
        models = {"the scene's cameras": read_cameras(truth_of(scene))}
        models |= {each: read_cameras(arguments.work / f"{name}-{each}" / "models" / "0") for each in arguments.models}
        names = sorted(set.intersection(*(set(cameras) for cameras in models.values())))
        seen = witnesses(scene, names, arguments.peers)
        totals = np.array([len(places) for places in seen.values()])
        counts = {each: agreeing(seen, cameras) for each, cameras in models.items()}
        for each, near in counts.items():
            gains = difference(near, counts["the scene's cameras"], totals)
            cells = [cell for pair in zip(near.sum(0) / totals.sum(), gains, strict=True) for cell in pair]
            shown = " | ".join(cell if isinstance(cell, str) else f"{cell:.4f}" for cell in cells)
            print(f"| {name} | {each} | {totals.sum():,} | {shown} |", flush=True)


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
