"""How well fingerprints tell a copy of a photo from its neighbours.

The threshold lies between the copies and the neighbours of every other scene; errors are counted on the rest.

python bench/fingerprints.py $DATA/photos/* $DATA/strecha/* $DATA/oxford/*
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.cli.main import answer
from keypatch.images import as_grey, find_photos, read_colours
from keypatch.patches.fingerprints import BITS, SAME, perceptual_hash

Bits = NDArray[np.bool_]
ONE_VIEW = ("bikes", "leuven", "trees", "ubc")  # Oxford's: a fixed camera, other focus, light or compression


def _saved(kind: str, **how: int) -> Callable[[Image.Image], Image.Image]:
    def save(image: Image.Image) -> Image.Image:
        file = BytesIO()
        image.save(file, kind, **how)
        return Image.open(file)

    return save


def _sized(factor: float, way: Image.Resampling) -> Callable[[Image.Image], Image.Image]:
    return lambda image: image.resize((round(image.width * factor), round(image.height * factor)), way)


LANCZOS, BILINEAR, NEAREST = Image.Resampling.LANCZOS, Image.Resampling.BILINEAR, Image.Resampling.NEAREST
COPIES: dict[str, Sequence[Callable[[Image.Image], Image.Image]]] = {
    "half size, JPEG quality 75": (_sized(0.5, LANCZOS), _saved("JPEG", quality=75)),
    "half size, JPEG quality 50, bilinear": (_sized(0.5, BILINEAR), _saved("JPEG", quality=50)),
    "half size, PNG": (_sized(0.5, LANCZOS), _saved("PNG")),
    "half size, grey, JPEG quality 75": (
        _sized(0.5, LANCZOS),
        lambda image: image.convert("L"),
        _saved("JPEG", quality=75),
    ),
    "half size, JPEG quality 30": (_sized(0.5, LANCZOS), _saved("JPEG", quality=30)),
    "half size, WebP quality 50": (_sized(0.5, LANCZOS), _saved("WEBP", quality=50)),
    "half size, every other pixel": (_sized(0.5, NEAREST), _saved("JPEG", quality=75)),
    "quarter size, JPEG quality 75": (_sized(0.25, LANCZOS), _saved("JPEG", quality=75)),
    "twice the size, JPEG quality 75": (_sized(2, LANCZOS), _saved("JPEG", quality=75)),
    "JPEG quality 10": (_saved("JPEG", quality=10),),
}
PROMISED = 4  # the first copies: the threshold is chosen so that these are recognized


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+", type=Path, metavar="SCENE", help="a folder of photos of one place")
    scenes = {scene.name: scene for scene in parser.parse_args().scenes if scene.is_dir()}
    places = sorted({_place(name) for name in scenes})
    copies = [{kind: list[int]() for kind in COPIES} for _ in range(2)]  # of the scenes to choose on, and of the others
    neighbours: list[dict[str, int]] = [{}, {}]
    for name, folder in sorted(scenes.items()):
        photos = find_photos([folder])
        own = [_bits(read_colours(photo.path)) for photo in photos]
        if name in ONE_VIEW:
            print(f"{name}, bits from its first photo: {', '.join(str(_differing(own[0], each)) for each in own[1:])}")
            continue
        group = places.index(_place(name)) % 2
        for kind, bits in copies[group].items():
            bits += [_differing(one, _copy(photo.path, kind)) for one, photo in zip(own, photos, strict=True)]
        for i, j in combinations(range(len(photos)), 2):
            neighbours[group][f"{name}: {photos[i].name} and {photos[j].name}"] = _differing(own[i], own[j])
    farthest = max(bits for kind in list(COPIES)[:PROMISED] for bits in copies[0][kind])
    nearest = min(bits for bits in neighbours[0].values() if bits > farthest)
    print(f"to choose on: copies differ by at most {farthest} bits, neighbours by at least {nearest}")
    print(f"half-way: {(farthest + nearest) // 2} of {BITS}; in use: {SAME}")
    print(
        "| copy | not recognized, chosen on | largest | not recognized, other scenes | largest |\n|---|---|---|---|---|"
    )
    for kind in COPIES:
        print(f"| {kind} | {' | '.join(_missed(group[kind]) for group in copies)} |")
    for title, pairs in zip(("chosen on", "other scenes"), neighbours, strict=True):
        taken = {pair: bits for pair, bits in pairs.items() if bits <= SAME}
        print(f"{title}: {len(pairs)} pairs of photos of a scene, taken for the same image: {taken or 'none'};")
        print(f"  the next differ by {min(bits for bits in pairs.values() if bits > SAME)} bits")


def _missed(bits: Sequence[int]) -> str:
    return f"{sum(each > SAME for each in bits)} of {len(bits)} | {max(bits)}"


def _place(scene: str) -> str:
    """Scenes of one building, ie_tower_1 to 6, are one."""
    return re.sub(r"_\d+$", "", scene)


def _copy(path: Path, kind: str) -> Bits:
    image = read_colours(path)
    for change in COPIES[kind]:
        image = change(image)
    return _bits(image)


def _bits(image: Image.Image) -> Bits:
    packed = np.frombuffer(bytes.fromhex(perceptual_hash(as_grey(image))), np.uint8)
    return np.unpackbits(packed).astype(np.bool_)


def _differing(one: Bits, other: Bits) -> int:
    return int(np.sum(one != other))


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
