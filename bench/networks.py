"""How many patches per second each network describes, as ratios to HyNet's in one run: `python bench/networks.py`.

All go through the same fast path, `NetworkDescriber`, in processes that take turns.
"""

import argparse
import json
import sys
import time

import torch
from describing import network_in_use, random_patches
from racing import race, take_turns

from keypatch.cli.main import answer
from keypatch.describers.network import NetworkDescriber
from keypatch.networks import HardNet8, HyNet, L2Net, NetworkSpec, SmallNet, TFeat

SPECS: dict[str, NetworkSpec] = {
    "HyNet": HyNet(),
    "L2Net": L2Net(),
    "HardNet8": HardNet8(),
    "TFeat": TFeat(),
    "SmallNet": SmallNet(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patches", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.contestant:
        describer = NetworkDescriber(network_in_use(SPECS[json.loads(arguments.contestant)["network"]]), "", "cpu")
        patches = random_patches(arguments.patches)
        clock = time.process_time if arguments.threads == 1 else time.perf_counter
        take_turns(lambda: describer.describe(patches), clock)
        return
    options = ["--patches", str(arguments.patches), "--threads", str(arguments.threads)]
    best = race(__file__, [{"network": name} for name in SPECS], options, arguments.rounds)
    for name, run in zip(SPECS, best, strict=True):
        rate, times = arguments.patches / run["seconds"], best[0]["seconds"] / run["seconds"]
        print(f"{name:10}{rate:8.0f} patches/s {times:6.2f} times HyNet")


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
