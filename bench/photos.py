"""How fast a photo of 1024 pixels is described, as ratios in one run: `python bench/photos.py [--out FILE.json]`.

Whole: detect, choose 2,000 keypoints, cut, describe; against OpenCV's SIFT and against what a user of kornia does:
OpenCV's detector, kornia's patch extraction and its module, all patches in one call. Given: cut and describe alone, at
the same keypoints. Every contestant is a process of its own, as it comes; kornia runs a second time with an allocator
that keeps the heap. The photo is a mosaic of scikit-image's, or `--photo FILE` made 1024 pixels long.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from racing import race, take_turns

from keypatch.cli.main import answer
from keypatch.describers import Describer, SiftDescriber
from keypatch.describers.network import NetworkDescriber
from keypatch.detection import Dog, spend
from keypatch.features import Extraction, extract, read_photo
from keypatch.features.extraction import describe_keypoints
from keypatch.files import write_json
from keypatch.geometry import Keypoints, from_opencv
from keypatch.networks import HyNet, L2Net, NetworkSpec
from keypatch.provenance import provenance
from keypatch.training.machine import keep_heap

SIDE = 1024
PATCH_SIGMAS = 24.0
SPECS: dict[str, NetworkSpec] = {"hardnet": L2Net(), "hynet": HyNet()}
Image = NDArray[np.uint8]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keypoints", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photo", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    image = photo(arguments.photo)
    if arguments.contestant:
        compete(json.loads(arguments.contestant), image, arguments.keypoints)
        return
    options = ["--keypoints", str(arguments.keypoints), "--threads", str(arguments.threads)]
    options += ["--photo", str(arguments.photo)] if arguments.photo else []
    rows = []
    for network in ("sift", *SPECS):  # one after the other: all processes at once would hold much memory
        field = contestants(network)
        rows += rows_of(field, race(__file__, field, options, arguments.rounds))
    print_table(rows)
    if arguments.out:
        settings = {name: getattr(arguments, name) for name in ("keypoints", "threads", "rounds")}
        settings["photo"] = f"{image.shape[1]} x {image.shape[0]}"
        write_json(
            arguments.out,
            {"bench": "photos", "settings": settings, "rows": rows, "provenance": provenance().to_json()},
        )
        print(f"written to {arguments.out}")


def photo(path: Path | None) -> Image:
    """Grey pixels (h, w), the longer side `SIDE`."""
    if path is None:
        from skimage.data import astronaut, brick, camera, coffee

        greys = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (astronaut(), coffee())]
        parts = [image[:384, :512] for image in (greys[0], camera(), greys[1], brick())]
        return np.asarray(np.vstack([np.hstack(parts[:2]), np.hstack(parts[2:])]), np.uint8)
    image = read_photo(path)
    factor = SIDE / max(image.shape)
    size = round(factor * image.shape[1]), round(factor * image.shape[0])
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def contestants(network: str) -> list[dict[str, Any]]:
    """OpenCV first, whom all are compared with; kornia as it comes, then with its heap kept; then ours."""
    field = [{"who": "opencv", "network": "sift", "work": "whole", "heap": "default"}]
    if network == "sift":
        return [*field, {"who": "keypatch", "network": "rootsift", "work": "whole", "heap": "default"}]
    for work in ("whole", "given"):
        field += [{"who": "kornia", "network": network, "work": work, "heap": heap} for heap in ("default", "kept")]
        field += [{"who": "keypatch", "network": network, "work": work, "heap": "default"}]
    return field


def compete(contestant: dict[str, Any], image: Image, count: int) -> None:
    if contestant["heap"] == "kept":
        keep_heap()
    given = spend(Dog()(image), count, "strongest") if contestant["work"] == "given" else None
    if contestant["who"] == "opencv":
        sift = cv2.SIFT.create(count, contrastThreshold=Dog().contrast_threshold)
        take_turns(lambda: sift.detectAndCompute(image, None))
    elif contestant["who"] == "kornia":
        take_turns(kornia_work(contestant["network"], image, count, given))
    else:
        describer = ours(contestant["network"])
        if given is not None:
            take_turns(lambda: describe_keypoints(image, given, describer))
        else:
            take_turns(lambda: extract(image, describer, Extraction(keypoints=count)))


def ours(network: str) -> Describer:
    torch.manual_seed(0)
    if network == "rootsift":
        return SiftDescriber(root=True)
    return NetworkDescriber(SPECS[network].build().eval(), network, "cpu")


def kornia_work(network: str, image: Image, count: int, given: Keypoints | None) -> Callable[[], object]:
    """What kornia's users write: OpenCV's keypoints as frames, patches from kornia's pyramid, kornia's module."""
    from kornia import feature

    module = {"hardnet": feature.HardNet, "hynet": feature.HyNet}[network](pretrained=False).eval()
    sift = cv2.SIFT.create(count, contrastThreshold=Dog().contrast_threshold, enable_precise_upscale=True)

    @torch.inference_mode()
    def describe() -> object:
        keypoints = given or from_opencv(sift.detect(image, None))
        scale = torch.from_numpy(keypoints.sigma)[None, :, None, None] * (PATCH_SIGMAS / 2)
        turned = torch.from_numpy(-np.degrees(keypoints.angle))[None, :, None]
        frames = feature.laf_from_center_scale_ori(torch.from_numpy(keypoints.xy).float()[None], scale, turned)
        patches = feature.extract_patches_from_pyramid(torch.from_numpy(image)[None, None] / 255, frames, 32)[0]
        return module(patches).numpy()

    return describe


def rows_of(field: list[dict[str, Any]], best: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Seconds, and how many times as fast as OpenCV (the same run) and as kornia (the same work)."""
    seconds = {(who["who"], who["work"], who["heap"]): run["seconds"] for who, run in zip(field, best, strict=True)}

    def times(who: str, work: str, heap: str, run: dict[str, float]) -> float | None:
        other = seconds.get((who, work, heap))
        return other / run["seconds"] if other else None

    return [
        who
        | {"seconds": run["seconds"], "times_opencv": times("opencv", "whole", "default", run)}
        | {"times_kornia": times("kornia", who["work"], "default", run)}
        | {"times_kornia_heap_kept": times("kornia", who["work"], "kept", run), "peak_mb": run["peak_mb"]}
        for who, run in zip(field, best, strict=True)
    ]


def print_table(rows: list[dict[str, Any]]) -> None:
    print(f"{'':43}{'times as fast as':>24}{'added':>15}")
    print(f"{'work':7}{'descriptor':11}{'who':10}{'heap':8}{'ms':>7}{'opencv':>10}{'kornia':>9}{'(kept)':>9}{'MB':>9}")
    for row in rows:
        ratios = [row["times_opencv"], row["times_kornia"], row["times_kornia_heap_kept"]]
        opencv, kornia, kept = (f"{ratio:.2f}" if ratio else "-" for ratio in ratios)
        print(
            f"{row['work']:7}{row['network']:11}{row['who']:10}{row['heap']:8}{1000 * row['seconds']:7.0f}"
            f"{opencv:>10}{kornia:>9}{kept:>9}{row['peak_mb']:9.0f}"
        )


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
