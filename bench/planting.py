"""Keypoints of OpenCV, pycolmap and kornia in files with planted faults, written by plain h5py, numpy and pycolmap."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import h5py
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float64]
HLOC, COLMAP = "h5", "db"


@dataclass(frozen=True, eq=False)
class Written:
    """The numbers that go into a file: hloc's (degrees, lengths of 1) or COLMAP's (corner, radians, lengths of 512)."""

    xy: Floats
    scales: Floats
    angles: Floats
    descriptors: Floats


def by_opencv(image: NDArray[np.uint8], precise: bool = True) -> Written:
    """SIFT in hloc's convention; without the precise upscale its centres are off by 0.25 px."""
    keypoints, descriptors = cv2.SIFT.create(2000, enable_precise_upscale=precise).detectAndCompute(image, None)
    rows = np.array([(*keypoint.pt, keypoint.size, keypoint.angle) for keypoint in keypoints], np.float64)
    return Written(rows[:, :2], rows[:, 2] / 2, rows[:, 3], _unit(descriptors))


def by_orb(image: NDArray[np.uint8]) -> Written:
    """ORB's corners, which are neither blobs nor turned as gradients are; descriptors are made up."""
    rows = np.array(
        [(*each.pt, each.size, each.angle) for each in cv2.ORB.create(2000).detect(image, None)], np.float64
    )
    return Written(rows[:, :2], rows[:, 2] / 2, rows[:, 3], np.full((len(rows), 4), 0.5))


def by_kornia(image: NDArray[np.uint8], count: int = 1000) -> Written:
    """kornia's SIFT of the scale space in hloc's convention: its frames are 6 sigma and turn the other way."""
    import kornia.feature as kf
    import torch

    with torch.inference_mode():
        frames, _, descriptors = kf.SIFTFeatureScaleSpace(count)(torch.from_numpy(image)[None, None] / 255)
        scale, turn = kf.get_laf_scale(frames).flatten(), kf.get_laf_orientation(frames).flatten()
        xy = kf.get_laf_center(frames)[0]
    found = (scale > 0.1).numpy()  # kornia fills up with zeros
    arrays = (each.numpy().astype(np.float64)[found] for each in (xy, scale / 6, -turn, descriptors[0]))
    return Written(*arrays)


def for_colmap(written: Written) -> Written:
    """The same in COLMAP's convention."""
    descriptors = np.rint(512 * written.descriptors)
    return Written(written.xy + 0.5, written.scales, np.radians(written.angles), descriptors)


def write_h5(path: Path, name: str, written: Written, half: bool = False) -> None:
    """hloc's layout."""
    kind = np.float16 if half else np.float32
    arrays = {
        "keypoints": written.xy,
        "scales": written.scales,
        "oris": written.angles,
        "descriptors": written.descriptors.T,
    }
    with h5py.File(path, "a") as file:
        for key, array in arrays.items():
            file.create_dataset(f"{name}/{key}", data=array.astype(kind))


def write_database(path: Path, name: str, size: tuple[int, int], written: Written) -> None:
    """A COLMAP database by pycolmap, keypoints of four columns."""
    import pycolmap

    rows = np.column_stack([written.xy, written.scales, written.angles]).astype(np.float32)
    descriptors = np.clip(np.rint(written.descriptors), 0, 255).astype(np.uint8)
    with pycolmap.Database.open(path) as database:
        camera = pycolmap.Camera.create_from_model_name(1, "SIMPLE_RADIAL", 1.2 * max(size), *size)
        camera_id = database.write_camera(camera)
        image_id = database.write_image(pycolmap.Image(name=name, camera_id=camera_id))
        database.write_keypoints(image_id, rows)
        kind = pycolmap.FeatureExtractorType.SIFT
        database.write_descriptors(image_id, pycolmap.FeatureDescriptors(type=kind, data=descriptors))


def extract_database(path: Path, image: NDArray[np.uint8], name: str) -> None:
    """A database as pycolmap itself fills it from a folder; keypoints of six columns."""
    import pycolmap

    folder = path.with_suffix("")
    folder.mkdir()
    Image.fromarray(image).save(folder / name)  # not a .png: next to pycolmap Pillow aborts writing one
    options = pycolmap.FeatureExtractionOptions()
    options.use_gpu, options.num_threads = False, 1
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    pycolmap.extract_features(path, folder, extraction_options=options, device=pycolmap.Device.cpu)


Fault = Callable[[Written, str], Written]


def turn_back(written: Written, kind: str) -> Written:
    return replace(written, angles=-written.angles)


def move_half(written: Written, kind: str) -> Written:
    """COLMAP's pixels in an h5 file, OpenCV's in a database."""
    return replace(written, xy=written.xy + (0.5 if kind == HLOC else -0.5))


def double_scales(written: Written, kind: str) -> Written:
    return replace(written, scales=2 * written.scales)


def change_unit(written: Written, kind: str) -> Written:
    return replace(written, angles=np.radians(written.angles) if kind == HLOC else np.degrees(written.angles))


def stretch_descriptors(written: Written, kind: str) -> Written:
    lengths = np.random.default_rng(0).uniform(0.3, 1.0, (len(written.descriptors), 1))
    return replace(written, descriptors=lengths * written.descriptors)


def scatter(written: Written, size: tuple[int, int]) -> Written:
    """The keypoints at random places of a photo (width, height), as those of another photo would lie."""
    return replace(written, xy=np.random.default_rng(0).uniform(0, np.array(size) - 1, written.xy.shape))


def faults(kind: str) -> Mapping[str, tuple[Fault, ...]]:
    """What to plant, by the verdict that is right; several at once are joined as the doctor joins them."""
    single = {
        "scale is a diameter": double_scales,
        "centres are off by 0.5 px": move_half,
        f"angles are {'radians' if kind == HLOC else 'degrees'}": change_unit,
        "orientation sign is wrong": turn_back,
        "descriptors are not normalized": stretch_descriptors,
    }
    return {**{verdict: (fault,) for verdict, fault in single.items()}, "; ".join(single): tuple(single.values())}


def _unit(descriptors: NDArray[np.float32]) -> Floats:
    values = descriptors.astype(np.float64)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
