"""The one place that calls pycolmap to reconstruct; its names move from release to release.

Verification and mapping can crash the process (an exception in a worker thread, an index out of range), so they are
called only in a child process: `child.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.job import BuiltModel, Statistics, TwoViewPose, VerifiedPair
from keypatch.colmap.package import load_pycolmap
from keypatch.errors import DataError
from keypatch.geometry.poses import rotation_angle

GREY = 128  # of points in no photo that can be read
DENSE_SIZE = 1200  # pixels: photos are made this large at most before dense points are computed
SMALLEST_MODEL = 3  # photos; COLMAP's own 10 throws away what small collections fall into


def verify_matches(path: Path, *, max_error: float, seed: int, relative_pose: bool) -> None:
    """Two-view geometries of all matched pairs, into the database; `max_error` in pixels.

    All cores are used: with one seed, any number of threads finds the same, bit for bit.
    """
    colmap = load_pycolmap()
    colmap.set_random_seed(seed)
    geometry = colmap.TwoViewGeometryOptions()
    geometry.ransac.max_error, geometry.ransac.random_seed = max_error, seed
    geometry.compute_relative_pose = relative_pose
    # all pairs in the database, not a list of names, in which a name would end at a blank
    colmap.geometric_verification(str(path), two_view_geometry_options=geometry)


def map_incrementally(
    path: Path,
    scratch: Path,
    *,
    seed: int,
    threads: int,
    constant_cameras: Sequence[int],
    seconds: float | None,
    on_start: Callable[[], None],
    on_next: Callable[[], None],
    begun: Path | None = None,
    any_start: bool = False,
) -> list[Any]:
    """The models COLMAP finds, as its Reconstructions, the one with the most images first, each with images of its own.

    `on_start` is called for the first two images of a model, `on_next` for each one that follows. A model that was
    `begun` is refined and goes on alone. With `any_start` the first two images may be some that COLMAP would not begin
    with: few matches, small angles, a camera that moved straight ahead.
    """
    colmap = load_pycolmap()
    colmap.set_random_seed(seed)
    options = colmap.IncrementalPipelineOptions()
    options.num_threads = options.mapper.num_threads = threads
    options.random_seed = options.mapper.random_seed = options.triangulation.random_seed = seed
    options.constant_cameras = set(constant_cameras)
    options.min_model_size = SMALLEST_MODEL
    options.extract_colors = False  # which needs all photos below one folder; `colour_points` does not
    options.multiple_models = begun is None
    if any_start:
        mapper = options.mapper
        mapper.init_max_forward_motion, mapper.init_min_tri_angle, mapper.init_min_num_inliers = 1.0, 3.0, 60
    options.max_runtime_seconds = -1 if seconds is None else max(1, int(seconds))
    models = colmap.incremental_mapping(
        str(path),
        str(scratch),
        str(scratch),
        options,
        "" if begun is None else str(begun),
        initial_image_pair_callback=on_start,
        next_image_callback=on_next,
    )
    return _largest_first(models.values())


def _largest_first(models: Iterable[Any]) -> list[Any]:
    """By images with a pose, then by points; without models whose images are all in a larger one."""
    kept: dict[frozenset[int], Any] = {}
    for model in sorted(models, key=lambda each: (-each.num_reg_images(), -each.num_points3D())):
        images = frozenset(model.reg_image_ids())
        if not any(images <= larger for larger in kept):
            kept[images] = model
    return list(kept.values())


def colour_points(model: Any, read: Callable[[str], NDArray[np.uint8]]) -> list[str]:
    """Give each 3D point the mean colour of its views; `read` gives the pixels (h, w, 3) of an image by its name.

    Photos for which `read` raises DataError are left out; the messages are returned.
    """
    ids = sorted(model.points3D)
    sums, counts, failures = np.zeros((len(ids), 3)), np.zeros(len(ids)), []
    for image in model.images.values():
        seen = [point for point in image.points2D if point.has_point3D()] if image.has_pose else []
        if seen:
            try:
                pixels = read(image.name)
            except DataError as error:
                failures.append(str(error))
                continue
            xy = np.array([point.xy for point in seen]).astype(np.int64)  # the pixel that a place of COLMAP's lies in
            x, y = xy[:, 0].clip(0, pixels.shape[1] - 1), xy[:, 1].clip(0, pixels.shape[0] - 1)
            rows = np.searchsorted(ids, [point.point3D_id for point in seen])
            np.add.at(sums, rows, pixels[y, x])
            np.add.at(counts, rows, 1)
    colours = np.where(counts[:, None] > 0, np.rint(sums / np.maximum(counts, 1)[:, None]), GREY).astype(np.uint8)
    for point, colour in zip(ids, colours, strict=True):
        model.points3D[point].color = colour
    return failures


def read_verified_pairs(database: Any) -> list[VerifiedPair]:
    """What verification left in a database, pair by pair in the order of the images' names."""
    colmap = load_pycolmap()
    names = {image.image_id: image.name for image in database.read_all_images()}
    kinds = {int(kind): kind.name for kind in colmap.TwoViewGeometryConfiguration.__members__.values()}
    geometries = dict(zip(*database.read_two_view_geometries(), strict=True))
    pairs = []
    for pair, matches in zip(*database.read_num_matches(), strict=True):
        images = sorted(names[image] for image in colmap.pair_id_to_image_pair(pair))
        found = geometries.get(pair)
        inliers, kind = (0, 0) if found is None else (len(found.inlier_matches), int(found.config))
        pairs.append(VerifiedPair((images[0], images[1]), matches, inliers, kinds[kind]))
    return sorted(pairs, key=lambda pair: pair.images)


def read_two_view_pose(database: Any) -> TwoViewPose | None:
    """The relative pose of a database's two images, the first by name first; None where no pose was found."""
    first, second = sorted(database.read_all_images(), key=lambda image: image.name)
    geometry = database.read_two_view_geometry(first.image_id, second.image_id)
    if geometry.cam2_from_cam1 is None:
        return None
    motion = np.asarray(geometry.cam2_from_cam1.matrix())
    inliers = np.asarray(geometry.inlier_matches, np.int64).reshape(-1, 2)
    rays = [
        _rays(database, image, inliers[:, column]) @ turn
        for column, (image, turn) in enumerate([(first, np.eye(3)), (second, motion[:, :3])])
    ]
    apart = np.degrees(np.arccos(np.clip(np.sum(rays[0] * rays[1], axis=1), -1, 1)))
    length = np.linalg.norm(motion[:, 3])
    return TwoViewPose(
        rotation=motion[:, :3].tolist(),
        direction=(motion[:, 3] / max(length, 1e-12)).tolist(),
        rotation_degrees=rotation_angle(motion[:, :3], np.eye(3)),
        triangulation_degrees=float(np.median(apart)) if len(apart) else 0.0,
    )


def _rays(database: Any, image: Any, keypoints: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, 3) unit directions of an image's keypoints in its camera."""
    camera = database.read_camera(image.camera_id)
    places = np.asarray(database.read_keypoints(image.image_id), np.float64)[keypoints, :2]
    rays = np.column_stack([np.asarray(camera.cam_from_img(places)), np.ones(len(places))])
    return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True))


def write_model(model: Any, folder: Path) -> BuiltModel:
    """The model as binary and as text, in a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    model.write_binary(str(folder))
    model.write_text(str(folder))
    statistics = Statistics(
        registered=model.num_reg_images(),
        points=model.num_points3D(),
        observations=model.compute_num_observations(),
        track_length=model.compute_mean_track_length(),
        observations_per_image=model.compute_mean_observations_per_reg_image(),
        reprojection_error=model.compute_mean_reprojection_error(),
    )
    return BuiltModel(statistics, sorted(image.name for image in model.images.values() if image.has_pose))


def count_dense_points(model: Path, photos: Path, scratch: Path) -> int:
    """The points that photometric stereo of a model's photos gives, as the ETH evaluation counts them; needs CUDA."""
    colmap = load_pycolmap()
    undistortion, stereo = colmap.UndistortCameraOptions(), colmap.PatchMatchOptions()
    fusion = colmap.StereoFusionOptions()
    undistortion.max_image_size, stereo.geom_consistency, fusion.min_num_pixels = DENSE_SIZE, False, 5
    colmap.undistort_images(str(scratch), str(model), str(photos), undistort_options=undistortion)
    colmap.patch_match_stereo(str(scratch), options=stereo)
    fused = colmap.stereo_fusion(
        str(scratch / "fused.ply"), str(scratch), input_type="photometric", options=fusion, output_type="PLY"
    )
    return int(fused.num_points3D())
