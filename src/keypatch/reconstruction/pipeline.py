"""Photos become a 3D model: what `keypatch reconstruct` does."""

import time
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from keypatch.colmap import Camera, PosedCamera, read_model, write_database
from keypatch.colmap.cameras import choose_cameras, impossible_cameras
from keypatch.colmap.database import is_image_name
from keypatch.colmap.job import MappingJob, MappingOutcome
from keypatch.colmap.package import load_pycolmap
from keypatch.colmap.process import run_colmap
from keypatch.describers.protocol import Describer
from keypatch.engines import Parallel
from keypatch.errors import KeypatchError
from keypatch.features import Extraction, Photo, find_photos
from keypatch.features.description import describe
from keypatch.features.extraction import DESCRIPTOR, FileOptions
from keypatch.matching.matching import Matching
from keypatch.matching.pairs import match_pairs
from keypatch.metrics.poses import pose_errors
from keypatch.progress import Callback, Progress, counted, interruptible
from keypatch.provenance import provenance
from keypatch.reconstruction.inputs import (
    read_inputs,
    read_keypoints,
    read_known_cameras,
    read_matched_pairs,
    require_one_run,
)
from keypatch.reconstruction.joining import join_models, matcher_of
from keypatch.reconstruction.mapping import Inputs, Mapping
from keypatch.reconstruction.page import write_model_page
from keypatch.reconstruction.picture import write_picture
from keypatch.reconstruction.result import (
    DATABASE,
    FEATURES,
    MATCHES,
    MODELS,
    OTHERS,
    PAGE,
    PICTURE,
    PhotoCamera,
    Reconstruction,
    guess_warning,
    hold_reconstruction,
    swap_in,
)


def reconstruct(
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    mapping: Mapping = Mapping(),  # noqa: B008  a frozen value
    *,
    inputs: Inputs = Inputs(),  # noqa: B008
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008
    matching: Matching = Matching(),  # noqa: B008
    parallel: Parallel = Parallel(),  # noqa: B008
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> Reconstruction:
    """Reconstruct photos with COLMAP from our features and matches; everything is written to the folder `out`.

    images, describer, extraction: as for `describe`.
    inputs: existing features and matches, pairs to match, known cameras, how photos are named.
    parallel: processes or a Ray cluster to describe and match on.
    matching: as for `match_pairs`; COLMAP verifies the remaining matches again, with `mapping.max_error`.

    >>> kp.reconstruct("photos", "model", kp.Mapping(share_camera=True))  # doctest: +SKIP

    If the folder holds an earlier run, its features and matches are reused. Its model and database stay until the new
    model is finished, and are then replaced all at once.

    Raises:
        KeypatchError: no model could be made, or COLMAP crashed; the database is kept in `out`/unfinished.
        Interrupted: Ctrl-C; the same call resumes with the features and matches made so far.
    """
    progress = Progress.of(progress)
    if matching.ratio == 1:
        matching = replace(matching, ratio=None)  # as 0.1 wrote it into matches that may be there already
    load_pycolmap()
    folder, photos = Path(out), find_photos([images] if isinstance(images, str | Path) else images, inputs.root)
    for odd in [photo for photo in photos if not is_image_name(photo.name)]:
        progress.say(f"{odd.name!r} is not a valid image name in COLMAP and is left out. Rename the file.")
        photos.remove(odd)
    if len(photos) < 2:
        raise KeypatchError("A reconstruction needs at least two photos, and a 3D model three.")
    known = {} if inputs.cameras is None else read_known_cameras(Path(inputs.cameras), photos)
    fixed = {name: posed.camera for name, posed in known.items()}
    cameras = choose_cameras(photos, fixed, mapping.camera_model, mapping.focal, mapping.share_camera)
    found = read_inputs(inputs, cameras)  # before anything is made
    kept = f"{folder} keeps the features and matches made so far"
    with interruptible(kept), hold_reconstruction(folder) as unfinished:
        features, matches = Path(inputs.features or folder / FEATURES), Path(inputs.matches or folder / MATCHES)
        if inputs.features is None:
            files = FileOptions(root=inputs.root, pixel_limit=inputs.pixel_limit, masks=inputs.masks)
            how: dict[str, Any] = {"files": files, "parallel": parallel, "device": device, "precision": precision}
            described = describe(images, features, describer, extraction, **how, progress=progress)
            if not described.described:
                progress.note(f"all {counted(len(photos), 'photo')} are already described in {features}")
        found = found or read_keypoints(features, cameras)
        if inputs.matches is None:
            progress.note("matching")
            chosen: dict[str, Any] = {"names": cameras, "parallel": parallel, "device": device}
            match_pairs(features, inputs.pairs, matches, matching, **chosen, progress=progress)
        require_one_run(features, matches)
        counts = {name: len(points) for name, points in found.items()}
        pairs = read_matched_pairs(matches, counts)
        sharing = list(cameras if mapping.share_camera else known)
        write_database(unfinished / DATABASE, cameras, found, pairs, share_cameras=sharing)
        (unfinished / "colmap").mkdir()
        job = MappingJob(
            database=str(unfinished / DATABASE),
            models=str(unfinished / MODELS),
            scratch=str(unfinished / "colmap"),
            photos={photo.name: str(photo.path.absolute()) for photo in photos},
            fixed=sorted(known),
            max_error=mapping.max_error,
            seed=mapping.seed,
            threads=mapping.threads,
            seconds=mapping.time_limit,
        )
        start = time.monotonic()
        outcome = run_colmap(job, progress)
        if len(outcome.models) > 1:
            left = None if job.seconds is None else job.seconds - (time.monotonic() - start)
            given = None if inputs.matches is None else dict(read_matched_pairs(matches, counts))
            with matcher_of(features, given) as match:
                outcome = join_models(replace(job, seconds=left), outcome, match, progress)
        settings = {"known_cameras": len(known)} | _settings(mapping, inputs, matching)
        return _finish(folder, unfinished, photos, outcome, cameras, known, settings)


def _settings(mapping: Mapping, inputs: Inputs, matching: Matching) -> dict[str, Any]:
    """What the model depends on, for the report."""
    settings = asdict(mapping)
    del settings["time_limit"]
    if inputs.matches is not None:
        return settings | {"matches": Path(inputs.matches).name}
    usual = Matching().settings()
    changed = {name: value for name, value in matching.settings().items() if value != usual.get(name)}
    return settings | {"pairs": Path(inputs.pairs).name, "ratio": matching.ratio} | changed


def _finish(
    folder: Path,
    unfinished: Path,
    photos: Sequence[Photo],
    outcome: MappingOutcome,
    cameras: Table[str, Camera],
    known: dict[str, PosedCamera],
    settings: dict[str, Any],
) -> Reconstruction:
    """Compares the largest model with known poses, draws it, and replaces what an earlier run made."""
    names = [photo.name for photo in photos]
    if outcome.statistics is None and not (len(names) == 2 and outcome.verified):
        raise KeypatchError(_no_model(outcome, len(names), unfinished / DATABASE))
    errors, notes = None, list(outcome.notes)
    models = [read_model(unfinished / MODELS / str(n), stand_ins=True) for n in range(len(outcome.models))]
    refined = {name: posed.camera for each in reversed(models) for name, posed in each.cameras.items()}
    for each in models:
        notes += impossible_cameras(each.cameras)
    if models and known:
        try:
            errors = pose_errors(models[0].poses, {name: posed.pose for name, posed in known.items()})
        except KeypatchError as error:
            notes.append(f"The poses were not compared. {error}")
    given = settings["focal"] is not None
    used = {name: PhotoCamera.of(cameras[name], refined.get(name), name in known, given) for name in sorted(names)}
    made = Reconstruction(folder, names, outcome, used, errors, notes + guess_warning(used), settings, provenance())
    for model in models[:1]:
        where = {photo.name: photo.path for photo in photos}
        facts, scene = made.short_facts(), folder.resolve().name
        caption = f"{scene}: {facts['Photos']} photos, {facts['Points']} points, {facts['Reprojection error']}"
        if OTHERS in facts:
            caption += f"; other models: {facts[OTHERS]}"
        write_picture(unfinished / PICTURE, model.points, model.cameras, where, caption)
        write_model_page(unfinished / PAGE, scene, facts, model.points, model.cameras, where, model.observations)
    swap_in(folder, unfinished, made.to_json())
    return made


def _no_model(outcome: MappingOutcome, photos: int, database: Path) -> str:
    verified = outcome.verified
    best = "".join(f", the best {a} and {b} with {p.inliers} matches" for p in verified[:1] for a, b in [p.images])
    agree = f"{len(verified)} of {len(outcome.pairs)} matched pairs agree on a geometry{best}"
    if not outcome.pairs:
        agree = "no two photos have matches that agree on a geometry"
    return (
        f"COLMAP found no {'geometry of the two photos' if photos == 2 else 'model'}: {agree}. Try more keypoints "
        "(--keypoints 8192), a looser ratio test (--ratio 0.95), the focal length (--focal) if it is known, or photos "
        f"that overlap more. The database is kept at {database}."
    )
