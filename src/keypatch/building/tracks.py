"""The method `tracks`: a 3D point of a model is a class, its patches are cut where the detector saw it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from keypatch.building.observations import Found, Observations, Work, has_company, once_per_photo
from keypatch.building.options import SIDE
from keypatch.building.projection import add_projections
from keypatch.colmap.cameras import Camera, StandIn, project, to_rays
from keypatch.colmap.models import SparseModel, read_model
from keypatch.errors import DataError, KeypatchError
from keypatch.features.extraction import detect, is_inside_mask
from keypatch.features.keypoint_files import KeypointSource, open_keypoints
from keypatch.files import require_folder
from keypatch.geometry import Keypoints, Pose
from keypatch.images import Photo, read_header, read_mask, read_photo
from keypatch.progress import counted, track
from keypatch.settings import CheckedFields, brief, option

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

RECONSTRUCTION = "reconstruction"  # the folder that the model is made in
MOST_EXHAUSTIVE = 100  # photos: of more, each is matched with the next ones only
SEQUENCE = "sequence:20"
SAME_TURN = np.pi / 4  # of two detections: more, and they are different orientations of one place
ANOTHER_RUN = 1.0  # pixels between a model's observation and the keypoint of its number: more, and they do not belong


@dataclass(frozen=True)
class Tracks(CheckedFields):
    """Classes from the points of a 3D model.

    >>> kp.Tracks(track_length=4).reprojection_error
    2.0
    """

    model: str | Path | None = option(
        None, "Use this model instead of reconstructing the photos: a keypatch reconstruction or COLMAP sparse model."
    )
    database: str | Path | None = option(
        None, "COLMAP database or feature file with the keypoints of --model; without it, they are detected again."
    )
    track_length: int = option(3, "Minimum number of photos that see a point.", least=2)
    reprojection_error: float = option(2.0, "Largest reprojection error of an observation, in pixels.", above=0)
    held_out_error: float = option(
        3.0, "Largest reprojection error in pixels with the point triangulated from its other views only.", above=0
    )
    smallest_angle: float = option(
        2.0,
        "Leave out points whose views differ by less than this many degrees: too easy, and imprecise.",
        least=0,
    )
    largest_angle: float | None = option(
        None, "Leave out views more than this many degrees from the point's middle view.", above=0
    )
    scale_ratio: float = option(
        2.0,
        "Leave out views whose patch covers this many times more or less of the scene than the point's others.",
        above=1,
    )
    nearest: float = option(
        1.5, "Largest distance to the nearest detection in pixels, for a model without keypoints.", above=0
    )
    all_models: bool = option(
        False, "If there are several models, also use the smaller ones, except photos and points of larger ones."
    )

    project: bool = option(
        False, "Also cut points where the detector missed them, at their projections into photos that show them."
    )

    __repr__ = brief

    least_photos: ClassVar[int] = 2
    side: ClassVar[float] = SIDE
    unused: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.project and self.all_models:
            raise KeypatchError("Points are projected within one model: leave out --project or --all-models.")

    def find(self, work: Work) -> Found:
        """The observations of the model's points that pass the thresholds."""
        made = self._open(work)
        photos = list(work.photos)
        counts = dict[str, int]()
        rows = _observations(made, photos, self, work, counts)
        numbers = {photo.name: number for number, photo in enumerate(photos)}
        registered = {name for model in made.models for name in model.cameras if name in numbers}
        facts = {
            "photos registered": len(registered),
            "models": [f"{len(model.cameras)} photos, {len(model.points.xyz)} points" for model in made.models],
            "models used": len(made.models) if self.all_models else 1,
            "keypoints from": made.origin,
        }
        sizes = np.array([read_header(photo.path).size for photo in photos], np.int64)
        return Found(photos, sizes, rows, lambda number: _read(photos[number], work), counts, facts)

    def _open(self, work: Work) -> _Made:
        if self.model is None:
            if self.database is not None:
                raise KeypatchError("--database has the keypoints of a --model. Give both or neither.")
            return _open_model(_reconstruct(work), None)
        return _open_model(Path(self.model), None if self.database is None else Path(self.database))


@dataclass(frozen=True, eq=False)
class _Made:
    """Models of one scene, the largest first, and the keypoints that their observations are numbers of."""

    models: Sequence[SparseModel]
    source: KeypointSource | None  # None: the photos must be looked at again
    origin: str  # of the keypoints, for the card
    matches: Path | None  # the matches of all photos, where they are known


def _read(photo: Photo, work: Work) -> NDArray[np.uint8]:
    return read_photo(photo.path, pixel_limit=work.building.pixel_limit)


def _reconstruct(work: Work) -> Path:
    """The folder of the reconstruction, made or resumed if it is not whole."""
    from keypatch.matching.matching import Matching
    from keypatch.reconstruction.mapping import Inputs
    from keypatch.reconstruction.pipeline import reconstruct
    from keypatch.reconstruction.result import FORMAT, REPORT

    folder, building = work.folder / RECONSTRUCTION, work.building
    report = folder / REPORT
    if report.exists() and FORMAT.read_json(report)["finished"]:  # of the same photos and settings: the build's own
        work.progress.note(f"the model is already in {folder}")
        return folder
    rule = "exhaustive" if len(work.photos) <= MOST_EXHAUSTIVE else SEQUENCE
    inputs = Inputs(
        pairs=building.pairs or rule, root=work.root, masks=building.masks, pixel_limit=building.pixel_limit
    )
    if building.pairs is None and rule == SEQUENCE:
        work.progress.note(
            f"{counted(len(work.photos), 'photo')}: matching each with the next 20 by name; --pairs sets others"
        )
    made = reconstruct(
        [photo.path for photo in work.photos],
        folder,
        work.mapping,
        inputs=inputs,
        describer=work.describer,
        extraction=work.extraction,
        matching=work.matching or Matching(),
        parallel=work.parallel,
        device=work.device,
        precision=work.precision,
        progress=work.progress,
    )
    if made.model is None:
        raise KeypatchError(
            "The mapping step found no 3D model: it needs three photos, and there are two. Use --method pairs for two."
        )
    return folder


def _open_model(folder: Path, keypoints: Path | None) -> _Made:
    """A reconstruction of ours, a COLMAP model, or a folder of such as 0, 1, ...; the largest first."""
    from keypatch.reconstruction.result import DATABASE, FEATURES, MATCHES, MODELS, REPORT

    require_folder(folder)
    ours = (folder / REPORT).exists()
    above = folder / MODELS if ours else folder
    folders = [above] if _is_model(above) else sorted(each for each in above.glob("*") if _is_model(each))
    if not folders:
        raise DataError(
            f"{folder} has no model: neither reconstruction.json nor cameras, images and points3D (.bin or .txt), in "
            "it or in its folders 0, 1, ... Check the path."
        )
    models = [read_model(each, stand_ins=True) for each in folders]
    models.sort(key=lambda model: (-len(model.cameras), -len(model.points.xyz)))
    near = [keypoints] if keypoints else [folder / name for name in (FEATURES, DATABASE) if ours]
    chosen = next((path for path in near if path.exists() or path == keypoints), None)
    matches = folder / MATCHES
    source, origin = None, "detected in the photos, nearest to each observation"
    if chosen is not None:
        source, origin = open_keypoints(chosen), chosen.name
        try:
            source.read(next(iter(models[0].cameras)))
        except DataError as error:
            if "scale" not in str(error):
                raise
            source, origin = None, f"detected in the photos: {chosen.name} has no scales"
    return _Made(models, source, origin, matches if matches.exists() else None)


def _is_model(folder: Path) -> bool:
    return any((folder / f"cameras{end}").exists() and (folder / f"images{end}").exists() for end in (".bin", ".txt"))


def _observations(
    made: _Made, photos: Sequence[Photo], options: Tracks, work: Work, counts: dict[str, int]
) -> Observations:
    """The rows of all models that are used, by the steps whose losses `counts` has."""
    numbers = {photo.name: number for number, photo in enumerate(photos)}
    if not any(name in numbers for model in made.models for name in model.cameras):
        theirs = next((name for model in made.models for name in model.cameras), "none")
        raise DataError(
            f'The model has other photos, such as "{theirs}", but not "{photos[0].name}". Give the folder that its '
            "names are relative to, or set --root to it."
        )
    taken, parts, first = set[str](), list[_Rows](), 0
    for model in made.models if options.all_models else made.models[:1]:
        rows = _rows_of(model, numbers, options, counts)
        if taken:
            rows = _apart_from(rows, parts, taken, photos, made, counts)
        parts.append(rows.take(slice(None), first))
        taken |= {name for name in model.cameras if name in numbers}
        first += len(model.points.xyz)
    rows = _Rows.join(parts)
    if not len(rows.point):
        raise KeypatchError(
            f"No point of the model is seen by {options.track_length} of these photos within "
            f"{options.reprojection_error:g} pixels: {_told(counts)}. Loosen --track-length or --reprojection-error."
        )
    found = _by_views(_framed(rows, photos, made, options, work, counts), options, counts)
    if not options.project:
        return found
    posed = {numbers[name]: each for name, each in made.models[0].cameras.items() if name in numbers}
    whole = {image: each for image, each in posed.items() if not isinstance(each.camera, StandIn)}
    return add_projections(found, whole)


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "it has none"


@dataclass(frozen=True, eq=False)
class _Rows:
    """Observations of models before it is known at which scale and angle: arrays of one length."""

    point: Int64
    image: Int64  # position among the photos
    keypoint: Int64  # number in the photo
    seen_at: Float64  # (n, 2)
    error: Float64
    xyz: Float64  # (n, 3)
    ray: Float64  # (n, 3) unit, from the point to the camera
    reach: Float64  # (n,) what a pixel covers at the point: depth over focal length
    camera: Int64  # (n,) number in `cameras`
    cameras: tuple[tuple[Camera, Pose], ...]
    bearing: Float64  # (n, 3) unit, in the world: where the camera sees it

    def take(self, rows: Any, first: int = 0) -> _Rows:
        """Some rows, points numbered from `first` instead of 0."""
        columns = ("image", "keypoint", "seen_at", "error", "xyz", "ray", "reach", "camera", "bearing")
        taken = {name: getattr(self, name)[rows] for name in columns}
        return _Rows(point=self.point[rows] + first, cameras=self.cameras, **taken)

    @staticmethod
    def join(parts: Sequence[_Rows]) -> _Rows:
        columns = ("point", "image", "keypoint", "seen_at", "error", "xyz", "ray", "reach", "bearing")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        starts = np.cumsum([0, *(len(part.cameras) for part in parts)])
        camera = np.concatenate([part.camera + start for part, start in zip(parts, starts, strict=False)])
        return _Rows(camera=camera, cameras=tuple(each for part in parts for each in part.cameras), **joined)


def _rows_of(model: SparseModel, numbers: Mapping[str, int], options: Tracks, counts: dict[str, int]) -> _Rows:
    """The observations of a model in these photos by points of long enough tracks, near where the model sees them."""
    cameras = tuple(model.cameras.values())
    image = np.array([numbers.get(name, -1) for name in model.cameras], np.int64)[model.seen_by]
    xyz = model.points.xyz[model.seen]
    error, reach = np.full(len(image), np.inf), np.ones(len(image))
    ray, bearing = np.zeros((2, len(image), 3))
    for number, (camera, pose) in enumerate(cameras):
        here = np.flatnonzero(model.seen_by == number)
        if isinstance(camera, StandIn):  # what such a camera sees nobody knows
            continue
        local = xyz[here] @ pose.rotation.T + pose.translation
        apart = np.linalg.norm(project(local, camera) - model.place[here], axis=1)
        error[here] = np.where(np.isnan(apart), np.inf, apart)
        bearing[here] = _bearings(model.place[here], camera) @ pose.rotation
        towards = pose.centre - xyz[here]
        ray[here] = towards / np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-12)
        reach[here] = np.maximum(local[:, 2], 1e-12) / np.sqrt(camera.focal[0] * camera.focal[1])
    rows = _Rows(
        model.seen, image, model.keypoint, model.place, error, xyz, ray, reach, model.seen_by, tuple(cameras), bearing
    )

    def keep(name: str, kept: Mask) -> None:
        nonlocal rows
        counts[name] = counts.get(name, 0) + int(np.sum(~kept))
        rows = rows.take(kept)

    most = options.held_out_error
    keep("observations in photos that are not there", rows.image >= 0)
    keep(f"observations more than {options.reprojection_error:g} pixels off", rows.error <= options.reprojection_error)
    keep(
        f"observations more than {most:g} pixels from where the point's other views see it",
        _agree_with_others(rows, most),
    )
    views = np.unique(np.stack([rows.point, rows.image]), axis=1)[0]
    long = np.bincount(views, minlength=len(model.points.xyz))[rows.point] >= options.track_length
    keep(f"observations of points seen, as exactly, by fewer than {options.track_length} photos", long)
    return rows


def _agree_with_others(rows: _Rows, most: float) -> Mask:
    """(n,) the rows left when the worst of each point goes as long as it is farther off than so many pixels.

    A point is triangulated anew without each of its views, from three views on. What slides along an epipolar line fits
    a model that has bent the point towards it, but not the other views.
    """
    kept = np.ones(len(rows.point), np.bool_)
    centres = np.array([pose.centre for _, pose in rows.cameras])[rows.camera]
    across = np.eye(3) - rows.bearing[:, :, None] * rows.bearing[:, None, :]  # what is seen of a step in space
    across /= rows.reach[:, None, None] ** 2  # in pixels
    pulled = np.einsum("nij,nj->ni", across, centres - rows.xyz)  # from the model's own place: small numbers
    while True:
        here = np.flatnonzero(kept)
        _, inverse, sizes = np.unique(rows.point[here], return_inverse=True, return_counts=True)
        matrices, vectors = np.zeros((len(sizes), 3, 3)), np.zeros((len(sizes), 3))
        np.add.at(matrices, inverse, across[here])
        np.add.at(vectors, inverse, pulled[here])
        rest = matrices[inverse] - across[here]
        rest += 1e-9 * np.trace(rest, axis1=1, axis2=2)[:, None, None] * np.eye(3)
        checked = sizes[inverse] >= 3
        rest[~checked] = np.eye(3)
        place = np.linalg.solve(rest, (vectors[inverse] - pulled[here])[:, :, None])[:, :, 0]
        seen = rows.bearing[here]
        away = place - (centres[here] - rows.xyz[here])
        off = np.linalg.norm(away - np.sum(away * seen, axis=1, keepdims=True) * seen, axis=1) / rows.reach[here]
        off = np.where(checked, off, 0.0)
        worst = _largest_of(off, rows.point[here]) == np.arange(len(here))
        gone = worst & (off > most)
        if not gone.any():
            return kept
        kept[here[gone]] = False


def _apart_from(
    rows: _Rows, parts: Sequence[_Rows], taken: set[str], photos: Sequence[Photo], made: _Made, counts: dict[str, int]
) -> _Rows:
    """The rows without photos of larger models, and without points that match one of theirs."""
    fresh = np.array([photo.name not in taken for photo in photos], np.bool_)[rows.image]
    suspects = set[int]()
    if made.matches is not None:
        owned = {(int(i), int(k)) for part in parts for i, k in zip(part.image, part.keypoint, strict=True)}
        mine = {(int(i), int(k)): int(p) for i, k, p in zip(rows.image, rows.keypoint, rows.point, strict=True)}
        for one, other, matched in _matches_between(made.matches, photos, taken):
            suspects.update(mine[other, k] for j, k in matched if (one, j) in owned and (other, k) in mine)
    doubtful = np.isin(rows.point, sorted(suspects))
    counts["observations in photos of a larger model"] = int(np.sum(~fresh))
    counts["observations of points that match a larger model's"] = int(np.sum(fresh & doubtful))
    return rows.take(fresh & ~doubtful)


def _matches_between(
    path: Path, photos: Sequence[Photo], taken: set[str]
) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    from keypatch.matching.match_files import MatchReader

    with MatchReader(path) as reader:
        for one, here in enumerate(photos):
            for other, there in enumerate(photos):
                if here.name in taken and there.name not in taken:
                    try:
                        matched = reader.read(here.name, there.name).indices
                    except DataError:  # the pair was not matched
                        continue
                    yield one, other, [(int(j), int(k)) for j, k in matched]


def _framed(
    rows: _Rows, photos: Sequence[Photo], made: _Made, options: Tracks, work: Work, counts: dict[str, int]
) -> Observations:
    """The rows with the scale and angle of their keypoints, by the keypoints' numbers or by detecting them again."""
    masks = work.building.masks
    candidates = list[tuple[Int64, Keypoints]]()  # rows, and a keypoint that may be theirs
    images = np.unique(rows.image)
    unit = "photos for keypoints" if made.source else "photos searched for keypoints"
    for image in track(images.tolist(), unit, work.progress):
        here, photo = np.flatnonzero(rows.image == image), photos[image]
        mask = None if masks is None else read_mask(Path(masks), photo.name, read_header(photo.path).size[::-1])
        if made.source is not None:
            which, found = here, _numbered(made.source.read(photo.name), rows.take(here), photo.name)
        else:
            which, found = _detected(_read(photo, work), rows.seen_at[here], here, options, work)
        if mask is not None:
            inside = is_inside_mask(found, mask)
            counts["observations behind a mask"] = counts.get("observations behind a mask", 0) + int(np.sum(~inside))
            which, found = which[inside], found.take(inside)
        candidates.append((which, found))
    which = np.concatenate([each for each, _ in candidates])
    if not len(which):
        raise KeypatchError("No observation of the model has a keypoint left (masks, or detections too far away).")
    keypoints = Keypoints.join([found for _, found in candidates])
    chosen = rows.take(which)
    seen = Observations(
        point_id=chosen.point,
        image_id=chosen.image,
        keypoints=keypoints,
        error=chosen.error,
        place=chosen.xyz,
        scene=np.zeros(len(which), np.int64),
        ray=chosen.ray,
        upward=_upward(chosen, keypoints),
        reach=chosen.reach,
    )
    if made.source is None:
        counts[f"observations without a detection within {options.nearest:g} pixels"] = len(rows.point) - len(
            np.unique(which)
        )
        seen = seen.take(_agreeing(seen, which, rows.seen_at))
    return seen


def _numbered(keypoints: Keypoints, rows: _Rows, name: str) -> Keypoints:
    """The keypoints of these numbers; DataError where they are not those of the model."""
    inside = rows.keypoint < len(keypoints)
    if inside.all():
        found = keypoints.take(rows.keypoint)
        if not len(rows.keypoint) or np.linalg.norm(found.xy - rows.seen_at, axis=1).max() <= ANOTHER_RUN:
            return found
    raise DataError(
        f"{name}: these are not the keypoints the model was made from. Give the --database of the same run, or leave "
        "it out to detect keypoints again."
    )


def _detected(
    image: NDArray[np.uint8], places: Float64, here: Int64, options: Tracks, work: Work
) -> tuple[Int64, Keypoints]:
    """All detections within `nearest` pixels of each place, with the row of the place."""
    found = detect(image, replace(work.extraction, keypoints=None))
    if not len(found):
        return np.empty(0, np.int64), found
    near = cKDTree(found.xy).query_ball_point(places, options.nearest)
    which = np.repeat(here, [len(each) for each in near])
    return which, found.take(np.array([j for each in near for j in sorted(each)], np.int64))


def _agreeing(found: Observations, which: Int64, seen_at: Float64) -> Int64:
    """One detection of each observation: those that agree best in scale and angle; none where the angle does not.

    `found` has all detections near the observations, `which` their observations. Each detection of a point is tried as
    the one that the others are chosen by.
    """
    apart = np.linalg.norm(found.keypoints.xy - seen_at[which], axis=1)
    size = np.log2(found.keypoints.sigma * found.reach)
    order = np.argsort(found.point_id, kind="stable")
    starts = np.unique(found.point_id[order], return_index=True)[1]
    chosen = list[Int64]()
    for members in np.split(order, starts[1:]):
        one, other = (each.ravel() for each in np.meshgrid(members, members, indexing="ij"))
        turned = np.abs(turns(found, one, other)) / SAME_TURN
        cost = apart[one] + np.abs(size[one] - size[other]) + np.minimum(turned, 2)
        cost, turned = (each.reshape(len(members), -1) for each in (cost, turned))
        rows, inverse = np.unique(which[members], return_inverse=True)
        best = np.full((len(rows), len(members)), np.inf)
        np.minimum.at(best, inverse, cost)
        sure = int(np.argmin(best.sum(axis=0)))
        first = np.lexsort((cost[:, sure], which[members]))
        first = first[np.unique(which[members][first], return_index=True)[1]]
        chosen.append(members[first[turned[first, sure] <= 1]])
    return np.sort(np.concatenate(chosen))


def _upward(rows: _Rows, keypoints: Keypoints) -> Float64:
    """(n, 3) where the keypoints' x axes point in space, across the line of sight."""
    found = np.empty((len(keypoints), 3))
    step = keypoints.frames()[:, :, 0]
    for number in np.unique(rows.camera):
        here = np.flatnonzero(rows.camera == number)
        camera, pose = rows.cameras[number]
        ahead = _bearings(keypoints.xy[here], camera)
        along = _bearings(keypoints.xy[here] + step[here], camera) - ahead
        along -= np.sum(along * ahead, axis=1, keepdims=True) * ahead
        found[here] = along @ pose.rotation
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12))


def _bearings(places: Float64, camera: Camera) -> Float64:
    """(n, 3) unit vectors; of a fisheye as if it did not bend, which is right in the middle and near enough beside."""
    if camera.model.endswith("FISHEYE"):
        plane = (places - camera.matrix[:2, 2]) / camera.focal
    else:
        plane = to_rays(places, camera)
    ahead = np.concatenate([plane, np.ones((len(plane), 1))], axis=1)
    return np.asarray(ahead / np.linalg.norm(ahead, axis=1, keepdims=True))


def turns(rows: Observations, one: Int64, other: Int64) -> Float64:
    """(m,) by how much the patch of one row is turned against the other's, in radians, as seen along the first's ray.

    0 if both keypoints turn with the scene; nan where views are not known.
    """
    ray, ours, theirs = rows.ray[one], rows.upward[one], rows.upward[other]
    theirs = theirs - np.sum(theirs * ray, axis=1, keepdims=True) * ray
    return np.asarray(np.arctan2(np.sum(np.cross(theirs, ours) * ray, axis=1), np.sum(theirs * ours, axis=1)))


def angles(rows: Observations, one: Int64, other: Int64) -> Float64:
    """(m,) degrees between the lines of sight of two rows each."""
    return np.asarray(np.degrees(np.arccos(np.clip(np.sum(rows.ray[one] * rows.ray[other], axis=1), -1, 1))))


def _by_views(rows: Observations, options: Tracks, counts: dict[str, int]) -> Observations:
    """Without views that differ too much in scale or direction, and without points whose views differ too little."""

    def keep(name: str, kept: Mask) -> None:
        nonlocal rows
        counts[name] = int(np.sum(~kept))
        rows = rows.take(kept)

    keep("observations of a point twice in a photo", once_per_photo(rows))
    size = np.log2(rows.keypoints.sigma * rows.reach)
    ratio = np.abs(size - _medians(size, rows.point_id))
    keep(f"views of another scale, {options.scale_ratio:g} times or more", ratio < np.log2(options.scale_ratio))
    if options.largest_angle is not None:
        aside = angles(rows, np.arange(len(rows)), _middle(rows))
        keep(f"views more than {options.largest_angle:g} degrees aside", aside <= options.largest_angle)
    keep("observations alone of their point", has_company(rows))
    narrow = widest_angles(rows) < options.smallest_angle
    keep(f"observations of points whose views differ by less than {options.smallest_angle:g} degrees", ~narrow)
    if not len(rows):
        raise KeypatchError(
            f"No point of the model passes the thresholds: {_told(counts)}. Loosen --smallest-angle or --scale-ratio."
        )
    return rows


def widest_angles(rows: Observations) -> Float64:
    """(n,) the largest angle between two views of the row's point, in degrees; nan where views are not known.

    From the middle view to the one farthest from it, and from there to the farthest: exact, or nearly.
    """
    everyone = np.arange(len(rows))
    end = _largest_of(angles(rows, everyone, _middle(rows)), rows.point_id)
    spread = angles(rows, everyone, end)
    return np.asarray(spread[_largest_of(spread, rows.point_id)])


def _middle(rows: Observations) -> Int64:
    """(n,) the row of the same point that looks most as all of them do on average."""
    inverse = np.unique(rows.point_id, return_inverse=True)[1]
    total = np.stack([np.bincount(inverse, column, len(inverse)) for column in rows.ray.T], axis=1)
    return _largest_of(np.sum(rows.ray * total[inverse], axis=1), rows.point_id)


def _largest_of(values: Float64, point_id: Int64) -> Int64:
    """(n,) the row of the same point with the largest value."""
    order = np.lexsort((-values, point_id))
    _, first, inverse = np.unique(point_id[order], return_index=True, return_inverse=True)
    largest = np.empty(len(order), np.int64)
    largest[order] = order[first][inverse]
    return largest


def _medians(values: Float64, point_id: Int64) -> Float64:
    """(n,) the median of the values of the same point."""
    order = np.lexsort((values, point_id))
    _, first, inverse, sizes = np.unique(point_id[order], return_index=True, return_inverse=True, return_counts=True)
    middle = (values[order][first + (sizes - 1) // 2] + values[order][first + sizes // 2]) / 2
    found = np.empty(len(values))
    found[order] = middle[inverse]
    return found
