"""Photos become a 3D model: what `keypatch reconstruct` does."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.detection import Detector, Rule
from keypatch.detection.loading_colmap import load_pycolmap
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features import Photo, find_photos
from keypatch.features.describing import describe
from keypatch.features.feature_files import read_names
from keypatch.features.photos import PIXEL_LIMIT
from keypatch.features.progress import Quiet, Reporter, counted
from keypatch.matching.many_pairs import match_pairs
from keypatch.matching.pairs import find_pairs
from keypatch.provenance import provenance
from keypatch.reconstruction.cameras import PosedCamera, impossible_cameras, read_cameras
from keypatch.reconstruction.checked_database import write_database
from keypatch.reconstruction.child import Job
from keypatch.reconstruction.mapping import Progress, run_colmap
from keypatch.reconstruction.matched_pairs import (
    read_keypoints,
    read_matched_pairs,
    require_match_file,
    require_one_run,
)
from keypatch.reconstruction.outcome import Outcome
from keypatch.reconstruction.output_folder import (
    DATABASE,
    FEATURES,
    MATCHES,
    MODEL,
    PAGE,
    PICTURE,
    hold_folder,
    swap_in,
)
from keypatch.reconstruction.page import write_page
from keypatch.reconstruction.photo_cameras import choose_cameras
from keypatch.reconstruction.picture import write_picture
from keypatch.reconstruction.pose_errors import pose_errors
from keypatch.reconstruction.report import Reconstruction
from keypatch.reconstruction.text_models import read_observations, read_points


def reconstruct(
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    descriptor: str | Path = "hynet-notredame",
    *,
    features: str | Path | None = None,
    matches: str | Path | None = None,
    detector: str | Detector = "dog",
    keypoints: int | None = 4096,
    rule: Rule = "spread",
    max_size: int | None = None,
    upright: bool = False,
    pairs: str | Path = "exhaustive",
    ratio: float | None = 0.85,  # stricter than `match`: docs/results/defaults.md
    cameras: str | Path | None = None,
    camera_model: str = "SIMPLE_RADIAL",
    focal: float | None = None,
    share_camera: bool = False,
    max_error: float = 4.0,
    seed: int = 0,
    threads: int = 1,
    time_limit: float | None = None,
    root: str | Path | None = None,
    pixel_limit: int = PIXEL_LIMIT,
    device: str = "auto",
    precision: str = "auto",
    progress: Progress = lambda _: None,
    reporter: Callable[[], Reporter] = Quiet,
) -> Reconstruction:
    """Reconstruct photos with COLMAP from our features and matches; everything is written to the folder `out`.

    images, root, descriptor, detector, keypoints, rule, max_size, upright, pixel_limit: those of `describe`.
    features, matches: files, ours or hloc's, instead of describing and of matching.
    pairs, ratio: which photos are matched (exhaustive, sequence:5, a file) and the ratio test, None for none.
    cameras: known cameras (`read_cameras`): they stay as they are, and the model is compared with their poses.
    camera_model, focal, share_camera: of the other photos; COLMAP's name, pixels (else EXIF data, else a guess), and
        whether one camera took all.
    max_error: pixels from an epipolar line that geometric verification allows.
    seed, threads: with the same of both, the model is the same; with another number of threads, nearly.
    time_limit: seconds for verification and mapping, which stops with what it has.

    A folder of an earlier run is gone on with: features and matches in it are taken. Its model and database stay until
    the new model is finished, and then go all at once.

    Raises:
        KeypatchError: no model could be made, or COLMAP crashed; the database is kept in `out`/unfinished.
        Interrupted: Ctrl-C; the same call goes on, with the features and matches that are there.
    """
    _check(max_error, seed, threads, time_limit)
    load_pycolmap()
    folder, photos = Path(out), find_photos([images] if isinstance(images, str | Path) else images, root)
    if len(photos) < 2:
        raise KeypatchError("A reconstruction needs two photos at least, and a model three.")
    known = {} if cameras is None else _known_cameras(Path(cameras), photos)
    own = choose_cameras(photos, {n: posed.camera for n, posed in known.items()}, camera_model, focal, share_camera)
    how: dict[str, Any] = {"detector": detector, "keypoints": keypoints, "rule": rule, "max_size": max_size}
    how |= {"upright": upright, "root": root, "device": device, "precision": precision, "pixel_limit": pixel_limit}
    settings = {"camera_model": camera_model, "focal": focal, "share_camera": share_camera, "max_error": max_error}
    settings |= {"known_cameras": len(known), "seed": seed, "threads": threads}
    settings |= {"pairs": Path(pairs).name, "ratio": ratio} if matches is None else {"matches": Path(matches).name}
    found = None if features is None else read_keypoints(Path(features), own)  # checked before anything is made
    if matches is None:
        find_pairs(pairs, sorted(own))
    elif features is None:
        require_match_file(Path(matches))
    else:
        require_one_run(Path(features), Path(matches))
    with _stopping(folder), hold_folder(folder) as unfinished:
        if features is None:
            features = _describe(images, photos, folder / FEATURES, descriptor, progress, reporter(), how)
        found = found or read_keypoints(Path(features), own)
        if matches is None:
            progress("matching")
            matches, tell = folder / MATCHES, reporter()
            match_pairs(features, pairs, matches, names=own, ratio=ratio, model=None, device=device, reporter=tell)
        require_one_run(Path(features), Path(matches))
        pairs_found = read_matched_pairs(Path(matches), {name: len(points) for name, points in found.items()})
        sharing = list(own if share_camera else known)
        database = write_database(unfinished / DATABASE, own, found, pairs_found, share_cameras=sharing)
        model, scratch = (unfinished / name for name in (MODEL, "colmap"))
        scratch.mkdir()
        where = {photo.name: str(photo.path.absolute()) for photo in photos}
        job = Job(str(database), str(model), str(scratch), where, sorted(known), max_error, seed, threads, time_limit)
        outcome = run_colmap(job, progress)
        return _finish(folder, unfinished, photos, outcome, known, settings)


@contextmanager
def _stopping(folder: Path) -> Iterator[None]:
    """Ctrl-C becomes one sentence, whatever was being done."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as stop:
        sentence = f"Stopped; features and matches are kept in {folder}; the same command goes on."
        raise Interrupted(sentence) from stop


def _describe(
    images: str | Path | Sequence[str | Path],
    photos: Sequence[Photo],
    out: Path,
    descriptor: str | Path,
    progress: Progress,
    reporter: Reporter,
    how: Mapping[str, Any],
) -> Path:
    """The feature file of the photos; those that are in it already are not described again."""
    there = set(read_names(out)) if out.exists() else set[str]()
    left = sum(photo.name not in there for photo in photos)
    if left:
        progress(f"describing {counted(left, 'photo')}")
    try:
        describe(images, out, descriptor, **how, reporter=reporter)
    except DataError as error:
        raise DataError(f"{error}\nOr leave out what cannot be described.") from error
    if not left:
        progress(f"all {counted(len(photos), 'photo')} are described already in {out}")
    return out


def _check(max_error: float, seed: int, threads: int, time_limit: float | None) -> None:
    for name, value in (("max_error", max_error), ("threads", threads), ("time_limit", time_limit)):
        if value is not None and not 0 < value < math.inf:
            raise KeypatchError(f"{name} is {value}; it must be above 0.")
    if not 0 <= seed < 2**31:
        raise KeypatchError(f"The seed {seed} must lie between 0 and {2**31 - 1}.")


def _known_cameras(path: Path, photos: Sequence[Photo]) -> dict[str, PosedCamera]:
    """The known cameras of these photos; at least one of them must be there, under the photo's name."""
    cameras, names = read_cameras(path), {photo.name for photo in photos}
    known = {name: camera for name, camera in cameras.items() if name in names}
    if not known:
        theirs, ours = next(iter(cameras), "none"), min(names)
        raise DataError(f'{path} has cameras of other photos: "{theirs}", for example, and not "{ours}".')
    return known


def _finish(
    folder: Path,
    unfinished: Path,
    photos: Sequence[Photo],
    outcome: Outcome,
    known: Mapping[str, PosedCamera],
    settings: Mapping[str, Any],
) -> Reconstruction:
    """Compares the model with known poses, draws it, and puts all in the place of what an earlier run made."""
    names = [photo.name for photo in photos]
    if outcome.statistics is None and not (len(names) == 2 and outcome.verified):
        raise KeypatchError(_no_model(outcome, len(names), unfinished / DATABASE))
    errors, notes = None, list(outcome.notes)
    posed: dict[str, PosedCamera] = {}
    if outcome.statistics is not None:
        posed = read_cameras(unfinished / MODEL, stand_ins=True)
        notes += impossible_cameras(posed)
        if known:
            try:
                errors = pose_errors(*({n: c.pose for n, c in poses.items()} for poses in (posed, known)))
            except KeypatchError as error:
                notes.append(f"The poses were not compared. {error}")
    made = Reconstruction(folder, names, outcome, errors, notes, settings, provenance())
    if made.model is not None:
        points = read_points(unfinished / MODEL)
        where = {photo.name: photo.path for photo in photos}
        facts, scene, seen = made.short_facts(), folder.resolve().name, read_observations(unfinished / MODEL)
        sights = dict(zip(seen.names, np.bincount(seen.images, minlength=len(seen.names)).tolist(), strict=True))
        caption = f"{scene}: {facts['Photos']} photos, {facts['Points']} points, {facts['Reprojection error']}"
        write_picture(unfinished / PICTURE, points, posed, where, caption)
        write_page(unfinished / PAGE, scene, facts, points, posed, where, sights)
    swap_in(folder, unfinished, made.to_json())
    return made


def _no_model(outcome: Outcome, photos: int, database: Path) -> str:
    verified = outcome.verified
    best = "".join(f", the best {a} and {b} with {p.inliers} matches" for p in verified[:1] for a, b in [p.images])
    return (
        f"COLMAP found no {'geometry of the two photos' if photos == 2 else 'model'}: {len(verified)} of "
        f"{len(outcome.pairs)} matched pairs agree on a geometry{best}. Try more keypoints (--keypoints 8192), a "
        "looser ratio test (--ratio 0.95), the focal length (--focal) if it is known, or photos that overlap more. The "
        f"database is kept at {database}."
    )
