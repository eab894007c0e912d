"""The training loop."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from keypatch.errors import DataError, Interrupted, KeypatchError, RecipeError
from keypatch.files import write_json
from keypatch.losses import Moment, State
from keypatch.networks import PatchNetwork
from keypatch.patches import PatchSource
from keypatch.patches.sources import TrainingSet, remember
from keypatch.progress import Callback, Progress, StopWish, interruptible
from keypatch.provenance import provenance
from keypatch.training.batches import Batch, Batches
from keypatch.training.checkpoints import (
    Checkpoint,
    find_kept,
    flat,
    nested,
    optimizer_tensors,
    restore_optimizer,
)
from keypatch.training.conditions import Conditions
from keypatch.training.epochs import read_epochs
from keypatch.training.machine import choose_compile, choose_precision, compiled, keep_heap
from keypatch.training.optimizers import WeightAverage, parameter_groups
from keypatch.training.ranks import ALONE, LostRank, Ranks, is_restarted
from keypatch.training.recipe import TRAINED, Recipe
from keypatch.training.recipe_files import recipe_from_toml, recipe_to_toml
from keypatch.training.run_folder import Origin, Record, RunFolder, Scores, read_log, tensorboard_log
from keypatch.training.statistics import statistics_of
from keypatch.training.step import CHUNK, Outcome, Step, check_loss, choose_pairs, chooser_of, layers_of, step_seed
from keypatch.training.teaching import Teacher, check_teacher, hash_of
from keypatch.training.validation import Validation
from keypatch.training.whole_batch import see_whole_batch

_LOG_SECONDS = 2.0
_VALIDATIONS = 10  # over a run, the last at its end


def run_training(
    recipe: Recipe,
    source: PatchSource,
    out: Path,
    progress: Progress | Callback | None = None,
    *,
    conditions: Conditions = Conditions(),  # noqa: B008 (frozen)
    resume: bool = False,
    weights: Mapping[str, Tensor] | None = None,
    validate: Sequence[Validation] = (),
    trained_before: Sequence[TrainingSet] = (),
    origin: Origin | None = None,
    ranks: Ranks = ALONE,
    teacher: Teacher | None = None,
    form: str | None = None,
) -> Path:
    """Train `recipe` on `source` into the run folder `out`; `weights` are a state dict to start from.

    They become the checkpoint of step 0, so that a run resumes from them whatever becomes of their file.
    `trained_before` are the sets that those weights, or the teacher, saw. `origin` is recorded in the folder of a new
    run, `form` in its card, by default what the recipe knows of itself. Of several `ranks` the first writes the folder
    and reports; a run that torchrun has started again resumes.

    Raises:
        Interrupted: Ctrl-C or SIGTERM, after saving a checkpoint.
        KeypatchError: a non-finite loss, a full disk, a folder in use; the last good checkpoint stays.
        LostRank: another rank is gone.
    """
    if ranks.first and resume and not (out / "recipe.toml").exists():
        raise DataError(f"There is no run to resume in {out}. Start one without --resume.")
    recipe_from_toml(recipe_to_toml(recipe), "The recipe", TRAINED)  # or nothing could read the run that it makes
    recipe.sampler.check(source.classes())
    if teacher is not None:
        check_teacher(teacher, recipe)
    check_loss(recipe.network.build(), recipe, teacher)
    _check_ranks(recipe, _hashes(source, teacher), ranks)
    device = ranks.device(conditions.device)  # a wrong choice is told before anything is written
    choose_precision(conditions.precision, device)
    choose_compile(conditions.compile, device, per_patch=False)
    sets = remember(source)
    training = [*trained_before, *sets]
    gpus = range(torch.cuda.device_count())
    with ExitStack() as held, torch.random.fork_rng(gpus), _threads(conditions.threads):
        folder, checkpoint = None, None
        draw: Callable[[Record], None] = _nothing
        held.enter_context(_resumable(out, conditions))
        if ranks.first:
            folder = held.enter_context(RunFolder.hold(out))
            if conditions.tensorboard:
                draw = held.enter_context(tensorboard_log(out / "tensorboard"))
            if resume or (is_restarted() and folder.is_of_this_launch()):
                checkpoint = folder.resume(recipe)
            else:
                checkpoint = _first(recipe, weights, training, _hashes(source, teacher)) if weights else None
                folder.start(recipe, origin, checkpoint)
            folder.sign()
        checkpoint = ranks.from_first(checkpoint)
        _check_same_data(checkpoint, _hashes(source, teacher), sets)
        told = ranks.progress(Progress.of(progress))
        trainer = _Trainer(
            recipe,
            source,
            folder,
            told,
            conditions,
            validate,
            draw,
            checkpoint,
            training,
            ranks=ranks,
            out=out,
            teacher=teacher,
            form=form or recipe.form,
        )
        trainer.train()
    return out


def _check_ranks(recipe: Recipe, hashes: Mapping[str, str], ranks: Ranks) -> None:
    """Raises KeypatchError unless every rank has rows to work on, and the recipe, data and teacher of the others."""
    if recipe.sampler.pairs < ranks.size:
        raise RecipeError(
            f"A batch of {recipe.sampler.pairs} pairs cannot be split among {ranks.size} ranks. Start fewer, or raise "
            "--set sampler.pairs."
        )
    own = {"recipe": recipe_to_toml(recipe), **hashes}
    for rank, other in enumerate(ranks.gather_values(own)):
        if differs := sorted(name for name in own.keys() | other.keys() if own.get(name) != other.get(name)):
            what = ", ".join(f"a different {name}" if name != "data" else "different data" for name in differs)
            raise DataError(f"Rank {rank} of this training has {what} from rank {ranks.rank}. Give all ranks the same.")


@contextmanager
def _resumable(out: Path, conditions: Conditions) -> Iterator[None]:
    """What ends a run from outside is told with the way to resume it."""
    try:
        with interruptible(f"{out} has what was saved so far", _resume(out)):
            yield
    except LostRank as lost:
        raise LostRank(
            f"{lost} {out} has the last checkpoint (one is saved every {conditions.checkpoint_seconds:g} seconds); "
            f"{_resume(out)}, on any number of ranks. torchrun --max-restarts 3 would do so automatically."
        ) from lost


def _first(
    recipe: Recipe, weights: Mapping[str, Tensor], training: Sequence[TrainingSet], hashes: Mapping[str, str]
) -> Checkpoint:
    """The weights that a run starts from, as the checkpoint of step 0."""
    origin = provenance(**hashes).to_json()
    return Checkpoint(recipe, 0, 0.0, weights, {}, {}, {}, {}, origin, tuple(training))


def _resume(out: Path) -> str:
    return f"keypatch train --resume {out} resumes it"


def _nothing(record: Record) -> None:
    return None


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class _Window:
    """Means since the last record."""

    outcomes: list[Outcome] = field(default_factory=list)
    since: float = field(default_factory=time.perf_counter)

    def means(self) -> tuple[float, dict[str, float], float, float]:
        n = len(self.outcomes)
        terms = {name: sum(o.terms[name] for o in self.outcomes) / n for name in self.outcomes[0].terms}
        return (
            sum(o.loss for o in self.outcomes) / n,
            terms,
            sum(o.positive for o in self.outcomes) / n,
            sum(o.negative for o in self.outcomes) / n,
        )


class _Trainer:
    """The moving parts of one run."""

    def __init__(
        self,
        recipe: Recipe,
        source: PatchSource,
        folder: RunFolder | None,  # the first rank's
        progress: Progress,
        conditions: Conditions,
        validate: Sequence[Validation],
        draw: Callable[[Record], None],
        checkpoint: Checkpoint | None,
        training: Sequence[TrainingSet],
        *,
        ranks: Ranks,
        out: Path,
        teacher: Teacher | None = None,
        form: str,
    ) -> None:
        self.recipe, self.folder, self.progress, self.validate = recipe, folder, progress, validate
        self.conditions, self.draw, self.ranks, self.out = conditions, draw, ranks, out
        self.form = form
        known = [*(checkpoint.training if checkpoint else ()), *training]
        self.training = tuple({each.identity: each for each in known}.values())
        self.device = ranks.device(conditions.device)
        if self.device.type == "cuda" and self.device.index is not None:
            torch.cuda.set_device(self.device)
        if self.device.type == "cpu":
            keep_heap()
        self.hashes = _hashes(source, teacher)
        torch.manual_seed(recipe.seed)
        self.network: PatchNetwork = recipe.network.build().to(self.device)
        see_whole_batch(self.network, self.network.layers, ranks, in_parts=conditions.cache_gradients is not None)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
        if checkpoint:
            self.network.load_state_dict(dict(checkpoint.network))
        elif ranks.size > 1:  # another processor may have drawn other weights
            self.network.load_state_dict(ranks.from_first(self.network.state_dict()))
        self.optimizer = recipe.optimizer.build(parameter_groups(self.network, recipe.last_layer))
        if checkpoint:
            restore_optimizer(self.optimizer, checkpoint.optimizer)
        self.average = None
        if recipe.average:
            self.average = WeightAverage(self.network, recipe.average, checkpoint.average if checkpoint else None)
        self.start = checkpoint.step if checkpoint else 0
        self.seconds_before = checkpoint.seconds if checkpoint else 0.0
        self.batches = Batches(recipe, source, source.classes(), self.device, ranks, teacher)
        self.step = self._make_step()
        self.loss_states = nested(checkpoint.loss_state, self.device) if checkpoint else {}
        self.chooser = chooser_of(recipe)
        self.sampler_state: State = checkpoint.sampler_state if checkpoint else {}
        if self.chooser and not self.start:
            self.sampler_state = self.chooser.start(self.batches.classes, recipe.network.dim)

    def _make_step(self) -> Step:
        precision = choose_precision(self.conditions.precision, self.device)
        compiling = choose_compile(self.conditions.compile, self.device, self.network.per_patch)
        compiling = compiling and not layers_of(self.recipe)
        trunk = compiled(self.network.trunk, self.progress.note) if compiling else self.network.trunk
        chunk = CHUNK if self.network.per_patch and self.device.type == "cpu" else None
        return Step(self.network, self.recipe, trunk, precision, chunk, self.ranks, self.conditions.cache_gradients)

    def train(self) -> None:
        recipe = self.recipe
        self.network.train()
        self.scores: Scores | None = None  # the last on the validation sets
        self.progress.count(self.start * recipe.sampler.pairs, recipe.steps * recipe.sampler.pairs, "pairs")
        self.began = self.saved_at = time.perf_counter()
        window = _Window()
        with StopWish(patient=self.ranks.size > 1) as wish:
            for step, batch in enumerate(self.batches.feed(self.start, recipe.steps), start=self.start):
                window.outcomes.append(self._advance(step, batch))
                last = step + 1 == recipe.steps
                scores = self._validate(step + 1)
                if last or scores is not None or time.perf_counter() - window.since >= _LOG_SECONDS:
                    self._report(step + 1, window, scores)
                    window = _Window()
                self._keep(step + 1)
                stop = self.ranks.any(bool(wish))
                if last or stop or time.perf_counter() - self.saved_at >= self.conditions.checkpoint_seconds:
                    self._save(step + 1)
                if stop and not last:
                    self.ranks.wait()  # until it is saved: torchrun kills the others soon after one has ended
                    pairs = (step + 1) * recipe.sampler.pairs
                    raise Interrupted(f"{self.out} keeps a checkpoint after {pairs:,} pairs", _resume(self.out))
        self._finish()

    def _advance(self, step: int, batch: Batch) -> Outcome:
        recipe = self.recipe
        moment = Moment(step, recipe.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.optimizer.lr * recipe.schedule.factor(moment.share) * group["scale"]
        # Layers that draw by themselves do so from the step's seed; dropout draws by the patch's row (`RowDropout`).
        torch.manual_seed(step_seed(recipe.seed, moment))
        self.optimizer.zero_grad(set_to_none=True)
        state = self.sampler_state
        if self.chooser:
            batch, state = choose_pairs(batch, self.chooser, self.step, self.batches, state, moment)
        outcome, described = self.step(batch, self.loss_states, moment)
        if not math.isfinite(outcome.loss):
            term = next((name for name, value in outcome.terms.items() if not math.isfinite(value)), "the sum")
            raise KeypatchError(
                f"The loss is not finite at step {step + 1} ({term}). Lower the learning rate (--set "
                f"optimizer.lr={recipe.optimizer.lr / 10:g}); the last good checkpoint is kept in {self.out}."
            )
        self.optimizer.step()
        self.loss_states = outcome.states
        if self.chooser:
            self.sampler_state = self.chooser.observe(described, state, moment)
        if self.average:
            self.average.update(self.network, step)
        return outcome

    def _validate(self, done: int) -> Scores | None:
        """The scores after `done` steps where they are due; of the weights that would be used."""
        if not self.validate or not self.ranks.first or not self._ends_epoch(done, validating=True):
            return None
        used = self.network
        if self.average is not None:
            used = self.recipe.network.build().to(self.device)
            used.load_state_dict(self.average.tensors)
        scores: Scores = {}
        for each in self.validate:
            scores.setdefault(each.name, {})[each.score] = each(used)
        return scores

    def _ends_epoch(self, done: int, validating: bool = False) -> bool:
        """Whether a step reaches a multiple of `keep_every` pairs; without it, and to validate, a tenth of the run."""
        steps, every, pairs = self.recipe.steps, self.conditions.keep_every, self.recipe.sampler.pairs
        if every is None:
            return validating and done * _VALIDATIONS // steps > (done - 1) * _VALIDATIONS // steps
        return done * pairs // every > (done - 1) * pairs // every or (validating and done == steps)

    def _report(self, done: int, window: _Window, scores: Scores | None) -> None:
        loss, terms, positive, negative = window.means()
        pairs = self.recipe.sampler.pairs
        record = Record(
            step=done,
            pairs=done * pairs,
            loss=loss,
            terms=terms,
            positive=positive,
            negative=None if math.isnan(negative) else negative,
            rate=len(window.outcomes) * pairs / max(time.perf_counter() - window.since, 1e-9),
            lr=self.optimizer.param_groups[0]["lr"],
            seconds=self._seconds(),
            statistics=statistics_of(self.recipe, self.loss_states, self.sampler_state),
            validation=scores,
        )
        if self.folder is not None:
            self.folder.log(record)
        self.scores = scores if scores is not None else self.scores
        self.progress.count(record.pairs, self.recipe.steps * pairs, "pairs", record.sentence(self.scores))
        self.draw(record)

    def _seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.began

    def _save(self, done: int) -> None:
        if self.folder is not None:
            self.folder.save(self._checkpoint(done))
        self.saved_at = time.perf_counter()

    def _keep(self, done: int) -> None:
        for share in self.conditions.keep:
            if self.folder is not None and done == max(1, round(share * self.recipe.steps)):
                self.folder.keep(self._checkpoint(done), share)
        if self.folder is not None and self._ends_epoch(done):
            self.folder.keep(self._checkpoint(done))

    def _checkpoint(self, done: int) -> Checkpoint:
        return Checkpoint(
            recipe=self.recipe,
            step=done,
            seconds=self._seconds(),
            network=self.network.state_dict(),
            optimizer=optimizer_tensors(self.optimizer),
            average=self.average.tensors if self.average else {},
            loss_state=flat(self.loss_states),
            sampler_state=self.sampler_state,
            provenance=provenance(**self.hashes).to_json(),
            training=self.training,
        )

    def _finish(self) -> None:
        if self.folder is None:
            return
        card: dict[str, Any] = {
            "recipe": self.recipe.name,
            "trained": self.form,
            "data": self.batches.source.name,
            "patches": len(self.batches.source),
            "points": self.batches.classes.count,
            "pairs": self.recipe.steps * self.recipe.sampler.pairs,
            "seconds": round(self._seconds(), 1),
            "precision": str(self.step.precision).removeprefix("torch."),
            "device": str(self.device),
            "threads": torch.get_num_threads(),
            "ranks": self.ranks.size,
            "provenance": provenance(**self.hashes).to_json(),
        }
        if self.batches.teacher is not None:
            card["teacher"] = self.batches.teacher.name
        if kept := find_kept(self.folder.path):
            card["kept"] = [f"checkpoints/{path.name}" for path in kept]
        if epochs := read_epochs(read_log(self.folder.path)):
            card["validation"] = {
                of: {each.score: each.to_json() for each in epochs if each.of == of}
                for of in dict.fromkeys(each.of for each in epochs)
            }
        write_json(self.folder.path / "card.json", card)


def _hashes(source: PatchSource, teacher: Teacher | None) -> dict[str, str]:
    """Of what a run is trained on besides its recipe: a resumed run must have the same."""
    data = {"data": sha256(source.point_id.tobytes()).hexdigest()}
    return data if teacher is None else {**data, "teacher": hash_of(teacher)}


def _check_same_data(checkpoint: Checkpoint | None, hashes: Mapping[str, str], sets: Sequence[TrainingSet]) -> None:
    """The hash of the data is of point ids alone; the sets tell of the patches, where the checkpoint knows them."""
    if checkpoint is None:
        return
    before, known = checkpoint.provenance.get("hashes", {}), {each.identity for each in checkpoint.training}
    same_sets = not known or known.issuperset(each.identity for each in sets)
    if before.get("data", hashes["data"]) != hashes["data"] or not same_sets:
        raise DataError("The run was started on other data. To resume it, give the same --data, in the same order.")
    if "teacher" in before and before["teacher"] != hashes.get("teacher"):
        raise DataError("The run was started with another teacher. To resume it, name the same one with --teacher.")
