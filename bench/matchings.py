"""What the default way of matching photos was chosen by: which test of matches, how many keypoints, which orientation.

    python bench/matchings.py --data $DATA/photos --out runs/matchings [--study tests budget orientation ...]

Areas under the recall curve of pose errors to 1, 5 and 10 degrees on scenes with the poses of COLMAP beside them, by
poselib with known intrinsics, mean over two seeds. A scene is written name:least:most: photos so many places apart in
the order of their names are paired, at most 40 pairs of a scene. Features and rows are kept in --out, so that a stopped
run is resumed.
"""

import argparse
import json
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from poses import DEGREES

from keypatch import describe, read_features
from keypatch.benchmarks.imc.scenes import PosedScene, read_posed_scene
from keypatch.cache import cache_key
from keypatch.cli.main import answer
from keypatch.colmap.cameras import PosedCamera, to_rays
from keypatch.detection import keep_orientations
from keypatch.features import Extraction, Features
from keypatch.files import write_json
from keypatch.geometry.poses import relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import find_matches
from keypatch.matching.relative_pose import recover_pose
from keypatch.matching.verification import matched_places, verify
from keypatch.metrics import angular_error, recall_area

SCENES = (
    *("kermit:1:4", "et:1:5", "sceaux:3:8", "cyprus:1:4", "tire:1:3", "lund_street:1:4", "office:2:6"),
    *("ie_tower_1:1:4", "monstree:1:5", "boruszyn:2:6", "skull:1:3"),
)
PAIRS = 40  # of a scene at most, drawn with the seed 0
DESCRIPTOR, MOST, SEEDS = "hynet-notredame", 8192, (0, 1)
DEFAULT = Matching()
RATIO = Matching(turn=180, filter=None, tries=1)
ADALAM = Matching(turn=180, ratio=None, tries=1)
EITHER = Matching(turn=180)  # passes one of both tests, however it is turned

Pair = tuple[Features, Features]
Cameras = tuple[PosedCamera, PosedCamera]


@dataclass(frozen=True)
class Line:
    """One row of a study."""

    name: str
    matching: Matching = DEFAULT
    keypoints: int = 4096
    orientation: str = "all"  # "all", "one" or "upright"
    judged: bool = True  # by all nearest neighbours; else one estimate from the matches
    without: tuple[str, ...] = ()  # kinds of evidence that are not looked at
    guided: tuple[float, float] | None = None  # pixels from the epipolar line, ratio test among those there


STUDIES = {
    "tests": [
        Line("ratio 0.9", RATIO),
        Line("ratio 0.9, 10 px apart", replace(RATIO, apart=10.0)),
        Line("ratio 0.8", replace(RATIO, ratio=0.8)),
        Line("AdaLAM", ADALAM),
        Line("AdaLAM, one-way", replace(ADALAM, mode="one-way")),
        Line("ratio 0.9 or AdaLAM", replace(EITHER, tries=1), judged=False),
        Line("ratio 0.9 or AdaLAM, judged, 1 try", replace(EITHER, tries=1)),
        Line("ratio 0.9 or AdaLAM, judged, 2 tries", EITHER),
    ],
    "turn": [
        Line("ratio 0.9, within 60 degrees", replace(RATIO, turn=60)),
        Line("ratio 0.9 or AdaLAM, judged, within 60 degrees", Matching(turn=60)),
        Line("ratio 0.95 or AdaLAM, judged, within 60 degrees", Matching(ratio=0.95, turn=60)),
    ],
    "judges": [
        Line("judged by neighbours", without=("likely", "lookalikes")),
        Line("beyond the share of lookalikes", without=("likely",)),
        Line("by neighbours, and estimates from likely ones", without=("lookalikes",)),
        Line("both"),
    ],
    "budget": [
        Line(f"{budget:,}, {name}", matching, budget)
        for budget in (2048, 4096, 8192)
        for name, matching in (("ratio 0.9, 1 try", RATIO), ("default", DEFAULT))
    ],
    "orientation": [
        Line("all orientations"),
        Line("one orientation", orientation="one"),
        Line("upright", orientation="upright"),
    ],
    "threshold": [Line(f"{pixels} px", Matching(threshold=pixels)) for pixels in (0.5, 0.75, 1.0, 1.5, 2.0)],
    "guided": [
        Line("not guided"),
        Line("within 2 px, ratio 0.9", guided=(2.0, 0.9)),
        Line("within 2 px, ratio 0.8", guided=(2.0, 0.8)),
        Line("within 4 px, ratio 0.85", guided=(4.0, 0.85)),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--study", choices=STUDIES, nargs="+", default=list(STUDIES))
    parser.add_argument("--scenes", nargs="+", default=SCENES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for study in arguments.study:
        print(f"\n| {study} | " + " | ".join(arguments.scenes) + " | mean AUC 5 |")
        print("|---|" + "---|" * (len(arguments.scenes) + 1))
        for line in STUDIES[study]:
            cells = [score(line, arguments.data, scene, arguments.out) for scene in arguments.scenes]
            mean = np.mean([cell[f"auc{DEGREES[1]}"] for cell in cells])
            shown = [" / ".join(f"{cell[f'auc{degrees}']:.3f}" for degrees in DEGREES) for cell in cells]
            print(f"| {line.name} | {' | '.join(shown)} | {mean:.3f} |", flush=True)


def score(line: Line, data: Path, named: str, out: Path) -> dict[str, float]:
    """The areas of a scene, from the folder if they are there."""
    made_of = [line.matching.plain(), line.keypoints, line.orientation, line.guided, line.judged, line.without]
    path = out / f"{named.replace(':', '-')}-{cache_key(made_of)}.json"
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    name, least, most = named.split(":")
    scene = read_posed_scene(data / name)
    read = partial(features_of, scene, line, out)
    names, errors, counts = scene.names, np.zeros((0, len(SEEDS))), []
    pairs = [(one, two) for i, one in enumerate(names) for two in names[i + int(least) : i + int(most) + 1]]
    if len(pairs) > PAIRS:
        pairs = [pairs[i] for i in np.sort(np.random.default_rng(0).choice(len(pairs), PAIRS, replace=False))]
    for first, second in pairs:
        pair, cameras = (read(first), read(second)), (scene.cameras[first], scene.cameras[second])
        matches = find_matches(*pair, line.matching, device="cpu").once(pair[0].keypoints, pair[1].keypoints)
        nothing = dict.fromkeys(line.without, np.empty((0, 2), np.int32))
        evidence = replace(matches.evidence, **nothing) if matches.evidence and line.judged else None
        matches = replace(matches, evidence=evidence)
        counts.append(len(matches))
        found = [pose_error(pair, matches, cameras, line, seed) for seed in SEEDS]
        errors = np.concatenate([errors, [found]])
    areas = np.mean([recall_area(of_seed, DEGREES) for of_seed in errors.T], axis=0)
    scores = {f"auc{degrees}": float(area) for degrees, area in zip(DEGREES, areas, strict=True)}
    write_json(path, scores | {"matches": float(np.mean(counts)), "pairs": len(counts)})
    return scores


def features_of(scene: PosedScene, line: Line, out: Path, name: str) -> Features:
    """The first of what the largest budget keeps, which is what a smaller one keeps."""
    upright = line.orientation == "upright"
    path = out / f"{scene.name}{'-upright' * upright}.h5"
    if not path.exists():
        extraction = Extraction(keypoints=MOST, upright=upright)
        describe(scene.folder / "images", path, DESCRIPTOR, extraction, device="cpu")
    whole = read_features(path, name)
    rows: NDArray[np.int64] = np.arange(len(whole))
    if line.orientation == "one":
        numbered = replace(whole.keypoints, response=rows.astype(np.float32))
        rows = np.asarray(keep_orientations(numbered, "one").response, np.int64)
    rows = rows[: line.keypoints]
    return replace(whole, keypoints=whole.keypoints.take(rows), descriptors=whole.descriptors[rows])


def pose_error(pair: Pair, matches: Matches, cameras: Cameras, line: Line, seed: int) -> float:
    """Degrees; inf without a pose."""
    matching = replace(line.matching, model="E", seed=seed)
    intrinsics, keypoints = [each.camera for each in cameras], (pair[0].keypoints, pair[1].keypoints)
    kept = verify(matches, *keypoints, matching, intrinsics)
    if line.guided is not None and kept.matrix is not None:
        found = match_along_lines(pair, kept.matrix, cameras, *line.guided)
        joined = np.unique(np.concatenate([matches.indices, found]), axis=0)
        both = Matches(joined.astype(np.int32), np.ones(len(joined), np.float32)).once(*keypoints)
        kept = verify(both, *keypoints, matching, intrinsics)
    if kept.matrix is None:
        return float("inf")
    places = zip(matched_places(kept, *keypoints), intrinsics, strict=True)
    pose = recover_pose(kept.matrix, *(to_rays(place, camera) for place, camera in places))
    return angular_error(pose, relative_pose(cameras[0].pose, cameras[1].pose))


def match_along_lines(
    pair: Pair, essential: NDArray[np.float64], cameras: Cameras, pixels: float, ratio: float
) -> NDArray[np.int64]:
    """(m, 2) mutual neighbours among keypoints so near to each other's epipolar lines, by a ratio test among these."""
    rays = [
        np.column_stack([to_rays(view.keypoints.xy, posed.camera), np.ones(len(view))]).astype(np.float32)
        for view, posed in zip(pair, cameras, strict=True)
    ]
    lines, back = rays[0] @ essential.T.astype(np.float32), rays[1] @ essential.astype(np.float32)
    slope = np.sqrt((lines[:, :2] ** 2).sum(1)[:, None] + (back[:, :2] ** 2).sum(1))
    focal = float(np.mean([posed.camera.focal for posed in cameras]))
    products = pair[0].descriptors @ pair[1].descriptors.T
    products[focal * np.abs(lines @ rays[1].T) > pixels * slope] = -1
    rows, partner = np.arange(len(products)), products.argmax(1)
    best = products[rows, partner]
    kept = (products.argmax(0)[partner] == rows) & (best > -1)
    products[rows, partner] = -1
    distances = np.sqrt(np.maximum(2 - 2 * best, 0))
    for rival in (products.max(1), products.max(0)[partner]):
        kept &= distances < ratio * np.sqrt(np.maximum(2 - 2 * rival, 1e-9))
    return np.stack([rows, partner], axis=1)[kept]


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
