"""Whole reconstructions beside COLMAP's own: `python bench/sfm.py --data $DATA/strecha --out docs/results/sfm.json`.

For each scene, a folder with `images` and true cameras (`cameras`, `gt` or `poses`): pycolmap's own SIFT with
exhaustive matching and its own ratio test of 0.8, and ours with each descriptor and each test of matches: `match`, the
default of `keypatch match` with its geometry; or, left to COLMAP to verify, a ratio (1 is none), `adalam`, or either,
`0.9+adalam`. Everyone gets the known intrinsics, the same budget of keypoints and the same
verification and mapping, with the same seeds and one thread. Figures are means over seeds, with the standard deviation
behind them. What is done is kept in the folder `--work` and not done again.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from keypatch import describe, reconstruct
from keypatch.cli.main import answer
from keypatch.colmap.known_cameras import read_cameras
from keypatch.errors import KeypatchError
from keypatch.features import Extraction
from keypatch.files import write_json
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matching import Matching
from keypatch.metrics.poses import pose_errors
from keypatch.provenance import provenance
from keypatch.reconstruction import Inputs, Mapping

COLMAP = "COLMAP SIFT"
MAX_ERROR = 4.0
COLMAP_TEST = "0.8"  # its default
TRUTH = ("cameras", "gt", "poses")
COLUMNS = {
    "photos": ("registered", 1),
    "points": ("points", 0),
    "track length": ("track_length", 2),
    "reprojection px": ("reprojection_error", 3),
    "rotation °, median": ("rotation_median_degrees", 3),
    "largest": ("rotation_max_degrees", 3),
    "position, % of the span, median": ("position_median_percent", 3),
    "largest %": ("position_max_percent", 3),
    "seconds": ("seconds", 0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scenes", nargs="+", default=["entry-P10", "castle-P19"])
    parser.add_argument("--descriptors", nargs="+", default=["rootsift", "hynet-notredame"])
    parser.add_argument("--tests", nargs="+", default=["0.85", "match"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--keypoints", type=int, default=4096)
    parser.add_argument("--work", type=Path, default=Path("runs/sfm"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--baseline", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.baseline:
        folder, scene, seed = arguments.baseline
        run_colmap_sift(Path(folder), Path(scene), int(seed), arguments.keypoints)
        return
    rows = []
    tried = [(COLMAP, COLMAP_TEST), *product(arguments.descriptors, arguments.tests)]
    for scene in arguments.scenes:
        truth_of(arguments.data / scene)  # before anything is computed
        for pipeline, test in tried:
            of_seeds = [
                row_of(arguments.data / scene, pipeline, test, seed, arguments.keypoints, arguments.work)
                for seed in arguments.seeds
            ]
            rows += of_seeds
            print_row(of_seeds, head=len(rows) == len(of_seeds))
    if arguments.out:
        settings = {"keypoints": arguments.keypoints, "max_error": MAX_ERROR, "threads": 1}
        result = {"bench": "sfm", "settings": settings, "rows": rows, "provenance": provenance().to_json()}
        write_json(arguments.out, result)
        print(f"written to {arguments.out}")


def row_of(scene: Path, pipeline: str, test: str, seed: int, keypoints: int, work: Path) -> dict[str, Any]:
    """The numbers of one model, from the folder of work if they are there already."""
    folder = work / f"{scene.name}-{Path(pipeline).name.replace(' ', '-').lower()}-{keypoints}-{test}-{seed}"
    done = folder.with_name(f"{folder.name}.json")
    if done.exists():
        return dict(json.loads(done.read_text(encoding="utf-8")))
    work.mkdir(parents=True, exist_ok=True)
    if pipeline == COLMAP:
        numbers = run_baseline(folder, scene, seed, keypoints)
    else:
        numbers = run_ours(folder, scene, pipeline, test, seed, keypoints)
    row = {"scene": scene.name, "pipeline": pipeline, "test": test, "seed": seed, **numbers}
    write_json(done, row)
    return row


def truth_of(scene: Path) -> Path:
    for name in TRUTH:
        if (scene / name).is_dir():
            return scene / name
    raise KeypatchError(f"There is no folder {scene / TRUTH[0]} with true cameras. Check --data and --scenes.")


def run_ours(folder: Path, scene: Path, descriptor: str, test: str, seed: int, keypoints: int) -> dict[str, Any]:
    """Describing is shared by the tests of a descriptor, and its seconds count for each."""
    features = folder.with_name(f"{scene.name}-{Path(descriptor).name}-{keypoints}.h5")
    timing = features.with_suffix(".seconds")
    if not timing.exists():
        start = time.monotonic()
        describe(scene / "images", features, descriptor, Extraction(keypoints=keypoints))
        timing.write_text(str(time.monotonic() - start))
    start = time.monotonic()
    made = reconstruct(
        scene / "images",
        folder,
        Mapping(max_error=MAX_ERROR, seed=seed),
        inputs=Inputs(features=features, cameras=truth_of(scene)),
        matching=matching_of(test),
    )
    seconds = time.monotonic() - start + float(timing.read_text())
    errors = made.pose_errors.summary() if made.pose_errors else {}
    return made.to_json()["statistics"] | errors | {"photos": len(made.photos), **made.pairs(), "seconds": seconds}


def matching_of(test: str) -> Matching:
    """What "match", "0.85", "adalam" and "0.9+adalam" stand for: the default, a ratio test, a filter, either."""
    if test == "match":
        return Matching()
    ratio, _, filter_ = test.rpartition("+") if "adalam" in test else (test, "", "")
    return Matching(ratio=float(ratio or 1), turn=180, filter=AdaLAM() if filter_ else None, model=None)


def run_baseline(folder: Path, scene: Path, seed: int, keypoints: int) -> dict[str, Any]:
    """pycolmap from the pixels to the model, in a process of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    start = time.monotonic()
    words = ["--data", str(scene.parent), "--keypoints", str(keypoints)]
    command = [sys.executable, __file__, *words, "--baseline", str(folder), str(scene), str(seed)]
    if code := subprocess.run(command).returncode:
        sys.exit(code)  # it has said why
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    truth = {name: posed.pose for name, posed in read_cameras(truth_of(scene)).items()}
    found = {name: posed.pose for name, posed in read_cameras(folder / "model").items()}
    return numbers | pose_errors(found, truth).summary() | {"seconds": time.monotonic() - start}


def run_colmap_sift(folder: Path, scene: Path, seed: int, keypoints: int) -> None:
    """SIFT, exhaustive matching and verification by pycolmap; known cameras and the mapping as ours."""
    from keypatch.colmap.mapper import map_incrementally, read_verified_pairs, write_model
    from keypatch.colmap.package import load_pycolmap

    pycolmap = load_pycolmap()
    for name in ("model", "colmap"):
        (folder / name).mkdir(parents=True)
    database, known = folder / "database.db", read_cameras(truth_of(scene))
    extraction, matching = pycolmap.FeatureExtractionOptions(), pycolmap.FeatureMatchingOptions()
    verification = pycolmap.TwoViewGeometryOptions()
    extraction.use_gpu, extraction.num_threads, extraction.sift.max_num_features = False, 1, keypoints
    matching.use_gpu, matching.num_threads, matching.sift.max_ratio = False, 1, float(COLMAP_TEST)
    verification.ransac.max_error, verification.ransac.random_seed = MAX_ERROR, seed
    pycolmap.set_random_seed(seed)
    pycolmap.extract_features(
        str(database), str(scene / "images"), camera_mode=pycolmap.CameraMode.PER_IMAGE, extraction_options=extraction
    )
    with closing(pycolmap.Database.open(str(database))) as opened:
        fixed = set_cameras(opened, known)
    pycolmap.match_exhaustive(str(database), matching_options=matching, verification_options=verification)
    models = map_incrementally(
        database,
        folder / "colmap",
        seed=seed,
        threads=1,
        constant_cameras=fixed,
        seconds=None,
        on_start=_idle,
        on_next=_idle,
    )
    with closing(pycolmap.Database.open(str(database))) as opened:
        pairs = read_verified_pairs(opened)
        photos = opened.num_images()
    statistics = write_model(models[0], folder / "model").statistics
    counts = {"photos": photos, "matched": len(pairs), "verified": sum(pair.inliers > 0 for pair in pairs)}
    counts |= {"matches": sum(pair.matches for pair in pairs), "inliers": sum(pair.inliers for pair in pairs)}
    write_json(folder / "numbers.json", vars(statistics) | counts)


def set_cameras(database: Any, known: Any) -> list[int]:
    """Replaces pycolmap's guesses by the known cameras; returns their numbers."""
    import pycolmap

    fixed = []
    for image in database.read_all_images():
        if image.name in known:
            camera = known[image.name].camera
            row = pycolmap.Camera(
                model=camera.model, width=camera.width, height=camera.height, params=list(camera.params)
            )
            row.camera_id, row.has_prior_focal_length = image.camera_id, True
            database.update_camera(row)
            fixed.append(image.camera_id)
    return fixed


def print_row(rows: Sequence[dict[str, Any]], *, head: bool) -> None:
    """A line of markdown, as it stands in docs/results/sfm.md, of the models of several seeds."""
    if head:
        print("| " + " | ".join(["scene", "pipeline", "test", *COLUMNS]) + " |")
        print("|" + "---|" * 3 + "---:|" * len(COLUMNS))
    cells = [rows[0]["scene"], rows[0]["pipeline"], rows[0]["test"]]
    for name, decimals in COLUMNS.values():
        values = [row[name] for row in rows if name in row]
        spread = f" ± {np.std(values):.{decimals}f}" if len(values) > 1 else ""
        cells.append(f"{np.mean(values):,.{decimals}f}{spread}" if values else "-")
    print("| " + " | ".join(cells) + " |", flush=True)


def _idle() -> None: ...


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
