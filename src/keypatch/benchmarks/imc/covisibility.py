"""Which pairs of a scene count: what the Image Matching Challenge knows of how much two photographs see alike."""

import itertools
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.imc.scenes import DEPRECATED, PosedScene
from keypatch.errors import DataError
from keypatch.files import read_head, reading, safe_path
from keypatch.patches.tables import read_lines

SHARED_POINTS = 100  # the challenge's older rule, and that of its bags: pairs with more 3D points in common

COVISIBILITIES = tuple(tenths / 10 for tenths in range(10))  # the challenge has a list of pairs for each

Pair = tuple[str, str]


def covisible_pairs(scene: PosedScene, covisibility: float, reach: int | None = None) -> tuple[list[Pair], str]:
    """The pairs that count, and a few words on how they were chosen.

    Those listed in new-vis-pairs/ for this share of the view in common; where there are no such lists, those with more
    than 100 points in common in the files of visibility/; else all. With `reach`, only photos so near in the order.
    """
    folder = scene.folder / "new-vis-pairs"
    points = None if folder.is_dir() else read_shared_points(scene)
    if folder.is_dir():
        pairs, chosen = _read_pairs(folder / f"keys-th-{covisibility:.1f}.npy", scene), f"covisibility {covisibility}"
    elif points is not None:
        pairs = [pair for pair in scene.pairs() if points[pair] > SHARED_POINTS]
        chosen = f"more than {SHARED_POINTS} points in common"
    else:
        pairs, chosen = scene.pairs(), "all pairs: the scene has no lists of covisibility"
    if reach is not None:
        near = set(scene.pairs(reach))
        pairs = [pair for pair in pairs if pair in near or pair[::-1] in near]
        chosen += f", photos at most {reach} apart"
    if not pairs:
        raise DataError(f"No pair of {scene.name} qualifies ({chosen}). Choose a lower covisibility or a longer reach.")
    return pairs, chosen


def read_shared_points(scene: PosedScene) -> Mapping[Pair, int] | None:
    """How many 3D points the photos of each pair of `scene.pairs()` have in common; None if visibility/ does not say.

    The k-th file of visibility.txt belongs to the k-th photo of images.txt, and its k-th number to the k-th photo.
    """
    if not (scene.folder / "visibility.txt").is_file():
        return None
    photos, files = (
        [line.strip() for line in read_lines(scene.folder / name) if line.strip()]
        for name in ("images.txt", "visibility.txt")
    )
    if len(photos) != len(files):
        raise DataError(f"{scene.folder}: images.txt has {len(photos)} lines and visibility.txt {len(files)}.")
    place = {PurePosixPath(line).stem: number for number, line in enumerate(photos)}
    missing = sorted(scene.by_stem.keys() - place.keys())
    if missing:
        raise DataError(f"{scene.folder / 'images.txt'} does not list {missing[0]}, which has a camera.")
    paths = [safe_path(scene.folder, line, str(scene.folder / "visibility.txt")) for line in files]
    table = np.array([_counts(path, len(photos)) for path in paths])  # (photos, photos)
    places = {name: place[stem] for stem, name in scene.by_stem.items()}
    most = np.maximum(table, table.T)
    return {(a, b): int(most[places[a], places[b]]) for a, b in itertools.combinations(scene.names, 2)}


def _read_pairs(path: Path, scene: PosedScene) -> list[Pair]:
    """The pairs of a list of keys <photo>-<photo>."""
    if not path.is_file():
        there = ", ".join(sorted(file.name for file in path.parent.glob("*.npy")))
        raise DataError(f"There is no {path}. Choose a covisibility that has a list: {there or 'none does'}.")
    with reading(path, "list of pairs"):
        listed = np.load(path, allow_pickle=False) if read_head(path).startswith(b"\x93NUMPY") else None
        if listed is None or listed.dtype.kind != "U":
            raise ValueError("it should be an array of names <photo>-<photo>")
        keys = listed.ravel().tolist()
        return [_pair(key, scene, path) for key in keys if not DEPRECATED.intersection(key.split("-"))]


def _pair(key: str, scene: PosedScene, path: Path) -> Pair:
    parts, names = key.split("-"), scene.by_stem
    for cut in range(1, len(parts)):  # a photo's name may have a dash of its own
        first, second = "-".join(parts[:cut]), "-".join(parts[cut:])
        if first in names and second in names:
            return names[first], names[second]
    raise DataError(f'{path} lists the pair "{key}", but {scene.name} lacks one of its photos. Copy it there.')


def _counts(path: Path, photos: int) -> NDArray[np.float64]:
    with reading(path, "list of point counts"):
        counts = np.array(" ".join(read_lines(path)).split(), np.float64)
    if len(counts) != photos or not np.isfinite(counts).all():
        raise DataError(f"{path} should hold {photos} numbers, one per photo of images.txt, but has {len(counts)}.")
    return counts
