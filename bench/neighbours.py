"""How fast exact mutual nearest neighbours are found, and in how much memory, beside what a person would use instead.

    python bench/neighbours.py --vectors 8192 --rounds 5
    python bench/neighbours.py --vectors 100000 --rounds 2

The contestants take turns in processes of their own. torch's full matrix, which needs n * n * 4 bytes, and OpenCV's
brute force take part up to 20,000 vectors.
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
from keypatch.files import write_json
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.provenance import provenance

SLOW_ABOVE = 20_000  # vectors
DIM = 128
CHUNK = 4096

Vectors = NDArray[np.float32]
Pairs = NDArray[np.int64]  # (m, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.contestant:
        compete(json.loads(arguments.contestant)["who"], arguments.vectors, arguments.threads)
        return
    names = [name for name in CONTESTANTS if arguments.vectors <= SLOW_ABOVE or name not in SLOW]
    options = ["--vectors", str(arguments.vectors), "--threads", str(arguments.threads)]
    best = race(__file__, [{"who": name} for name in names], options, arguments.rounds)
    rows = [{"who": name, **result} for name, result in zip(names, best, strict=True)]
    ours = rows[0]["seconds"]
    print(f"{arguments.vectors} x {arguments.vectors} vectors of {DIM}, {arguments.threads} threads")
    print(f"{'who':28}{'seconds':>9}{'times ours':>12}{'added MB':>10}")
    for row in rows:
        print(f"{row['who']:28}{row['seconds']:9.3f}{row['seconds'] / ours:12.2f}{row['peak_mb']:10.0f}")
    if arguments.out:
        settings = {name: getattr(arguments, name) for name in ("vectors", "threads", "rounds")}
        result = {"bench": "neighbours", "settings": settings, "rows": rows}
        write_json(arguments.out, result | {"provenance": provenance().to_json()})
        print(f"written to {arguments.out}")


def compete(who: str, count: int, threads: int) -> None:
    cv2.setNumThreads(threads)
    if who == "faiss":
        import faiss

        faiss.omp_set_num_threads(threads)
    find = CONTESTANTS[who]
    few = vectors(2000)  # loads what is loaded on first use, and shows that all do the same
    if not np.array_equal(find(*few), by_keypatch(*few)):
        raise RuntimeError(f"{who} finds other neighbours")
    first, second = vectors(count)
    take_turns(lambda: find(first, second))


def vectors(count: int) -> tuple[Vectors, Vectors]:
    """Unit vectors, every other one of the second set near one of the first.

    Made piece by piece: what making them takes would hide what matching adds to the largest memory so far.
    """
    generator = torch.Generator().manual_seed(0)
    sets = torch.zeros(2, count, DIM)
    for start in range(0, count, 1000):
        first, second = torch.randn(2, min(1000, count - start), DIM, generator=generator)
        second[::2] = first[::2] + 0.5 * second[::2]
        for whole, part in zip(sets, (first, second), strict=True):
            whole[start : start + 1000] = torch.nn.functional.normalize(part)
    return sets[0].numpy(), sets[1].numpy()


def by_keypatch(a: Vectors, b: Vectors) -> Pairs:
    return match_descriptors(a, b, Matching(ratio=None), device="cpu").indices.astype(np.int64)


def by_faiss(a: Vectors, b: Vectors) -> Pairs:
    import faiss

    def nearest(queries: Vectors, others: Vectors) -> NDArray[np.int64]:
        index = faiss.IndexFlatIP(DIM)
        index.add(others)
        places: NDArray[np.int64] = index.search(queries, 1)[1][:, 0]
        return places

    return mutual(nearest(a, b), nearest(b, a))


def by_full_matrix(a: Vectors, b: Vectors) -> Pairs:
    products = torch.from_numpy(a) @ torch.from_numpy(b).T
    return mutual(products.argmax(1).numpy(), products.argmax(0).numpy())


def by_chunks(a: Vectors, b: Vectors) -> Pairs:
    def nearest(queries: Vectors, others: Vectors) -> NDArray[np.int64]:
        parts = torch.split(torch.from_numpy(queries), CHUNK)
        places: Any = torch.cat([(part @ torch.from_numpy(others).T).argmax(1) for part in parts]).numpy()
        return np.asarray(places)

    return mutual(nearest(a, b), nearest(b, a))


def by_opencv(a: Vectors, b: Vectors) -> Pairs:
    found = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)
    return np.array([(match.queryIdx, match.trainIdx) for match in found], np.int64)


def mutual(forth: NDArray[np.int64], back: NDArray[np.int64]) -> Pairs:
    numbers = np.arange(len(forth))
    kept = back[forth] == numbers
    return np.stack([numbers, forth], axis=1)[kept]


CONTESTANTS: dict[str, Callable[[Vectors, Vectors], Pairs]] = {
    "keypatch": by_keypatch,
    "faiss": by_faiss,
    "torch, chunks and argmax": by_chunks,
    "torch, full matrix": by_full_matrix,
    "OpenCV BFMatcher": by_opencv,
}
SLOW = ("torch, full matrix", "OpenCV BFMatcher")

if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
