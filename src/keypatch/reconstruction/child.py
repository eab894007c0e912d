"""COLMAP's verification and mapping as a process of their own: `python -m keypatch.reconstruction.child`.

The job comes in as one line of JSON; lines of JSON go out: what is being done, how many photos are registered, and at
the end the outcome, or the error that pycolmap raised. The parent is `mapping.py`.
"""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.detection.loading_colmap import load_pycolmap
from keypatch.reconstruction.colmap import (
    colour_points,
    count_dense_points,
    map_incrementally,
    open_database,
    read_pairs,
    read_two_view_pose,
    verify,
    write_model,
)
from keypatch.reconstruction.outcome import Outcome
from keypatch.reconstruction.photo_colours import read_colours


@dataclass(frozen=True)
class Job:
    """A database with matches, and what to do with it."""

    database: str
    model: str  # the folder to write the model to; made if there is a model
    scratch: str  # a folder for COLMAP's own files
    photos: dict[str, str]  # where each image lies
    fixed: list[str]  # images whose camera is known and stays as it is
    max_error: float  # pixels, of verification
    seed: int
    threads: int
    seconds: float | None  # limit of it all; the mapper then stops with what it has
    dense: str | None = (
        None  # the folder of the photos: the model is there, and gets dense points, nothing else is done
    )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def work(job: Job) -> Outcome:
    """Verify, map, colour, write; or count the dense points of a model."""
    if job.dense is not None:
        tell(stage="computing dense points")
        return Outcome([], dense_points=count_dense_points(Path(job.model), Path(job.dense), Path(job.scratch)))
    start, two_views = time.monotonic(), len(job.photos) == 2
    path = Path(job.database)
    tell(stage="verifying")
    verify(path, max_error=job.max_error, seed=job.seed, threads=job.threads, relative_pose=two_views)
    with open_database(path) as database:
        pairs = read_pairs(database)
        fixed = {database.read_image_with_name(name).camera_id for name in job.fixed}
        if two_views:
            return Outcome(pairs, two_view=read_two_view_pose(database))
    if not any(pair.inliers for pair in pairs):
        return Outcome(pairs)
    tell(stage="mapping")
    model = map_incrementally(
        path,
        Path(job.scratch),
        seed=job.seed,
        threads=job.threads,
        constant_cameras=sorted(fixed),
        seconds=None if job.seconds is None else job.seconds - (time.monotonic() - start),
        on_start=lambda: tell(registered=2),
        on_next=lambda: tell(more=1),
    )
    if model is None:
        return Outcome(pairs)
    tell(stage="colouring")
    failures = colour_points(model, lambda name: np.asarray(read_colours(Path(job.photos[name]))))
    notes = [f"Points only in this photo stay grey: {failure}" for failure in failures]
    Path(job.model).mkdir(exist_ok=True)
    return Outcome(pairs, *write_model(model, Path(job.model)), notes=notes)


def tell(**news: object) -> None:
    print(json.dumps(news), flush=True)


def leave_with_the_parent() -> None:
    """End this process when the parent's end of the pipe closes, also if the parent was killed."""
    while os.read(0, 1):
        pass
    os._exit(1)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this process
    job = Job(**json.loads(sys.stdin.readline()))
    threading.Thread(target=leave_with_the_parent, daemon=True).start()
    try:
        tell(outcome=work(job).to_json())
    except Exception as error:
        tell(error=f"{type(error).__name__}: {error}", version=load_pycolmap().__version__)


if __name__ == "__main__":
    main()
