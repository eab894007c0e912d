"""Three training runs for the six-split table: which set each was trained on, and the checkpoints that it kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from keypatch.errors import DataError, KeypatchError
from keypatch.patches import PatchSet
from keypatch.studies.ubc_rows import SETS
from keypatch.training import Recipe
from keypatch.training.checkpoints import Checkpoint, find_checkpoints, load_checkpoint


@dataclass(frozen=True)
class TrainedRun:
    """A run at its end; `checkpoints` are its weight files by step, oldest first, each step once."""

    folder: Path
    trained_on: str
    recipe: Recipe
    checkpoints: Mapping[int, Path]


def open_runs(places: Sequence[str | Path], sets: Mapping[str, PatchSet]) -> list[TrainedRun]:
    """The runs in the order of the sets they were trained on; a place is a run folder, or NAME=FOLDER.

    Raises:
        KeypatchError: they are not three runs of one recipe, seed and budget apart, one for each set.
    """
    if len(places) != len(SETS):
        raise KeypatchError(f"The six splits need three runs, one trained on each of {_sets()}; {len(places)} given.")
    runs = [_open_run(place, sets) for place in places]
    for name in SETS:
        trained = [run for run in runs if run.trained_on == name]
        if len(trained) != 1:
            which = " and ".join(str(run.folder) for run in trained) or "none of them"
            raise KeypatchError(f"One run for each of {_sets()} is needed; trained on {name}: {which}.")
        first = runs[0]
        own = replace(trained[0].recipe, seed=first.recipe.seed, pairs=first.recipe.pairs)
        if own != first.recipe:
            raise KeypatchError(
                f"{trained[0].folder} was trained with another recipe than {first.folder}; a row of the table is one "
                "recipe. Compare their recipe.toml."
            )
    return sorted(runs, key=lambda run: list(SETS).index(run.trained_on))


def _open_run(place: str | Path, sets: Mapping[str, PatchSet]) -> TrainedRun:
    name, _, rest = str(place).partition("=")
    folder = Path(rest if rest and name in SETS else place).expanduser()
    if not (folder / "recipe.toml").exists():
        raise DataError(f"{folder} is not a training run: there is no recipe.toml. Give run folders with --runs.")
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        raise DataError(f"{folder}: the run has no checkpoint yet; let it train to its end.")
    end = load_checkpoint(checkpoints[max(checkpoints)], groups=())
    if end.step < end.recipe.steps:
        raise DataError(
            f"{folder} is not at its end ({end.step / end.recipe.steps:.0%} trained). Go on with it by keypatch train "
            "--resume."
        )
    trained_on = _trained_on(folder, end, sets, name if rest and name in SETS else None)
    return TrainedRun(folder, trained_on, end.recipe, checkpoints)


def _checkpoints(folder: Path) -> dict[int, Path]:
    """Milestones and the newest checkpoints; what is kept under two names is taken once."""
    files = [*sorted((folder / "checkpoints").glob("at-*.safetensors")), *find_checkpoints(folder)]
    by_step = {load_checkpoint(file, groups=()).step: file for file in files}
    return dict(sorted(by_step.items()))


def _trained_on(folder: Path, end: Checkpoint, sets: Mapping[str, PatchSet], stated: str | None) -> str:
    """The set whose point ids the run was trained on; the stated one where none, or several, could be it."""
    data_hash = end.provenance.get("hashes", {}).get("data")
    known = [name for name, patches in sets.items() if sha256(patches.point_id.tobytes()).hexdigest() == data_hash]
    if stated is not None and known and stated not in known:
        raise KeypatchError(f"{stated}={folder}: the run was trained on {' or '.join(known)}. Leave out {stated}=.")
    if stated is None and len(known) != 1:
        raise KeypatchError(
            f"{folder} was trained on none of {_sets()} as they are in this folder. If it was one of them in another "
            f"copy, say which with {next(iter(SETS))}={folder}."
        )
    return stated or known[0]


def _sets() -> str:
    *others, last = SETS
    return f"{', '.join(others)} and {last}"
