"""One bag of photographs through COLMAP: the model, and how far its cameras are from the true ones."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.multiview_bags import Bag
from keypatch.benchmarks.posed_scenes import PosedScene
from keypatch.errors import KeypatchError
from keypatch.files import write_json
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import Pose, relative_pose
from keypatch.metrics import angular_error
from keypatch.reconstruction.camera_models import Camera
from keypatch.reconstruction.checked_database import write_database
from keypatch.reconstruction.child import Job
from keypatch.reconstruction.mapping import run_colmap
from keypatch.reconstruction.text_models import read_text_poses

Matched = Mapping[tuple[str, str], NDArray[np.int32]]


@dataclass(frozen=True)
class BagOutcome:
    """What COLMAP made of a bag; without a model every error is inf."""

    errors: tuple[float, ...]  # degrees, of every pair of photos; inf if one is not in the model
    registered: int
    points: int
    track_length: float | None  # None without a model

    def save(self, path: Path) -> None:
        value = asdict(self) | {"errors": [None if np.isinf(error) else error for error in self.errors]}
        write_json(path, value)

    @classmethod
    def load(cls, path: Path) -> "BagOutcome | None":
        """What `save` wrote; None if it is not there or cannot be read, and has to be made again."""
        try:
            value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            errors = tuple(np.inf if error is None else float(error) for error in value.pop("errors"))
            return cls(errors=errors, **value)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


def reconstruct_bag(
    bag: Bag,
    scene: PosedScene,
    cameras: Mapping[str, Camera],
    keypoints: Mapping[str, Keypoints],
    matches: Matched,
    work: Path,
    *,
    known_cameras: bool,
    max_error: float,
    seed: int,
    lasting: bool,
) -> BagOutcome:
    """Verify and map the bag with one thread, in the folder `work`, which is removed at the end.

    `lasting`: what lies around `work` is still there after an error, so that one may name it.

    Raises:
        KeypatchError: COLMAP crashed; the folder stays.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    paths = {photo.name: str(photo.path.absolute()) for photo in scene.photos if photo.name in bag.photos}
    own = {name: cameras[name] for name in bag.photos}
    database = write_database(work / "database.db", own, keypoints, matches)
    fixed = list(bag.photos) if known_cameras else []
    model, scratch = work / "model", work / "colmap"
    scratch.mkdir()
    job = Job(str(database), str(model), str(scratch), paths, fixed, max_error, seed, threads=1, seconds=None)
    try:
        statistics = run_colmap(job, lasting=lasting).statistics
    except KeypatchError as error:
        rest = " The bags before it are kept." if lasting else ""
        raise KeypatchError(f"{scene.name}, {bag.name}: {error}{rest}") from error
    found = {} if statistics is None else read_text_poses(model)
    shutil.rmtree(work)
    return BagOutcome(
        errors=tuple(_error(pair, found, scene) for pair in combinations(bag.photos, 2)),
        registered=len(found),
        points=0 if statistics is None else statistics.points,
        track_length=None if statistics is None else statistics.track_length,
    )


def _error(pair: tuple[str, str], found: Mapping[str, Pose], scene: PosedScene) -> float:
    if not all(name in found for name in pair):
        return float("inf")
    first, second = (scene.cameras[name].pose for name in pair)
    return angular_error(relative_pose(found[pair[0]], found[pair[1]]), relative_pose(first, second))
