"""Whole pipelines beside ALIKED on oxford/ and strecha/ of a data folder, with the peers' weights in peers/.

    python bench/pipelines.py --data $DATA --out runs/pipelines --seconds 6

Writes table.md and table.json and, with --seconds N, seconds.json: median seconds per photograph over N photographs of
castle-P19 after one rehearsal, the pipelines taking turns. A stopped run goes on.
"""

import argparse
from pathlib import Path

import cv2
import torch

from keypatch.studies.pipelines import make_pipelines, measure_seconds, study_pipelines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=[""], help="pipelines whose name has one of these words in it")
    parser.add_argument("--ratio", type=float, nargs="+", default=[0], help="ratio tests, 0 for none")
    parser.add_argument("--seconds", type=int, default=0, metavar="N", help="measure seconds over N photographs")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    every = make_pipelines(arguments.data / "peers")
    pipelines = [each for each in every if any(word in each.name for word in arguments.only)]
    if arguments.seconds:
        photos = sorted((arguments.data / "strecha" / "castle-P19" / "images").iterdir())
        measure_seconds(pipelines, photos[: arguments.seconds + 1], arguments.out)
    study_pipelines(pipelines, arguments.data, arguments.out, [ratio or None for ratio in arguments.ratio])
    print((arguments.out / "table.md").read_text(encoding="utf-8"))
    print(f"written to {arguments.out / 'table.md'}")


if __name__ == "__main__":
    main()
