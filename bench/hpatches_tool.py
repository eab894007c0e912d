"""One turn of the public HPatches tool for bench/hpatches.py, in the tool's own environment: TOOL WORK.

It hands descriptors over in memory and calls the tool's three tasks, which read their lists themselves.
"""

import json
import resource
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas

STRIPS = ("ref", *(f"{level}{image}" for level in "eht" for image in range(1, 6)))


def main() -> None:
    tool, work = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(tool))
    pandas.DataFrame.as_matrix = pandas.DataFrame.to_numpy  # gone since pandas 1.0, and the tool needs it
    from utils import tasks

    tasks.tskdir = str(work)
    names, rows = json.loads((work / "names.json").read_text()), np.load(work / "rows.npy")
    descriptors = {"distance": "L2", "dim": rows.shape[-1]}
    for name, strips in zip(names, rows, strict=True):
        descriptors[name] = SimpleNamespace(
            **dict(zip(STRIPS, strips, strict=True)), N=rows.shape[2], dim=rows.shape[3]
        )
    seconds, found = {}, {}
    for task in ("verification", "matching", "retrieval"):
        start = time.perf_counter()
        found[task] = tasks.methods[task](descriptors, {"name": "x", "test": names})
        seconds[task] = time.perf_counter() - start
    answer = {
        "seconds": seconds,
        "scores": scores(found, names),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    (work / "answer.json").write_text(json.dumps(answer))


def scores(found: dict, names: list) -> dict:
    """Means of the tool's numbers, under the names of keypatch."""
    values = {}
    for level in "eht":
        for kind in ("inter", "intra"):
            lists = found["verification"][level][kind]
            values[f"verification.auc.{level}.{kind}"] = float(lists["balanced"]["auc"])
            values[f"verification.ap.{level}.{kind}"] = float(lists["imbalanced"]["ap"])
        matched = [found["matching"][name][level][image] for name in names for image in range(1, 6)]
        values[f"matching.map.{level}"] = float(np.mean([each["ap"] for each in matched]))
        values[f"matching.sr.{level}"] = float(np.mean([each["sr"] for each in matched]))
        queries = found["retrieval"].values()
        for pool, name in ((100, "100"), (20000, "all")):
            values[f"retrieval.map.{level}.{name}"] = float(np.mean([query[level][pool]["ap"] for query in queries]))
    return values


if __name__ == "__main__":
    main()
