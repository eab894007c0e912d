"""The files of a run: recipe.toml, run.json, log.jsonl, checkpoints/, card.json, and the lock that keeps others out."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from keypatch.errors import KeypatchError, MissingExtra
from keypatch.files import (
    PARTIAL_SUFFIX,
    Format,
    lock,
    make_folder,
    parse_json,
    reading,
    reason,
    write_json,
    write_text,
)
from keypatch.settings import build, to_plain
from keypatch.training.checkpoints import (
    KEPT,
    Checkpoint,
    checkpoint_path,
    epoch_path,
    find_checkpoints,
    load_checkpoint,
    milestone_path,
    newest_checkpoint,
    save_checkpoint,
)
from keypatch.training.conditions import Conditions
from keypatch.training.epochs import is_error
from keypatch.training.ranks import launch_name
from keypatch.training.recipe import Recipe
from keypatch.training.recipe_files import holds_recipe, write_recipe

Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Record:
    """One line of log.jsonl: means since the record before."""

    step: int
    pairs: int
    loss: float
    terms: dict[str, float]
    positive: float  # mean Euclidean distance of matching pairs
    negative: float | None  # and to the mined negatives, where there are any
    rate: float  # pairs per second
    lr: float
    seconds: float  # of training, all sittings
    statistics: dict[str, float]  # scalars that stateful terms and samplers keep, after the last step
    validation: Scores | None = None  # by validation set and score, as shares, where they were taken

    def sentence(self, validation: Scores | None) -> str:
        """For the progress; with the last validation there was."""
        negatives = "" if self.negative is None else f"  negatives {self.negative:.3f}"
        scores = [
            f"  {of} {'FPR95' if is_error(score) else 'mAP'} {100 * value:.2f} %"
            for of, named in (validation or {}).items()
            for score, value in named.items()
        ]
        return f"loss {self.loss:.4f}  positives {self.positive:.3f}{negatives}{''.join(scores)}"


@dataclass(frozen=True)
class Origin:
    """run.json: what a run was started with besides its recipe, so that its folder is all it takes to resume it."""

    data: tuple[str, ...] = ()  # absolute paths, or "embedded"; none where the patches lie in no folder
    split: str | None = None
    allow_partial: bool = False
    validation: tuple[str, ...] = ()  # absolute paths
    teacher: str | None = None  # a zoo name or an absolute path
    conditions: Conditions = Conditions()  # noqa: RUF009 (frozen)


_LAUNCH = ".launch"
LOG = "log.jsonl"
ORIGIN = Format("keypatch-run", 1, "record of a run")


def read_origin(run: Path) -> Origin:
    """An empty one for a run of an older version, or one started below `keypatch.train`."""
    path = run / "run.json"
    if not path.exists():
        return Origin()
    values = {name: value for name, value in ORIGIN.read_json(path).items() if name not in ORIGIN.head()}
    if values.get("validation") is None:  # there was a single one, or none
        values.pop("validation", None)
    origin: Origin = build(Origin, values, str(path))
    return origin


def read_log(run: Path) -> list[dict[str, Any]]:
    """The records of a run's log, a mapping each; a line cut off when the process was killed is passed over.

    Raises:
        DataError: there is no log, or it cannot be read.
    """
    records = []
    with reading(run / LOG, "log of a run"):
        lines = (run / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        with suppress(ValueError):
            records.append(parse_json(line))
    return [record for record in records if isinstance(record, dict)]


def _step(record: Mapping[str, Any]) -> float:
    step = record.get("step")
    return step if isinstance(step, int) else math.inf


class RunFolder:
    """A folder that one training writes; made by `hold`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def hold(cls, path: Path) -> Iterator["RunFolder"]:
        """The run folder, made where missing, for one writer at a time."""
        make_folder(path / "checkpoints")
        with lock(path / ".lock", f"The run {path}"):
            for killed in [*path.glob(f".*{PARTIAL_SUFFIX}"), *path.glob(f"checkpoints/.*{PARTIAL_SUFFIX}")]:
                killed.unlink(missing_ok=True)
            yield cls(path)

    def start(self, recipe: Recipe, origin: Origin | None = None, first: Checkpoint | None = None) -> None:
        """A new run, with the checkpoint it starts from if there is one; refuses a folder that already has a run."""
        if (self.path / "recipe.toml").exists():
            raise KeypatchError(
                f"{self.path} already holds a run. Resume it: keypatch train --resume {self.path}, or choose another "
                "folder with --out."
            )
        if first is not None:  # before recipe.toml, which makes the folder a run: none resumes without its weights
            self.save(first)
        if origin is not None:
            write_json(self.path / "run.json", {**ORIGIN.head(), **to_plain(origin)})
        write_recipe(self.path / "recipe.toml", recipe)

    def sign(self) -> None:
        """Say which torchrun this run is of, so that its next attempt resumes it, and no other command does."""
        if (name := launch_name()) is not None:
            write_text(self.path / _LAUNCH, name)

    def is_of_this_launch(self) -> bool:
        signed = self.path / _LAUNCH
        return (self.path / "recipe.toml").exists() and signed.exists() and signed.read_text("utf-8") == launch_name()

    def resume(self, recipe: Recipe) -> Checkpoint | None:
        """The newest readable checkpoint; None where the run was ended before its first one."""
        if not holds_recipe(self.path / "recipe.toml", recipe):
            raise KeypatchError(
                f"{self.path} was started with another recipe, so it cannot be resumed with this one. "
                f"Its recipe is {self.path / 'recipe.toml'}; to use its weights, start a new run with --from."
            )
        newest = newest_checkpoint(self.path)
        checkpoint = load_checkpoint(newest) if newest else None
        self._cut_log(checkpoint.step if checkpoint else 0)
        return checkpoint

    def save(self, checkpoint: Checkpoint) -> None:
        save_checkpoint(checkpoint_path(self.path, checkpoint.step), checkpoint)
        for old in find_checkpoints(self.path)[:-KEPT]:
            old.unlink(missing_ok=True)

    def keep(self, checkpoint: Checkpoint, share: float | None = None) -> None:
        """The weights after a share of the run or an epoch, to be scored later; a run does not resume from them."""
        pairs = checkpoint.step * checkpoint.recipe.sampler.pairs
        path = epoch_path(self.path, pairs) if share is None else milestone_path(self.path, share)
        save_checkpoint(path, replace(checkpoint, optimizer={}, sampler_state={}))

    def log(self, record: Record) -> None:
        try:
            with (self.path / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(record)) + "\n")
        except OSError as error:
            raise KeypatchError(f"{self.path / LOG} cannot be written: {reason(error)}.") from error

    def _cut_log(self, step: int) -> None:
        """Drop what was logged after the checkpoint: it is done again."""
        if (self.path / LOG).exists():
            kept = [json.dumps(record) + "\n" for record in read_log(self.path) if _step(record) <= step]
            write_text(self.path / LOG, "".join(kept))


@contextmanager
def tensorboard_log(folder: Path) -> Iterator[Callable[[Record], None]]:
    """A function that writes each record as scalars over the number of pairs."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra.of("TensorBoard is not installed", "tensorboard", "leave out --tensorboard") from error
    writer = SummaryWriter(folder)

    def write(record: Record) -> None:
        scalars = {
            "loss/total": record.loss,
            **{f"loss/{name}": value for name, value in record.terms.items()},
            "distance/positive": record.positive,
            **{f"statistics/{name}": value for name, value in record.statistics.items()},
            "pairs per second": record.rate,
            "learning rate": record.lr,
        }
        if record.negative is not None:
            scalars["distance/negative"] = record.negative
        for of, scores in (record.validation or {}).items():
            scalars |= {f"validation/{of}/{score}": value for score, value in scores.items()}
        for name, value in scalars.items():
            writer.add_scalar(name, value, record.pairs)

    try:
        yield write
    finally:
        writer.close()
