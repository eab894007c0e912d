"""How many patches per second each network describes, as ratios to HyNet's in one run: `python bench/networks.py`.

All go through the same fast path, `NetworkDescriber`, in processes that take turns; with `--precision int8` through the
exported file, by OpenVINO or, where that is not installed, by onnxruntime.
"""

import argparse
import json
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import torch
from describing import network_in_use, random_patches, write_onnx
from racing import race, take_turns

from keypatch.cli.main import answer
from keypatch.describers.network import NetworkDescriber
from keypatch.describers.onnx_file import OnnxDescriber
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
    parser.add_argument("--networks", nargs="+", default=list(SPECS), choices=list(SPECS))
    parser.add_argument("--precision", nargs="+", default=["float32"], choices=["float32", "bfloat16", "int8"])
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.contestant:
        compete(arguments)
        return
    options = ["--patches", str(arguments.patches), "--threads", str(arguments.threads)]
    field = [{"network": name, "precision": kind} for name, kind in product(arguments.networks, arguments.precision)]
    best = race(__file__, field, options, arguments.rounds)
    for contestant, run in zip(field, best, strict=True):
        rate, times = arguments.patches / run["seconds"], best[0]["seconds"] / run["seconds"]
        first = " ".join(field[0].values())
        print(f"{contestant['network']:10}{contestant['precision']:10}{rate:8.0f} patches/s {times:6.2f} times {first}")


def compete(arguments: argparse.Namespace) -> None:
    contestant = json.loads(arguments.contestant)
    spec, precision = SPECS[contestant["network"]], contestant["precision"]
    patches = random_patches(arguments.patches)
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        if precision == "int8":
            describe = OnnxDescriber(write_onnx(spec, Path(folder))["int8"]).describe
        else:
            describe = NetworkDescriber(network_in_use(spec), "", "cpu", precision).describe
        take_turns(lambda: describe(patches), clock)


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
