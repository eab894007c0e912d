"""How fast the three HPatches tasks are scored, beside the public Python tool; and the whole size in how much memory.

    python bench/hpatches.py --tool hpatches-benchmark/python --python OLD/bin/python --rounds 3
    python bench/hpatches.py --full

The tool is https://github.com/hpatches/hpatches-benchmark; OLD is an environment with the versions that it still runs
with: numpy 1.26.4, pandas 1.5.3, scipy 1.11.4, tqdm, joblib, opencv-python-headless below 4.11. Both get the same
seeded descriptors (sequences x 1,488 points x 16 strips x 128 numbers, already in memory) and the same files of lists,
take turns, each turn a process of its own, and have to agree on every score. --full scores 40 sequences with lists of
the public size, by keypatch alone.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from racing import peak_mb

from keypatch.benchmarks.hpatches.descriptors import StripDescriptors
from keypatch.benchmarks.hpatches.lists import Tasks, draw_tasks, read_tasks
from keypatch.benchmarks.hpatches.scores import score_strips
from keypatch.cli.main import answer
from keypatch.files import write_json
from keypatch.patches.hpatches import STRIPS
from keypatch.provenance import provenance

DIM, SUBSPACE = 128, 24  # points lie near a subspace, so that some come near each other as real ones do
NOISE = {"r": 0.0, "e": 0.7, "h": 1.0, "t": 1.3}  # how far the descriptors of a strip are from those of the points
FULL = 40
AGREE = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, help="folder python/ of the public tool")
    parser.add_argument("--python", type=Path, help="interpreter of the tool's environment")
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--points", type=int, default=1488)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help=f"{FULL} sequences, keypatch alone")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--contestant", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        compete(arguments.contestant, arguments.threads)
        return
    if not arguments.full and not (arguments.tool and arguments.python):
        parser.error("give --tool and --python, or --full")
    for path in () if arguments.full else (arguments.tool, arguments.python):
        if not path.exists():
            parser.error(f"there is no {path}")
    with tempfile.TemporaryDirectory() as work:
        make_set(Path(work), FULL if arguments.full else arguments.sequences, arguments.points)
        rows = race(Path(work), arguments)
    show(rows)
    if arguments.out:
        names = ("sequences", "points", "threads", "rounds", "full")
        settings = {name: getattr(arguments, name) for name in names}
        write_json(
            arguments.out,
            {"bench": "hpatches", "settings": settings, "rows": rows, "provenance": provenance().to_json()},
        )
        print(f"written to {arguments.out}")


def race(work: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The best turn of each contestant."""
    field = {"keypatch": [sys.executable, __file__, "--threads", str(arguments.threads), "--contestant", str(work)]}
    if not arguments.full:
        driver = Path(__file__).with_name("hpatches_tool.py")
        field["public tool"] = [str(arguments.python), str(driver), str(arguments.tool.resolve()), str(work)]
    threads = {name: str(arguments.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    best: dict[str, dict[str, Any]] = {}
    for turn in range(arguments.rounds):
        for who, command in field.items():
            subprocess.run(
                command, env=os.environ | threads, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            answer = json.loads((work / "answer.json").read_text())
            total = sum(answer["seconds"].values())
            print(f"turn {turn + 1}, {who}: {total:.2f} s", flush=True)
            if who not in best or total < best[who]["total"]:
                best[who] = {"who": who, "total": total, **answer}
    if len(best) == 2:
        ours, theirs = best["keypatch"]["scores"], best["public tool"]["scores"]
        apart = max(abs(ours[name] - score) for name, score in theirs.items())
        if apart > AGREE:
            raise RuntimeError(f"the scores differ by {apart:.2g}")
        print(f"{len(theirs)} scores differ by {apart:.1g} at most")
    return list(best.values())


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'who':14}{'seconds':>9}{'times ours':>12}{'peak MB':>9}")
    for row in rows:
        parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in row["seconds"].items())
        ratio = row["total"] / rows[0]["total"]
        print(f"{row['who']:14}{row['total']:9.2f}{ratio:12.1f}{row['peak_mb']:9.0f}  {parts}")


def make_set(work: Path, sequences: int, points: int) -> None:
    """rows.npy (sequences, 16, points, 128), names.json and the lists in the public layout."""
    rng = np.random.default_rng(0)
    names = [f"{'iv'[number % 2]}_{number:02}" for number in range(sequences)]
    rows = np.lib.format.open_memmap(work / "rows.npy", "w+", np.float32, (sequences, len(STRIPS), points, DIM))
    plane = rng.standard_normal((SUBSPACE, DIM)).astype(np.float32) / np.sqrt(DIM)
    for sequence in rows:
        base = unit(rng.standard_normal((points, SUBSPACE), np.float32) @ plane)
        for target, strip in zip(sequence, STRIPS, strict=True):
            noise = unit(rng.standard_normal((points, SUBSPACE), np.float32) @ plane)
            target[:] = unit(
                base + NOISE[strip[0]] * noise + 0.2 * unit(rng.standard_normal((points, DIM), np.float32))
            )
    rows.flush()
    (work / "names.json").write_text(json.dumps(names))
    write_lists(draw_tasks(names, [points] * sequences), names, work)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write_lists(tasks: Tasks, names: list[str], work: Path) -> None:
    for kind, name in (("positives", "pos"), ("inter", "neg_inter"), ("intra", "neg_intra")):
        lines = [f"{names[a]},{t},{i},{names[b]},{u},{j}" for a, t, i, b, u, j in getattr(tasks, kind).tolist()]
        (work / f"verif_{name}_split-x.csv").write_text("\n".join(["s1,t1,idx1,s2,t2,idx2", *lines]) + "\n")
    for kind in ("queries", "distractors"):
        lines = [f"{names[s]},{i}" for s, i in getattr(tasks, kind).tolist()]
        (work / f"retr_{kind}_split-x.csv").write_text("\n".join(["s,idx", *lines]) + "\n")


def compete(work: Path, threads: int) -> None:
    """One turn of keypatch."""
    torch.set_num_threads(threads)
    rows, names = np.load(work / "rows.npy"), json.loads((work / "names.json").read_text())
    counts = [rows.shape[2]] * len(names)
    descriptors = StripDescriptors(tuple(names), np.array(counts), rows.reshape(-1, DIM))
    start = time.perf_counter()
    tasks = read_tasks(work, "x", names, counts)
    read = time.perf_counter()
    scored = score_strips(descriptors, tasks, ties="public")
    seconds = {"lists": read - start, "tasks": time.perf_counter() - read}
    answer = {"seconds": seconds, "scores": scored.scores, "peak_mb": peak_mb()}
    (work / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
