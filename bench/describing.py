"""How fast patches are described, as ratios against kornia in one run: `python bench/describing.py [--out FILE.json]`.

Kornia gets all patches in one call, once in a process as it comes and once in one whose allocator keeps the heap,
beside ours under the same settings. `--backends` adds others to the race: ours without the compiled kernels, torch's
compiler, onnxruntime and OpenVINO. With `--descriptor NAME --data FOLDER` it adds what bfloat16 does to the FPR95 of a
trained network on the pair lists of a PhotoTour folder.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from racing import gemm, gemm_flops, race, take_turns

from keypatch.benchmarks.ubc import evaluate_ubc
from keypatch.cli.main import answer
from keypatch.describers import folding, kernels
from keypatch.describers.export import RawPatches, facts_of, to_int8, to_onnx, with_metadata
from keypatch.describers.network import NetworkDescriber, in_chunks
from keypatch.describers.onnx_file import OnnxDescriber, _start_openvino
from keypatch.files import write_json
from keypatch.networks import HyNet, L2Net, NetworkSpec, PatchNetwork, has_fast_bfloat16, prepare
from keypatch.provenance import provenance
from keypatch.training.machine import keep_heap
from keypatch.zoo import load

FLOPS_PER_PATCH = 78.18e6  # the trunk: 39.09 million multiply-adds
SPECS: dict[str, NetworkSpec] = {"hardnet": L2Net(), "hynet": HyNet()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patches", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--networks", nargs="+", default=list(SPECS), choices=list(SPECS))
    parser.add_argument("--backends", action="store_true")
    parser.add_argument("--processor-time", action="store_true", help="for one thread on a machine with other work")
    parser.add_argument("--descriptor")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.contestant:
        clock = time.process_time if arguments.processor_time else time.perf_counter
        compete(json.loads(arguments.contestant), arguments.patches, clock)
        return
    rows = []
    options = ["--patches", str(arguments.patches), "--threads", str(arguments.threads)]
    options += ["--processor-time"] if arguments.processor_time else []
    for network in arguments.networks:  # one network after the other: all processes at once would hold much memory
        with tempfile.TemporaryDirectory() as folder:
            field = contestants(network) + (backends(network, Path(folder)) if arguments.backends else [])
            rows += rows_of(field, race(__file__, field, options, arguments.rounds), arguments.patches)
    print_table(rows)
    changes = bfloat16_changes(arguments.descriptor, arguments.data)
    for change in changes:
        print(", ".join(f"{name} {value}" for name, value in change.items()))
    if arguments.out:
        settings = {"patches": arguments.patches, "threads": arguments.threads, "rounds": arguments.rounds}
        result = {"bench": "describing", "settings": settings, "rows": rows, "bfloat16": changes}
        write_json(arguments.out, result | {"provenance": provenance().to_json()})
        print(f"written to {arguments.out}")


def precisions() -> tuple[str, ...]:
    return ("float32", "bfloat16") if has_fast_bfloat16(torch.device("cpu")) else ("float32",)


def contestants(network: str) -> list[dict[str, Any]]:
    """The matrix product, then kornia and ours, each with either heap."""
    field: list[dict[str, Any]] = [{"who": "gemm", "network": network, "heap": "default", "precision": "float32"}]
    for heap in ("default", "kept"):
        field.append({"who": "kornia", "network": network, "heap": heap, "precision": "float32"})
        field += [{"who": "keypatch", "network": network, "heap": heap, "precision": kind} for kind in precisions()]
    return field


def backends(network: str, folder: Path) -> list[dict[str, Any]]:
    """What else could describe on this machine."""
    files = write_onnx(SPECS[network], folder)
    others = [("onednn", kind) for kind in precisions()] + [("compile", "float32")]
    others += [("onnxruntime", "float32"), ("onnxruntime", "int8")]
    if find_spec("openvino"):
        others += [("openvino", kind) for kind in (*precisions(), "int8")]
    return [
        {
            "who": who,
            "network": network,
            "heap": "default",
            "precision": kind,
            "file": str(files.get(kind, files["float32"])),
        }
        for who, kind in others
    ]


def write_onnx(spec: NetworkSpec, folder: Path) -> dict[str, Path]:
    """The network as ONNX files by their precision; int8 is calibrated on random patches."""
    module = network_in_use(spec)
    model = to_onnx(module)
    calibration = random_patches(512)[:, None].astype(np.float32)
    made = {"float32": model, "int8": to_int8(model, calibration)}
    files = {kind: folder / f"{kind}.onnx" for kind in made}
    for kind, file in files.items():
        file.write_bytes(with_metadata(made[kind], facts_of(module)))
    return files


def compete(contestant: dict[str, Any], patches: int, clock: Callable[[], float]) -> None:
    who, precision = contestant["who"], contestant["precision"]
    if contestant["heap"] == "kept":
        keep_heap()
    if who == "gemm":
        take_turns(gemm(), clock)
    elif who == "kornia":
        take_turns(kornia_work(contestant["network"], random_patches(patches)), clock)
    else:
        described = random_patches(patches)
        describe = describer_of(who, contestant["network"], precision, contestant.get("file", ""))
        take_turns(lambda: describe(described), clock)


def describer_of(who: str, name: str, precision: str, file: str) -> Callable[[NDArray[np.uint8]], object]:
    if who in ("onnxruntime", "openvino"):
        described = OnnxDescriber(Path(file), runtime=who)
        if precision == "bfloat16":
            described._run = _start_openvino(Path(file).read_bytes(), described._at_once, "bf16")
        return described.describe
    network = network_in_use(SPECS[name])
    if who == "compile":
        return compiled(network)
    if who == "onednn":  # ours, as where there is no compiler
        kernels.load_library = folding.winograd = folding.filter_responses = lambda *given: None
    return NetworkDescriber(network, "keypatch", "cpu", precision).describe


def compiled(network: PatchNetwork) -> Callable[[NDArray[np.uint8]], object]:
    """torch.compile on chunks of 32, the size that is fastest, each on one thread."""
    module = torch.compile(RawPatches(network).to(memory_format=torch.channels_last), dynamic=False)

    @torch.inference_mode()
    def describe(chunk: NDArray[np.uint8]) -> NDArray[np.float32]:
        described: NDArray[np.float32] = module(torch.from_numpy(chunk).float().unsqueeze(1)).numpy()
        return described

    describe(random_patches(32))  # compiles, before there are several threads
    return lambda patches: in_chunks(patches, 32, network.dim, describe)


def kornia_work(name: str, patches: NDArray[np.uint8]) -> Callable[[], object]:
    import kornia

    network = {"hardnet": kornia.feature.HardNet, "hynet": kornia.feature.HyNet}[name](pretrained=False).eval()

    @torch.inference_mode()
    def describe() -> object:
        return network(torch.from_numpy(patches).unsqueeze(1) / 255.0).numpy()

    return describe


def network_in_use(spec: NetworkSpec) -> PatchNetwork:
    """An untrained network whose batch statistics are those of its patches: its numbers have their usual size."""
    torch.manual_seed(0)
    network = spec.build()
    for _ in range(20):
        network(prepare(torch.from_numpy(random_patches(64)), spec.preprocessing))
    return network.eval()


def random_patches(count: int) -> NDArray[np.uint8]:
    """Smooth random patches (count, 32, 32)."""
    coarse = torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    fine = torch.nn.functional.interpolate(coarse, (32, 32), mode="bicubic").clamp(0, 1)
    patches: NDArray[np.uint8] = (255 * fine[:, 0]).to(torch.uint8).numpy()
    return patches


def rows_of(field: list[dict[str, Any]], best: list[dict[str, float]], patches: int) -> list[dict[str, Any]]:
    rate = gemm_flops(best[0]["seconds"])
    kornia = {who["heap"]: run["seconds"] for who, run in zip(field, best, strict=True) if who["who"] == "kornia"}
    rows = []
    for who, run in zip(field[1:], best[1:], strict=True):
        figures = {
            "patches_per_second": patches / run["seconds"],
            "share_of_gemm": FLOPS_PER_PATCH * patches / run["seconds"] / rate,
            "times_kornia": kornia["default"] / run["seconds"],
            "times_kornia_heap_kept": kornia["kept"] / run["seconds"],
            "peak_mb": run["peak_mb"],
        }
        rows.append(who | figures | {"gemm_gflops": rate / 1e9})
    return rows


def bfloat16_changes(descriptor: str | None, data: Path | None) -> list[dict[str, Any]]:
    """How far bfloat16 moves the descriptors of random patches and the scores of a trained network."""
    if "bfloat16" not in precisions():
        return []
    changes: list[dict[str, Any]] = []
    for name, spec in SPECS.items():
        network, patches = network_in_use(spec), random_patches(512)
        a, b = (NetworkDescriber(network, name, "cpu", kind).describe(patches) for kind in precisions())
        largest, cosine = float(np.abs(a - b).max()), float((a * b).sum(1).min())
        changes.append({"network": name, "bfloat16 moves an entry by at most": largest, "least cosine": cosine})
    if descriptor and data:
        for kind in precisions():
            scores = evaluate_ubc(load(descriptor, "cpu", kind), data).scores
            rates = {name: score for name, score in scores.items() if name.startswith("fpr95")}
            changes.append({"descriptor": descriptor, "data": data.name, "precision": kind} | rates)
    return changes


def print_table(rows: list[dict[str, Any]]) -> None:
    print(f"float32 matrix product of this machine: {max(row['gemm_gflops'] for row in rows):.0f} GFLOP/s")
    print(f"{'':52}{'share of':>10}{'times':>9}{'times kornia':>14}{'added':>8}")
    print(
        f"{'network':9}{'who':12}{'precision':11}{'heap':9}{'patches/s':>11}{'gemm':>10}{'kornia':>9}"
        f"{'heap kept':>14}{'MB':>8}"
    )
    for row in rows:
        print(
            f"{row['network']:9}{row['who']:12}{row['precision']:11}{row['heap']:9}{row['patches_per_second']:11.0f}"
            f"{row['share_of_gemm']:10.0%}{row['times_kornia']:9.2f}{row['times_kornia_heap_kept']:14.2f}"
            f"{row['peak_mb']:8.0f}"
        )


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
