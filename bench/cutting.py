"""Cutting patches around the keypoints of a 1.5-megapixel photograph: keypatch and kornia's pyramid, one thread each.

The photograph is a mosaic of scikit-image's. The contestants take turns:

    python bench/cutting.py --keypoints 8000 --rounds 5
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from racing import race, take_turns
from skimage import color, data

from keypatch.cli.main import answer
from keypatch.geometry import Keypoints, cut_patches, to_laf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keypoints", type=int, default=8000)
    parser.add_argument("--patch-sigmas", type=float, default=24.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    if arguments.contestant:
        take_turns(
            cutting(**json.loads(arguments.contestant), count=arguments.keypoints, sigmas=arguments.patch_sigmas)
        )
        return
    options = {"keypoints": arguments.keypoints, "patch-sigmas": arguments.patch_sigmas, "threads": arguments.threads}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    field = [{"tool": tool, "side": side} for side in (32, 64) for tool in ("kornia", "keypatch")]
    results = race(__file__, field, words, arguments.rounds)
    print(f"{'side':>4}  {'tool':10}{'ms':>8}{'us/patch':>10}{'x kornia':>10}{'peak MB':>9}")
    for number, (who, result) in enumerate(zip(field, results, strict=True)):
        seconds, times = result["seconds"], results[number // 2 * 2]["seconds"] / result["seconds"]
        patch = 1e6 * seconds / arguments.keypoints
        print(
            f"{who['side']:4}  {who['tool']:10}{1e3 * seconds:8.0f}{patch:10.1f}{times:10.1f}{result['peak_mb']:9.0f}"
        )


def cutting(tool: str, side: int, count: int, sigmas: float) -> Callable[[], object]:
    """What one contestant does in its turn; each gets the photograph and the frames in its own form beforehand."""
    image, keypoints = photograph_and_keypoints(count)
    if tool == "keypatch":
        return lambda: cut_patches(image, keypoints, sigmas, side)
    from kornia.feature import extract_patches_from_pyramid

    pixels = torch.from_numpy(image.astype(np.float32) / 255)[None, None]
    frames = torch.from_numpy(to_laf(keypoints, sigmas))[None]

    def extract() -> Any:
        with torch.inference_mode():
            return extract_patches_from_pyramid(pixels, frames, side)

    return extract


def photograph_and_keypoints(count: int) -> tuple[NDArray[np.uint8], Keypoints]:
    """(1024, 1536), and keypoints anywhere in it, a quarter as many in every next octave of scale, as with DoG."""
    astronaut = np.rint(255 * color.rgb2gray(data.astronaut())).astype(np.uint8)
    tiles = [astronaut, data.camera(), data.brick(), data.grass(), data.gravel(), data.moon()]
    rng = np.random.default_rng(0)
    x, y, sigma = rng.uniform(0, 1535, count), rng.uniform(0, 1023, count), rng.uniform(0.001, 1, count) ** -0.5
    return np.block([tiles[:3], tiles[3:]]), Keypoints(x, y, sigma, rng.uniform(-np.pi, np.pi, count))


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
