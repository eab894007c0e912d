"""Looking at what COLMAP and `reconstruct` write: databases, models, folders of a reconstruction."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from keypatch.errors import DataError
from keypatch.features.colmap_database import ColmapDatabase, open_colmap_database
from keypatch.reconstruction.cameras import impossible_cameras, read_cameras
from keypatch.reconstruction.output_folder import DATABASE, MODEL, REPORT
from keypatch.reconstruction.report import FORMAT, NUMBER
from keypatch.reconstruction.text_models import read_points
from keypatch.studies.inspecting_patches import Findings

_COLUMNS = (2, 4, 6)  # of COLMAP's keypoints


def look_at_database(file: Path) -> Findings:
    """A COLMAP database, opened for reading only and without COLMAP."""
    with open_colmap_database(file) as database:
        yield from _database_facts(database)


def look_at_model(folder: Path) -> Findings:
    """A COLMAP model; points are counted in text models only."""
    posed = read_cameras(folder, stand_ins=True)
    yield "images", f"{len(posed):,} with a pose"
    models = Counter(camera.model for camera in {each.camera for each in posed.values()})
    yield "cameras", ", ".join(f"{count} {model}" for model, count in sorted(models.items())) or "none"
    yield from map(DataError, impossible_cameras(posed))
    if (folder / "points3D.txt").exists():
        points = read_points(folder)
        yield "points", f"{len(points.xyz):,}"
        if len(points.xyz):
            yield "mean track length", f"{points.track_lengths.mean():.2f}"
            yield "reprojection error", f"{points.errors.mean():.3f} px"


def look_at_reconstruction(folder: Path) -> Findings:
    """The report of `reconstruct`, then its model, or its database where there is none."""
    report = _read_report(folder / REPORT)
    if not report["finished"]:
        yield DataError(f"{folder} was not finished. The same command goes on.")
        return
    yield "photos", f"{len(report['photos'])}, {len(report['registered'])} with a pose"
    yield "settings", ", ".join(f"{key} = {value}" for key, value in report["settings"].items())
    for number, note in enumerate(report["notes"], start=1):
        yield f"note {number}", note
    yield from look_at_model(folder / MODEL) if (folder / MODEL).exists() else look_at_database(folder / DATABASE)


def _read_report(file: Path) -> dict[str, Any]:
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as JSON ({error}). Write or copy it again.") from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise DataError(f"{file} is not the report of a reconstruction.")
    if int(report["format_number"]) > NUMBER:
        raise DataError(f"{file} was written by a newer keypatch. Update keypatch to read it.")
    return report


def _database_facts(database: ColmapDatabase) -> Findings:
    file = database.path

    def number(ask: str) -> int:
        return int(database.ask(f"SELECT count(*) FROM {ask}")[0][0])

    images = number("images")
    yield "images", f"{images:,}"
    yield "cameras", f"{number('cameras'):,}"
    with_keypoints, total = database.ask("SELECT count(*), coalesce(sum(rows), 0) FROM keypoints")[0]
    yield "keypoints", f"{total:,} in {with_keypoints:,} images"
    columns = [each for (each,) in database.ask("SELECT DISTINCT cols FROM keypoints WHERE rows > 0 ORDER BY cols")]
    yield "columns", ", ".join(map(str, columns)) or "none"
    yield "descriptors", f"of {number('descriptors WHERE rows > 0'):,} images"
    yield "pairs matched", f"{number('matches WHERE rows > 0'):,}"
    yield "pairs verified", f"{number('two_view_geometries WHERE rows > 0'):,}"
    if strange := [each for each in columns if each not in _COLUMNS]:
        yield DataError(f"{file}: keypoints have 2, 4 or 6 columns, not {strange[0]}. Make the database again.")
    if cut := number("keypoints WHERE length(coalesce(data, x'')) != 4 * rows * cols"):
        yield DataError(f"{file}: the keypoints of {cut} images are cut off. Make the database again.")
    if lost := number("keypoints WHERE image_id NOT IN (SELECT image_id FROM images)"):
        yield DataError(f"{file}: {lost} lists of keypoints belong to no image. Make the database again.")
