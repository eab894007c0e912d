"""The small HPatches set of the reference figures, in the public tool's layout; written with plain numpy.

`tests/reference/hpatches_mini/data.npz` holds the descriptors as integers, "mini/<sequence>" (16 strips, rows, 16)
in units of 0.0001 and "miniq/<sequence>" as they are, and the bytes of the task files, "tasks/<file>".
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

STRIPS = ("ref", *(f"{level}{image}" for level in "eht" for image in range(1, 6)))


@dataclass(frozen=True)
class Mini:
    descriptors: dict[str, Path]
    tasks: Path


@pytest.fixture(scope="session")
def mini(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Mini:
    folder = tmp_path_factory.mktemp("hpatches")
    tasks = folder / "tasks"
    (tasks / "splits").mkdir(parents=True)
    shutil.copyfile(reference / "hpatches_mini" / "splits.json", tasks / "splits" / "splits.json")
    with np.load(reference / "hpatches_mini" / "data.npz") as packed:
        for key in packed:
            kind, name = key.split("/")
            if kind == "tasks":
                (tasks / name).write_bytes(packed[key].tobytes())
                continue
            (folder / kind / name).mkdir(parents=True)
            values, form = (packed[key] / 10_000, "%.4f") if kind == "mini" else (packed[key], "%d")
            for strip, rows in zip(STRIPS, values, strict=True):
                np.savetxt(folder / kind / name / f"{strip}.csv", rows, form, ",")
    return Mini({kind: folder / kind for kind in ("mini", "miniq")}, tasks)


@pytest.fixture
def copied(mini: Mini, tmp_path: Path) -> Mini:
    """A copy that a test may damage."""
    shutil.copytree(mini.descriptors["mini"], tmp_path / "mini")
    shutil.copytree(mini.tasks, tmp_path / "tasks")
    return Mini({"mini": tmp_path / "mini"}, tmp_path / "tasks")
