"""COLMAP's verification and mapping in a process of their own: `python -m keypatch.colmap.child`.

The job comes in as one line of JSON. Lines of JSON go out: the stage, the number of registered photos, and at the end
the outcome, or the error that pycolmap raised. The parent is `process.py`.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.colmap.job import MappingJob, MappingOutcome
from keypatch.colmap.mapper import (
    colour_points,
    count_dense_points,
    map_incrementally,
    read_two_view_pose,
    read_verified_pairs,
    verify_matches,
    write_model,
)
from keypatch.colmap.package import load_pycolmap
from keypatch.images import read_colours


def work(job: MappingJob) -> MappingOutcome:
    """Verify, map, colour, write; or go on with a model; or count the dense points of one."""
    if job.dense is not None:
        tell(stage="computing dense points")
        model = Path(job.models) / "0"
        return MappingOutcome([], dense_points=count_dense_points(model, Path(job.dense), Path(job.scratch)))
    start, two_views = time.monotonic(), len(job.photos) == 2

    def left() -> float | None:
        return None if job.seconds is None else job.seconds - (time.monotonic() - start)

    path = Path(job.database)
    if job.begun is None:
        tell(stage="verifying")
        verify_matches(path, max_error=job.max_error, seed=job.seed, relative_pose=two_views)
    with closing(load_pycolmap().Database.open(job.database)) as database:
        pairs = read_verified_pairs(database)
        fixed = {database.read_image_with_name(name).camera_id for name in job.fixed}
        if two_views:
            return MappingOutcome(pairs, two_view=read_two_view_pose(database))
    if not any(pair.inliers for pair in pairs):
        return MappingOutcome(pairs)
    map_photos = partial(
        map_incrementally,
        path,
        Path(job.scratch),
        seed=job.seed,
        threads=job.threads,
        constant_cameras=sorted(fixed),
        on_start=lambda: tell(registered=2),
        on_next=lambda: tell(more=1),
    )
    tell(stage="mapping")
    if job.begun is not None:
        models = map_photos(seconds=left(), begun=Path(job.begun))
    else:
        models = map_photos(seconds=left())
        if _registered(models) < len(job.photos) / 2 and (left() or 1) > 0:
            tell(stage="mapping again, from any two photos")  # as a camera that moves straight ahead needs
            models = max(models, map_photos(seconds=left(), any_start=True), key=_registered)
    built, notes = [], dict[str, None]()
    for number, model in enumerate(models):
        tell(stage="colouring")
        failures = colour_points(model, lambda name: np.asarray(read_colours(Path(job.photos[name]))))
        notes |= dict.fromkeys(f"Points only in this photo stay grey: {failure}" for failure in failures)
        built.append(write_model(model, Path(job.models) / str(number)))
    return MappingOutcome(pairs, built, notes=list(notes))


def _registered(models: Sequence[Any]) -> int:
    """Photos in the largest model."""
    return models[0].num_reg_images() if models else 0


def tell(**news: object) -> None:
    print(json.dumps(news), flush=True)


def leave_with_the_parent() -> None:
    """End this process when the parent closes its end of the pipe, or is killed."""
    while os.read(0, 1):
        pass
    os._exit(1)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this process
    job = MappingJob(**json.loads(sys.stdin.readline()))
    threading.Thread(target=leave_with_the_parent, daemon=True).start()
    try:
        tell(outcome=work(job).to_json())
    except Exception as error:
        tell(error=f"{type(error).__name__}: {error}", version=load_pycolmap().__version__)


if __name__ == "__main__":
    main()
