"""The files of a run: recipe.toml, log.jsonl, checkpoints/, card.json, and the lock that keeps others out."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from keypatch.errors import DataError, KeypatchError, MissingExtra
from keypatch.files import lock, make_folder, parse_json, reason, write_text
from keypatch.training.checkpoints import (
    KEPT,
    Checkpoint,
    checkpoint_path,
    find_checkpoints,
    load_checkpoint,
    milestone_path,
    newest_checkpoint,
    save_checkpoint,
)
from keypatch.training.recipe import Recipe
from keypatch.training.recipe_files import read_recipe, write_recipe


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
    validation: float | None = None  # FPR95 on the validation set, in %, where it was taken

    def sentence(self, validation: float | None) -> str:
        """For the progress; with the last validation there was."""
        negatives = "" if self.negative is None else f"  negatives {self.negative:.3f}"
        score = "" if validation is None else f"  validation FPR95 {validation:.2f} %"
        return f"loss {self.loss:.4f}  positives {self.positive:.3f}{negatives}{score}"


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
            yield cls(path)

    def start(self, recipe: Recipe) -> None:
        """A new run; refuses a folder that already has one."""
        if (self.path / "recipe.toml").exists():
            raise KeypatchError(
                f"{self.path} already holds a run. Resume it with --resume, or choose another folder with --out."
            )
        write_recipe(self.path / "recipe.toml", recipe)

    def resume(self, recipe: Recipe) -> Checkpoint | None:
        """The newest readable checkpoint; None where the run was ended before its first one."""
        if not (self.path / "recipe.toml").exists():
            raise DataError(f"{self.path} holds no run to resume. Start it without --resume.")
        if read_recipe(self.path / "recipe.toml") != recipe:
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

    def keep(self, checkpoint: Checkpoint, share: float) -> None:
        """The weights as they are now, to be scored later; a run does not resume from them."""
        bare = replace(checkpoint, optimizer={}, sampler_state={})
        save_checkpoint(milestone_path(self.path, share), bare)

    def log(self, record: Record) -> None:
        try:
            with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(record)) + "\n")
        except OSError as error:
            raise KeypatchError(f"{self.path / 'log.jsonl'} cannot be written: {reason(error)}.") from error

    def _cut_log(self, step: int) -> None:
        """Drop what was logged after the checkpoint: it is done again."""
        path = self.path / "log.jsonl"
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                if parse_json(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError, TypeError):
                continue  # a line cut off when the process was killed
        write_text(path, "".join(kept))


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
        if record.validation is not None:
            scalars["validation FPR95 %"] = record.validation
        for name, value in scalars.items():
            writer.add_scalar(name, value, record.pairs)

    try:
        yield write
    finally:
        writer.close()
