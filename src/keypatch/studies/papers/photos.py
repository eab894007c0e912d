"""Tables and pictures of trained descriptors on photographs: models, poses, matches of planes."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from keypatch.benchmarks.eth.sfm import Sfm, SfmMatching, evaluate_sfm
from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.benchmarks.imc.features import ChallengeExtraction
from keypatch.benchmarks.imc.multiview import Multiview, evaluate_multiview
from keypatch.benchmarks.imc.stereo import Stereo, evaluate_stereo
from keypatch.benchmarks.photo_features import photo_features
from keypatch.benchmarks.planar.homography import PlanarMatching, draw_pair, match_errors
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.stages import BenchmarkExtraction, ColmapMatching
from keypatch.describers import Describer
from keypatch.images import read_photo
from keypatch.matching.neighbours import find_matches
from keypatch.patches.planar_sequences import PlanarSequence, read_planar_sequences
from keypatch.progress import Progress
from keypatch.studies.papers.drawing import Line, Panel
from keypatch.studies.papers.ours import NOT_RUN, Grid, Made, Ours, hash_below, kept_result, text_of
from keypatch.studies.papers.plan import Row, slug
from keypatch.training.checkpoints import milestone_path
from keypatch.training.conditions import Conditions
from keypatch.zoo import load

RIGHT = 3  # pixels
KEYPOINTS = 1024  # of SDGMNet's figure 5
SEQUENCES = 4  # drawn
BUDGETS = {"2k": 2048, "8k": 8000}


@dataclass(frozen=True)
class Photos:
    """Where the photographs lie that descriptors are tried on."""

    scenes: tuple[str | Path, ...] = ()  # folders that `evaluate --on sfm` takes
    poses: str | Path | None = None  # a folder that `evaluate --on stereo` takes
    planes: str | Path | None = None  # a folder that `evaluate --on homography` takes

    def given(self, form: str) -> bool:
        """Whether there is something for a plan of this form to be tried on."""
        return bool({"models": self.scenes, "poses": self.poses, "matches": self.planes}.get(form, True))


def describers(ours: Ours, conditions: Conditions) -> Iterator[tuple[Row, Describer]]:
    """The rows that can be tried: the first seed on the first training set, or made by hand."""
    for row in ours.plan.rows:
        if row.describer:
            yield row, load(row.describer, conditions.device)
        runs = ours.sets[0].runs(row) if ours.sets and row.recipe else []
        if runs:
            yield row, load(milestone_path(runs[0], 1.0), conditions.device, scoring_precision(conditions.precision))


def models(ours: Ours, photos: Photos, folder: Path, conditions: Conditions, progress: Progress) -> Made:
    """The ETH tables: a table for each scene, ours and printed."""
    ratio = 0.8 if ours.plan.paper == "AdaSample" else None
    settings = Sfm(matching=SfmMatching(ratio=ratio))
    found: dict[str, dict[str, Result]] = {}
    scenes = {Path(scene).resolve(): hash_below(scene) for scene in photos.scenes}
    for row, describer in describers(ours, conditions):
        for scene, data_hash in scenes.items():
            progress.note(f"{row.label} on {scene.name}")
            path = folder / "results" / f"{slug(row.label)}-{slug(scene.name)}.json"
            make = partial(evaluate_sfm, describer, scene, settings, progress)
            found.setdefault(scene.name, {})[row.label] = kept_result(path, describer, data_hash, make)
    grids = [_model_table(ours, scene, by_row) for scene, by_row in found.items()]
    printed = dict.fromkeys(each.data for row in ours.plan.rows for each in row.figures)
    grids += [_model_table(ours, scene, {}) for scene in printed if scene not in {name.lower() for name in found}]
    rule = f"ratio test {ratio}" if ratio else "no ratio test"
    notes = [f"Ours: {rule}. Dense points need COLMAP with CUDA, which was not available: not run."]
    if not photos.scenes:
        notes.append("No photographs were named with --scenes: not run.")
    return Made(tuple(grids), tuple(_model_panels(found)), notes=tuple(notes))


def _model_table(ours: Ours, scene: str, found: Mapping[str, Result]) -> Grid:
    heads = [find_score(score).column for score in ours.plan.scores]
    rows = []
    for row in ours.plan.rows:
        result = found.get(row.label)
        own = [
            text_of(score, result.scores[score]) if result and score in result.scores else NOT_RUN
            for score in ours.plan.scores
        ]
        printed = {each.score: each.value for each in row.figures if each.data == scene.lower()}
        rows.append((row.label, *own, *(printed.get(score, "") for score in ours.plan.scores)))
    return Grid(scene, ("", *(f"ours, {head}" for head in heads), *(f"printed, {head}" for head in heads)), tuple(rows))


def _model_panels(found: Mapping[str, Mapping[str, Result]]) -> Iterator[Panel]:
    for scene, by_row in found.items():
        for score in ("count.points", "track_length", "error.reprojection"):
            labels = list(by_row)
            values = [by_row[label].scores.get(score, float("nan")) for label in labels]
            bars = Line("ours", range(len(labels)), values, "bars")
            yield Panel(scene, "", find_score(score).column, (bars,), ticks=tuple(labels))


def poses(ours: Ours, photos: Photos, folder: Path, conditions: Conditions, progress: Progress) -> Made:
    """SDGMNet's Table III: accuracy of poses in both tasks, with both budgets."""
    found: dict[tuple[str, str], Result] = {}
    columns = [f"{task} {budget}" for budget in BUDGETS for task in ("stereo", "multiview")]
    if photos.poses is not None:
        data_hash = hash_below(photos.poses)
        for row, describer in describers(ours, conditions):
            for column in columns:
                task, budget = column.split()
                progress.note(f"{row.label}: {column}")
                path = folder / "results" / f"{slug(row.label)}-{task}-{budget}.json"
                make = partial(_pose_result, task, budget, describer, photos.poses, progress)
                found[row.label, column] = kept_result(path, describer, data_hash, make)
    rows = []
    for row in ours.plan.rows:
        own = [found[row.label, each].scores["maa10"] if (row.label, each) in found else None for each in columns]
        texts = [NOT_RUN if value is None else text_of("maa10", value) for value in own]
        known = [value for value in own if value is not None]
        mean = text_of("maa10", float(np.mean(known))) if known else NOT_RUN
        printed = {f"{each.benchmark} {'8k' if '8k' in each.data else '2k'}": each.value for each in row.figures}
        theirs = [printed.get(each, "") for each in (*columns, "stereo and multiview 2k")]
        rows.append((row.label, *texts, mean, *theirs))
    head = ("", *(f"ours, {each}" for each in (*columns, "mean")), *(f"printed, {each}" for each in (*columns, "mean")))
    notes = () if photos.poses else ("No scenes were named with --poses: not run.",)
    panels = [_pose_panel(ours, found, column) for column in columns] if found else []
    return Made((Grid("mAA at 10 degrees in %", head, tuple(rows)),), tuple(panels), columns=2, notes=notes)


def stereo_sweep(ours: Ours, photos: Photos, folder: Path, conditions: Conditions, progress: Progress) -> Made:
    """The curves of SDGMNet's figure 6(a): pose accuracy of stereo with 2,048 keypoints, by what the plan varies."""
    if photos.poses is None:
        return Made(notes=("Pose accuracy needs scenes with --poses: not run.",))
    found: dict[str, float] = {}
    data_hash = hash_below(photos.poses)
    for row, describer in describers(ours, conditions):
        progress.note(f"{row.label}: stereo 2k")
        path = folder / "results" / f"{slug(row.label)}-stereo-2k.json"
        make = partial(_pose_result, "stereo", "2k", describer, photos.poses, progress)
        found[row.label] = kept_result(path, describer, data_hash, make).scores["maa10"]
    rows = tuple((label, text_of("maa10", value)) for label, value in found.items())
    lines = []
    for series in dict.fromkeys(row.series for row in ours.plan.rows):
        chosen = [row for row in ours.plan.rows if row.series == series and row.label in found]
        lines.append(
            Line(series, [row.x or 0.0 for row in chosen], [100 * found[row.label] for row in chosen], "sweep")
        )
    panel = Panel("stereo, 2,048 keypoints", ours.plan.axis, "mAA at 10 degrees (%)", tuple(lines))
    return Made((Grid("Stereo, 2,048 keypoints", ("", "ours, mAA 10° %"), rows),), (panel,))


def _pose_result(task: str, budget: str, describer: Describer, data: str | Path, progress: Progress) -> Result:
    extraction = ChallengeExtraction(keypoints=BUDGETS[budget])
    if task == "stereo":
        stereo = Stereo()
        matching = replace(stereo.matching, ratio=0.9)
        return evaluate_stereo(describer, data, replace(stereo, extraction=extraction, matching=matching), progress)
    ratio = 0.8 if budget == "8k" else 0.9
    settings = Multiview(extraction=extraction, matching=ColmapMatching(ratio=ratio))
    return evaluate_multiview(describer, data, settings, progress)


def _pose_panel(ours: Ours, found: Mapping[tuple[str, str], Result], column: str) -> Panel:
    task, budget = column.split()
    rows = [row for row in ours.plan.rows if (row.label, column) in found]
    bars = Line("ours", range(len(rows)), [100 * found[row.label, column].scores["maa10"] for row in rows], "bars")
    printed = [
        next((float(each.value) for each in row.figures if each.benchmark == task and budget in each.data), np.nan)
        for row in rows
    ]
    stars = Line("printed (the paper's data and budget)", range(len(rows)), printed, "printed", colour=3)
    return Panel(column, "", "mAA at 10 degrees (%)", (bars, stars), ticks=tuple(row.label for row in rows))


def plane_matches(ours: Ours, photos: Photos, conditions: Conditions, progress: Progress) -> Made:
    """SDGMNet's figure 5: the same pairs of photographs for every descriptor, a row each."""
    if photos.planes is None:
        return Made(notes=("No photographs of planes were named with --planes: not run.",))
    sequences = read_planar_sequences(photos.planes)[:SEQUENCES]
    pictures: dict[str, list[bytes]] = {sequence.name: [] for sequence in sequences}
    counts: dict[str, list[str]] = {sequence.name: [] for sequence in sequences}
    labels = []
    for row, describer in describers(ours, conditions):
        labels.append(row.label)
        for sequence in sequences:
            progress.note(f"{row.label} on {sequence.name}")
            picture, right, matches = _match_pair(row.label, describer, sequence)
            pictures[sequence.name].append(picture)
            counts[sequence.name].append(f"{right} of {matches}")
    grid = Grid(
        f"Right matches (within {RIGHT} px) of all matches",
        ("", *labels),
        tuple((name, *each) for name, each in counts.items()),
    )
    return Made((grid,), picture=_sheet(list(pictures.values())))


def _match_pair(label: str, describer: Describer, sequence: PlanarSequence) -> tuple[bytes, int, int]:
    """The first photograph and the middle one."""
    number = (len(sequence.photos) - 1) // 2
    pair = (sequence.photos[0], sequence.photos[number + 1])
    homography = sequence.homographies[number]
    features = photo_features(describer, pair, BenchmarkExtraction(keypoints=KEYPOINTS), None)
    first, second = (features[photo.name] for photo in pair)
    matches = find_matches(first, second, PlanarMatching(ratio=None))
    right = int(np.sum(match_errors(first, second, matches, homography) <= RIGHT))
    images = [read_photo(photo.path) for photo in pair]
    caption = f"{label}, {sequence.name}: {right:,} of {len(matches):,} matches are right"
    return draw_pair((images[0], images[1]), (first, second), matches, homography, caption), right, len(matches)


def _sheet(rows: Sequence[Sequence[bytes]]) -> bytes:
    """Pictures in a grid, each row as high as its highest."""
    opened = [[Image.open(io.BytesIO(each)).convert("RGB") for each in row] for row in rows]
    width = max(image.width for row in opened for image in row)
    heights = [max(image.height for image in row) for row in opened]
    sheet = Image.new("RGB", (width * max(map(len, opened)), sum(heights)), "white")
    top = 0
    for row, height in zip(opened, heights, strict=True):
        for column, image in enumerate(row):
            sheet.paste(image, (column * width, top))
        top += height
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()
