"""How fast AdaLAM is beside kornia's, and in how much memory, on photographs with neighbours found before.

    python bench/filters.py --scene $DATA/strecha/castle-P19

Every photo with the three after it by name; both take turns at each pair, on one thread. Beside the time on the clock
stands that of the processor, all threads together: on a machine with other work a call of a few milliseconds waits for
its turn longer than it takes. Memory is what a process of its own adds for the pair with the most candidates.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from keypatch.benchmarks.imc.scenes import read_posed_scene
from keypatch.cli.main import answer
from keypatch.features import Extraction, Features, read_photo
from keypatch.features.extraction import extract_grey
from keypatch.matching.adalam import AdaLAM, Candidates
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import find_nearest, turned_alike
from keypatch.zoo import load

REACH = 3
ADALAM, USUAL = AdaLAM(), Matching()
Filter = Callable[[Candidates], NDArray[np.bool_]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", type=Path, required=True)
    parser.add_argument("--keypoints", type=int, default=2048)
    parser.add_argument("--descriptor", default="rootsift")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    scene, describer = read_posed_scene(arguments.scene), load(arguments.descriptor)
    pairs = scene.pairs(REACH)
    if arguments.contestant:
        pairs = [pairs[len(pairs) // 2]]
    wanted = {name for pair in pairs for name in pair}
    features = {
        photo.name: extract_grey(read_photo(photo.path), describer, Extraction(keypoints=arguments.keypoints))
        for photo in scene.photos
        if photo.name in wanted
    }
    if arguments.contestant:
        print(json.dumps(added_memory(FILTERS[arguments.contestant], candidates_of(*map(features.get, pairs[0])))))
        return
    seconds: dict[str, list[float]] = {who: [] for who in FILTERS}
    busy: dict[str, list[float]] = {who: [] for who in FILTERS}
    kept: dict[str, list[int]] = {who: [] for who in FILTERS}
    for number, (first, second) in enumerate([pairs[0], *pairs]):  # the first is a rehearsal
        candidates = candidates_of(features[first], features[second])
        for who, keep in FILTERS.items():
            start, busy_start = time.perf_counter(), time.process_time()
            count = int(keep(candidates).sum())
            if number:
                seconds[who].append(time.perf_counter() - start)
                busy[who].append(time.process_time() - busy_start)
                kept[who].append(count)
    print(f"{scene.name}: {len(pairs)} pairs, {arguments.keypoints} keypoints of {arguments.descriptor}, one thread")
    heads = f"{'clock, ms':>12}{'90 %':>8}{'kornia over it':>16}{'processor, ms':>15}{'kornia over it':>16}"
    print(f"{'who':22}{heads}{'kept':>8}{'added MB':>10}")
    for who in FILTERS:
        clock, processor = 1e3 * np.median(seconds[who]), 1e3 * np.median(busy[who])
        late = 1e3 * np.quantile(seconds[who], 0.9)
        times = 1e3 * np.median(seconds["kornia"]) / clock
        busy_times = 1e3 * np.median(busy["kornia"]) / processor
        row = f"{who:22}{clock:12.1f}{late:8.1f}{times:16.1f}{processor:15.1f}{busy_times:16.1f}"
        print(row + f"{np.mean(kept[who]):8.0f}{memory_of(who, arguments):10.0f}")


def candidates_of(first: Features | None, second: Features | None) -> Candidates:
    """Every keypoint of the first photo with its nearest neighbour, as both filters take them."""
    if first is None or second is None:
        raise ValueError("a photo of the pair has no features")
    forth, back = find_nearest(torch.from_numpy(first.descriptors), torch.from_numpy(second.descriptors))
    ratio = (forth.closeness / forth.runner_up).clamp(min=0).sqrt().numpy()
    mutual = (back.index[forth.index] == torch.arange(len(first))).numpy()
    partners = second.keypoints.take(forth.index.numpy())
    return Candidates(first.keypoints, partners, (first.image_size, second.image_size), ratio, mutual)


def by_kornia(candidates: Candidates) -> NDArray[np.bool_]:
    from kornia.feature.adalam.adalam import get_adalam_default_config
    from kornia.feature.adalam.core import adalam_core

    first, second = candidates.first, candidates.second
    found = adalam_core(
        torch.from_numpy(first.xy.astype(np.float32)),
        torch.from_numpy(second.xy.astype(np.float32)),
        torch.arange(len(first)),
        torch.from_numpy(candidates.ratio**2),
        get_adalam_default_config(),
        torch.from_numpy(candidates.mutual),
        tuple(reversed(candidates.sizes[0])),
        tuple(reversed(candidates.sizes[1])),
        torch.rad2deg(torch.from_numpy(first.angle)),
        torch.rad2deg(torch.from_numpy(second.angle)),
        torch.from_numpy(first.sigma),
        torch.from_numpy(second.sigma),
    )
    kept = np.zeros(len(first), np.bool_)
    kept[found[:, 0].numpy()] = True
    return kept


def as_matched(candidates: Candidates) -> NDArray[np.bool_]:
    """As `keypatch match` asks: neighbours that are not mutual, or turned otherwise than most, are left out first."""
    left = np.flatnonzero(candidates.mutual)
    turned = torch.from_numpy(candidates.second.angle[left] - candidates.first.angle[left])
    distinct = torch.from_numpy(candidates.ratio[left] < (USUAL.ratio or 1))
    left = left[turned_alike(turned, distinct, USUAL.turn).numpy()]
    kept = np.zeros(len(candidates.mutual), np.bool_)
    kept[left] = ADALAM(candidates.take(left))
    return kept


FILTERS: dict[str, Filter] = {"keypatch": ADALAM, "keypatch, as matched": as_matched, "kornia": by_kornia}


def added_memory(keep: Filter, candidates: Candidates) -> float:
    """MB that the largest memory of this process grows by."""
    keep(candidates.take(np.arange(100)))  # loads what is loaded on first use
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    keep(candidates)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def memory_of(who: str, arguments: argparse.Namespace) -> float:
    options = ["--scene", str(arguments.scene), "--keypoints", str(arguments.keypoints)]
    command = [sys.executable, __file__, *options, "--descriptor", arguments.descriptor, "--contestant", who]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(answer))


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
