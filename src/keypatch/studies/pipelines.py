"""Whole pipelines side by side: right matches on planes, camera poses, and seconds per photograph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.benchmarks.homography import SEEDS, THRESHOLD, Homography, Matcher, evaluate_homographies
from keypatch.benchmarks.planar_sequences import read_planar_sequences
from keypatch.benchmarks.posed_scenes import read_posed_scene
from keypatch.benchmarks.relative_pose import UNITS, Unit, evaluate_poses
from keypatch.benchmarks.result import Result
from keypatch.detection import Rule
from keypatch.features import FeatureReader, Features, Photo, read_photo
from keypatch.features.feature_files import feature_attributes, write_features
from keypatch.features.growing_file import grow_file
from keypatch.features.stamps import require_same_photos, stamp
from keypatch.files import hash_folder, write_json, write_text
from keypatch.matching.matches import Matches
from keypatch.matching.neighbours import match_descriptors
from keypatch.provenance import provenance
from keypatch.studies.pipeline_kinds import AlikedPipeline, Laps, OpencvPipeline, PatchPipeline, Pipeline
from keypatch.studies.pipelines_page import PipelineRow, table
from keypatch.zoo import find

PLANES = "oxford"
SCENES = ("castle-P19", "entry-P10")  # of strecha/
RULES: tuple[Rule, ...] = ("strongest", "spread")
PATCH_PEERS = ("tfeat-liberty", "hardtfeat")
ALIKED = ("aliked-t16", "aliked-n16rot")
BUDGET = 2048

Say = Callable[[str], None]


def make_pipelines(peers: Path, budget: int = BUDGET, rules: Sequence[Rule] = RULES) -> list[Pipeline]:
    """SIFT, RootSIFT, the peers whose files are in `peers` and the shipped weight, each with every rule; ALIKED."""
    describers = [find(name) for name in ("sift", "rootsift")]
    describers += [find(peers / f"{name}.safetensors") for name in PATCH_PEERS]
    describers += [find("hynet-notredame")]
    pipelines: list[Pipeline] = [OpencvPipeline(root, budget, rule) for root, rule in product((False, True), rules)]
    pipelines += [PatchPipeline(describer, budget, rule) for describer, rule in product(describers, rules)]
    return pipelines + [AlikedPipeline(peers / f"{name}.safetensors", budget) for name in ALIKED]


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
        settings = Homography(ratio=ratio, pictures=False)

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
            kept = Result.load(path)
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
        return match_descriptors(first.descriptors, second.descriptors, ratio)

    return match


def write_table(rows: Sequence[PipelineRow], out: Path) -> None:
    write_text(out / "table.md", table(rows))
    write_json(out / "table.json", [row.to_json() for row in rows])


def read_seconds(out: Path) -> dict[str, dict[str, float]]:
    """What `measure_seconds` wrote before; empty if nothing."""
    import json

    path = _seconds_path(out)
    found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def _seconds_path(out: Path) -> Path:
    return out / "seconds.json"
