"""Whole pipelines beside ALIKED on oxford/ and strecha/ of a data folder, with the peers' weights in peers/.

    python bench/pipelines.py --data $DATA --out runs/pipelines --seconds 6

Writes table.md and table.json and, with --seconds N, seconds.json: median seconds per photograph over N photographs of
castle-P19 after one rehearsal, the pipelines taking turns. A stopped run resumes.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from pipeline_kinds import AlikedPipeline, Laps, OpencvPipeline, PatchPipeline, Pipeline
from poses import DEGREES, THRESHOLD, UNITS, Matcher, Unit, evaluate_poses

from keypatch.benchmarks.imc.scenes import read_posed_scene
from keypatch.benchmarks.planar.homography import SEEDS, Homography, PlanarMatching, evaluate_homographies
from keypatch.benchmarks.planar.sequences import read_planar_sequences
from keypatch.benchmarks.result import Result, load_result
from keypatch.cli.main import answer
from keypatch.detection import Rule
from keypatch.features import FeatureReader, Features, Photo, read_photo
from keypatch.features.feature_files import feature_attributes, require_same_photos, stamp, write_features
from keypatch.features.growing_file import grow_file
from keypatch.files import hash_folder, write_json, write_text
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.provenance import provenance
from keypatch.zoo import load

PLANES = "oxford"
SCENES = ("castle-P19", "entry-P10")  # of strecha/
RULES: tuple[Rule, ...] = ("strongest", "spread")
PATCH_PEERS = ("tfeat-liberty", "hardtfeat")
ALIKED = ("aliked-t16", "aliked-n16rot")
BUDGET = 2048
STEPS = ("detect", "select", "describe")

Say = Callable[[str], None]


def make_pipelines(peers: Path, budget: int = BUDGET, rules: Sequence[Rule] = RULES) -> list[Pipeline]:
    """SIFT, RootSIFT, the peers whose files are in `peers` and the shipped weight, each with every rule; ALIKED."""
    describers = [load(name) for name in ("sift", "rootsift")]
    describers += [load(peers / f"{name}.safetensors") for name in PATCH_PEERS]
    describers += [load("hynet-notredame")]
    pipelines: list[Pipeline] = [OpencvPipeline(root, budget, rule) for root, rule in product((False, True), rules)]
    pipelines += [PatchPipeline(describer, budget, rule) for describer, rule in product(describers, rules)]
    return pipelines + [AlikedPipeline(peers / f"{name}.safetensors", budget) for name in ALIKED]


@dataclass(frozen=True)
class PipelineRow:
    """One pipeline with one ratio test."""

    pipeline: str
    ratio: float | None
    planes: Result
    poses: Mapping[tuple[str, Unit], Result]  # by scene and by what the estimator was given
    seconds: Mapping[str, float]  # by step, for one photograph; empty before they were measured

    def mean_area(self, unit: Unit, degrees: int = 5) -> float:
        """The area under the recall curve, mean over scenes."""
        areas = [result.scores[f"auc{degrees}"] for (_, each), result in self.poses.items() if each == unit]
        return sum(areas) / len(areas)

    def to_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "ratio": self.ratio,
            "planes": dict(self.planes.scores),
            "poses": {f"{scene}.{unit}": dict(result.scores) for (scene, unit), result in self.poses.items()},
            "seconds": dict(self.seconds),
        }


def study_pipelines(
    pipelines: Sequence[Pipeline],
    data: Path,
    out: Path,
    ratios: Sequence[float | None] = (None,),
    units: Sequence[Unit] = UNITS,
    say: Say = print,
) -> list[PipelineRow]:
    """Score every pipeline on data/oxford and data/strecha, with every ratio test; write table.md and table.json.

    Features and results are kept in `out`: what is there and was made with the same settings is not made again.
    """
    rows = []
    for pipeline in pipelines:
        kept = KeptPipeline(pipeline, out, say)
        for ratio in ratios:
            planes = kept.planes(data / PLANES, ratio)
            poses = {
                (scene, unit): kept.poses(data / "strecha" / scene, ratio, unit)
                for scene, unit in product(SCENES, units)
            }
            rows.append(PipelineRow(pipeline.name, ratio, planes, poses, read_seconds(out).get(pipeline.name, {})))
            write_table(rows, out)
    return rows


def measure_seconds(pipelines: Sequence[Pipeline], photos: Sequence[Path], out: Path) -> dict[str, dict[str, float]]:
    """The median seconds of each step over the photographs; the pipelines take turns, so that all meet the same load.

    The first photograph is a rehearsal, in which networks are loaded: give two or more.
    """
    laps: dict[str, dict[str, list[float]]] = {pipeline.name: {} for pipeline in pipelines}
    for number, path in enumerate(photos):
        image = read_photo(path)
        for pipeline in pipelines:
            watch = Laps()
            pipeline(image, watch)
            for step, seconds in watch.seconds.items():
                if number:
                    laps[pipeline.name].setdefault(step, []).append(seconds)
    medians = {name: {step: float(np.median(all_)) for step, all_ in steps.items()} for name, steps in laps.items()}
    write_json(_seconds_path(out), read_seconds(out) | medians)
    return medians


@dataclass(frozen=True)
class KeptPipeline:
    """A pipeline whose features and results are kept in a folder and computed once."""

    pipeline: Pipeline
    out: Path
    say: Say = print

    def planes(self, folder: Path, ratio: float | None = None, only: Sequence[str] = ()) -> Result:
        """The scores on planar sequences: all that are in the folder, or some by name."""
        sequences = [each for each in read_planar_sequences(folder) if not only or each.name in only]
        photos = [photo for sequence in sequences for photo in sequence.photos]
        title = "-".join([folder.name, *only])
        settings = Homography(matching=PlanarMatching(ratio=ratio), pictures=False)

        def evaluate() -> Result:
            return evaluate_homographies(self.features(photos, title), sequences, settings)

        files = (path for each in sequences for path in each.files)
        return self.result(f"{title}-{ratio}", evaluate, files, settings.recorded())

    def poses(
        self, folder: Path, ratio: float | None = None, unit: Unit = "pixels", seeds: Sequence[int] = SEEDS
    ) -> Result:
        """The scores on the scene in a folder."""
        scene = read_posed_scene(folder)

        def evaluate() -> Result:
            return evaluate_poses(self.features(scene.photos, scene.name), scene, mutual(ratio), seeds, unit)

        settings = {"seeds": list(seeds), "threshold": THRESHOLD}
        return self.result(f"{scene.name}-{unit}-{ratio}", evaluate, scene.files, settings)

    def features(self, photos: Sequence[Photo], name: str) -> dict[str, Features]:
        """The features of photographs by their names, in the feature file of that name."""
        path = self._folder() / f"{name}.h5"
        with grow_file(path, feature_attributes(self.pipeline.name, self.pipeline.settings, provenance())) as file:
            require_same_photos(path, [photo for photo in photos if photo.name in file.keys])
            for photo in photos:
                if photo.name not in file.keys:
                    self.say(f"{self.pipeline.name}: {name}, {photo.name}")
                    features = self.pipeline(read_photo(photo.path), Laps())
                    file.add(photo.name, partial(write_features, features=features, stamp=stamp(photo.path)))
        with FeatureReader(path) as reader:
            return {photo.name: reader.read(photo.name) for photo in photos}

    def result(
        self, name: str, evaluate: Callable[[], Result], data: Iterable[Path], settings: Mapping[str, Any]
    ) -> Result:
        """The result of that name, read if it is of the same features, data and settings."""
        path, data_hash = self._folder() / f"{name}.json", hash_folder(data)
        features = dict(self.pipeline.settings)
        wanted = {"features": features, **settings}
        if path.exists():
            kept = load_result(path)
            same = {key: kept.settings.get(key) for key in wanted} == wanted
            if same and kept.provenance.hashes.get("data") == data_hash:
                return kept
        self.say(f"{self.pipeline.name}: {name}")
        made = evaluate()
        made = replace(made, descriptor=self.pipeline.name, settings={**made.settings, "features": features})
        made.save(path)
        return made

    def _folder(self) -> Path:
        folder = self.out / self.pipeline.name.replace(", ", "-").replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def mutual(ratio: float | None) -> Matcher:
    """Mutual nearest neighbours, with a ratio test in both directions or without."""

    def match(first: Features, second: Features) -> Matches:
        return match_descriptors(first.descriptors, second.descriptors, Matching(ratio=ratio))

    return match


def write_table(rows: Sequence[PipelineRow], out: Path) -> None:
    write_text(out / "table.md", table(rows))
    write_json(out / "table.json", [row.to_json() for row in rows])


def read_seconds(out: Path) -> dict[str, dict[str, float]]:
    """What `measure_seconds` wrote before; empty if nothing."""
    path = _seconds_path(out)
    found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def _seconds_path(out: Path) -> Path:
    return out / "seconds.json"


def table(rows: Sequence[PipelineRow]) -> str:
    """Markdown: planes, then every scene and unit, the spread over seeds behind the area to 5 degrees, then seconds."""
    columns = list(rows[0].poses) if rows else []
    units = list(dict.fromkeys(unit for _, unit in columns))
    heads = ["pipeline", "ratio", "within 1 px", "3 px", "right matches", "H accuracy"]
    heads += [f"{scene} ({unit}) AUC {' / '.join(map(str, DEGREES))}" for scene, unit in columns]
    heads += [f"mean AUC 5 ({unit})" for unit in units] + [f"s: {' + '.join(STEPS)}", "s in all"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for row in rows:
        scores = row.planes.scores
        cells = [row.pipeline, "none" if row.ratio is None else str(row.ratio)]
        cells += [f"{scores['mma1']:.3f}", f"{scores['mma3']:.3f}", f"{scores['count.within3']:.0f}"]
        cells += [f"{scores['accuracy3']:.3f} ({scores['accuracy3.lowest']:.3f}-{scores['accuracy3.highest']:.3f})"]
        cells += [_areas(row.poses[column]) for column in columns] + [f"{row.mean_area(unit):.3f}" for unit in units]
        lines.append(_line([*cells, *_seconds(row.seconds)]))
    return "".join(lines)


def _areas(result: Result) -> str:
    cells = [f"{result.scores[f'auc{degrees}']:.3f}" for degrees in DEGREES]
    spread = f"{result.scores['auc5.lowest']:.3f}-{result.scores['auc5.highest']:.3f}"
    return f"{' / '.join(cells)} ({spread})"


def _seconds(seconds: Mapping[str, float]) -> tuple[str, str]:
    steps = [f"{seconds[step]:.2f}" for step in STEPS if step in seconds]
    return " + ".join(steps), f"{sum(seconds.get(step, 0) for step in STEPS):.2f}" if steps else ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=[""], help="pipelines whose name has one of these words in it")
    parser.add_argument("--ratio", type=float, nargs="+", default=[0], help="ratio tests, 0 for none")
    parser.add_argument("--seconds", type=int, default=0, metavar="N", help="measure seconds over N photographs")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    every = make_pipelines(arguments.data / "peers")
    pipelines = [each for each in every if any(word in each.name for word in arguments.only)]
    if arguments.seconds:
        photos = sorted((arguments.data / "strecha" / "castle-P19" / "images").iterdir())
        measure_seconds(pipelines, photos[: arguments.seconds + 1], arguments.out)
    study_pipelines(pipelines, arguments.data, arguments.out, [ratio or None for ratio in arguments.ratio])
    print((arguments.out / "table.md").read_text(encoding="utf-8"))
    print(f"written to {arguments.out / 'table.md'}")


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
