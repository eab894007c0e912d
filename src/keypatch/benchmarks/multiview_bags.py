"""Bags: the small sets of photographs that are reconstructed, from the challenge's files or drawn with a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path, PurePosixPath

import numpy as np

from keypatch.benchmarks.posed_scenes import DEPRECATED, PosedScene
from keypatch.errors import DataError
from keypatch.files import reason

FOLDER = "sub_set"


@dataclass(frozen=True)
class Bag:
    """Some photographs of a scene, by their names."""

    name: str  # as the challenge's file: 5bag_000
    size: int
    photos: tuple[str, ...]


def find_bags(scene: PosedScene, sizes: Sequence[int], each: int, seed: int) -> list[Bag]:
    """Of every size that the scene has photos for: the bags of sub_set/, else `each` drawn ones, or all there can be.

    Bags with a photo that the challenge has withdrawn are left out.
    """
    bags = []
    for size in sizes:
        files = sorted((scene.folder / FOLDER).glob(f"{size}bag_*.txt"))
        if files:
            bags += [bag for file in files if (bag := _read(file, size, scene)) is not None]
        elif size <= len(scene.photos):
            bags += _draw(scene, size, each, seed)
    if not bags:
        raise DataError(
            f"{scene.name} has {len(scene.photos)} photos, too few for a bag of {min(sizes)}. Choose smaller bags."
        )
    return bags


def _read(path: Path, size: int, scene: PosedScene) -> Bag | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from None
    known, photos = scene.by_stem, dict[str, None]()
    for number, line in enumerate(lines, start=1):
        stem = PurePosixPath(line.strip()).stem
        if stem in DEPRECATED:
            return None
        if line.strip() and stem not in known:
            raise DataError(f'{path}, line {number}: there is no photo "{line.strip()}" in {scene.folder / "images"}.')
        if line.strip():
            photos[known[stem]] = None
    if len(photos) != size:
        raise DataError(f"{path} should name {size} different photos, found {len(photos)}. Copy it again.")
    return Bag(path.stem, size, tuple(photos))


def _draw(scene: PosedScene, size: int, count: int, seed: int) -> list[Bag]:
    """Different bags, each of photos drawn without replacement."""
    rng, names = np.random.default_rng([seed, size]), scene.names
    drawn = dict[tuple[str, ...], None]()
    while len(drawn) < min(count, comb(len(names), size)):
        drawn[tuple(names[index] for index in sorted(rng.permutation(len(names))[:size]))] = None
    return [Bag(f"{size}bag_{number:03}", size, photos) for number, photos in enumerate(drawn)]
